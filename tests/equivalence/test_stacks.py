"""`CrossFitted` and `AutoCalibration` on each kind of data: the same algorithm, so the same model.

Chunked folds go by the number of the row: row i is held out in fold i mod cv. The same folds in
memory are ``cv=folds_by_number(n_rows, cv)``, and then every cell is equal to memory. Isotonic
members and the correction of the confidence are within the bound of cells of scores.

| argument                           | on chunks                                               |
|------------------------------------|---------------------------------------------------------|
| candidates of sums over rows       | equal to memory                                         |
| no candidates                      | equal to memory: the same members, the same correction  |
| cv=None, cv=5                      | equal to memory with the same folds                     |
| cv=splitter, cv=[(train, test)]    | rejected: pass a number of folds                        |
| groups=                            | rejected: groups are for rows in memory                 |
| n_jobs=, progress=                 | accepted                                                |
| time_budget=                       | honored: candidates that are too late are left out      |
| candidates that need all rows      | rejected                                                |
| candidates of other packages       | rejected                                                |
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from calibrant import (
    AutoCalibration,
    BayesianTemperatureScaling,
    CrossFitted,
    DirichletCalibration,
    GaussianProcessCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MulticlassToBinary,
    PlattScaling,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant._data import fold_plan
from calibrant._data.read import as_sample
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
    fitted_view,
    folds_by_number,
    in_memory,
    make_rows,
    make_tied_rows,
    weights,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

STACKED = Equal(1e-6, "members are searched to 1e-13 of their objective, and so are the weights")
CELLS = Within(0.01, "binary members are fitted to cells of scores, 0.0009 wide at most")


def two_members():
    return {"temperature": TemperatureScaling(), "vector": StructuredScaling("vector")}


def with_isotonic():
    return {"temperature": TemperatureScaling(), "isotonic": IsotonicCalibration("linear", 1.0)}


def with_confidence():
    confidence = MulticlassToBinary(IsotonicCalibration("linear", 1.0, True), notion="confidence")
    return {"temperature": BayesianTemperatureScaling(), "confidence": confidence}


def overconfident_rows(n_rows=N_ROWS):
    """A confidence that no scaling of logits corrects: above 0.8 half of the rows are wrong."""
    rng = np.random.default_rng(0)
    proba = softmax(2 * rng.normal(size=(n_rows, 3)), axis=1)
    top, first = proba.max(axis=1), proba.argmax(axis=1)
    is_right = rng.random(n_rows) < np.select([top > 0.8, top > 0.6], [0.55, 0.95], 0.5)
    return Rows(proba, np.where(is_right, first, (first + rng.integers(1, 3, n_rows)) % 3))


CASES = {
    # name: (rows, candidates, folds, declared)
    "two candidates": (make_rows(inputs="logits"), two_members(), 3, STACKED),
    "candidates by name": (make_rows(), ["temperature", "structured-vector"], 2, STACKED),
    "two classes": (make_rows(n_classes=2), two_members(), 2, STACKED),
    "one candidate": (make_rows(inputs="logits"), ["temperature"], 2, STACKED),
    "fewer than 100 rows": (make_rows(83), ["temperature"], None, STACKED),
    "few rows per class": (make_rows(230, 25, scale=4, slope=1.2), None, None, CELLS),
    "fewer rows than classes": (make_rows(40, 50, scale=3), None, None, CELLS),
    "four classes per row": (make_rows(25, 101, scale=3), None, None, CELLS),
    "an isotonic candidate": (make_rows(seed=1), with_isotonic(), 3, CELLS),
    "an isotonic candidate, tied": (make_tied_rows(seed=1), with_isotonic(), 3, STACKED),
    "default, with isotonic, tied": (make_tied_rows(seed=0), None, None, STACKED),
    "corrected confidence": (overconfident_rows(), two_members(), 3, CELLS),
    "confidence candidate": (overconfident_rows(), with_confidence(), 3, CELLS),
}


def view(model, scores):
    shown = {**fitted_view(model, scores), "is_corrected": model.top_ is not None}
    if shown["gain_"] and abs(shown["gain_"]["gain"]) < 1e-12:
        del shown["gain_"]["p_value"]  # rounding decides whether it is 0 or 1
    return shown


def check(case, data, rows=None):
    own, candidates, cv, declared = CASES[case]
    rows = rows or own
    n_rows, is_small = len(rows.y), len(rows.y) < 100
    folds = folds_by_number(n_rows, cv or (20 if is_small else 5))
    memory = AutoCalibration(candidates, cv=folds, inputs=rows.inputs).fit(*in_memory(rows))
    chunks = AutoCalibration(candidates, cv=cv, inputs=rows.inputs).fit(*data)
    assert chunks.names_ == memory.names_
    assert (chunks.top_ is None) == (memory.top_ is None)
    if isinstance(declared, Equal):
        assert_close(view(chunks, rows.scores), view(memory, rows.scores), declared.tolerance)
    else:
        assert_declared(declared, lambda m: m.predict_proba(rows.scores), memory, chunks)
        # The loss of a member moves by the width of a cell, times the slope of the logarithm.
        np.testing.assert_allclose(chunks.losses_, memory.losses_, atol=0.01)


@pytest.mark.parametrize("case", ["two candidates", "default, with isotonic, tied"])
def test_a_stack_of_a_memory_map_is_the_stack_of_the_array(case, make):
    rows, candidates, cv, _ = CASES[case]
    memory, mapped = (
        AutoCalibration(candidates, cv=cv, inputs=rows.inputs).fit(*data)
        for data in (in_memory(rows), make("memory map", rows))
    )
    assert_close(view(mapped, rows.scores), view(memory, rows.scores), EQUAL.tolerance)


@pytest.mark.parametrize(("case", "kind"), cells(CASES, ["own chunks"]))
def test_a_stack_of_chunks_is_the_stack_in_memory(case, kind, make):
    check(case, make(kind, CASES[case][0]))


@pytest.mark.parametrize("kind", CHUNKED)
def test_every_kind_of_chunks_gives_the_same_stack(kind, make):
    check("one candidate", make(kind, CASES["one candidate"][0]))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_weights_mean_the_same_in_a_stack_of_chunks_as_in_memory(weight):
    rows = make_rows(inputs="logits", weight=weight)
    check("two candidates", as_own_chunks(rows), rows)


@pytest.mark.parametrize("kind", MAIN)
def test_classes_of_a_stack_are_the_same_on_chunks_as_in_memory(kind, make):
    rows = make_rows(n_classes=4)
    rows = Rows(rows.scores, np.minimum(rows.y, 2), names=("pear", "fig", "apple", "kiwi"))
    made = AutoCalibration(["temperature"], classes=list(rows.names))
    memory = clone(made).set_params(cv=folds_by_number(N_ROWS, 2)).fit(*in_memory(rows))
    chunks = clone(made).set_params(cv=2).fit(*make(kind, rows))
    assert_close(view(chunks, rows.scores), view(memory, rows.scores), STACKED.tolerance)


@pytest.mark.parametrize("kind", cells(MAIN))
def test_one_row_leaves_the_scores_as_they_are(kind, make):
    rows = Rows(make_rows().scores[:1], make_rows().y[:1])
    model = AutoCalibration().fit(*make(kind, rows))
    np.testing.assert_allclose(model.predict_proba(rows.scores), rows.scores)
    assert model.gain_ is None


@pytest.mark.parametrize("kind", cells(MAIN))
def test_candidates_are_left_out_of_chunks_if_the_time_is_over(kind, make):
    rows = make_rows()
    memory, chunks = (
        AutoCalibration(["temperature"], cv=cv, time_budget=0.0).fit(*data)
        for cv, data in (
            (folds_by_number(N_ROWS, 2), in_memory(rows)),
            (2, make(kind, rows)),
        )
    )
    assert memory.names_ == ("identity", "uniform")
    assert_close(view(chunks, rows.scores), view(memory, rows.scores), STACKED.tolerance)


def test_jobs_and_progress_are_accepted_and_change_nothing(make):
    rows = make_rows()
    plain, other = (
        AutoCalibration(["temperature"], cv=2, **how).fit(*make("row iterator", rows))
        for how in ({}, {"n_jobs": 2, "progress": True, "random_state": 3})
    )
    assert_close(view(other, rows.scores), view(plain, rows.scores), 1e-12)


GROUPS = np.arange(N_ROWS) // 4
REJECTED = {
    # what: (model, arguments of fit, declared)
    "groups": (AutoCalibration(), {"groups": GROUPS}, Rejected(TypeError, "(?s)groups.*memory")),
    "groups of maps": (
        CrossFitted(TemperatureScaling()),
        {"groups": GROUPS},
        Rejected(TypeError, "(?s)groups.*memory"),
    ),
    "splitter": (AutoCalibration(cv=KFold(3)), {}, Rejected(TypeError, "cv.*number of folds")),
    "given folds": (
        CrossFitted(TemperatureScaling(), cv=folds_by_number(N_ROWS, 3)),
        {},
        Rejected(TypeError, "cv.*number of folds"),
    ),
    "folds within folds": (
        CrossFitted(AutoCalibration()),
        {},
        Rejected(TypeError, "AutoCalibration.*pass the calibrators inside it"),
    ),
    "Gaussian process": (AutoCalibration([GaussianProcessCalibration()]), {}, NEEDS_ROWS),
    "Gaussian process maps": (CrossFitted(GaussianProcessCalibration()), {}, NEEDS_ROWS),
    "other package": (
        AutoCalibration([LogisticRegression()]),
        {},
        Rejected(TypeError, "LogisticRegression"),
    ),
}


@pytest.mark.parametrize("kind", MAIN)
@pytest.mark.parametrize("what", REJECTED)
def test_what_chunks_cannot_do_is_rejected(what, kind, make):
    model, arguments, declared = REJECTED[what]
    fit = lambda data: clone(model).fit(*data, **arguments)  # noqa: E731  # one line reads best
    assert_declared(declared, fit, None, make(kind, make_rows()))


CROSS_FITTED = {
    "temperature": (TemperatureScaling(), STACKED),
    "vector, by name": ("vector", STACKED),
    "Dirichlet": (DirichletCalibration(lam=0.01), STACKED),
    "histogram, uniform": (HistogramBinning(n_bins=5, strategy="uniform"), EQUAL),
    "Platt": (PlattScaling(), Within(0.0009, "two scores of a cell differ by less")),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    cells(CROSS_FITTED, ["row iterator"])
    + cells(["temperature", "histogram, uniform"], ["dask array", "parquet file"]),
)
def test_cross_fitted_maps_of_chunks_are_those_of_memory(name, kind, make):
    calibrator, declared = CROSS_FITTED[name]
    rows = make_rows(inputs="logits", weight="integer")

    def fit(data):
        cv = folds_by_number(N_ROWS, 3) if isinstance(data.scores, np.ndarray) else 3
        model = CrossFitted(calibrator, cv=cv, inputs="logits").fit(*data)
        assert len(model.calibrators_) == 3
        shown = fitted_view(model, rows.scores)
        return shown if isinstance(declared, Equal) else shown["proba"]

    assert_declared(declared, fit, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("kind", MAIN)
def test_groups_of_a_single_fold_are_as_many_and_as_large_as_in_memory(kind, make):
    rows = make_rows()

    def group_sizes(data):
        sample, _ = as_sample(*data)
        plan = fold_plan.plan_folds(4, sample, one_fold=True)
        group = np.concatenate(plan.sum_held_out(lambda held_out: [held_out.group]))
        return np.bincount(group)

    sizes, expected = group_sizes(make(kind, rows)), group_sizes(in_memory(rows))
    assert len(sizes) == len(expected) == fold_plan.N_GROUPS
    assert abs(sizes - expected).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("weight", "kind"), [("none", "own chunks"), ("integer", "dask array")])
def test_many_rows_are_evaluated_in_one_fold_on_chunks_as_in_memory(weight, kind):
    """From 2^21 scores on, the first fold is held out. Its rows are cut into five groups, in which
    weights are evaluated: by content in memory, by number on chunks. The correction of the
    confidence is cross-fitted on these groups, so its weight differs slightly.
    """
    n_rows = 2**19 + 3
    base = make_rows(n_rows, 4, inputs="logits", scale=6)
    rows = Rows(base.scores, base.y, weights(weight, n_rows), "logits")
    made = AutoCalibration({"temperature": TemperatureScaling(), "vector": VectorScaling()})
    made.set_params(inputs="logits")
    n_folds = -(-n_rows // fold_plan.MOST_HELD_OUT)
    memory = clone(made).set_params(cv=folds_by_number(n_rows, n_folds)[:1]).fit(*in_memory(rows))
    size = 50_000
    if kind == "dask array":
        da = pytest.importorskip("dask.array")
        scores, y = da.from_array(rows.scores, chunks=(size, 4)), da.from_array(rows.y, size)
        chunks = clone(made).fit(scores, y, rows.weight)
    else:
        chunks = clone(made).fit(*as_own_chunks(rows, size=size))
    assert chunks.names_ == memory.names_
    np.testing.assert_allclose(chunks.weights_, memory.weights_, atol=0.005)
    np.testing.assert_allclose(chunks.losses_, memory.losses_, atol=1e-9)
    assert abs(chunks.gain_.gain - memory.gain_.gain) < 0.2 * memory.gain_.standard_error
