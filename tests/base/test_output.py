"""What predict_proba returns."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from calibrant import CalibratedClassifier, Identity


@pytest.mark.parametrize("model", [Identity(), CalibratedClassifier(None)])
def test_the_choice_is_kept_by_a_clone_and_by_asking_for_nothing(model):
    chosen = clone(model).set_output(transform="pandas").set_output()
    assert chosen._output == clone(chosen)._output == "pandas"


def test_arrays_are_the_default_and_other_kinds_are_rejected():
    assert Identity()._output == "default"
    with pytest.raises(ValueError, match="transform must be one of 'default', 'pandas', 'polars'"):
        Identity().set_output(transform="arrow")
