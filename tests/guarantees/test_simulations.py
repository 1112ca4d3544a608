"""Guarantees hold when calibration data are drawn again and again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrant.binary import HistogramBinning
from calibrant.multiclass import CanonicalBinning
from calibrant.reductions import MulticlassToBinary

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
    guarantee = calibrator.guarantee(ALPHA)
    rate, mass = [], []
    for label, share in enumerate([0.5, 0.3, 0.2]):
        own = _rates(calibrator.calibrators_[label].edges_, POWERS[label], n_atoms)
        rate.append(own[0])
        mass.append(own[1] * share)
    rate, mass = np.concatenate(rate), np.concatenate(mass)
    value, low, high, low_single, high_single = np.array(
        [(i.value, i.low, i.high, i.low_single, i.high_single) for i in guarantee.intervals]
    ).T
    assert rate.size == value.size
    misses = (rate < low) | (rate > high), (rate < low_single) | (rate > high_single)
    return guarantee, mass, np.abs(rate - value), *misses


@pytest.mark.slow
@pytest.mark.parametrize("n_atoms", [None, 40], ids=["distinct scores", "tied scores"])
def test_top_label_guarantees_hold_in_simulation(rng, n_atoms):
    # Ties are not covered by the proofs: this shows that leaving one row of an edge out serves them
    # as well.
    marginal, conditional, simultaneous, single, ece = np.zeros((5, N_SETS))
    for i in range(N_SETS):
        proba, y = _forecasts(rng, 400, n_atoms)
        calibrator = MulticlassToBinary(HistogramBinning(points_per_bin=20)).fit(proba, y)
        guarantee, mass, error, miss, miss_single = _violations(calibrator, n_atoms)
        marginal[i] = mass[error > guarantee.marginal].sum()
        conditional[i] = (error > guarantee.conditional).any()
        simultaneous[i] = miss.any()
        single[i] = miss_single.mean()
        ece[i] = (mass @ error) / guarantee.expected_ece
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
        guarantee = calibrator.guarantee(ALPHA)
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
        marginal[i] = np.mean(
            np.maximum(errors[0][bins[0]], errors[1][bins[1]]) > guarantee.marginal
        )
        conditional[i] = max(error.max() for error in errors) > guarantee.conditional
        low, high = np.array([(interval.low, interval.high) for interval in guarantee.intervals]).T
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
        guarantee = calibrator.fit(u, y).guarantee(ALPHA)
        place = calibrator.bins(cases)
        size = np.bincount(place, minlength=calibrator.n_bins_)[:, None]
        sums = np.stack(
            [np.bincount(place, truth[:, k], minlength=calibrator.n_bins_) for k in range(3)],
            axis=1,
        )
        distance = np.abs(calibrator.values_ - (sums / size)[calibrator.occupied_]).sum(axis=1)
        failed[i] = (distance > guarantee.radius).any()
        closeness[i] = (distance / guarantee.radius).max()
    assert failed.mean() <= ALPHA
    assert closeness.mean() > 0.3
