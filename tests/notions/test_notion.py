"""What each notion selects, on rows small enough to be checked by eye."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.notions import RankNotion, as_notion

P = np.array(
    [
        [0.6, 0.3, 0.1],
        [0.4, 0.4, 0.2],  # a tie at the top: the lowest column wins
        [0.1, 0.2, 0.7],
        [0.2, 0.5, 0.3],
    ]
)
Y = np.array([0, 1, 2, 2])
ONES = np.ones(4)
ALL = [
    "confidence",
    "top-label",
    "class-wise",
    "class-1",
    "rank-2",
    "within-top-2",
    "top-2-confidence",
    "top-3-label",
]


def claims_of(name):
    """index -> (rows, scores, outcomes)"""
    found = {}
    for claim in as_notion(name).claims(P, Y, ONES):
        rows = np.arange(4)[claim.rows].tolist()
        found[claim.index] = (
            rows,
            claim.score.round(12).tolist(),
            claim.outcome.astype(int).tolist(),
        )
    return found


def test_confidence_is_the_top_score_and_whether_the_top_class_is_right():
    assert claims_of("confidence") == {0: ([0, 1, 2, 3], [0.6, 0.4, 0.7, 0.5], [1, 0, 1, 0])}


def test_top_label_splits_the_rows_by_predicted_class():
    assert claims_of("top-label") == {
        0: ([0, 1], [0.6, 0.4], [1, 0]),
        1: ([3], [0.5], [0]),
        2: ([2], [0.7], [1]),
    }


def test_class_wise_makes_one_claim_of_every_column():
    assert claims_of("class-wise") == {
        0: ([0, 1, 2, 3], [0.6, 0.4, 0.1, 0.2], [1, 0, 0, 0]),
        1: ([0, 1, 2, 3], [0.3, 0.4, 0.2, 0.5], [0, 1, 0, 0]),
        2: ([0, 1, 2, 3], [0.1, 0.2, 0.7, 0.3], [0, 0, 1, 1]),
    }


def test_class_k_is_one_column_of_class_wise():
    assert claims_of("class-2")[0] == claims_of("class-wise")[2]


def test_rank_two_is_the_second_highest_score_with_ties_to_the_lowest_column():
    assert claims_of("rank-2") == {0: ([0, 1, 2, 3], [0.3, 0.4, 0.2, 0.3], [0, 1, 0, 1])}


def test_within_top_two_is_the_sum_of_the_two_highest():
    assert claims_of("within-top-2") == {0: ([0, 1, 2, 3], [0.9, 0.8, 0.9, 0.8], [1, 1, 1, 1])}


def test_top_two_confidence_is_ranks_one_and_two():
    assert claims_of("top-2-confidence") == {
        0: claims_of("confidence")[0],
        1: claims_of("rank-2")[0],
    }


def test_top_two_label_splits_each_rank_by_class():
    found = claims_of("top-2-label")
    assert {k: v for k, v in found.items() if k < 3} == claims_of("top-label")
    assert found[4] == ([0, 1, 2], [0.3, 0.4, 0.2], [0, 1, 0])
    assert found[5] == ([3], [0.3], [1])
    assert found[3] == ([], [], [])


@pytest.mark.parametrize("name", ALL)
def test_names_are_read_back(name):
    assert as_notion(name).name == name
    assert as_notion(as_notion(name)) == as_notion(name)


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


def test_many_ranks_give_what_repeated_maxima_give(rng):
    proba = rng.integers(1, 4, size=(200, 8)).astype(float)  # full of ties
    by_sort = RankNotion(tuple(range(1, 9))).select(proba).label
    for rank in (2, 3, 4):
        np.testing.assert_array_equal(
            RankNotion((rank,)).select(proba).label[:, 0], by_sort[:, rank - 1]
        )


def test_claims_of_many_columns_are_gathered_in_parts(monkeypatch, rng):
    proba, y = rng.dirichlet(np.ones(5), 30), rng.integers(5, size=30)
    whole = [c.score for c in as_notion("class-wise").claims(proba, y, np.ones(30))]
    monkeypatch.setattr("calibrant.notions._notion._GATHER_ELEMENTS", 60)
    parts = [c.score for c in as_notion("class-wise").claims(proba, y, np.ones(30))]
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(np.array(parts).T, proba)


@pytest.mark.parametrize("name", ["conf", "top-label-2", "rank-", "class-x", None, 3, "top-2"])
def test_an_unknown_notion_lists_the_valid_ones(name):
    with pytest.raises(
        ValueError,
        match=r"unknown notion .*'confidence', 'top-label', 'class-wise', .*'top-<k>-label'",
    ):
        as_notion(name)


def test_canonical_is_refused_where_binary_claims_are_needed():
    with pytest.raises(ValueError, match="whole vectors and makes no binary claims"):
        as_notion("canonical")


@pytest.mark.parametrize("name", ["rank-4", "within-top-4", "top-4-label", "class-3"])
def test_a_notion_beyond_the_number_of_classes_is_an_error(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        as_notion(name).claims(P, Y, ONES)


def test_ranks_are_counted_from_one():
    with pytest.raises(ValueError, match="counted from 1"):
        as_notion("rank-0")
