"""Metrics and bounds of the top classes, and errors for what needs complete rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import HistogramBinning, MulticlassToBinary, TopScores, evaluate, metrics
from top_rows import REAL, best, drawn_rows, real_rows


@pytest.fixture(scope="module", params=REAL)
def real(request, real_data):
    return real_rows(real_data(request.param))


@pytest.fixture
def small(rng):
    return drawn_rows(rng)


def test_the_evaluation_of_the_top_twenty_is_that_of_whole_rows_where_it_is_defined(real):
    log_proba, y = real
    whole, top = evaluate(y, log_proba, inputs="log_proba"), evaluate(y, best(log_proba))
    shared = set(whole.to_dict()) & set(top.to_dict())
    assert shared >= {"accuracy", "conf_ece", "tl_ece", "mce", "ks", "sharpness"}
    for name in shared:
        assert getattr(top, name) == pytest.approx(getattr(whole, name), abs=1e-12), name
    assert top.log_loss_low <= whole.log_loss <= top.log_loss_high
    assert top.within_known == np.mean((best(log_proba).labels == y[:, None]).any(axis=1))
    assert "log-loss, upper bound" in str(top)
    assert "log-loss, upper bound" in top._repr_html_()


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (lambda y, top: metrics.log_loss(y, top), "log_loss_bounds"),
        (lambda y, top: metrics.brier_score(y, top), "given classes in every row"),
        (
            lambda y, top: evaluate(y, top, by=y),
            "by= needs scores of all classes, but got TopScores",
        ),
        (
            lambda y, top: MulticlassToBinary(HistogramBinning(n_bins=2)).fit(top, y).predict(top),
            "needs the scores of all 6 classes",
        ),
    ],
)
def test_what_needs_whole_rows_is_rejected_with_the_reason(small, use, reason):
    with pytest.raises((TypeError, ValueError), match=reason):
        use(small[1], best(small[0], 3))


@pytest.mark.parametrize("options", [{"inputs": "logits"}, {"renormalize": True}, {"level": 7}])
def test_options_that_top_scores_cannot_honor_are_rejected(small, options):
    with pytest.raises(ValueError, match=r"do not apply|level must lie between 0 and 1"):
        evaluate(small[1], best(small[0], 3), **options)


def test_the_bounds_of_the_log_loss_are_those_of_the_worst_and_the_best_tail():
    """Only the top class of 0.5, 0.3, 0.2 is available: another class has between 0 and 0.5."""
    top = TopScores([[0]], np.log([[0.5]]), 3)
    low, high = metrics.log_loss_bounds([2], top)
    assert low == pytest.approx(np.log(2))
    assert high == pytest.approx(-np.log(1e-12))
    narrow = metrics.log_loss_bounds([2], TopScores([[0]], np.log([[0.35]]), 3))
    assert narrow == pytest.approx((-np.log(0.35), -np.log(0.3)))
