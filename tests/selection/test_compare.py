"""Comparisons of chunked rows, which are computed from sums."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant import CanonicalBinning, HistogramBinning, compare
from calibrant.io import RowBlocks
from calibrant.metrics import Metric, log_loss


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(1200, 4))
    y = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y, rng.integers(4, size=1200).astype(float)


def blocks_of(logits, y, weight=None, size=170):
    def read():
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            yield logits[rows], y[rows], None if weight is None else weight[rows]

    return RowBlocks(read)


def folds_of(n_rows, cv, run=60):
    fold = np.arange(n_rows) // run % cv
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(cv)]


METHODS = [
    "temperature",
    "structured-vector",
    "vector",
    HistogramBinning(n_bins=4, strategy="uniform"),
]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_comparison_of_parts_is_that_of_rows_in_memory(data, is_weighted):
    logits, y, weight = data
    weight = weight if is_weighted else None
    blocks = blocks_of(logits, y, weight)
    how = {
        "methods": METHODS,
        "inputs": "logits",
        "metrics": ["log_loss", "accuracy", "cw_ece", "mce", "sharpness"],
    }
    result = compare(blocks.labels, blocks.scores, cv=4, sample_weight=blocks.weight, **how)
    whole = compare(y, logits, cv=folds_of(1200, 4), sample_weight=weight, **how)
    assert result.methods == whole.methods
    np.testing.assert_allclose(result.mean, whole.mean, atol=1e-8)
    np.testing.assert_allclose(result.spread, whole.spread, atol=1e-8)
    assert set(result.differences) == set(whole.differences)
    for key, gain in whole.differences.items():
        for name in ("gain", "low", "high", "before", "after", "p_value"):
            # A p-value changes by the gain in standard errors, which are small.
            bound = 1e-7 if name == "p_value" else 1e-8
            assert getattr(result.differences[key], name) == pytest.approx(
                getattr(gain, name), abs=bound
            )
    assert result.to_dict().keys() == whole.to_dict().keys()


def test_maps_that_are_made_of_cells_and_stacks_say_so(data):
    logits, y, _ = data
    blocks = blocks_of(logits, y)
    result = compare(blocks.labels, blocks.scores, inputs="logits", cv=3)
    assert result.methods[-2:] == ("isotonic", "auto")
    isotonic, auto = result.notes
    assert isotonic.startswith("isotonic: Rows were counted in 8,192 cells")
    assert auto.startswith("auto: Rows are assigned to folds by their row number.")
    assert isotonic in str(result)
    assert result.to_dict()["notes"] == [isotonic, auto]
    assert result.gains["data", "auto", "log_loss"].gain > 0


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"methods": [CanonicalBinning()]}, "CanonicalBinning needs all rows in memory"),
        ({"methods": [LogisticRegression()]}, "LogisticRegression needs all rows in memory"),
        (
            {"metrics": ["ks"]},
            "metric ks needs all rows in memory.* choose from accuracy, brier",
        ),
        (
            {"metrics": {"own": Metric("log_loss", lambda y, p: 0.0)}},
            "metric own needs all rows",
        ),
        ({"cv": [([0], [1])]}, "cv must be a number of folds"),
        ({"groups": np.zeros(1200)}, "groups= works on scores in memory"),
    ],
)
def test_what_sums_do_not_tell_is_rejected_with_the_reason(data, how, text):
    blocks = blocks_of(*data[:2])
    with pytest.raises(TypeError, match=text):
        compare(blocks.labels, blocks.scores, **{"inputs": "logits", "methods": [], **how})


def test_a_metric_may_be_named_by_its_function_and_in_other_words(data):
    blocks = blocks_of(*data[:2])
    result = compare(
        blocks.labels, blocks.scores, inputs="logits", methods=[], metrics=[log_loss, "ece"], cv=2
    )
    assert result.metrics == ("log_loss", "ece")
    assert (result.mean > 0).all()


def test_a_fold_without_rows_of_positive_weight_is_rejected(data):
    logits, y, _ = data
    weight = (np.arange(9) % 3 > 0).astype(float)
    blocks = blocks_of(logits[:9], y[:9], weight)
    with pytest.raises(ValueError, match="1 of 3 folds have no rows with positive weight"):
        compare(
            blocks.labels,
            blocks.scores,
            sample_weight=blocks.weight,
            inputs="logits",
            methods=[],
            cv=3,
        )


def test_chunks_of_a_dask_array_are_compared_alike(data):
    da = pytest.importorskip("dask.array")
    logits, y, _ = data
    scores, labels = da.from_array(logits, chunks=(300, 4)), da.from_array(y, chunks=300)
    blocks = blocks_of(logits, y)
    one = compare(labels, scores, inputs="logits", methods=["temperature"])
    other = compare(blocks.labels, blocks.scores, inputs="logits", methods=["temperature"])
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-10)
