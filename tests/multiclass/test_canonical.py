"""Canonical binning: the partitions against their definitions, the estimates, and what is
guaranteed."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone

from calibrant.guarantees import multinomial_radius
from calibrant.metrics import brier_score
from calibrant.multiclass import CanonicalBinning
from calibrant.multiclass._partitions import GridPartition, SierpinskiPartition

ALL = [
    CanonicalBinning(),
    CanonicalBinning(n_bins=4, directions="random", random_state=3),
    CanonicalBinning("sierpinski"),
    CanonicalBinning("grid"),
]


def _sample(rng, n=500, n_classes=3):
    u = rng.dirichlet(np.ones(n_classes), size=n)
    return u, np.array([rng.choice(n_classes, p=row) for row in u])


# Sierpinski.


@pytest.mark.parametrize(
    ("n_classes", "depth", "n_bins"),
    [(3, 1, 4), (3, 2, 13), (3, 3, 40), (4, 2, 21), (2, 3, 15), (10, 3, 1111)],
)
def test_a_sierpinski_partition_has_the_published_number_of_bins(n_classes, depth, n_bins):
    assert (
        SierpinskiPartition(n_classes, depth).n_bins
        == n_bins
        == (n_classes ** (depth + 1) - 1) // (n_classes - 1)
    )


def test_all_bins_of_a_sierpinski_partition_are_reached(rng):
    u = np.concatenate([rng.dirichlet(np.full(3, a), size=20_000) for a in (1.0, 0.3)])
    assert np.unique(SierpinskiPartition(3, 2).assign(u)).tolist() == list(range(13))


def _corners(s, depth):
    """The classes that a vector descends to (eq. 18 and 19), by the definition."""
    path = []
    while len(path) < depth and (s > 0.5).any():
        corner = int(np.flatnonzero(s > 0.5)[0])
        s = 2 * s - np.eye(len(s))[corner]
        path.append(corner)
    return tuple(path)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_rows_share_a_sierpinski_bin_if_they_descend_alike(rng, n_classes, depth):
    u = np.concatenate([rng.dirichlet(np.full(n_classes, a), size=300) for a in (1.0, 0.2, 0.05)])
    u = np.concatenate([u, np.eye(n_classes), np.full((1, n_classes), 1 / n_classes)])
    paths = [_corners(row, depth) for row in u]
    bins = SierpinskiPartition(n_classes, depth).assign(u).tolist()
    assert len(set(zip(bins, paths, strict=True))) == len(set(bins)) == len(set(paths))


def test_half_of_the_probability_is_not_more_than_half():
    assert SierpinskiPartition(3, 2).assign(
        np.array([[0.5, 0.5, 0.0], [0.5, 0.3, 0.2]])
    ).tolist() == [0, 0]


# Grid.


def _tuples(n_classes, resolution):
    """The set I of eq. 20, in lexicographic order."""
    low, high = max(n_classes, resolution + 1), resolution + n_classes - 1
    every = itertools.product(range(1, resolution + 1), repeat=n_classes)
    return [k for k in every if low <= sum(k) <= high]


@pytest.mark.parametrize(
    ("n_classes", "resolution"), [(2, 1), (2, 5), (3, 1), (3, 4), (3, 5), (4, 2), (4, 3), (5, 3)]
)
def test_grid_bins_are_the_tuples_of_the_rule(n_classes, resolution):
    partition = GridPartition(n_classes, resolution)
    tuples = _tuples(n_classes, resolution)
    assert partition.n_bins == len(tuples)
    np.testing.assert_array_equal(partition._rank(np.array(tuples)), np.arange(len(tuples)))


def test_a_grid_of_three_classes_has_the_square_of_its_resolution_as_bins():
    assert [GridPartition(3, k).n_bins for k in (1, 2, 5, 10)] == [1, 4, 25, 100]


@pytest.mark.parametrize(("n_classes", "resolution"), [(2, 5), (3, 4), (3, 5), (4, 3)])
def test_a_row_goes_to_the_first_tuple_that_holds_it(rng, n_classes, resolution):
    inside = rng.dirichlet(np.ones(n_classes), size=200)
    on_edges = rng.multinomial(resolution, np.full(n_classes, 1 / n_classes), size=200) / resolution
    half_way = (on_edges[:100] + on_edges[100:]) / 2
    u = np.concatenate([inside, on_edges, half_way, np.eye(n_classes)])
    tuples = np.array(_tuples(n_classes, resolution))
    scaled = u[:, None, :] * resolution
    holds = ((scaled >= tuples - 1 - 1e-9) & (scaled <= tuples + 1e-9)).all(axis=2)
    assert holds.any(axis=1).all()
    np.testing.assert_array_equal(
        GridPartition(n_classes, resolution).assign(u), holds.argmax(axis=1)
    )


@given(st.integers(2, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_grid_bins_are_numbered_within_the_partition(n_classes, resolution, seed):
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, 4) * resolution
    u = rng.multinomial(steps, rng.dirichlet(np.ones(n_classes)), size=30) / steps
    u = u * (
        1 + 1e-7 * rng.uniform(-1, 1, size=(30, 1))
    )  # rows that sum to one only within tolerance
    bins = GridPartition(n_classes, resolution).assign(u)
    assert bins.min() >= 0
    assert bins.max() < GridPartition(n_classes, resolution).n_bins


# Projections.


def _algorithm_10(u, y, directions):
    """Lines 1 to 15 of the algorithm, for distinct projections."""
    n_bins, left, thresholds = len(directions) + 1, u, []
    size = (len(u) + 1) // n_bins
    for q in directions:
        along = left @ q
        thresholds.append(np.sort(along)[size - 1])
        left = left[along > thresholds[-1]]
    below = np.column_stack(
        [
            *(u @ q < t for q, t in zip(directions, thresholds, strict=True)),
            np.ones(len(u), dtype=bool),
        ]
    )
    place = below.argmax(axis=1)
    interior = np.all([u @ q != t for q, t in zip(directions, thresholds, strict=True)], axis=0)
    values = [
        np.bincount(y[(place == b) & interior], minlength=u.shape[1])
        / ((place == b) & interior).sum()
        for b in range(n_bins)
    ]
    return np.array(thresholds), place, np.array(values), np.bincount(place[interior])


@pytest.mark.parametrize("directions", ["cyclic", "random", "given"])
def test_projections_are_those_of_algorithm_10(rng, directions):
    u, y = _sample(rng)
    given_rows = rng.normal(size=(4, 3))
    calibrator = CanonicalBinning(
        n_bins=9, directions=given_rows if directions == "given" else directions
    ).fit(u, y)
    thresholds, place, values, counts = _algorithm_10(u, y, calibrator.directions_)
    np.testing.assert_allclose(calibrator.thresholds_, thresholds, rtol=1e-12)
    np.testing.assert_array_equal(calibrator.counts_, counts)
    np.testing.assert_allclose(calibrator.values_, values, rtol=1e-12)
    inside = ~np.isin(
        np.arange(500),
        np.flatnonzero(np.min(np.abs(u @ calibrator.directions_.T - thresholds), axis=1) < 1e-12),
    )
    np.testing.assert_array_equal(calibrator.bins(u)[inside], place[inside])


def test_each_projected_bin_rests_on_its_share_of_the_rows(rng):
    calibrator = CanonicalBinning(n_bins=7).fit(*_sample(rng, 500))
    assert calibrator.counts_[:-1].tolist() == [501 // 7 - 1] * 6
    assert calibrator.counts_[-1] == 500 - 6 * (501 // 7)


def test_cyclic_directions_take_the_classes_in_turn(rng):
    u, y = _sample(rng)
    calibrator = CanonicalBinning(n_bins=6).fit(u, y)
    np.testing.assert_array_equal(calibrator.directions_, -np.eye(3)[[0, 1, 2, 0, 1]])
    first = calibrator.bins(u) == 0
    assert u[first, 0].min() > u[~first, 0].max() - 1e-15


def test_directions_are_scaled_to_length_one_and_repeated(rng):
    calibrator = CanonicalBinning(n_bins=4, directions=[[3.0, 4.0, 0.0], [0.0, 0.0, -2.0]]).fit(
        *_sample(rng)
    )
    np.testing.assert_allclose(
        calibrator.directions_, [[0.6, 0.8, 0.0], [0.0, 0.0, -1.0], [0.6, 0.8, 0.0]]
    )


def test_random_directions_follow_the_seed(rng):
    u, y = _sample(rng)
    one, same, other = (
        CanonicalBinning(directions="random", random_state=s).fit(u, y).directions_
        for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1.0)


def test_the_number_of_projected_bins_follows_from_the_rows(rng):
    assert CanonicalBinning().fit(*_sample(rng, 520)).n_bins_ == 10
    assert CanonicalBinning().fit(*_sample(rng, 20)).n_bins_ == 1


def test_two_classes_are_histogram_binning_from_above(rng):
    score = np.sort(rng.uniform(size=99))[::-1]
    u, y = np.column_stack([score, 1 - score]), np.arange(99) % 2
    calibrator = CanonicalBinning(n_bins=4, directions=[[-1.0, 0.0]]).fit(u, y)
    np.testing.assert_array_equal(calibrator.bins(u), np.repeat(np.arange(4), [24, 25, 25, 25]))
    np.testing.assert_allclose(calibrator.values_[0], np.bincount(y[:24]) / 24)


# Estimates.


def test_each_bin_reports_the_frequencies_of_its_labels():
    P = np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.6, 0.2, 0.2], [0.4, 0.3, 0.3]])
    calibrator = CanonicalBinning("sierpinski", depth=1).fit(P, [0, 0, 2, 1])
    assert calibrator.occupied_.tolist() == [0, 1]
    assert calibrator.counts_.tolist() == [1, 3]
    np.testing.assert_allclose(calibrator.predict_proba([[0.9, 0.1, 0.0]]), [[2 / 3, 0.0, 1 / 3]])


@pytest.mark.parametrize("partition", ["sierpinski", "grid"])
def test_an_empty_bin_reports_equal_probabilities(partition):
    calibrator = CanonicalBinning(partition).fit([[0.9, 0.05, 0.05]], [0])
    np.testing.assert_allclose(calibrator.predict_proba([[0.05, 0.9, 0.05]]), 1 / 3)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_rows_are_on_the_simplex(rng, calibrator):
    u, y = _sample(rng)
    new = np.concatenate([_sample(rng)[0], np.eye(3), np.full((1, 3), 1 / 3)])
    proba = clone(calibrator).fit(u, y).predict_proba(new)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_bins_are_numbered_and_rows_of_a_bin_are_reported_alike(rng, calibrator):
    u, y = _sample(rng)
    fitted = clone(calibrator).fit(u, y)
    bins, proba = fitted.bins(u), fitted.predict_proba(u)
    assert bins.shape == (500,)
    assert bins.min() >= 0
    assert bins.max() < fitted.n_bins_
    for b in np.unique(bins):
        assert np.ptp(proba[bins == b], axis=0).max() == 0


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_hard_input_ends_in_finite_rows(calibrator):
    constant = np.tile([0.5, 0.25, 0.25], (60, 1))
    corners = np.repeat(np.eye(3), 20, axis=0)
    for u, y in [
        (constant, np.arange(60) % 3),
        (corners, corners.argmax(axis=1)),
        (corners, np.zeros(60, dtype=int)),
    ]:
        proba = (
            clone(calibrator).fit(u, y).predict_proba(np.concatenate([u, np.full((1, 3), 1 / 3)]))
        )
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    single = clone(calibrator).fit(constant[:1], [2]).predict_proba(constant[:1])
    assert np.isfinite(single).all()


def test_constant_rows_report_the_base_rate_whatever_the_bins():
    u, y = np.tile([0.5, 0.25, 0.25], (60, 1)), np.arange(60) % 3
    np.testing.assert_allclose(CanonicalBinning(n_bins=10).fit(u, y).predict_proba(u[:1]), 1 / 3)


def test_heavy_ties_and_classes_never_true(real_data):
    file = real_data("llm_emotion_mistral-7b-v0.1-task-icl1")
    u = softmax(file["logits"].astype(np.float64), axis=1)
    for calibrator in (
        CanonicalBinning(n_bins=30),
        CanonicalBinning("sierpinski", depth=2),
        CanonicalBinning("grid", resolution=3),
    ):
        fitted = calibrator.fit(u, file["labels"])
        proba = fitted.predict_proba(u)
        assert np.isfinite(proba).all()
        assert brier_score(file["labels"], proba) < brier_score(file["labels"], u)
        assert fitted.guarantee().counts.sum() > 0.99 * len(u)


def test_exact_zeros_do_not_empty_the_projected_bins(rng):
    u, y = _sample(rng, 600)
    u = np.column_stack([u, np.zeros((600, 2))])
    calibrator = CanonicalBinning(n_bins=10).fit(u, y)
    assert calibrator.occupied_.size > 5
    # Nine thresholds take a row each; where ties lose twice, the second part is of what the first
    # has left.
    assert calibrator.counts_.sum() == pytest.approx(600 - 9, abs=0.1)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_the_order_of_rows_does_not_matter(rng, calibrator):
    u = rng.multinomial(6, [0.5, 0.3, 0.2], size=400) / 6
    y = rng.integers(0, 3, size=400)
    order = rng.permutation(400)
    first, second = clone(calibrator).fit(u, y), clone(calibrator).fit(u[order], y[order])
    np.testing.assert_allclose(first.predict_proba(u), second.predict_proba(u), rtol=0, atol=1e-12)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_a_subset_gives_the_same_rows(rng, calibrator):
    u, y = _sample(rng)
    fitted = clone(calibrator).fit(u, y)
    np.testing.assert_array_equal(fitted.predict_proba(u)[50:60], fitted.predict_proba(u[50:60]))
    np.testing.assert_array_equal(fitted.bins(u)[50:60], fitted.bins(u[50:60]))


@pytest.mark.parametrize("calibrator", ALL[2:], ids=repr)
def test_weight_two_is_the_row_twice_in_partitions_that_are_fixed(rng, calibrator):
    u, y = _sample(rng)
    weight = rng.integers(0, 3, size=500)
    weighted = clone(calibrator).fit(u, y, sample_weight=weight)
    repeated = clone(calibrator).fit(np.repeat(u, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(
        weighted.predict_proba(u), repeated.predict_proba(u), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_weight_zero_is_no_row(rng, calibrator):
    u, y = _sample(rng)
    present = rng.uniform(size=500) < 0.6
    weighted = clone(calibrator).fit(u, y, sample_weight=present.astype(float))
    absent = clone(calibrator).fit(u[present], y[present])
    np.testing.assert_allclose(
        weighted.predict_proba(u), absent.predict_proba(u), rtol=0, atol=1e-12
    )


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
def test_weights_that_are_not_whole_are_shared_out_evenly(rng):
    u, y = _sample(rng, 2000)
    calibrator = CanonicalBinning(n_bins=5).fit(u, y, sample_weight=rng.uniform(size=2000) / 2000)
    np.testing.assert_allclose(calibrator.counts_ / calibrator.counts_.sum(), 0.2, atol=0.002)


# The boundary and the guarantee.


def test_logits_are_binned_by_their_probabilities(rng):
    logits = rng.normal(size=(300, 3))
    y = rng.integers(0, 3, size=300)
    from_logits = CanonicalBinning("grid", inputs="logits").fit(logits, y)
    from_proba = CanonicalBinning("grid").fit(softmax(logits, axis=1), y)
    np.testing.assert_allclose(
        from_logits.predict_proba(logits), from_proba.predict_proba(softmax(logits, axis=1))
    )


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_it_is_an_estimator_like_others(rng, calibrator):
    u, y = _sample(rng)
    made = clone(calibrator)
    before = made.get_params()
    fitted = made.fit(u.astype(np.float32), y)
    assert made.get_params() == before
    assert fitted.predict_proba(u.astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(u), fitted.predict_proba(u)
    )


def test_many_classes_are_numbered_or_rejected(rng):
    u, y = _sample(rng, 50, n_classes=100)
    assert CanonicalBinning("grid").fit(u, y).n_bins_ == 4_598_126
    assert CanonicalBinning("sierpinski").fit(u, y).n_bins_ == 1_010_101
    with pytest.raises(ValueError, match=r"has too many bins. Use a smaller depth"):
        CanonicalBinning("sierpinski", depth=12).fit(u, y)


def test_the_guarantee_is_the_inequality_of_bretagnolle_huber_carol(rng):
    calibrator = CanonicalBinning("sierpinski", depth=2).fit(*_sample(rng))
    made = calibrator.guarantee(alpha=0.1)
    np.testing.assert_array_equal(made.counts, calibrator.counts_)
    np.testing.assert_allclose(
        made.radius, multinomial_radius(calibrator.counts_, 3, 0.1 / calibrator.occupied_.size)
    )
    assert made.conditional == made.radius.max()


def test_empty_bins_are_named_as_not_covered():
    made = (
        CanonicalBinning("sierpinski", depth=1).fit([[0.9, 0.05, 0.05]] * 20, [0] * 20).guarantee()
    )
    assert made.not_covered == ("3 bins without rows, which return equal probabilities",)


def test_weights_other_than_one_leave_no_guarantee(rng):
    u, y = _sample(rng)
    with pytest.raises(ValueError, match="weighted rows"):
        CanonicalBinning().fit(u, y, sample_weight=np.linspace(1, 2, 500)).guarantee()


def test_too_few_points_leave_no_guarantee():
    with pytest.raises(ValueError, match="needs a bin with at least one calibration row"):
        CanonicalBinning(n_bins=5).fit(np.eye(3), [0, 1, 2]).guarantee()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"partition": "voronoi"}, "partition must be one of"),
        ({"n_bins": 0}, "n_bins must be an integer"),
        ({"partition": "sierpinski", "depth": 0}, "depth must be an integer"),
        ({"partition": "grid", "resolution": 0.5}, "resolution must be an integer"),
        ({"directions": "spiral"}, "directions must be one of"),
        ({"directions": np.ones((2, 4))}, r"an array of shape \(m, 3\)"),
        ({"directions": np.zeros((2, 3))}, "without zero rows"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        CanonicalBinning(**parameters).fit(np.eye(3), [0, 1, 2])


def test_predictions_are_the_frequencies_to_the_last_bit(rng):
    P, y = rng.dirichlet(np.ones(3), 300), rng.integers(3, size=300)
    model = CanonicalBinning(n_bins=7).fit(P, y)
    place = np.searchsorted(model.occupied_, model.bins(P))
    np.testing.assert_array_equal(model.predict_proba(P), model.values_[place])
