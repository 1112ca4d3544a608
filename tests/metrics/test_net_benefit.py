"""Net benefit by brute force, and as dcurves computes it."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import net_benefit

THRESHOLDS = [0.0, 0.05, 0.1, 0.25, 0.33, 0.5, 0.75, 0.9]
# Printed by dcurves 1.1.7 for the rows of `drawn_rows`: dca(frame, "event", ["model"], THRESHOLDS).
DCURVES = {
    "model": [
        *(0.35, 0.32368421052631574, 0.2981481481481481, 0.17222222222222222),
        *(0.16840796019900495, 0.13333333333333328, -2.7755575615628914e-17),
        -0.08333333333333337,
    ],
    "all": [
        *(0.35, 0.3157894736842105, 0.27777777777777773, 0.1333333333333333),
        *(0.029850746268656636, -0.30000000000000004, -1.6, -5.500000000000002),
    ],
}


def drawn_rows():
    """Sixty scores of two digits, some of which are equal to thresholds, and their events."""
    rng = np.random.default_rng(5)
    score = np.round(rng.random(60) ** 1.5, 2)
    return (rng.random(60) < score).astype(int), score


def by_hand(event, score, thresholds):
    return [
        np.mean(event * is_high) - np.mean((1 - event) * is_high) * t / (1 - t)
        for t in thresholds
        for is_high in [(score >= t) & (score > 0)]
    ]


def test_it_is_that_of_dcurves_also_where_a_score_is_a_threshold():
    event, score = drawn_rows()
    np.testing.assert_allclose(
        net_benefit(event, score, THRESHOLDS), DCURVES["model"], rtol=0, atol=1e-12
    )
    everybody = net_benefit(event, np.ones(60), THRESHOLDS)
    np.testing.assert_allclose(everybody, DCURVES["all"], rtol=0, atol=1e-12)


def test_it_is_that_of_dcurves_on_other_rows(rng):
    dcurves = pytest.importorskip("dcurves")
    import pandas as pd

    score = rng.random(500).round(2)
    event = (rng.random(500) < score**2).astype(int)
    thresholds = [k / 100 for k in range(100)]
    frame = dcurves.dca(
        pd.DataFrame({"event": event, "model": score}), "event", ["model"], thresholds
    )
    expected = frame[frame.model == "model"].sort_values("threshold").net_benefit
    np.testing.assert_allclose(net_benefit(event, score, thresholds), expected, rtol=0, atol=1e-12)


def test_a_probability_of_exactly_the_threshold_is_acted_on_unless_it_is_zero():
    assert net_benefit([1], [0.5], [0.5, 0.51]).tolist() == [1.0, 0.0]
    assert net_benefit([1], [0.0], 0.0).tolist() == [0.0]


def test_thresholds_keep_their_order(rng):
    event, score = drawn_rows()
    thresholds = rng.permutation(THRESHOLDS)
    np.testing.assert_allclose(
        net_benefit(event, score, thresholds), by_hand(event, score, thresholds), atol=1e-14
    )


def test_an_event_is_a_class_by_column_or_label(rng):
    proba = rng.dirichlet(np.ones(3), 80)
    y = rng.integers(0, 3, 80)
    expected = by_hand((y == 2) * 1, proba[:, 2], [0.2, 0.4])
    np.testing.assert_allclose(net_benefit(y, proba, [0.2, 0.4], notion="class-2"), expected)
    names = np.array(["a", "b", "c"])
    named = net_benefit(names[y], proba, [0.2, 0.4], notion="class-c", classes=names)
    np.testing.assert_allclose(named, expected)


def test_several_events_are_averaged(rng):
    proba = rng.dirichlet(np.ones(3), 80)
    y = rng.integers(0, 3, 80)
    each = [by_hand((y == k) * 1, proba[:, k], [0.2, 0.4]) for k in range(3)]
    mean = net_benefit(y, proba, [0.2, 0.4], notion="class-wise")
    np.testing.assert_allclose(mean, np.mean(each, axis=0), atol=1e-14)


def test_weight_two_is_the_row_twice_and_zero_the_row_absent(rng):
    event, score = drawn_rows()
    weight = rng.integers(0, 3, 60)
    copies = np.repeat(np.arange(60), weight)
    np.testing.assert_allclose(
        net_benefit(event, score, THRESHOLDS, sample_weight=weight),
        net_benefit(event[copies], score[copies], THRESHOLDS),
        atol=1e-14,
    )


@pytest.mark.parametrize("bad", [1.0, -0.1, [0.2, np.nan], [[0.1], [0.2]]])
def test_bad_thresholds_are_errors(bad):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        net_benefit([0, 1], [0.2, 0.8], bad)
