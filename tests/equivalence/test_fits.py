"""Calibrators of the whole vector, fitted on each kind of data.

| on chunks (dask arrays, row iterators, files) | calibrators                                   |
|-----------------------------------------------|-----------------------------------------------|
| equal to memory                               | all that minimize a sum over rows             |
| rejected                                      | Gaussian process, canonical binning           |
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from calibrant import (
    BayesianTemperatureScaling,
    CanonicalBinning,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GaussianProcessCalibration,
    Identity,
    MatrixScaling,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    multiclass,
)
from data_kinds import (
    CHUNKED,
    EQUAL,
    MAIN,
    NEEDS_ROWS,
    SEARCHED,
    WEIGHTS,
    Rows,
    as_own_chunks,
    assert_close,
    assert_declared,
    cells,
    fitted_view,
    in_memory,
    make_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # a test below compares warnings

CALIBRATORS = {
    "identity": (Identity(), EQUAL),
    "temperature": (TemperatureScaling(), SEARCHED),
    "temperature with prior": (TemperatureScaling(prior_scale=0.25), SEARCHED),
    "ensemble temperature": (EnsembleTemperatureScaling(), SEARCHED),
    "Bayesian temperature": (BayesianTemperatureScaling(), EQUAL),
    "vector": (VectorScaling(), SEARCHED),
    "matrix": (MatrixScaling(lam=0.01), SEARCHED),
    "Dirichlet": (DirichletCalibration(lam=0.01), SEARCHED),
    "Dirichlet, L2": (DirichletCalibration(lam=0.01, penalty="l2"), SEARCHED),
    "structured vector": (StructuredScaling("vector"), SEARCHED),
    "structured matrix": (StructuredScaling("matrix"), SEARCHED),
    "structured centered": (StructuredScaling("matrix", True, prior_scale=0.25), SEARCHED),
    "Gaussian process": (GaussianProcessCalibration(), NEEDS_ROWS),
    "canonical, k-d tree": (CanonicalBinning(n_bins=5), NEEDS_ROWS),
    "canonical, Sierpinski": (CanonicalBinning(partition="sierpinski", depth=2), NEEDS_ROWS),
    "canonical, grid": (CanonicalBinning(partition="grid"), NEEDS_ROWS),
}
SUMS = [name for name, (_, declared) in CALIBRATORS.items() if declared is not NEEDS_ROWS]

SETTINGS = {
    **{f"logits, {weight} weights": {"inputs": "logits", "weight": weight} for weight in WEIGHTS},
    "probabilities": {"inputs": "proba"},
    "log-probabilities": {"inputs": "log_proba", "weight": "fractional"},
}
"""Inputs and weights; chunked fits are equal to memory with each of them."""

EFFORT = {"n_iter_", "n_passes_"}
"""How often data are read is not the same on every kind of data."""


def parameters(model):
    """All fitted numbers, which hold coefficients, penalties and losses of cross-validation."""
    names = sorted(name for name in vars(model) if name.endswith("_") and name not in EFFORT)
    values = {name: getattr(model, name) for name in names}
    return {name: v for name, v in values.items() if isinstance(v, int | float | np.ndarray)}


def fit_and_view(calibrator, rows):
    """A function of data: fit a clone, and show what users see of it."""

    def compute(data):
        model = clone(calibrator).set_params(inputs=rows.inputs).fit(*data)
        return {**fitted_view(model, rows.scores), **parameters(model)}

    return compute


def check(name, rows, data, declared=None):
    calibrator, own = CALIBRATORS[name]
    assert_declared(declared or own, fit_and_view(calibrator, rows), in_memory(rows), data)


def test_every_calibrator_of_whole_vectors_has_a_row():
    classes = {getattr(multiclass, name) for name in multiclass.__all__}
    assert classes == {type(calibrator) for calibrator, _ in CALIBRATORS.values()}


@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_fit_on_a_memory_map_is_the_fit_on_the_array(name, make):
    rows = make_rows(inputs="logits", weight="integer")
    check(name, rows, make("memory map", rows), EQUAL)


@pytest.mark.parametrize(("name", "kind"), cells(CALIBRATORS, CHUNKED))
def test_a_fit_on_chunks_is_the_fit_in_memory(name, kind, make):
    rows = make_rows(inputs="logits", weight="integer")
    check(name, rows, make(kind, rows))


@pytest.mark.parametrize(
    ("name", "setting", "kind"),
    cells(SUMS, SETTINGS, ["row iterator"])
    + cells(["temperature"], SETTINGS, ["dask array", "parquet file"]),
)
def test_inputs_and_weights_mean_the_same_on_chunks_as_in_memory(name, setting, kind, make):
    rows = make_rows(**SETTINGS[setting])
    check(name, rows, make(kind, rows))


def test_the_penalty_that_cross_validation_chooses_is_the_same_on_chunks():
    rows = make_rows(inputs="logits")
    compute = fit_and_view(DirichletCalibration(), rows)
    assert_declared(SEARCHED, compute, in_memory(rows), as_own_chunks(rows))


@pytest.mark.parametrize(
    ("name", "size"),
    cells(["temperature"], [1, 7, 64, 400, 401, 1000])
    + cells(["structured vector", "Bayesian temperature"], [64, 400]),
)
def test_a_fit_does_not_depend_on_the_size_of_chunks(name, size):
    rows = make_rows(inputs="logits", weight="integer")
    check(name, rows, as_own_chunks(rows, size=size))


@pytest.mark.parametrize(
    ("name", "kind"),
    cells(["temperature"], CHUNKED) + cells(["Dirichlet"], MAIN),
)
def test_single_precision_scores_are_fitted_alike(name, kind, make):
    rows = make_rows()
    single = Rows(rows.scores.astype(np.float32), rows.y)
    calibrator, declared = CALIBRATORS[name]
    compute = fit_and_view(calibrator, single)
    assert_declared(declared, compute, in_memory(single), make(kind, single))
    assert compute(make(kind, single))["proba"].dtype == np.float32


@pytest.mark.parametrize("kind", CHUNKED)
@pytest.mark.parametrize("is_named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("is_missing", [False, True], ids=["all classes", "a class is missing"])
def test_classes_are_the_same_on_chunks_as_in_memory(is_missing, is_named, kind, make):
    rows = make_rows()
    y = np.where(rows.y == 2, 0, rows.y) if is_missing else rows.y
    names = ("pear", "fig", "apple") if is_named else None  # not in the order of the alphabet
    rows = Rows(rows.scores, y, names=names)
    calibrator = StructuredScaling("vector", classes=list(names or range(3)))
    compute = fit_and_view(calibrator, rows)
    assert_declared(SEARCHED, compute, in_memory(rows), make(kind, rows))


def test_names_in_sorted_order_are_found_in_a_dask_array_as_in_memory(make):
    rows = make_rows()
    rows = Rows(rows.scores, rows.y, names=("ant", "bee", "cat"))
    compute = fit_and_view(TemperatureScaling(), rows)
    assert_declared(SEARCHED, compute, in_memory(rows), make("dask array", rows))
    missing = Rows(rows.scores, np.where(rows.y == 2, 0, rows.y), names=rows.names)
    for data in (in_memory(missing), make("dask array", missing)):
        with pytest.raises(ValueError, match=r"2 different values .* 3 columns.*classes="):
            TemperatureScaling().fit(*data)


@pytest.mark.parametrize(
    ("name", "kind"),
    cells(SUMS, ["row iterator"]) + cells(["temperature"], ["dask array", "parquet file"]),
)
def test_the_training_summary_is_the_same_on_chunks_as_in_memory(name, kind, make):
    rows = make_rows(inputs="logits", weight="fractional")
    made = CALIBRATORS[name][0]
    memory, chunks = (
        clone(made).set_params(inputs="logits").fit(*data)
        for data in (in_memory(rows), make(kind, rows))
    )
    assert_close(chunks.training_.to_dict(), memory.training_.to_dict(), 1e-6)


@pytest.mark.parametrize("kind", cells(CHUNKED))
def test_one_score_per_row_is_one_feature(kind, make):
    rows = make_rows(n_classes=2)
    rows = Rows(rows.scores[:, 1], rows.y)
    memory, chunks = (
        fit_and_view(TemperatureScaling(), rows)(data)
        for data in (in_memory(rows), make(kind, rows))
    )
    if kind == "own chunks":  # which a user declares as scores of both classes
        assert chunks.pop("n_features_in_") == memory.pop("n_features_in_") + 1
    assert_close(chunks, memory, SEARCHED.tolerance)


def rows_with_impossible_labels():
    """Rows of which 3% have a true class with probability zero."""
    rows = make_rows()
    scores, y = rows.scores.copy(), rows.y.copy()
    scores[::33], y[::33] = [0.0, 0.5, 0.5], 0
    return Rows(scores, y)


ODD = {
    "labels with probability zero": rows_with_impossible_labels(),
    "weights that sum to one": make_rows(weight="normalized"),
    "rows that miss one by rounding": Rows(make_rows().scores.round(3), make_rows().y),
    "a class that never occurs": Rows(make_rows().scores, np.minimum(make_rows().y, 1)),
}


@pytest.mark.parametrize(("odd", "kind"), cells(ODD, MAIN))
def test_odd_data_raise_as_many_warnings_on_chunks_as_in_memory(odd, kind, make):
    def n_warnings(data):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            VectorScaling().fit(*data)
        return len(caught)

    assert n_warnings(make(kind, ODD[odd])) == n_warnings(in_memory(ODD[odd])) == 1


def bad_rows(column):
    rows = make_rows(weight="unit")
    scores, y, weight = rows.scores.copy(), rows.y.copy(), rows.weight.copy()
    if column == "score":
        scores[310, 1] = np.nan
    elif column == "label":
        y[310] = 7
    else:
        weight[310] = -1
    return Rows(scores, y, weight)


@pytest.mark.parametrize(
    ("column", "kind"),
    cells(("score", "label", "weight"), CHUNKED),
)
def test_a_bad_row_is_named_by_its_number_among_all_rows(column, kind, make):
    rows = bad_rows(column)
    message = {
        "score": r"Row 310( \(line 312\))?, column \S+ of",
        "label": "in row 310 ",
        "weight": "of row 310 ",
    }
    with pytest.raises(ValueError, match=message[column]):
        TemperatureScaling().fit(*make(kind, rows))


@pytest.mark.parametrize("kind", CHUNKED)
def test_weights_that_are_all_zero_are_rejected(kind, make):
    rows = make_rows()
    data = make(kind, Rows(rows.scores, rows.y, np.zeros(len(rows.y))))
    with pytest.raises(ValueError, match="weights are zero"):
        TemperatureScaling().fit(*data)
