"""Evidence: recursions in blocks, periods, states, intervals of gaps, and discoveries."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor, discoveries
from calibrant.monitoring._evidence import (
    Evidence,
    GapSums,
    half_width,
    make_layout,
    run_factors,
    run_log_factors,
    split_streams,
    sum_gaps,
)
from calibrant.notions import ClaimBlock, as_notion
from streams import draw, sharpened

EVEN = np.full(3, 1 / 3)


def by_hand(start, factors, entry):
    m, path = np.exp(start), []
    for row in factors:
        m = (m + entry) * row
        path.append(np.log(m.mean()))
    return np.array(path), np.log(m)


@pytest.mark.parametrize("entry", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.1, 5.0, 40.0])
def test_blocks_are_the_recursion(rng, entry, scale):
    log_f = rng.normal(scale=scale, size=(60, 3)).clip(-10, 10) - 0.2
    start = np.array([0.0, -np.inf if entry else -1.0, 2.0])
    run = run_log_factors(start[None], log_f[:, None], np.full((60, 1), entry), EVEN)
    path, last = by_hand(start, np.exp(log_f), entry)
    np.testing.assert_allclose(run.path[:, 0], path, atol=1e-9)
    np.testing.assert_allclose(run.last[0], last, atol=1e-9)


def test_numbers_that_do_not_fit_are_kept_as_logarithms():
    run = run_log_factors(
        np.zeros((1, 1)), np.full((10, 1, 1), 500.0), np.ones((10, 1)), np.ones(1)
    )
    assert run.path[-1, 0] == pytest.approx(5000 + np.log(2), abs=1e-9)


def test_rows_are_split_to_streams_in_turn():
    rows = np.arange(1.0, 6.0)[:, None]
    split = split_streams(rows, offset=4, n_streams=3)[:, :, 0]
    assert split.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_detector_grows_by_one_per_row_on_average_in_a_calibrated_stream(rng):
    factors = rng.choice([0.5, 1.5], size=(20_000, 50, 1))
    run = run_log_factors(
        np.full((20_000, 1), -np.inf),
        np.log(np.moveaxis(factors, 0, 1)),
        np.ones((50, 20_000)),
        np.ones(1),
    )
    mean, error = np.exp(run.path[-1]).mean(), np.exp(run.path[-1]).std() / np.sqrt(20_000)
    assert abs(mean - 50) < 4 * error


@pytest.mark.parametrize("is_detector", [False, True])
@pytest.mark.parametrize("scale", [0.2, 9.0])
def test_products_and_logarithms_run_alike(rng, is_detector, scale):
    log_f = rng.normal(scale=scale, size=(300, 2, 5))
    start = np.array([[-np.inf if is_detector else 0.0] * 5, [3.0, -800.0, 0.0, 1.0, 2.0]])
    entry = np.full((300, 2), float(is_detector))
    weight = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    logs = run_log_factors(start, log_f, entry, weight)
    products = run_factors(start, np.exp(log_f), entry, weight)
    np.testing.assert_allclose(products.path, logs.path, atol=1e-8)
    np.testing.assert_allclose(products.last, logs.last, atol=1e-8)
    np.testing.assert_allclose(products.log_product, log_f.sum(axis=0), atol=1e-8)


def make(n_streams=1, is_detector=False):
    return make_layout([np.full(2, 1 / 2), np.full(3, 1 / 3)], n_streams, is_detector)


def assert_same(left, right):
    for name in ("log_e", "log_m"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-12)


def test_members_weigh_what_they_are_given_and_together_one():
    layout = make()
    assert layout.weight.tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6], abs=1e-15)
    assert (layout.family(0), layout.family(1)) == (slice(0, 2), slice(2, 5))
    assert layout.n_members == 5


def test_a_test_begins_with_one_and_a_detector_with_nothing():
    assert Evidence.start(make()).value(make()) == pytest.approx(0.0, abs=1e-15)
    detector = make(is_detector=True)
    assert Evidence.start(detector).value(detector) == -np.inf


@pytest.mark.parametrize("is_detector", [False, True])
@pytest.mark.parametrize("n_streams", [1, 3])
def test_rows_in_parts_are_rows_at_once(rng, is_detector, n_streams):
    layout = make(n_streams, is_detector)
    log_f = rng.normal(scale=0.3, size=(20, 5))
    factors = np.exp(log_f)
    whole, path = Evidence.start(layout).advance(factors, 0, layout)
    part, first = Evidence.start(layout).advance(factors[:7], 0, layout)
    part, second = part.advance(factors[7:], 7, layout)
    assert_same(part, whole)
    assert path.max() == pytest.approx(max(first.max(), second.max()), abs=1e-12)


def test_the_evidence_of_a_test_is_the_sum_of_its_log_factors(rng):
    log_f = rng.normal(size=(20, 5))
    evidence, _ = Evidence.start(make()).advance(np.exp(log_f), 0, make())
    np.testing.assert_allclose(evidence.log_m[0], log_f.sum(axis=0), atol=1e-12)


def test_a_period_is_one_step_whose_tests_start_at_its_beginning(rng):
    log_f = rng.normal(size=5)
    test = Evidence.start(make()).absorb(log_f, 40, 0, make())
    np.testing.assert_allclose(test.log_m[0], log_f, atol=1e-15)
    detector = make(is_detector=True)
    evidence = Evidence.start(detector).absorb(log_f, 40, 0, detector)
    np.testing.assert_allclose(evidence.log_m[0], np.log(40) + log_f, atol=1e-15)


def test_the_onset_is_where_the_strongest_alternative_stood_lowest():
    layout, evidence = make(), Evidence.start(make())
    falling, rising = np.full((10, 5), -0.5), np.full((10, 5), -0.5)
    rising[:, 3] = 2.0
    for start, log_f in ((0, falling), (10, falling), (20, rising), (30, rising)):
        evidence, _ = evidence.advance(np.exp(log_f), start, layout)
    assert evidence.onset(layout) == 20


def test_a_state_is_plain_numbers_and_comes_back():
    layout = make(2, is_detector=True)
    evidence, _ = Evidence.start(layout).advance(np.full((1, 5), np.exp(0.25)), 0, layout)
    state = evidence.to_state()
    assert state["log_m"][:5] == pytest.approx([0.25] * 5, abs=1e-15)
    assert state["log_m"][5:] == [None] * 5  # the second stream has not begun
    again = Evidence.from_state(state, layout)
    for name in ("log_e", "log_m", "lowest", "lowest_at"):
        np.testing.assert_array_equal(getattr(again, name), getattr(evidence, name))


@pytest.mark.parametrize(
    "change", [{"log_e": [None] * 5}, {"lowest_at": [-1.0] * 5}, {"lowest": [0.0] * 4}], ids=str
)
def test_numbers_that_no_evidence_has_are_rejected(change):
    state = Evidence.start(make()).to_state() | change
    with pytest.raises(ValueError, match=f"'{next(iter(change))}' in the state"):
        Evidence.from_state(state, make())


def test_no_rows_say_nothing():
    assert half_width(GapSums.zeros(2), 0.05).tolist() == [1.0, 1.0]


def test_sums_of_a_notion_that_splits_are_those_of_its_rows(rng):
    proba, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    sums = sum_gaps(as_notion("top-label").select(proba, y), np.zeros(3), 3)
    top = proba.argmax(axis=1)
    assert sums.count.tolist() == np.bincount(top, minlength=3).tolist()
    residual = (y == top) - proba.max(axis=1)
    np.testing.assert_allclose(sums.residual, np.bincount(top, residual, 3), atol=1e-13)


def test_a_prediction_stays_within_what_the_residual_can_be():
    block = ClaimBlock(np.array([[0.9]]), None, np.array([], dtype=int))
    # Said 0.9, did not happen; expected +0.5, of which only +0.1 can be.
    assert sum_gaps(block, np.array([0.5]), 1).variance[0] == pytest.approx(1.0, abs=1e-15)


def test_at_five_thousand_rows_it_is_at_most_twice_as_wide_as_for_a_fixed_sample():
    variance = 5000 * 0.03  # of a network's top claim
    sums = GapSums(np.array([5000.0]), np.zeros(1), np.array([variance]))
    fixed = 1.96 * np.sqrt(variance) / 5000
    assert fixed < half_width(sums, 0.05)[0] <= 2 * fixed


@pytest.mark.slow
def test_intervals_cover_the_mean_gap_at_all_times_together(rng):
    n_runs, n_blocks, size = 400, 100, 50
    missed = np.zeros(n_runs, dtype=bool)
    sums, true = GapSums.zeros(n_runs), np.zeros(n_runs)
    for t in range(n_blocks):
        score = rng.beta(6, 1, (size, n_runs))
        truth = np.clip(score - 0.04 * (t > 50), 0, 1)
        hit = np.flatnonzero((rng.random(score.shape) < truth).ravel())
        sums = sums + sum_gaps(ClaimBlock(score, None, hit), sums.mean, 1)
        true += (truth - score).sum(axis=0)
        off = np.abs(sums.mean - true / sums.count)
        missed |= off > half_width(sums, 0.05)
    assert missed.mean() <= 0.05


def test_nothing_is_listed_where_nothing_stands_out():
    assert discoveries(np.zeros(10), 0.05).size == 0


def test_many_large_values_help_each_other():
    assert discoveries(np.log([39.0, 1.0]), 0.05).size == 0
    assert discoveries(np.log([21.0, 21.0]), 0.05).tolist() == [0, 1]


@pytest.mark.slow
def test_the_share_of_false_discoveries_among_fifty_groups_is_at_most_alpha(rng):
    shares = []
    for _ in range(30):
        group = rng.integers(0, 50, 6_000)
        proba = rng.dirichlet(np.full(3, 0.5), 6_000)
        truth = np.where((group < 10)[:, None], sharpened(proba, 0.4), proba)
        monitor = CalibrationMonitor(tolerance=0.0, notions=["confidence"])
        monitor.update(draw(truth, rng), proba, group=group)
        listed = {int(g.claim.split()[1]) for g in monitor.gaps()[1:] if g.is_listed}
        shares.append(sum(g >= 10 for g in listed) / max(1, len(listed)))
    assert np.mean(shares) <= 0.05
