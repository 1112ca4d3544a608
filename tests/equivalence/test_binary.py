"""Binary calibrators on each kind of data: alone on two classes, and inside `MulticlassToBinary`.

Chunked fits count rows in cells of scores, 8,192 per binary problem where there are up to six. Two
scores of a cell differ by less than 0.0009. Rows of a cell are taken to have its mean score.

| scores on chunks         | calibrators                     | declared                            |
|--------------------------|---------------------------------|-------------------------------------|
| tied: one score per cell | all                             | equal to memory                     |
| all different            | histogram binning, uniform      | equal to memory                     |
| all different            | Platt, beta, spline             | within the width of a cell          |
| all different            | isotonic, Venn-Abers, Bayesian, | cumulated predictions are within    |
|                          | histogram binning by quantiles  | the share of the fullest cells      |
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from calibrant import (
    BayesianBinning,
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MulticlassToBinary,
    PlattScaling,
    SplineCalibration,
    VennAbers,
    binary,
)
from data_kinds import (
    CHUNKED,
    EQUAL,
    MAIN,
    WEIGHTS,
    Equal,
    Rejected,
    Rows,
    Within,
    as_own_chunks,
    assert_declared,
    cells,
    fitted_view,
    in_memory,
    make_rows,
    make_tied_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

WIDTH = "two scores of a cell differ by less than 0.0009"
SMOOTHED = "the curve is fitted to cumulated rows, which are known at the ends of cells"
SHARE = "predictions cumulate like those in memory, up to the rows of the fullest cells"

CALIBRATORS = {
    # name: (calibrator, what chunks of different scores give)
    "Platt": (PlattScaling(), Within(0.0009, WIDTH)),
    "beta": (BetaCalibration(), Within(0.0009, WIDTH)),
    "spline": (SplineCalibration(), Within(0.01, SMOOTHED)),
    "isotonic": (IsotonicCalibration(), Within(0.0075, SHARE, "cumulated")),
    "isotonic, linear": (
        IsotonicCalibration("linear", smoothing=1.0),
        Within(0.0075, SHARE, "cumulated"),
    ),
    "Venn-Abers": (VennAbers(), Within(0.0075, SHARE, "cumulated")),
    "Bayesian binning": (BayesianBinning(), Within(0.0075, SHARE, "cumulated")),
    "histogram, uniform": (HistogramBinning(n_bins=10, strategy="uniform"), EQUAL),
    "histogram, quantile": (HistogramBinning(n_bins=5), Within(0.0075, SHARE, "cumulated")),
    "histogram, included": (
        HistogramBinning(n_bins=5, boundary="include"),
        Within(0.0075, SHARE, "cumulated"),
    ),
    "histogram, points": (
        HistogramBinning(points_per_bin=40),
        Within(0.0075, SHARE, "cumulated"),
    ),
}
NOTIONS = (
    "confidence",
    "top-label",
    "class-wise",
    "class-1",
    "rank-2",
    "within-top-2",
    "top-2-confidence",
    "top-2-label",
)
EQUAL_IF_TIED = Equal(1e-9, "of tied scores no row is moved; beta calibration is a search")

ROWS = "chunked histogram binning leaves out one unit of weight at an edge, memory one row"
ROUNDING = "the mean of tied scores is rounded, and then lies on the other side of a step"
FLAG = "is_weighted_ is False if the weights of chunks sum to one"


def two_columns(rows):
    """The rows as a problem of two classes: class 1 against the others."""
    score = rows.scores[:, 1]
    outcome = (rows.y == 1).astype(int)
    return Rows(np.column_stack([1 - score, score]), outcome, rows.weight)


def one_column(rows):
    return Rows(rows.scores[:, 1], (rows.y == 1).astype(int), rows.weight)


def fit_and_view(calibrator, rows):
    def compute(data):
        model = clone(calibrator).fit(*data)
        shown = fitted_view(model, rows.scores)
        if rows.scores.ndim == 1:
            del shown["n_features_in_"]  # test_fits compares it
        return shown

    return compute


def fit_and_predict(calibrator, rows):
    return lambda data: clone(calibrator).fit(*data).predict_proba(rows.scores)[:, 1]


def fit_claims(calibrator, notion, rows):
    """The calibrated binary problems of a notion, and what users see of the fit."""

    def compute(data):
        model = MulticlassToBinary(calibrator, notion=notion, inputs=rows.inputs).fit(*data)
        return {
            "claims": model.predict_claims(rows.scores),
            "claim_weights_": model.claim_weights_,
            "fallback_classes_": model.fallback_classes_,
            "fallback_claims_": model.fallback_claims_,
            "top": model.predict_top(rows.scores)[1],
            "view": fitted_view(model, rows.scores),
        }

    return compute


def test_every_binary_calibrator_has_a_row():
    classes = {getattr(binary, name) for name in binary.__all__}
    assert classes == {type(calibrator) for calibrator, _ in CALIBRATORS.values()}


@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_fit_on_a_memory_map_is_the_fit_on_the_array(name, make):
    rows = make_rows(weight="integer")
    compute = fit_claims(CALIBRATORS[name][0], "class-wise", rows)
    assert_declared(EQUAL, compute, in_memory(rows), make("memory map", rows))


@pytest.mark.parametrize(
    ("name", "weight", "columns"),
    cells(CALIBRATORS, WEIGHTS, ("one", "two")),
)
def test_tied_scores_of_two_classes_are_fitted_as_in_memory(name, weight, columns):
    cut = one_column if columns == "one" else two_columns
    rows = cut(make_tied_rows(weight=weight))
    compute = fit_and_view(CALIBRATORS[name][0], rows)
    assert_declared(EQUAL_IF_TIED, compute, in_memory(rows), as_own_chunks(rows))


@pytest.mark.parametrize(
    ("name", "weight", "notion"),
    cells(CALIBRATORS, ("none", "integer"), NOTIONS),
)
def test_tied_scores_of_a_notion_are_fitted_as_in_memory(name, weight, notion):
    rows = make_tied_rows(weight=weight)
    compute = fit_claims(CALIBRATORS[name][0], notion, rows)
    assert_declared(EQUAL_IF_TIED, compute, in_memory(rows), as_own_chunks(rows))


@pytest.mark.parametrize(
    ("name", "kind"), cells(["Platt", "isotonic", "histogram, uniform"], CHUNKED)
)
def test_every_kind_of_chunks_gives_the_fit_of_tied_scores(name, kind, make):
    rows = make_tied_rows(weight="integer")
    compute = fit_claims(CALIBRATORS[name][0], "top-label", rows)
    assert_declared(EQUAL_IF_TIED, compute, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize(("name", "kind"), cells(CALIBRATORS, MAIN))
def test_different_scores_are_fitted_within_the_bound_of_cells(name, kind, make):
    calibrator, declared = CALIBRATORS[name]
    rows = one_column(make_rows())
    compute = fit_and_predict(calibrator, rows)
    assert_declared(declared, compute, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize(("name", "notion"), cells(CALIBRATORS, ("class-wise", "confidence")))
def test_different_logits_of_a_notion_are_fitted_within_the_bound_of_cells(name, notion):
    calibrator, declared = CALIBRATORS[name]
    rows = make_rows(inputs="logits")

    def claims(data):
        model = MulticlassToBinary(calibrator, notion=notion, inputs="logits").fit(*data)
        return model.predict_claims(rows.scores)

    assert_declared(declared, claims, in_memory(rows), as_own_chunks(rows))


@pytest.mark.parametrize(("weight", "kind"), cells(WEIGHTS, CHUNKED))
def test_a_model_knows_that_rows_had_weights(weight, kind, make):
    rows = make_rows(weight=weight)
    made = MulticlassToBinary(HistogramBinning(n_bins=5, strategy="uniform"), notion="confidence")
    expected = clone(made).fit(*in_memory(rows)).is_weighted_
    assert clone(made).fit(*make(kind, rows)).is_weighted_ is expected


@pytest.mark.parametrize(
    ("name", "kind"),
    cells(["Platt", "isotonic", "Venn-Abers"], MAIN),
)
def test_scores_with_two_decimals_are_fitted_as_in_memory(name, kind, make):
    score = make_rows().scores[:, 1].round(2)
    rows = Rows(score, (make_rows().y == 1).astype(int))
    compute = fit_and_predict(CALIBRATORS[name][0], rows)
    assert_declared(EQUAL_IF_TIED, compute, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("name", ["isotonic", "Venn-Abers", "Bayesian binning"])
def test_scores_that_differ_by_more_than_the_width_of_a_cell_are_distinguished(name):
    score = np.round(1024 * make_rows().scores[:, 1]) / 1024
    rows = Rows(score, (make_rows().y == 1).astype(int))
    compute = fit_and_predict(CALIBRATORS[name][0], rows)
    assert_declared(EQUAL_IF_TIED, compute, in_memory(rows), as_own_chunks(rows))


@pytest.mark.parametrize("kind", MAIN)
def test_the_guarantee_of_chunks_is_that_of_memory(kind, make):
    rows = make_tied_rows(n_classes=2)
    made = MulticlassToBinary(HistogramBinning(n_bins=3), notion="confidence")
    memory, chunks = (clone(made).fit(*d).guarantee() for d in (in_memory(rows), make(kind, rows)))
    assert chunks.widest == memory.widest


@pytest.mark.parametrize("kind", MAIN)
def test_a_binary_calibrator_of_three_classes_is_rejected_on_chunks_as_in_memory(kind, make):
    rows = make_rows()
    several = Rejected(ValueError, "(?s)3 classes.*MulticlassToBinary")
    for data in (in_memory(rows), make(kind, rows)):
        assert_declared(several, lambda d: PlattScaling().fit(*d), in_memory(rows), data)
