"""Claims of each notion on a few rows that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.notions import CanonicalNotion, ClaimBlock, RankNotion, as_notion

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
    "rank-2-label",
    "within-top-2",
    "top-2-confidence",
    "top-3-label",
    "cumulative",
    "at-most-1",
]


def claims_of(name):
    """index -> (rows, scores, outcomes)"""
    result = {}
    for claim in as_notion(name).claims(P, Y, ONES):
        rows = np.arange(4)[claim.rows].tolist()
        result[claim.index] = (
            rows,
            claim.score.round(12).tolist(),
            claim.outcome.astype(int).tolist(),
        )
    return result


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
    result = claims_of("top-2-label")
    assert {k: v for k, v in result.items() if k < 3} == claims_of("top-label")
    assert result[4] == ([0, 1, 2], [0.3, 0.4, 0.2], [0, 1, 0])
    assert result[5] == ([3], [0.3], [1])
    assert result[3] == ([], [], [])


@pytest.mark.parametrize("name", ALL)
def test_names_are_read_back(name):
    assert as_notion(name).name == name
    assert as_notion(as_notion(name)) == as_notion(name)


def test_many_ranks_give_what_repeated_maxima_give(rng):
    proba = rng.integers(1, 4, size=(200, 8)).astype(float)  # full of ties
    by_sort = RankNotion(tuple(range(1, 9))).select(proba).label
    for rank in (2, 3, 4):
        np.testing.assert_array_equal(
            RankNotion((rank,)).select(proba).label[:, 0], by_sort[:, rank - 1]
        )


def test_a_class_by_its_name_has_a_column_once_the_classes_are_known():
    notion = as_notion("class-owl")
    assert notion.name == "class-owl"
    assert notion.bound(np.array(["cat", "owl"])) == as_notion("class-1")
    assert as_notion("class-wise").bound(np.array(["cat", "owl"])) == as_notion("class-wise")
    with pytest.raises(ValueError, match=r"Unknown class 'owl'. Valid names are cat, dog"):
        notion.bound(np.array(["cat", "dog"]))
    with pytest.raises(ValueError, match="'class-owl' needs the names of the classes"):
        notion.select(np.eye(2))


@pytest.mark.parametrize("name", ["conf", "top-label-2", "rank-", "class-", None, 3, "top-2"])
def test_an_unknown_notion_lists_the_valid_ones(name):
    with pytest.raises(
        ValueError,
        match=r"Unknown notion .*'confidence', 'top-label', 'class-wise', .*'top-<k>-label'",
    ):
        as_notion(name)


def test_canonical_is_rejected_where_binary_claims_are_needed():
    with pytest.raises(ValueError, match="whole vectors and has no binary claims"):
        as_notion("canonical")


@pytest.mark.parametrize("name", ["rank-4", "within-top-4", "top-4-label", "class-3"])
def test_a_notion_beyond_the_number_of_classes_is_an_error(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        as_notion(name).claims(P, Y, ONES)


def test_ranks_are_counted_from_one():
    with pytest.raises(ValueError, match="because ranks start at 1"):
        as_notion("rank-0")


@pytest.mark.parametrize("ranks", [(1, 3), (2, 3), (2, 1), (1, 1)])
def test_ranks_with_a_gap_are_rejected_with_the_reason(ranks):
    with pytest.raises(ValueError, match=r"a single rank or the ranks 1 to k without a gap"):
        RankNotion(ranks)


def test_a_rank_below_one_is_rejected():
    with pytest.raises(ValueError, match="Ranks start at 1"):
        RankNotion((0,))


def test_canonical_is_accepted_where_vectors_are():
    assert as_notion("canonical", vectors=True) == CanonicalNotion()
    assert not as_notion("canonical", vectors=True).is_binary


def test_canonical_makes_no_claims():
    for ask in (lambda n: n.n_quantities(3), lambda n: n.select(P), lambda n: n.claims(P, Y, ONES)):
        with pytest.raises(ValueError, match="has no binary claims"):
            ask(CanonicalNotion())
    with pytest.raises(ValueError, match="has no binary claims"):
        as_notion(CanonicalNotion())


@pytest.mark.parametrize(
    ("notion", "names"),
    [
        ("confidence", ("predicted class",)),
        ("rank-2", ("rank 2",)),
        ("class-1", ("class b",)),
        ("class-wise", ("class a", "class b")),
        ("top-label", ("predicted a", "predicted b")),
        ("within-top-2", ("within-top-2",)),
        ("top-2-confidence", ("predicted class", "rank 2")),
        (
            "top-2-label",
            ("predicted a", "predicted b", "rank 2, predicted a", "rank 2, predicted b"),
        ),
    ],
)
def test_every_claim_has_a_name(notion, names):
    assert as_notion(notion).claim_names(["a", "b"]) == names


@pytest.mark.parametrize(
    ("notion", "texts"),
    [
        ("confidence", ["the predicted class"]),
        ("rank-2", ["the class of rank 2"]),
        ("class-1", ["'b'"]),
        ("class-wise", ["'a'", "'b'"]),
        ("top-label", ["'a'", "'b'"]),
        ("within-top-2", ["one of its top 2 classes"]),
        ("top-2-label", ["'a'", "'b'", "'a' at rank 2", "'b' at rank 2"]),
    ],
)
def test_every_claim_has_a_text(notion, texts):
    assert [as_notion(notion).claim_text(c, ["a", "b"]) for c in range(len(texts))] == texts


def test_classes_without_names_are_numbered_in_words():
    assert as_notion("class-wise").claim_text(1, np.arange(3)) == "class 1"


def test_axis_labels_say_what_the_score_is():
    assert as_notion("confidence").axis_labels == ("confidence (highest probability)", "accuracy")
    assert as_notion("class-3").axis_labels[0] == "predicted probability of the class"
    assert as_notion("within-top-3").axis_labels[0] == "sum of the 3 highest probabilities"
    assert as_notion("rank-2").axis_labels[1] == "share of rows with that true class"


@pytest.mark.parametrize(
    ("notion", "column"),
    [("class-wise", 1), ("class-2", 2), ("top-label", 1), ("confidence", None), ("rank-2", None)],
)
def test_a_claim_knows_its_column(notion, column):
    assert as_notion(notion).column_of(0 if notion == "class-2" else 1, 3) == column


def test_only_claims_of_classes_may_come_from_rows_that_do_not_sum_to_one():
    assert [name for name in ALL if not as_notion(name).sums_to_one] == ["class-wise", "class-1"]


def filled(notion, claims):
    block = as_notion(notion).select(P)._replace(score=np.asarray(claims, dtype=float))
    return as_notion(notion).fill(P, ClaimBlock(*block)).round(12).tolist()


def test_class_wise_claims_are_the_row():
    claims = np.arange(12.0).reshape(4, 3)
    assert filled("class-wise", claims) == claims.tolist()


def test_a_rank_fills_the_column_that_it_speaks_of():
    rows = filled("confidence", [[0.8], [0.4], [0.7], [0.0]])
    assert rows[0] == [0.8, 0.15, 0.05]
    assert rows[3] == [0.4, 0.0, 0.6]


def test_one_class_fills_its_column():
    assert filled("class-1", [[0.0], [1.0], [0.2], [0.5]])[1] == [0.0, 1.0, 0.0]


def test_within_top_scales_the_top_classes_to_the_claim():
    rows = filled("within-top-2", [[0.6], [1.0], [0.9], [0.0]])
    assert rows[0] == [0.4, 0.2, 0.4]
    assert rows[1] == [0.5, 0.5, 0.0]
    assert rows[3] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("notion", "claim", "caption"),
    [
        ("confidence", 0, "the confidence and the accuracy of all rows."),
        ("top-label", 1, "the confidence and the accuracy of rows predicted as class b."),
        (
            "class-wise",
            1,
            "the predicted probability and the observed frequency of class b in all rows.",
        ),
        (
            "class-1",
            0,
            "the predicted probability and the observed frequency of class b in all rows.",
        ),
        (
            "rank-2",
            0,
            "the predicted probability and the observed frequency of the class at rank 2.",
        ),
        (
            "within-top-2",
            0,
            "the sum of the 2 highest probabilities with the share of rows whose true class is "
            "among these classes.",
        ),
    ],
)
def test_every_claim_has_a_caption(notion, claim, caption):
    assert as_notion(notion).caption(claim, ["a", "b"]) == f"The figure compares {caption}"


def test_titles_tell_readers_what_a_notion_is_about():
    titles = {name: as_notion(name).title for name in ("confidence", "class-wise", "rank-2")}
    assert titles == {
        "confidence": "predicted class (confidence)",
        "class-wise": "by class (class-wise)",
        "rank-2": "rank-2",
    }
