"""The evidence of all members: row by row, by periods, and as a state."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._evidence import Evidence, make_layout


def layout(n_streams=1, is_detector=False):
    return make_layout([np.full(2, 1 / 2), np.full(3, 1 / 3)], n_streams, is_detector)


def assert_same(left, right):
    for name in ("wealth", "member"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-12)


def test_members_weigh_what_they_are_given_and_together_one():
    made = layout()
    assert made.weight.tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6], abs=1e-15)
    assert (made.family(0), made.family(1)) == (slice(0, 2), slice(2, 5))
    assert made.n_members == 5


def test_a_test_begins_with_one_and_a_detector_with_nothing():
    assert Evidence.start(layout()).value(layout()) == pytest.approx(0.0, abs=1e-15)
    detector = layout(is_detector=True)
    assert Evidence.start(detector).value(detector) == -np.inf


@pytest.mark.parametrize("is_detector", [False, True])
@pytest.mark.parametrize("n_streams", [1, 3])
def test_rows_in_parts_are_rows_at_once(rng, is_detector, n_streams):
    made = layout(n_streams, is_detector)
    log_f = rng.normal(scale=0.3, size=(20, 5))
    factors = np.exp(log_f)
    whole, path = Evidence.start(made).advance(factors, 0, made)
    part, first = Evidence.start(made).advance(factors[:7], 0, made)
    part, second = part.advance(factors[7:], 7, made)
    assert_same(part, whole)
    assert path.max() == pytest.approx(max(first.max(), second.max()), abs=1e-12)


def test_the_wealth_of_a_test_is_the_sum_of_what_was_won(rng):
    log_f = rng.normal(size=(20, 5))
    evidence, _ = Evidence.start(layout()).advance(np.exp(log_f), 0, layout())
    np.testing.assert_allclose(evidence.member[0], log_f.sum(axis=0), atol=1e-12)


def test_a_period_is_one_step_whose_bets_are_placed_at_its_beginning(rng):
    won = rng.normal(size=5)
    test = Evidence.start(layout()).absorb(won, 40, 0, layout())
    np.testing.assert_allclose(test.member[0], won, atol=1e-15)
    detector = layout(is_detector=True)
    found = Evidence.start(detector).absorb(won, 40, 0, detector)
    np.testing.assert_allclose(found.member[0], np.log(40) + won, atol=1e-15)


def test_the_onset_is_where_the_leading_bet_stood_lowest():
    made, evidence = layout(), Evidence.start(layout())
    falling, rising = np.full((10, 5), -0.5), np.full((10, 5), -0.5)
    rising[:, 3] = 2.0
    for start, log_f in ((0, falling), (10, falling), (20, rising), (30, rising)):
        evidence, _ = evidence.advance(np.exp(log_f), start, made)
    assert evidence.onset(made) == 20


def test_a_state_is_plain_numbers_and_comes_back():
    made = layout(2, is_detector=True)
    evidence, _ = Evidence.start(made).advance(np.full((1, 5), np.exp(0.25)), 0, made)
    state = evidence.to_state()
    assert state["member"][:5] == pytest.approx([0.25] * 5, abs=1e-15)
    assert state["member"][5:] == [None] * 5  # the second stream has not begun
    again = Evidence.from_state(state, made)
    for name in ("wealth", "member", "low", "since"):
        np.testing.assert_array_equal(getattr(again, name), getattr(evidence, name))


@pytest.mark.parametrize(
    "change", [{"wealth": [None] * 5}, {"since": [-1.0] * 5}, {"low": [0.0] * 4}], ids=str
)
def test_numbers_that_no_evidence_has_are_refused(change):
    state = Evidence.start(layout()).to_state() | change
    with pytest.raises(ValueError, match=f"{next(iter(change))} of the state"):
        Evidence.from_state(state, layout())
