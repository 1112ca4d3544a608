"""The conservative interval of the cutoff calibration error."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference import cutoff_interval
from calibrant.metrics import cutoff_calibration_error


def test_the_interval_holds_the_error_of_infinitely_many_rows(rng):
    for _ in range(100):
        score = rng.random(300)
        outcome = rng.random(300) < score**1.5
        result = cutoff_interval(outcome.astype(int), score, notion="class-1")
        # Over all scores, the mean of s - s^1.5.
        assert result.low <= 0.1 <= result.high
        assert result.guarantee == "finite-sample"


def test_it_is_the_error_plus_and_minus_four_times_the_bound_of_a_distribution_function(rng):
    proba = rng.dirichlet(np.ones(3), 5000)
    y = rng.integers(0, 3, 5000)
    result = cutoff_interval(y, proba, level=0.9)
    assert result.estimate == cutoff_calibration_error(y, proba)
    assert result.high - result.estimate == pytest.approx(
        4 * np.sqrt(np.log(40) / 10_000), abs=1e-12
    )


def test_several_claims_share_the_level(rng):
    proba = rng.dirichlet(np.ones(3), 5000)
    y = rng.integers(0, 3, 5000)
    one, three = (cutoff_interval(y, proba, notion=n) for n in ("class-0", "class-wise"))
    assert three.high - three.estimate > one.high - one.estimate
    with pytest.raises(ValueError, match="level"):
        cutoff_interval(y, proba, level=1.0)
