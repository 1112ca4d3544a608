"""`compare`, `report.summarize` and `calibrant.inference` on each kind of data.

| on chunks           | what                                                                       |
|---------------------|----------------------------------------------------------------------------|
| equal to memory     | `compare` and the report with the same folds; statistics of bins           |
| within a bound      | intervals of means in a report; statistics that need scores in order       |
| rejected            | weights, groups and given folds, if they need rows; kernel tests, bootstrap|

Folds of `compare` and of the report are runs: row i is held out in fold ``i // run mod cv``, with
``run`` a quarter of a fold, at most 60 rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from calibrant import (
    AutoCalibration,
    CanonicalBinning,
    GaussianProcessCalibration,
    HistogramBinning,
    Identity,
    TemperatureScaling,
    compare,
    inference,
    report,
)
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
    folds_by_number,
    in_memory,
    make_rows,
    make_tied_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

N_FOLDS = 3
RUNS = folds_by_number(N_ROWS, N_FOLDS, run=N_ROWS // (4 * N_FOLDS))
SEARCHED = Equal(1e-8, "maps are searched to 1e-13 of their objective")

COUNTED_CELLS = "the interval counts cells instead of rows, and is too wide"
OWN_LABELS = "the message is about the labels, and says to pass them with their scores, as was done"


class SameFolds:
    """A splitter that knows rows by their content, and holds out row i in fold i mod n."""

    def __init__(self, scores, n_splits):
        self.scores, self.n_splits = scores, n_splits

    def get_n_splits(self, *_):
        return self.n_splits

    def split(self, X, y=None, groups=None):
        order = np.argsort(self.scores[:, 0])
        number = order[np.searchsorted(self.scores[order, 0], X[:, 0])]
        for fold in range(self.n_splits):
            is_held = number % self.n_splits == fold
            yield np.flatnonzero(~is_held), np.flatnonzero(is_held)


def compared(rows, methods, runs=RUNS, **options):
    """A function of data: what a comparison tells, with the folds of chunks."""

    def compute(data):
        is_memory = isinstance(data.scores, np.ndarray)
        result = compare(
            data.labels,
            data.scores,
            inputs=rows.inputs,
            methods=methods(is_memory) if callable(methods) else methods,
            cv=runs if is_memory else N_FOLDS,
            sample_weight=data.weight,
            **options,
        )
        gains = {str(key): result.differences[key].to_dict() for key in sorted(result.differences)}
        for gain in gains.values():
            if abs(gain["gain"]) < 1e-12:
                del gain["p_value"]  # rounding decides whether it is 0 or 1
        shown = {"mean": result.mean, "spread": result.spread, "ranks": result.ranks}
        return {**shown, "methods": result.methods, "best": result.best, "gains": gains}

    return compute


@pytest.mark.parametrize("kind", ["memory map", *CHUNKED])
def test_a_comparison_of_chunks_is_that_of_memory(kind, make):
    rows = make_rows(inputs="logits", weight="integer")
    binning = HistogramBinning(n_bins=5, strategy="uniform")
    compute = compared(rows, {"temperature": "temperature", "binning": binning})
    assert_declared(SEARCHED, compute, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_weights_mean_the_same_in_a_comparison_of_chunks_as_in_memory(weight):
    rows = make_rows(inputs="logits", weight=weight)
    compute = compared(rows, ["temperature", "structured-vector"], metrics=["log_loss", "mce"])
    assert_declared(SEARCHED, compute, in_memory(rows), as_own_chunks(rows))


def test_folds_of_many_rows_are_runs_of_60():
    rows = make_rows(801)
    compute = compared(rows, ["temperature"], folds_by_number(801, N_FOLDS, run=60))
    assert_declared(SEARCHED, compute, in_memory(rows), as_own_chunks(rows))


def test_names_of_classes_are_compared_as_in_memory():
    base = make_rows()
    rows = Rows(base.scores, np.minimum(base.y, 1), names=("pear", "fig", "apple"))
    compute = compared(rows, ["temperature"], classes=list(rows.names))
    assert_declared(SEARCHED, compute, in_memory(rows), as_own_chunks(rows))


def test_a_stack_is_compared_by_nested_folds_as_in_memory():
    rows = make_rows(inputs="logits", slope=2.5)  # too few errors to correct the confidence

    def methods(is_memory):
        folds = SameFolds(rows.scores, 2) if is_memory else 2
        return {"stack": AutoCalibration(["temperature"], cv=folds)}

    compute = compared(rows, methods)
    declared = Equal(1e-6, "weights of the stack are searched as well")
    assert_declared(declared, compute, in_memory(rows), as_own_chunks(rows))


def test_isotonic_regression_is_compared_as_in_memory_within_the_bound_of_cells():
    tied, rows = make_tied_rows(), make_rows()
    compute = compared(tied, ["isotonic"])
    assert_declared(SEARCHED, compute, in_memory(tied), as_own_chunks(tied))
    declared = Within(0.01, "rows of a cell are taken together, and steps of a map move with them")
    compute = compared(rows, ["isotonic"], metrics=["log_loss", "brier_score"])
    means = lambda data: compute(data)["mean"]  # noqa: E731  # reads best
    assert_declared(declared, means, in_memory(rows), as_own_chunks(rows))


BY_NUMBER = Rejected(TypeError, "cv.*number of folds")
REJECTED = {
    "Gaussian process": ({"methods": [GaussianProcessCalibration()]}, NEEDS_ROWS),
    "canonical binning": ({"methods": ["canonical"]}, NEEDS_ROWS),
    "KS error": ({"metrics": ["ks"]}, Rejected(TypeError, "(?s)ks.*log_loss")),
    "given folds": ({"cv": RUNS}, BY_NUMBER),
    "groups": ({"groups": np.arange(N_ROWS)}, Rejected(TypeError, "(?s)groups.*memory")),
}


@pytest.mark.parametrize("kind", MAIN)
@pytest.mark.parametrize("what", REJECTED)
def test_what_chunks_cannot_compare_is_rejected(what, kind, make):
    options, declared = REJECTED[what]
    options = {"methods": ["temperature"], **options}
    run = lambda data: compare(data.labels, data.scores, **options)  # noqa: E731  # reads best
    assert_declared(declared, run, None, make(kind, make_rows()))


# --- report -------------------------------------------------------------------------------------

INTERVALS = Within(0.01, "means of all rows have normal intervals, of rows in memory bootstrapped")


def reported(data, **options):
    how = {"calibrator": Identity(), "cv": N_FOLDS, "n_resamples": 99, **options}
    return report.summarize(data.labels, data.scores, **how).to_dict()


def split_report(content):
    """All numbers and sentences but how the report was made, and the intervals of means."""
    means = content["metrics"][:3]
    intervals = [row.pop(side) for row in means for side in ("before", "after")]
    assert all([row.pop("note") for row in means] + [content.pop("how")])
    return content, [interval[end] for interval in intervals for end in ("value", "low", "high")]


@pytest.mark.parametrize("kind", ["memory map", *CHUNKED])
def test_the_report_of_chunks_is_that_of_memory(kind, make):
    """The identity does not depend on folds, and tied scores not on cells: all is equal."""
    rows = make_tied_rows()
    found, intervals = split_report(reported(make(kind, rows)))
    expected, of_memory = split_report(reported(in_memory(rows)))
    assert_close(found, expected, EQUAL.tolerance)
    np.testing.assert_allclose(intervals[::3], of_memory[::3], atol=1e-10)
    np.testing.assert_allclose(intervals, of_memory, atol=INTERVALS.bound)


@pytest.mark.parametrize("kind", ["row iterator"])
def test_a_report_of_logits_and_names_is_that_of_memory(kind, make):
    base = make_rows(inputs="logits")
    rows = Rows(base.scores, base.y, inputs="logits", names=("pear", "fig", "apple"))
    options = {"inputs": "logits", "classes": list(rows.names), "n_bins": 8}
    found, expected = (reported(d, **options) for d in (make(kind, rows), in_memory(rows)))
    for name in ("n_samples", "classes", "reliability", "per_class", "tests", "decomposition"):
        assert_close(found[name], expected[name], EQUAL.tolerance, name)
    error = Within(0.0075, "the KS error is made of cells, of at most three rows of 401")
    assert abs(found["ks"]["before_error"] - expected["ks"]["before_error"]) <= error.bound


@pytest.mark.parametrize("kind", MAIN)
def test_a_report_evaluates_calibrated_rows_in_the_folds_of_a_comparison(kind, make):
    rows = make_rows(inputs="logits")
    made = TemperatureScaling()
    content = reported(make(kind, rows), calibrator=made, inputs="logits")
    after = {row["name"]: row["after"]["value"] for row in content["metrics"]}
    gains = compare(rows.y, rows.scores, inputs="logits", methods={"t": made}, cv=RUNS).gains
    for score in ("log_loss", "brier_score"):
        assert after[score] == pytest.approx(gains["data", "t", score].after, abs=1e-8)


REPORT_REJECTS = {
    "Gaussian process": ({"calibrator": GaussianProcessCalibration()}, NEEDS_ROWS),
    "canonical binning": ({"calibrator": CanonicalBinning()}, NEEDS_ROWS),
}


@pytest.mark.parametrize("kind", MAIN)
@pytest.mark.parametrize("what", REPORT_REJECTS)
def test_what_a_report_of_chunks_cannot_do_is_rejected(what, kind, make):
    options, declared = REPORT_REJECTS[what]
    assert_declared(declared, lambda data: reported(data, **options), None, make(kind, make_rows()))


# --- tests and intervals ------------------------------------------------------------------------

WIDTH = "statistics are made of cells of scores; two scores of a cell differ by less than 0.0009"

INFERENCE = {
    # name: (function, what chunks of different scores give)
    "Spiegelhalter": (inference.spiegelhalter_test, Within(0.01, WIDTH)),
    "Hosmer-Lemeshow": (
        inference.hosmer_lemeshow_test,
        Within(1.5, "groups of 40 rows move by one"),
    ),
    "KS": (inference.ks_test, Within(0.05, WIDTH)),
    "Kuiper": (inference.kuiper_test, Within(0.05, WIDTH)),
    "line": (inference.calibration_line, Within(0.001, WIDTH)),
    "validity": (inference.validity_curve, EQUAL),
    "cutoff": (inference.cutoff_interval, Within(0.0075, WIDTH)),
    "debiased": (inference.debiased_interval, NEEDS_ROWS),
    "kernel": (partial(inference.kernel_test, n_resamples=20, rng=0), NEEDS_ROWS),
    "bootstrap": (partial(inference.bootstrap_interval, "log_loss", rng=0), NEEDS_ROWS),
    "decomposition": (partial(inference.score_decomposition, rng=0), NEEDS_ROWS),
    "gain": (partial(inference.calibration_gain, cv=2, rng=0), NEEDS_ROWS),
}
ORDERED = [name for name, (_, declared) in INFERENCE.items() if declared is not NEEDS_ROWS]


NUMBERS = ("statistic", "p_value", "estimate", "low", "high", "slope", "intercept", "share")
NUMBERS += ("gap", "gain", "calibration", "refinement")


def numbers(result):
    """The numbers of a test, an interval, a line, a curve or a decomposition."""
    found = {name: getattr(result, name) for name in NUMBERS if hasattr(result, name)}
    assert found
    return {name: numbers(own) if hasattr(own, "low") else own for name, own in found.items()}


def inferred(name, rows):
    function = INFERENCE[name][0]

    def compute(data):
        weight = {} if rows.weight is None else {"sample_weight": data.weight}
        return numbers(function(data.labels, data.scores, inputs=rows.inputs, **weight))

    return compute


@pytest.mark.parametrize("name", INFERENCE)
def test_inference_on_a_memory_map_is_that_on_the_array(name, make):
    rows = make_rows(inputs="logits")
    compute = inferred(name, rows)
    assert_declared(EQUAL, compute, in_memory(rows), make("memory map", rows))


@pytest.mark.parametrize(("name", "kind"), cells(INFERENCE, MAIN))
def test_inference_on_chunks_is_that_in_memory(name, kind, make):
    rows = make_rows(inputs="logits")
    declared = INFERENCE[name][1]
    assert_declared(declared, inferred(name, rows), in_memory(rows), make(kind, rows))


@pytest.mark.parametrize(
    ("name", "weight"),
    cells(ORDERED, ["none"]) + cells(ORDERED[:-1], ("integer", "fractional")),
)
def test_inference_on_chunks_of_tied_scores_is_equal_to_memory(name, weight):
    rows = make_tied_rows(2000, weight=weight)  # enough for limits: draws need rows in memory
    tied = Equal(1e-6, "of tied scores no row is moved; the line is searched")
    assert_declared(tied, inferred(name, rows), in_memory(rows), as_own_chunks(rows))


@pytest.mark.parametrize(("metric", "kind"), cells(("conf_ece", "cw_ece", "tl_ece"), MAIN))
def test_the_consistency_test_of_chunks_is_that_of_memory(metric, kind, make):
    rows = make_rows(slope=1.0)
    both = make(kind, rows), in_memory(rows)
    tests = (inference.consistency_test(d.labels, d.scores, metric, 999, rng=0) for d in both)
    found, expected = tests
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-10)
    draws = Within(0.07, "999 draws, four standard errors of a p-value")
    assert abs(found.p_value - expected.p_value) <= draws.bound


@pytest.mark.parametrize("kind", MAIN)
def test_the_consistency_test_of_chunks_takes_unit_weights_and_rejects_others(kind, make):
    def tested(data):
        how = {"n_resamples": 9, "rng": 0, "sample_weight": data.weight}
        return inference.consistency_test(data.labels, data.scores, **how)

    assert tested(make(kind, make_rows(weight="unit"))).n_samples == N_ROWS
    weighted = make(kind, make_rows(weight="integer"))
    assert_declared(Rejected(TypeError, "weights"), tested, None, weighted)
