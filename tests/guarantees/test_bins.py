"""Guarantees of fitted bins: levels, bounds and what is covered."""

from __future__ import annotations

import numpy as np
import pytest

from binned import make_claim, make_quantity
from calibrant.guarantees import (
    BinnedClaim,
    binning_guarantee,
    clopper_pearson,
)
from calibrant.guarantees._bounds import conditional_bound, expected_bound, marginal_bound


def test_bins_of_all_labels_share_alpha():
    cat, dog = make_claim([10, 40], [50, 50]), make_claim([25], [50], name="'dog'")
    guarantee = binning_guarantee([make_quantity(cat, dog)], 0.06, 0.0)
    low, high = clopper_pearson(np.array([25.0]), np.array([50.0]), 0.02)
    assert [(i.claim, i.count) for i in guarantee.intervals] == [
        ("'cat'", 50),
        ("'cat'", 50),
        ("'dog'", 50),
    ]
    assert (guarantee.intervals[2].low, guarantee.intervals[2].high) == (low[0], high[0])
    alone = clopper_pearson(np.array([25.0]), np.array([50.0]), 0.06)
    assert (guarantee.intervals[2].low_single, guarantee.intervals[2].high_single) == (
        alone[0][0],
        alone[1][0],
    )


def test_quantities_split_alpha_and_the_largest_bound_counts():
    one, other = (
        make_quantity(make_claim([10], [100], points_per_bin=60)),
        make_quantity(make_claim([10], [50], points_per_bin=20)),
    )
    guarantee = binning_guarantee([one, other], 0.1, 0.0)
    assert guarantee.marginal == marginal_bound(20, 0.05, 0.0) == guarantee.quantities[1].marginal
    assert guarantee.conditional == conditional_bound(1000 / 20, 20, 0.05, 0.0)
    assert guarantee.expected_ece == expected_bound(20, 0.0)
    assert guarantee.quantities[0].marginal == marginal_bound(60, 0.05, 0.0)
    assert guarantee.quantities[0].marginal_single == marginal_bound(60, 0.1, 0.0)


def test_alpha_may_be_given_for_each_quantity():
    quantities = [make_quantity(make_claim([10], [100])), make_quantity(make_claim([10], [100]))]
    guarantee = binning_guarantee(quantities, [0.01, 0.04], 0.0)
    assert guarantee.alpha == pytest.approx(0.05)
    assert [q.marginal for q in guarantee.quantities] == [
        marginal_bound(50, 0.01, 0.0),
        marginal_bound(50, 0.04, 0.0),
    ]


def test_fewer_points_than_asked_for_weaken_the_bounds():
    guarantee = binning_guarantee([make_quantity(make_claim([1, 10], [9, 60]))], 0.05, 0.0)
    assert guarantee.quantities[0].points_per_bin == 10
    assert guarantee.marginal == marginal_bound(10, 0.05, 0.0)


def test_a_bin_without_points_is_not_covered():
    claim = BinnedClaim(
        "'cat'", 50, np.array([0.5, 0.2]), np.array([0.0, 50.0]), np.array([0.0, 10.0])
    )
    assert binning_guarantee([make_quantity(claim)], 0.05, 0.0).n_bins == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan"), [0.5, 0.6], [0.1], [0.1, 0.0]])
def test_a_probability_that_is_none_is_rejected(alpha):
    quantities = [make_quantity(make_claim([10], [100])), make_quantity(make_claim([10], [100]))]
    with pytest.raises(ValueError, match="alpha must"):
        binning_guarantee(quantities, alpha, 0.0)
