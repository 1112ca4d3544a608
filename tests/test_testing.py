"""Every calibrator of the library keeps what `check_calibrator` demands."""

from __future__ import annotations

import warnings

import pytest
from sklearn.base import clone

import calibrant
import calibrators
from calibrant.exceptions import ConvergenceWarning
from calibrant.testing import CHECKS, check_calibrator, declared_exceptions


@pytest.mark.parametrize("inputs", ["proba", "logits"])
@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("calibrator", calibrators.ALL, ids=repr)
def test_every_calibrator_keeps_the_promise(calibrator, name, inputs):
    reason = declared_exceptions(calibrator).get(name)
    if reason:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # separable data are fed on purpose
        CHECKS[name](clone(calibrator).set_params(inputs=inputs))


class Forgetful(calibrant.TemperatureScaling):
    """Ignores the weights of the rows."""

    def _fit(self, u, y, weight):
        super()._fit(u, y, weight)
        self.temperature_ += weight.std()


def test_a_calibrator_that_breaks_a_promise_is_found():
    with pytest.raises(AssertionError):
        check_calibrator(Forgetful())


def test_a_declared_exception_is_skipped():
    class Excused(calibrant.TemperatureScaling):
        _calibrator_exceptions = dict.fromkeys(CHECKS, "because")

        def _fit(self, u, y, weight):
            raise RuntimeError

    check_calibrator(Excused())
