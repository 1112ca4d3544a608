"""Every calibrator of the package passes `check_calibrator`."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import calibrant
import calibrators
from calibrant.exceptions import ConvergenceWarning
from calibrant.testing import CHECKS, check_calibrator, declared_exceptions, make_data

# Checks that depend on the type of the scores; the others run with logits in the slow set.
OF_THE_FORM = {
    *("check_array_kinds", "check_binary_forms_agree", "check_dtypes", "check_frames"),
    *("check_exact_zeros_and_ones", "check_log_proba", "check_output_is_valid"),
}


def every_promise():
    for calibrator, name, inputs in product(calibrators.ALL, CHECKS, ("proba", "logits")):
        is_quick = inputs == "proba" or name in OF_THE_FORM
        yield pytest.param(
            calibrator,
            name,
            inputs,
            id=f"{calibrator!r}-{name}-{inputs}",
            marks=() if is_quick else pytest.mark.slow,
        )


@pytest.mark.parametrize(("calibrator", "name", "inputs"), list(every_promise()))
def test_every_calibrator_keeps_the_promise(calibrator, name, inputs):
    reason = declared_exceptions(calibrator).get(name)
    if reason:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # separable data are used on purpose
        CHECKS[name](clone(calibrator).set_params(inputs=inputs))


class Forgetful(calibrant.TemperatureScaling):
    """Calibrator that ignores row weights."""

    def _fit(self, sample):
        super()._fit(sample)
        self.temperature_ += sample.rows("this method").weight.std()


def test_a_calibrator_that_breaks_a_promise_is_found():
    with pytest.raises(AssertionError):
        check_calibrator(Forgetful())


def test_a_declared_exception_is_skipped():
    class Excused(calibrant.TemperatureScaling):
        check_exceptions = dict.fromkeys(CHECKS, "because")

        def _fit(self, sample):
            raise RuntimeError

    check_calibrator(Excused())


class Counting(calibrant.TemperatureScaling):
    """Calibrator for which a weight of 2 differs from duplicating the row."""

    counts_rows = True

    def _fit(self, sample):
        super()._fit(sample)
        self.temperature_ += sample.rows("this method").weight.max()


def test_a_method_that_counts_rows_is_not_asked_whether_weights_are_copies():
    assert list(declared_exceptions(Counting())) == ["check_weights_are_copies"]
    check_calibrator(Counting())


@pytest.mark.parametrize(
    ("calibrator", "counts"),
    [
        (calibrant.HistogramBinning(), True),
        (calibrant.HistogramBinning(boundary="include"), False),
        (calibrant.HistogramBinning(strategy="uniform"), False),
        (calibrant.CanonicalBinning(), True),
        (calibrant.CanonicalBinning("grid"), False),
        (calibrant.DirichletCalibration(), True),
        (calibrant.DirichletCalibration(lam=0.1), False),
        (calibrant.MulticlassToBinary(calibrant.HistogramBinning()), True),
        (calibrant.MulticlassToBinary(calibrant.PlattScaling()), False),
        (calibrant.CrossFitted(calibrant.HistogramBinning()), False),
        (calibrant.TemperatureScaling(), False),
    ],
    ids=repr,
)
def test_methods_say_whether_they_count_rows(calibrator, counts):
    assert calibrator.counts_rows is counts


def test_a_method_that_counts_rows_is_given_copies_by_what_is_made_of_it(rng):
    P, y = make_data(calibrant.DirichletCalibration(), 60)
    weight = rng.integers(1, 4, size=60)
    copies = np.repeat(np.arange(60), weight)
    base = calibrant.CrossFitted(calibrant.DirichletCalibration(grid=(1e-3, 1e-1)), cv=2)
    weighted = clone(base).fit(P, y, sample_weight=weight).predict_proba(P)
    np.testing.assert_array_equal(weighted, base.fit(P[copies], y[copies]).predict_proba(P))


def test_data_are_made_alike_by_the_same_seed_and_in_the_form_of_the_calibrator():
    X, y = make_data(calibrant.Identity(inputs="logits"), 30, seed=4)
    assert X.shape == (30, 4)
    assert (X < 0).any()
    np.testing.assert_array_equal(X, make_data(calibrant.Identity(inputs="logits"), 30, seed=4)[0])
    assert make_data(calibrant.PlattScaling())[0].sum(axis=1) == pytest.approx(1)
    assert set(y) <= set(range(4))
