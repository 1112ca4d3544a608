"""`evaluate`, `MetricAccumulator` and every metric on each kind of data.

| on chunks                            | metrics                                                   |
|--------------------------------------|-----------------------------------------------------------|
| equal to memory                      | sums over rows, errors of bins of equal width             |
| within the bound of cells of scores, | errors that need scores in order: KS, quantile bins,      |
| equal if scores are tied             | slope and intercept, local, smoothed and two-bin errors   |
| rejected                             | the kernel error, which compares all pairs of rows        |
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from calibrant import MetricAccumulator, evaluate, metrics
from calibrant.metrics import registry
from data_kinds import (
    CHUNKED,
    EQUAL,
    MAIN,
    N_ROWS,
    NEEDS_ROWS,
    WEIGHTS,
    Equal,
    Rejected,
    Rows,
    Within,
    as_own_chunks,
    assert_close,
    assert_declared,
    cells,
    in_memory,
    make_rows,
    make_tied_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

WIDTH = "two scores of a cell differ by less than 0.0009"
SHARE = "the rows of a cell are taken together, at most three of 401"
ECE = metrics.expected_calibration_error

METRICS = {
    # name: (metric, what chunks of different scores give)
    "accuracy": (metrics.accuracy, EQUAL),
    "log_loss": (metrics.log_loss, EQUAL),
    "brier_score": (metrics.brier_score, EQUAL),
    "ranked_probability_score": (metrics.ranked_probability_score, EQUAL),
    "confidence_on_errors": (metrics.confidence_on_errors, EQUAL),
    "doubt_on_correct": (metrics.doubt_on_correct, EQUAL),
    "sharpness": (metrics.sharpness, EQUAL),
    "conf_ece": (ECE, EQUAL),
    "cw_ece": (partial(ECE, notion="class-wise"), EQUAL),
    "tl_ece": (partial(ECE, notion="top-label"), EQUAL),
    "rank-2 ece": (partial(ECE, notion="rank-2", n_bins=7), EQUAL),
    "within-top-2 ece": (partial(ECE, notion="within-top-2"), EQUAL),
    "mce": (partial(ECE, norm=np.inf), EQUAL),
    "debiased ece": (partial(ECE, norm=2, debias=True), EQUAL),
    "quantile ece": (partial(ECE, strategy="quantile"), Within(0.0075, SHARE)),
    "quantile cw_ece": (
        partial(ECE, strategy="quantile", notion="class-wise"),
        Within(0.0075, SHARE),
    ),
    "ks_error": (metrics.ks_error, Within(0.0075, SHARE)),
    "cutoff_calibration_error": (metrics.cutoff_calibration_error, Within(0.0075, SHARE)),
    "averaged_two_bin_error": (metrics.averaged_two_bin_error, Within(0.0009, WIDTH)),
    "calibration_slope": (metrics.calibration_slope, Within(0.0009, WIDTH)),
    "calibration_intercept": (metrics.calibration_intercept, Within(0.0009, WIDTH)),
    "integrated_calibration_index": (metrics.integrated_calibration_index, Within(0.0009, WIDTH)),
    "local_gap_quantile": (
        partial(metrics.local_gap_quantile, quantile=0.9),
        Within(0.0009, WIDTH),
    ),
    "smooth_calibration_error": (metrics.smooth_calibration_error, Within(0.0009, WIDTH)),
    "kde_calibration_error": (metrics.kde_calibration_error, Within(0.0009, WIDTH)),
    "aurc": (metrics.aurc, Within(0.0075, SHARE)),
    "augrc": (metrics.augrc, Within(0.0075, SHARE)),
    "coverage_at_risk": (
        partial(metrics.coverage_at_risk, risk=0.5),
        Within(0.0075, SHARE),
    ),
    "risk_at_coverage": (metrics.risk_at_coverage, Within(0.0075, SHARE)),
    "net_benefit": (partial(metrics.net_benefit, thresholds=[0.2, 0.6]), EQUAL),
    "decision_cost": (metrics.decision_cost, NEEDS_ROWS),
    "kernel_calibration_error": (metrics.kernel_calibration_error, NEEDS_ROWS),
}
TIED = Equal(1e-8, "of tied scores no row is moved; slopes are searched")
CURVES = Equal(1e-4, "the curve is linear between 101 quantiles, of rows or of cells")
OWN_LABELS = "the message is about the labels, and says to pass them with their scores, as was done"
COUNTS = "weights that sum to one are rejected in memory, and give a wrong number on chunks"


def of_metric(metric, rows, **options):
    def compute(data):
        weight = {} if rows.weight is None else {"sample_weight": data.weight}
        return metric(data.labels, data.scores, inputs=rows.inputs, **weight, **options)

    return compute


def outcome(compute, data):
    """The result, or the type of the error."""
    try:
        return compute(data)
    except (TypeError, ValueError) as error:
        return type(error).__name__


def test_every_metric_has_a_row_in_the_table():
    functions = {getattr(metric, "func", metric) for metric, _ in METRICS.values()}
    assert {getattr(metrics, name) for name in registry.__all__} <= functions


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_of_a_memory_map_is_that_of_the_array(name, make):
    rows = make_rows(weight="integer")
    compute = of_metric(METRICS[name][0], rows)
    assert_declared(EQUAL, compute, in_memory(rows), make("memory map", rows))


@pytest.mark.parametrize(("name", "kind"), cells(METRICS, MAIN))
def test_a_metric_of_chunks_is_that_of_memory(name, kind, make):
    metric, declared = METRICS[name]
    rows = make_rows(inputs="logits")
    assert_declared(declared, of_metric(metric, rows), in_memory(rows), make(kind, rows))


@pytest.mark.parametrize(
    ("name", "weight"),
    cells([name for name, (_, declared) in METRICS.items() if declared is not NEEDS_ROWS], WEIGHTS),
)
def test_weights_mean_the_same_for_chunks_of_tied_scores_as_in_memory(name, weight):
    rows = make_tied_rows(weight=weight)
    compute = of_metric(METRICS[name][0], rows)
    found, expected = (outcome(compute, data) for data in (as_own_chunks(rows), in_memory(rows)))
    is_curve = name in ("integrated_calibration_index", "local_gap_quantile")
    assert_close(found, expected, (CURVES if is_curve else TIED).tolerance)


@pytest.mark.parametrize("kind", CHUNKED)
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_calibration_curve_of_chunks_is_that_of_memory(strategy, kind, make):
    rows = make_tied_rows(weight="integer")
    curve = of_metric(metrics.calibration_curve, rows, strategy=strategy, notion="class-wise")
    found, expected = curve(make(kind, rows)), curve(in_memory(rows))
    for name in ("weight", "score", "outcome"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)


def evaluated(rows, **options):
    return lambda data: of_metric(evaluate, rows, **options)(data).to_dict()


@pytest.mark.parametrize("kind", CHUNKED)
@pytest.mark.parametrize("inputs", ["proba", "logits", "log_proba"])
def test_an_evaluation_of_chunks_is_that_of_memory(inputs, kind, make):
    rows = make_rows(inputs=inputs)
    found, expected = (evaluated(rows)(data) for data in (make(kind, rows), in_memory(rows)))
    assert found.pop("ks") == pytest.approx(expected.pop("ks"), abs=0.0075), SHARE
    assert_close(found, expected, EQUAL.tolerance)


@pytest.mark.parametrize(("weight", "kind"), cells(WEIGHTS, MAIN))
def test_weights_mean_the_same_in_an_evaluation_of_chunks_as_in_memory(weight, kind, make):
    rows = make_tied_rows(weight=weight)
    compute = evaluated(rows, n_bins=7)
    found, expected = (outcome(compute, data) for data in (make(kind, rows), in_memory(rows)))
    assert_close(found, expected, TIED.tolerance)


@pytest.mark.parametrize("kind", CHUNKED)
def test_names_of_classes_and_missing_ones_are_evaluated_as_in_memory(kind, make):
    base = make_tied_rows()
    rows = Rows(base.scores, np.minimum(base.y, 1), names=("pear", "fig", "apple"))
    compute = evaluated(rows, classes=list(rows.names))
    assert_declared(TIED, compute, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("kind", cells(MAIN))
def test_rows_are_divided_by_their_sum_on_chunks_as_in_memory(kind, make):
    base = make_tied_rows()
    rows = Rows(base.scores * 2, base.y)
    compute = evaluated(rows, renormalize=True)
    if kind.endswith("file"):  # whose rows are checked when they are read
        with pytest.raises(ValueError, match="renormalize=True"):
            compute(make(kind, rows))
    else:
        assert_declared(TIED, compute, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("what", cells(["weights"]))
def test_weights_of_an_npz_file_are_used_or_rejected(what, tmp_path):
    pytest.importorskip("pyarrow")
    from calibrant.io import open_scores

    rows = make_rows(weight="integer")
    np.savez(tmp_path / "rows.npz", probs=rows.scores, labels=rows.y, w=rows.weight)
    found = outcome(lambda path: open_scores(path, weight="w").weight, tmp_path / "rows.npz")
    assert found is not None


# --- groups -------------------------------------------------------------------------------------

GROUPS = np.array(["north", "south", "east"])[np.arange(N_ROWS) % 7 % 3]
ONE_COLUMN = {"by": GROUPS}
TWO_COLUMNS = {"by": {"region": GROUPS, "year": 2020 + np.arange(N_ROWS) % 2}}
UNKNOWN_GROUPS = Rejected(TypeError, "(?s)groups.*each group")


def by_group(rows, **options):
    """The numbers of each group, without those that are documented as missing on chunks."""

    def compute(data):
        found = of_metric(evaluate, rows, **options)(data).to_dict()
        return _without(NOT_ON_CHUNKS, found)

    return compute


NOT_ON_CHUNKS = ("ks", "difference", "gain", "gain_low", "gain_high")
"""The KS error, the test of a difference and recalibration need all rows in memory."""


def _without(names, value):
    if isinstance(value, dict):
        return {name: _without(names, own) for name, own in value.items() if name not in names}
    return [_without(names, own) for own in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", ["memory map", *CHUNKED])
@pytest.mark.parametrize("options", [ONE_COLUMN, TWO_COLUMNS], ids=["one column", "two columns"])
def test_groups_of_chunks_are_evaluated_as_in_memory(options, kind, make):
    rows = make_rows(inputs="logits", weight="integer")
    declared = UNKNOWN_GROUPS if kind == "own chunks" else EQUAL
    compute = by_group(rows, level=0.9, n_bins=7, **options)
    assert_declared(declared, compute, in_memory(rows), make(kind, rows))


def test_groups_of_a_dask_array_may_be_a_dask_array(make):
    da = pytest.importorskip("dask.array")
    rows = make_rows()
    found = by_group(rows, by=da.from_array(GROUPS, chunks=111))(make("dask array", rows))
    assert_close(found, by_group(rows, by=GROUPS)(in_memory(rows)), EQUAL.tolerance)


# --- accumulators -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory map", *CHUNKED])
@pytest.mark.parametrize("weight", ["none", "fractional"])
def test_an_accumulator_of_chunks_has_the_numbers_of_memory(weight, kind, make):
    rows = make_rows(inputs="logits", weight=weight)
    more = make_rows(50, inputs="logits", seed=8)

    def accumulate(data):
        total = MetricAccumulator(n_bins=11, inputs="logits", keep_top=0)
        total.update(data.labels, data.scores, data.weight).update(*in_memory(more)[1::-1])
        merged = MetricAccumulator.from_json(total.to_json()) + total
        return {
            "mean_confidence": total.mean_confidence,
            "total": total.compute().to_dict(),
            "merged": merged.compute().to_dict(),
        }

    assert_declared(EQUAL, accumulate, in_memory(rows), make(kind, rows))
