"""Claims of ordered classes on a few rows that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import HistogramBinning, IsotonicCalibration, MulticlassToBinary
from calibrant.notions import ClaimBlock, CumulativeNotion, as_notion

P = np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7], [0.2, 0.5, 0.3]])
Y = np.array([0, 1, 2, 2])


def selected(name):
    claims = as_notion(name).claims(P, Y, np.ones(4))
    return [
        (claim.score.round(12).tolist(), claim.outcome.astype(int).tolist()) for claim in claims
    ]


def test_cumulative_asks_of_every_class_but_the_last_whether_the_truth_is_at_most_it():
    assert selected("cumulative") == [
        ([0.6, 0.4, 0.1, 0.2], [1, 0, 0, 0]),
        ([0.9, 0.8, 0.3, 0.7], [1, 1, 0, 0]),
    ]


def test_at_most_is_one_claim_of_these():
    assert selected("at-most-1") == selected("cumulative")[1:]


def test_names_make_the_notions_again():
    assert as_notion("cumulative") == CumulativeNotion()
    assert as_notion("at-most-0") == CumulativeNotion(0)


def test_the_sum_of_all_columns_is_no_claim():
    message = "not exist for 3 classes. Pass one of 'at-most-0' to 'at-most-1'"
    with pytest.raises(ValueError, match=message):
        selected("at-most-2")


def test_claims_have_texts():
    notion, classes = as_notion("cumulative"), ["mild", "severe", "fatal"]
    assert notion.claim_names(classes) == ("at most mild", "at most severe")
    assert notion.claim_text(1, classes) == "at most 'severe'"
    assert notion.caption(0, classes) == (
        "The figure compares the predicted probability and the observed frequency of at most class "
        "mild."
    )
    assert notion.title == "at most each class (cumulative)"
    assert notion.axis_labels[1] == "frequency of the class or a lower one"


def filled(name, claims):
    block = as_notion(name).select(P)._replace(score=np.asarray(claims, dtype=float))
    return as_notion(name).fill(P, ClaimBlock(*block)).round(12).tolist()


def test_rows_are_the_steps_of_the_cumulative_claims_made_to_rise():
    rows = filled("cumulative", [[0.5, 0.75], [0.5, 0.25], [0.0, 1.0], [0.0, 0.0]])
    assert rows == [[0.5, 0.25, 0.25], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_one_claim_scales_both_sides_of_the_row():
    assert filled("at-most-0", [[0.5], [0.4], [0.1], [0.2]])[0] == [0.5, 0.375, 0.125]


@pytest.mark.parametrize("notion", ["cumulative", "at-most-1"])
def test_the_claims_are_calibrated_and_guaranteed_like_others(rng, notion):
    proba = rng.dirichlet(np.ones(4), 600)
    labels = np.minimum(3, (rng.random(600)[:, None] > proba.cumsum(axis=1)).sum(axis=1))
    mapped = MulticlassToBinary(IsotonicCalibration(), notion=notion).fit(proba, labels)
    rows = mapped.predict_proba(proba)
    assert np.abs(rows.sum(axis=1) - 1).max() < 1e-12
    assert rows.min() >= 0
    binned = MulticlassToBinary(HistogramBinning(), notion=notion).fit(proba, labels)
    assert "at most class" in str(binned.guarantee())
