"""Guarantees in sentences and as plain data."""

from __future__ import annotations

import json
import math

import numpy as np

from binned import make_claim, make_quantity
from calibrant.guarantees import (
    binning_guarantee,
    canonical_guarantee,
    multinomial_radius,
)


def test_the_sentence_a_manager_reads():
    claims = [make_claim([h], [400], points_per_bin=400) for h in (348, 348, 200)]
    guarantee = binning_guarantee(
        [make_quantity(*claims)], 0.05, 0.0, ("'dog' (too few rows for separate bins)",)
    )
    low, high = guarantee.intervals[0].low, guarantee.intervals[0].high
    assert (math.floor(100 * low), math.ceil(100 * high)) == (82, 91)
    assert str(guarantee) == (
        "The following bounds hold with 95% confidence, for all 3 bins jointly. When the reported "
        "probability of 'cat' is 0.87, the true frequency is between 0.82 and 0.91. No reported "
        "probability differs from its true frequency by more than 0.07. The bounds apply "
        "to predict_claims for new cases from the same distribution as the calibration rows. The "
        "calibration rows must be independent of each other, and the model must not have been "
        "trained or selected on these rows. Not covered: 'dog' (too few rows for separate bins)."
    )


def test_the_largest_gap_is_smaller_than_the_theorem_says():
    guarantee = binning_guarantee(
        [make_quantity(*[make_claim([h], [49]) for h in (25, 45, 49)], n_samples=150)], 0.05, 0.0
    )
    assert guarantee.widest.value == 25 / 49
    assert guarantee.typical.value == 45 / 49
    assert guarantee.widest.gap < guarantee.conditional


def test_a_guarantee_is_plain_data():
    guarantee = binning_guarantee([make_quantity(make_claim([10, 40], [50, 50]))], 0.05, 1e-10)
    plain = json.loads(json.dumps(guarantee.to_dict()))
    assert plain["conditional"] == guarantee.conditional
    assert plain["intervals"][1]["low"] == guarantee.intervals[1].low
    assert plain["text"] == str(guarantee)


def test_a_canonical_guarantee_is_plain_data_and_a_sentence():
    guarantee = canonical_guarantee(
        np.array([0, 4]), np.array([1000.0, 10.0]), 3, 0.05, ("2 bin(s) without rows",)
    )
    assert (
        guarantee.conditional
        == guarantee.radius[1]
        == multinomial_radius(np.array([10.0]), 3, 0.025)[0]
    )
    assert guarantee.marginal == multinomial_radius(np.array([10.0]), 3, 0.05)[0]
    plain = json.loads(json.dumps(guarantee.to_dict()))
    assert plain["radius"] == guarantee.radius.tolist()
    assert str(guarantee) == (
        "The following bounds hold with 95% confidence, for all 2 bins jointly. The true "
        "probability of any class, or set of classes, is within 0.06 of the reported probability "
        "in the largest bin (1000 rows), and within 0.54 in the smallest bin (10 rows). The bounds "
        "hold for new cases from the same distribution as the calibration rows. The calibration "
        "rows must be independent of each other, and the model must not have been trained or "
        "selected on these rows. Not covered: 2 bin(s) without "
        "rows."
    )
