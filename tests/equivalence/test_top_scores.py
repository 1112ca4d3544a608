"""The top classes of each row: metrics and reductions are those of complete rows.

| top scores                                | result                                     |
|-------------------------------------------|--------------------------------------------|
| metrics and fits of ranks within the top m | equal to memory                            |
| class-wise problems, ranks below the top m | rejected with the reason                   |
| methods and metrics of whole rows          | rejected with the metrics that are possible |
"""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import (
    HistogramBinning,
    IsotonicCalibration,
    MulticlassToBinary,
    PlattScaling,
    TopScores,
    VectorScaling,
    evaluate,
    metrics,
)
from data_kinds import WEIGHTS, Rejected, assert_close, assert_declared, make_rows

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

N_KNOWN = 4
NOTIONS = ("confidence", "top-label", "rank-2", "within-top-3", "top-2-label")
BINARY = {
    "histogram": HistogramBinning(n_bins=5),
    "Platt": PlattScaling(),
    "isotonic": IsotonicCalibration("linear", 1.0),
}


def rows_and_top(weight=None):
    """Log-probabilities of nine classes, and their top four. A fifth of the labels is below."""
    rows = make_rows(n_classes=9, inputs="log_proba", weight=weight, scale=1.0)
    order = np.argsort(-rows.scores, axis=1, kind="stable")[:, :N_KNOWN]
    is_below = ~(order == rows.y[:, None]).any(axis=1)
    assert 0.1 < is_below.mean() < 0.6
    return rows, TopScores(order, np.take_along_axis(rows.scores, order, axis=1), 9)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("notion", NOTIONS)
def test_errors_of_top_scores_are_those_of_memory(notion, weight):
    rows, top = rows_and_top(weight)
    for metric in (metrics.expected_calibration_error, metrics.ks_error):
        assert_close(
            metric(rows.y, top, sample_weight=rows.weight, notion=notion),
            metric(
                rows.y, rows.scores, sample_weight=rows.weight, notion=notion, inputs="log_proba"
            ),
            1e-10,
        )


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_evaluation_of_top_scores_is_that_of_memory(weight):
    rows, top = rows_and_top(weight)
    found = evaluate(rows.y, top, sample_weight=rows.weight).to_dict()
    expected = evaluate(
        rows.y, rows.scores, sample_weight=rows.weight, inputs="log_proba"
    ).to_dict()
    shared = sorted(set(found) & set(expected))
    assert {"accuracy", "conf_ece", "tl_ece", "ks", "mce", "sharpness"} <= set(shared)
    assert_close({n: found[n] for n in shared}, {n: expected[n] for n in shared}, 1e-10)
    is_known = (top.labels == rows.y[:, None]).any(axis=1)
    assert_close(found["within_known"], np.average(is_known, weights=rows.weight), 1e-10)
    low, high = found["log_loss_low"], found["log_loss_high"]
    assert low <= expected["log_loss"] <= high


@pytest.mark.parametrize("weight", ["none", "integer", "fractional"])
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("notion", ["confidence", "top-label", "rank-2"])
def test_a_reduction_of_top_scores_is_that_of_memory(notion, name, weight):
    rows, top = rows_and_top(weight)
    found, expected = (
        MulticlassToBinary(BINARY[name], notion=notion, inputs=inputs).fit(
            scores, rows.y, rows.weight
        )
        for inputs, scores in (("proba", top), ("log_proba", rows.scores))
    )
    assert_close(found.class_weights_, expected.class_weights_, 1e-10)
    assert_close(found.predict_claims(top), expected.predict_claims(rows.scores), 1e-10)


REJECTED = {
    "class-wise metric": Rejected((TypeError, ValueError), "given classes"),
    "rank below the top": Rejected((TypeError, ValueError), "top 7 classes .* only the top 4"),
    "method of whole rows": Rejected(TypeError, "(?s)all 9 classes.*only the top 4"),
}


@pytest.mark.parametrize("what", REJECTED)
def test_what_needs_whole_rows_is_rejected_for_top_scores(what):
    rows, top = rows_and_top()
    compute = {
        "class-wise metric": lambda t: metrics.brier_score(rows.y, t),
        "rank below the top": lambda t: metrics.ks_error(rows.y, t, notion="rank-7"),
        "method of whole rows": lambda t: VectorScaling().fit(t, rows.y),
    }[what]
    assert_declared(REJECTED[what], compute, None, top)
