"""Guarantees: the formulas, what is said, and that it holds when calibration data are drawn again
and again."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibrant.binary import HistogramBinning
from calibrant.guarantees import (
    BinnedClaim,
    BinnedQuantity,
    binning_guarantee,
    canonical_guarantee,
    clopper_pearson,
    conditional_bound,
    expected_bound,
    marginal_bound,
    multinomial_radius,
)
from calibrant.multiclass import CanonicalBinning
from calibrant.reductions import MulticlassToBinary


def _claim(hits, counts, name="'cat'", points_per_bin=50):
    hits, counts = np.array(hits, dtype=float), np.array(counts, dtype=float)
    return BinnedClaim(name, points_per_bin, hits / counts, counts, hits)


def _quantity(*claims, name="all labels", n_samples=1000):
    return BinnedQuantity(name, n_samples, claims)


# Formulas.


def test_bounds_at_fifty_points_a_bin():
    assert marginal_bound(50, 0.05, 0.0) == pytest.approx(0.194014502)  # sqrt(log 40 / 98)
    assert conditional_bound(100, 50, 0.05, 0.0) == pytest.approx(
        0.290917788
    )  # sqrt(log 4000 / 98)
    assert expected_bound(50, 1e-10) == pytest.approx(0.1 + 1e-10, abs=1e-13)


def test_the_conditional_bound_is_that_of_the_theorem():
    n, k, alpha, delta = 5000, 40, 0.1, 1e-3
    theorem = math.sqrt(math.log(2 * n / (k * alpha)) / (2 * (k - 1))) + delta
    assert conditional_bound(n / k, k, alpha, delta) == pytest.approx(theorem, rel=1e-14)


def test_clopper_pearson_inverts_the_binomial_tails():
    hits, counts, alpha = np.array([1.0, 7.0, 29.0]), np.array([10.0, 20.0, 30.0]), 0.03
    low, high = clopper_pearson(hits, counts, alpha)
    np.testing.assert_allclose(stats.binom.sf(hits - 1, counts, low), alpha / 2, rtol=1e-9)
    np.testing.assert_allclose(stats.binom.cdf(hits, counts, high), alpha / 2, rtol=1e-9)


def test_clopper_pearson_of_nothing_and_of_everything():
    low, high = clopper_pearson(np.array([0.0, 12.0]), np.array([12.0, 12.0]), 0.05)
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 12))
    assert low[1] == pytest.approx(0.025 ** (1 / 12))


@given(st.integers(2, 400), st.floats(0, 1), st.floats(1e-6, 0.5), st.integers(1, 1000))
def test_exact_intervals_are_never_wider_than_the_theorem(k, share, alpha, n_bins):
    # Hoeffding's inequality bounds the very tails that Clopper and Pearson invert.
    count = float(k - 1)
    hits = np.array([np.round(share * count)])
    low, high = clopper_pearson(hits, np.array([count]), alpha / n_bins)
    bound = conditional_bound(n_bins, k, alpha, 0.0)
    assert max(high[0] - hits[0] / count, hits[0] / count - low[0]) <= bound + 1e-9


def test_the_radius_of_a_multinomial_is_that_of_bretagnolle_huber_carol():
    radius = multinomial_radius(np.array([100.0]), 3, 0.05)
    assert 2**3 * math.exp(-100 * radius[0] ** 2 / 2) == pytest.approx(0.05)


# What a guarantee is made of.


def test_bins_of_all_labels_share_alpha():
    cat, dog = _claim([10, 40], [50, 50]), _claim([25], [50], name="'dog'")
    made = binning_guarantee([_quantity(cat, dog)], 0.06, 0.0)
    low, high = clopper_pearson(np.array([25.0]), np.array([50.0]), 0.02)
    assert [(i.claim, i.count) for i in made.intervals] == [
        ("'cat'", 50),
        ("'cat'", 50),
        ("'dog'", 50),
    ]
    assert (made.intervals[2].low, made.intervals[2].high) == (low[0], high[0])
    alone = clopper_pearson(np.array([25.0]), np.array([50.0]), 0.06)
    assert (made.intervals[2].low_single, made.intervals[2].high_single) == (
        alone[0][0],
        alone[1][0],
    )


def test_quantities_split_alpha_and_the_largest_bound_counts():
    one, other = (
        _quantity(_claim([10], [100], points_per_bin=60)),
        _quantity(_claim([10], [50], points_per_bin=20)),
    )
    made = binning_guarantee([one, other], 0.1, 0.0)
    assert made.marginal == marginal_bound(20, 0.05, 0.0) == made.quantities[1].marginal
    assert made.conditional == conditional_bound(1000 / 20, 20, 0.05, 0.0)
    assert made.expected_ece == expected_bound(20, 0.0)
    assert made.quantities[0].marginal == marginal_bound(60, 0.05, 0.0)
    assert made.quantities[0].marginal_single == marginal_bound(60, 0.1, 0.0)


def test_alpha_may_be_given_for_each_quantity():
    quantities = [_quantity(_claim([10], [100])), _quantity(_claim([10], [100]))]
    made = binning_guarantee(quantities, [0.01, 0.04], 0.0)
    assert made.alpha == pytest.approx(0.05)
    assert [q.marginal for q in made.quantities] == [
        marginal_bound(50, 0.01, 0.0),
        marginal_bound(50, 0.04, 0.0),
    ]


def test_fewer_points_than_asked_for_weaken_the_bounds():
    made = binning_guarantee([_quantity(_claim([1, 10], [9, 60]))], 0.05, 0.0)
    assert made.quantities[0].points_per_bin == 10
    assert made.marginal == marginal_bound(10, 0.05, 0.0)


def test_a_bin_without_points_is_not_covered():
    claim = BinnedClaim(
        "'cat'", 50, np.array([0.5, 0.2]), np.array([0.0, 50.0]), np.array([0.0, 10.0])
    )
    assert binning_guarantee([_quantity(claim)], 0.05, 0.0).n_bins == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan"), [0.5, 0.6], [0.1], [0.1, 0.0]])
def test_a_probability_that_is_none_is_refused(alpha):
    quantities = [_quantity(_claim([10], [100])), _quantity(_claim([10], [100]))]
    with pytest.raises(ValueError, match="alpha must"):
        binning_guarantee(quantities, alpha, 0.0)


def test_the_sentence_a_manager_reads():
    claims = [_claim([h], [400], points_per_bin=400) for h in (348, 348, 200)]
    made = binning_guarantee(
        [_quantity(*claims)], 0.05, 0.0, ("'dog', with too few rows for bins of their own",)
    )
    low, high = made.intervals[0].low, made.intervals[0].high
    assert (math.floor(100 * low), math.ceil(100 * high)) == (82, 91)
    assert str(made) == (
        "With 95 % confidence, for all 3 bins at once: when the model says 'cat' with 0.87, the "
        "true frequency is between "
        "0.82 and 0.91. No reported probability is farther than 0.07 from its true frequency. This "
        "holds for predict_claims, for new cases drawn like the calibration rows, if these are "
        "independent of each other and the model was neither trained nor selected on them. Not "
        "covered: 'dog', with too few rows for bins of their own."
    )


def test_the_largest_gap_is_smaller_than_the_theorem_says():
    made = binning_guarantee(
        [_quantity(*[_claim([h], [49]) for h in (25, 45, 49)], n_samples=150)], 0.05, 0.0
    )
    assert made.widest.value == 25 / 49
    assert made.typical.value == 45 / 49
    assert made.widest.gap < made.conditional


def test_a_guarantee_is_plain_data():
    made = binning_guarantee([_quantity(_claim([10, 40], [50, 50]))], 0.05, 1e-10)
    plain = json.loads(json.dumps(made.to_dict()))
    assert plain["conditional"] == made.conditional
    assert plain["intervals"][1]["low"] == made.intervals[1].low
    assert plain["text"] == str(made)


def test_a_canonical_guarantee_is_plain_data_and_a_sentence():
    made = canonical_guarantee(
        np.array([0, 4]), np.array([1000.0, 10.0]), 3, 0.05, ("2 bin(s) without rows",)
    )
    assert made.conditional == made.radius[1] == multinomial_radius(np.array([10.0]), 3, 0.025)[0]
    assert made.marginal == multinomial_radius(np.array([10.0]), 3, 0.05)[0]
    plain = json.loads(json.dumps(made.to_dict()))
    assert plain["radius"] == made.radius.tolist()
    assert str(made) == (
        "With 95 % confidence, for all 2 bins at once: the true probability of any class, or set "
        "of classes, is within 0.06 "
        "of the reported one in the fullest bin (1000 rows) and within 0.54 in the emptiest (10 "
        "rows). This holds for new "
        "cases drawn like the calibration rows, if these are independent of each other and the "
        "model was neither trained nor selected on them. Not covered: 2 bin(s) without rows."
    )


# The guarantees hold: a known distribution, 2,000 calibration sets, alpha = 0.1.

ALPHA, N_SETS = 0.1, 2000
MONTE_CARLO = 3 * math.sqrt(ALPHA * (1 - ALPHA) / N_SETS)
POWERS = np.array([1, 2, 3])
"""The true frequency of class l at top score s is ((s - 1/2) * 2)^(l + 1)."""


def _forecasts(rng, n, n_atoms=None):
    """Three classes: a top class and a top score above one half, and whether the truth is the top
    class."""
    top = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    t = (
        rng.uniform(size=n)
        if n_atoms is None
        else (rng.integers(0, n_atoms, size=n) + 0.5) / n_atoms
    )
    hit = rng.uniform(size=n) < t ** POWERS[top]
    proba = np.repeat(((1 - t) / 4)[:, None], 3, axis=1)
    proba[np.arange(n), top] = (1 + t) / 2
    return proba, np.where(hit, top, (top + 1) % 3)


def _rates(edges, power, n_atoms=None):
    """True frequency and probability of each bin of top scores, given the class."""
    t = np.clip(2 * np.r_[0.5, edges[:-1], 1.0] - 1, 0, 1)
    if n_atoms is None:
        mass = np.diff(t)
        return np.diff(t ** (power + 1)) / ((power + 1) * mass), mass
    atoms = (np.arange(n_atoms) + 0.5) / n_atoms
    place = np.searchsorted(t[1:-1] + 1e-9, atoms)
    mass = np.bincount(place, minlength=edges.size)
    return np.bincount(place, atoms**power, minlength=edges.size) / mass, mass / n_atoms


def _violations(calibrator, n_atoms):
    """Of one calibration set: per covered bin its probability, its error and the two interval
    misses, and the guarantee."""
    made = calibrator.guarantee(ALPHA)
    rate, mass = [], []
    for label, share in enumerate([0.5, 0.3, 0.2]):
        own = _rates(calibrator.calibrators_[label].edges_, POWERS[label], n_atoms)
        rate.append(own[0])
        mass.append(own[1] * share)
    rate, mass = np.concatenate(rate), np.concatenate(mass)
    value, low, high, low_single, high_single = np.array(
        [(i.value, i.low, i.high, i.low_single, i.high_single) for i in made.intervals]
    ).T
    assert rate.size == value.size
    misses = (rate < low) | (rate > high), (rate < low_single) | (rate > high_single)
    return made, mass, np.abs(rate - value), *misses


@pytest.mark.slow
@pytest.mark.parametrize("n_atoms", [None, 40], ids=["distinct scores", "tied scores"])
def test_top_label_guarantees_hold_in_simulation(rng, n_atoms):
    # Ties are not covered by the proofs: this shows that leaving one row of an edge out serves them
    # as well.
    marginal, conditional, simultaneous, single, ece = np.zeros((5, N_SETS))
    for i in range(N_SETS):
        proba, y = _forecasts(rng, 400, n_atoms)
        calibrator = MulticlassToBinary(HistogramBinning(points_per_bin=20)).fit(proba, y)
        made, mass, error, miss, miss_single = _violations(calibrator, n_atoms)
        marginal[i] = mass[error > made.marginal].sum()
        conditional[i] = (error > made.conditional).any()
        simultaneous[i] = miss.any()
        single[i] = miss_single.mean()
        ece[i] = (mass @ error) / made.expected_ece
    assert marginal.mean() <= ALPHA + MONTE_CARLO
    assert conditional.mean() <= ALPHA + MONTE_CARLO
    assert simultaneous.mean() <= ALPHA + MONTE_CARLO
    assert single.mean() <= ALPHA + MONTE_CARLO
    assert ece.mean() <= 1
    # The exact intervals are not vacuous: they miss about as often as they may.
    assert simultaneous.mean() > ALPHA / 10
    assert single.mean() > ALPHA / 3
    assert ece.mean() > 0.3


# Integrals of the true frequency of classes 0 and 1 over their own score, where class 1 has
# frequency s^2 at score s.
INTEGRALS = (lambda t: t + (1 - t) ** 3 / 3, lambda t: t**3 / 3)


@pytest.mark.slow
def test_class_wise_guarantees_hold_in_simulation(rng):
    cases = (np.arange(500) + 0.5) / 500
    marginal, conditional, simultaneous = np.zeros((3, N_SETS))
    for i in range(N_SETS):
        score = rng.uniform(size=300)
        y = (rng.uniform(size=300) < score**2).astype(int)
        calibrator = MulticlassToBinary(HistogramBinning(points_per_bin=20), "class-wise").fit(
            score, y
        )
        made = calibrator.guarantee(ALPHA)
        rates = []
        for fitted, integral in zip(calibrator.calibrators_, INTEGRALS, strict=True):
            t = np.r_[0.0, fitted.edges_[:-1], 1.0]
            rates.append(np.diff(integral(t)) / np.diff(t))
        errors = [
            np.abs(rate - fitted.values_)
            for rate, fitted in zip(rates, calibrator.calibrators_, strict=True)
        ]
        bins = [
            fitted.bins_.assign(s, 0)
            for fitted, s in zip(calibrator.calibrators_, (1 - cases, cases), strict=True)
        ]
        marginal[i] = np.mean(np.maximum(errors[0][bins[0]], errors[1][bins[1]]) > made.marginal)
        conditional[i] = max(error.max() for error in errors) > made.conditional
        low, high = np.array([(interval.low, interval.high) for interval in made.intervals]).T
        simultaneous[i] = ((np.concatenate(rates) < low) | (np.concatenate(rates) > high)).any()
    assert marginal.mean() <= ALPHA + MONTE_CARLO
    assert conditional.mean() <= ALPHA + MONTE_CARLO
    assert ALPHA / 10 < simultaneous.mean() <= ALPHA + MONTE_CARLO


def _canonical_case(rng, n):
    """Vectors of three classes, and labels that follow them only in part."""
    u = rng.dirichlet(np.ones(3), size=n)
    truth = (u + np.roll(u, 1, axis=1)) / 2
    return u, truth, (rng.uniform(size=(n, 1)) > np.cumsum(truth, axis=1)[:, :2]).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "calibrator",
    [
        CanonicalBinning("sierpinski", depth=1),
        CanonicalBinning("grid", resolution=3),
        CanonicalBinning(n_bins=8),
    ],
    ids=lambda c: c.partition,
)
def test_canonical_guarantees_hold_in_simulation(rng, calibrator):
    # The true distribution of a bin is a mean over many more cases; 500 sets keep the time down.
    cases, truth, _ = _canonical_case(rng, 20_000)
    n_sets = 500
    failed, closeness = np.zeros((2, n_sets))
    for i in range(n_sets):
        u, _, y = _canonical_case(rng, 400)
        made = calibrator.fit(u, y).guarantee(ALPHA)
        place = calibrator.bins(cases)
        size = np.bincount(place, minlength=calibrator.n_bins_)[:, None]
        sums = np.stack(
            [np.bincount(place, truth[:, k], minlength=calibrator.n_bins_) for k in range(3)],
            axis=1,
        )
        distance = np.abs(calibrator.values_ - (sums / size)[calibrator.occupied_]).sum(axis=1)
        failed[i] = (distance > made.radius).any()
        closeness[i] = (distance / made.radius).max()
    assert failed.mean() <= ALPHA
    assert closeness.mean() > 0.3
