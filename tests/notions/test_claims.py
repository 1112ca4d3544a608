"""Claims as a whole and in blocks, their weights, and claims of user input."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.exceptions import DataWarning
from calibrant.metrics import expected_calibration_error
from calibrant.notions import ClaimBlock, as_notion, claims_of

ALL = [
    "confidence",
    "top-label",
    "class-wise",
    "class-1",
    "rank-2",
    "rank-2-label",
    "within-top-2",
    "top-2-confidence",
    "top-3-label",
]


@pytest.mark.parametrize("name", ALL)
def test_blocks_and_whole_claims_hold_the_same_rows(name, rng):
    proba, y = rng.dirichlet(np.ones(4), 60), rng.integers(4, size=60)
    notion = as_notion(name)
    claims = notion.claims(proba, y, rng.random(60))
    block = notion.select(proba, y)
    outcome = np.zeros(block.score.size)
    outcome[block.hit] = 1
    index = np.broadcast_to(claims.index(block), block.score.shape).ravel()
    for claim in claims:
        np.testing.assert_array_equal(
            np.sort(claim.score), np.sort(block.score.ravel()[index == claim.index])
        )
        assert claim.outcome.sum() == outcome[index == claim.index].sum()
        np.testing.assert_array_equal(claim.weight, claims.weight[claim.rows])


def test_claims_of_many_columns_are_gathered_in_parts(monkeypatch, rng):
    proba, y = rng.dirichlet(np.ones(5), 30), rng.integers(5, size=30)
    whole = [c.score for c in as_notion("class-wise").claims(proba, y, np.ones(30))]
    monkeypatch.setattr("calibrant.notions._claims.WORK_MEMORY", 60)
    parts = [c.score for c in as_notion("class-wise").claims(proba, y, np.ones(30))]
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(np.array(parts).T, proba)


@pytest.mark.parametrize("name", ALL)
def test_the_weights_of_claims_sum_to_one(name, rng):
    proba, y, weight = rng.dirichlet(np.ones(4), 60), rng.integers(4, size=60), rng.random(60)
    claims = as_notion(name).claims(proba, y, weight)
    assert sum(claims.share(claim) for claim in claims) == pytest.approx(1.0)
    assert claims.mean(lambda claim: 3.0) == pytest.approx(3.0)


def test_a_mean_over_claims_weighs_labels_by_rows_and_quantities_alike():
    proba = np.array([[0.7, 0.2, 0.1], [0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.1, 0.7, 0.2]])
    y = np.zeros(4, dtype=int)
    by_label = as_notion("top-label").claims(proba, y, np.ones(4))
    assert by_label.mean(lambda claim: float(claim.index)) == 0.75 * 0 + 0.25 * 1
    by_class = as_notion("class-wise").claims(proba, y, np.ones(4))
    assert by_class.mean(lambda claim: float(claim.index)) == 1.0


def test_claims_without_rows_are_left_out_of_a_mean():
    claims = as_notion("top-label").claims(np.array([[0.9, 0.1]]), np.array([0]), np.ones(1))
    assert claims.mean(lambda claim: 1.0 / claim.weight.sum()) == 1.0


@pytest.mark.parametrize("order", ["C", "F"])
def test_residuals_are_outcomes_minus_scores_whatever_the_order_in_memory(order):
    score = np.array([[0.2, 0.8], [0.5, 0.5]], order=order)
    block = ClaimBlock(score, None, np.array([1, 2]))
    np.testing.assert_allclose(block.residual(), [[-0.2, 0.2], [0.5, -0.5]])
    np.testing.assert_array_equal(block.score, [[0.2, 0.8], [0.5, 0.5]])


def test_claims_of_raw_input_come_with_the_names_of_the_classes():
    rows = [[0.3, 0.7], [0.6, 0.4]]
    with pytest.warns(DataWarning, match="the classes 'a', 'b', in sorted order"):
        claims, names = claims_of(as_notion("class-wise"), ["b", "a"], rows)
    assert names.tolist() == ["a", "b"]
    assert [claim.outcome.tolist() for claim in claims] == [[False, True], [True, False]]


def test_rows_must_sum_to_one_where_the_notion_asks_for_it():
    rows = [[0.3, 0.3], [0.6, 0.6]]
    claims, _ = claims_of(as_notion("class-1"), [0, 1], rows)
    assert next(iter(claims)).score.tolist() == [0.3, 0.6]
    with pytest.raises(ValueError, match="sums to"):
        claims_of(as_notion("confidence"), [0, 1], rows)


def test_reported_labels_make_the_claims_of_the_rows_that_they_come_from(rng):
    proba, y = rng.dirichlet(np.ones(3), 50), rng.integers(3, size=50)
    for name in ("confidence", "top-label"):
        reported, _ = claims_of(
            as_notion(name), y, proba.max(axis=1), classes=range(3), y_pred=proba.argmax(axis=1)
        )
        for one, other in zip(reported, as_notion(name).claims(proba, y, np.ones(50)), strict=True):
            np.testing.assert_array_equal(one.score, other.score)
            np.testing.assert_array_equal(one.outcome, other.outcome)


def test_reported_labels_go_with_notions_that_report_labels():
    with pytest.raises(ValueError, match="y_pred needs the notion 'confidence'"):
        expected_calibration_error([0], [0.5], notion="class-1", y_pred=[0])
