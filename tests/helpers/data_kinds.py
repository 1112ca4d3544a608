"""The same rows as every kind of data, and what a cell of the grid may declare.

| kind         | what the user passes                                               |
|--------------|--------------------------------------------------------------------|
| array        | NumPy arrays: the reference                                        |
| memory map   | ``np.load(path, mmap_mode="r")``: an array, so always equal        |
| dask array   | ``dask.array``; scores, labels and weights are chunked differently |
| row iterator | ``calibrant.io.RowBlocks`` over a generator                        |
| own chunks   | a subclass of ``calibrant.io.ScoreChunks``, as for a cluster       |
| ... file     | ``calibrant.io.open_scores(path)``                                 |

No chunk size divides the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant.io import Chunk, RowBlocks, ScoreChunks, open_scores

N_ROWS = 401


@dataclass(frozen=True)
class Rows:
    """Rows in memory, of which every kind of data is made; ``y`` holds column numbers."""

    scores: Any
    y: Any
    weight: Any = None
    inputs: str = "proba"
    names: tuple[str, ...] | None = None

    @property
    def labels(self):
        return self.y if self.names is None else np.array(self.names)[self.y]

    @property
    def n_classes(self):
        return 2 if self.scores.ndim == 1 else self.scores.shape[1]


def logits_and_labels(n_rows=N_ROWS, n_classes=3, *, scale=2.0, slope=0.6, seed=7):
    """Overconfident logits, and labels whose classes differ in how overconfident they are."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(n_rows, n_classes))
    utility = slope * logits * np.linspace(1, 1.5, n_classes) + rng.gumbel(size=logits.shape)
    return logits, utility.argmax(axis=1)


def make_rows(n_rows=N_ROWS, n_classes=3, *, inputs="proba", weight=None, **how):
    logits, y = logits_and_labels(n_rows, n_classes, **how)
    if inputs != "logits":
        logits = (softmax if inputs == "proba" else log_softmax)(logits, axis=1)
    return Rows(logits, y, weights(weight, n_rows), inputs)


def make_tied_rows(n_rows=N_ROWS, n_classes=3, *, weight=None, seed=7):
    """Probabilities that are multiples of 1/64, so that many are tied and their sums are exact.

    Chunked fits of binary calibrators take rows of nearly equal scores together. Here these scores
    are equal, so that nothing is lost: the fits must be equal to those in memory.
    """
    logits, y = logits_and_labels(n_rows, n_classes, seed=seed)
    proba = np.maximum(np.floor(64 * softmax(logits, axis=1)), 1)
    proba[np.arange(n_rows), proba.argmax(axis=1)] += 64 - proba.sum(axis=1)
    return Rows(proba / 64, y, weights(weight, n_rows))


WEIGHTS = ("none", "unit", "integer", "fractional", "normalized")
"""Weights that a user may pass: of copies, of importance, and such that sum to one."""


def weights(kind, n_rows=N_ROWS):
    """Weights that are multiples of a power of two, so that their sums are exact."""
    rng = np.random.default_rng(11)
    counts = np.bincount(rng.integers(n_rows, size=4096), minlength=n_rows).astype(float)
    return {
        None: None,
        "none": None,
        "unit": np.ones(n_rows),
        "integer": rng.integers(0, 3, n_rows).astype(float),
        "fractional": counts / 8,
        "normalized": counts / 4096,
    }[kind]


def folds_by_number(n_rows, n_folds, run=1):
    """Folds of chunked data, for ``cv=`` in memory: row i is held out in fold i // run mod n."""
    rows = np.arange(n_rows)
    fold = rows // run % n_folds
    return [(rows[fold != k], rows[fold == k]) for k in range(n_folds)]


class Data(NamedTuple):
    """What is passed on: ``fit(*data)``, ``evaluate(data.labels, data.scores)``."""

    scores: Any
    labels: Any
    weight: Any = None


def in_memory(rows, folder=None):
    return Data(rows.scores, rows.labels, rows.weight)


def as_memory_map(rows, folder):
    def mapped(name, array):
        if array is None:
            return None
        np.save(folder / f"{name}.npy", array)
        return np.load(folder / f"{name}.npy", mmap_mode="r")

    columns = {"scores": rows.scores, "labels": rows.labels, "weight": rows.weight}
    return Data(*(mapped(name, array) for name, array in columns.items()))


def as_dask(rows, folder=None, sizes=(97, 130, 55)):
    da = pytest.importorskip("dask.array")
    chunks = [(sizes[0], 2)[: rows.scores.ndim], sizes[1], sizes[2]]
    columns = zip(in_memory(rows), chunks, strict=True)
    return Data(*(None if c is None else da.from_array(c, chunks=size) for c, size in columns))


def blocks_of(rows, size):
    for start in range(0, len(rows.y), size):
        yield tuple(None if c is None else c[start : start + size] for c in in_memory(rows))


MOST_PASSES = 2000
"""Passes over the rows after which a fit has not converged."""


class Iterator(RowBlocks):
    """A row iterator that counts how often it was started."""

    def __init__(self, rows, size=83):
        self.n_started = 0
        super().__init__(lambda: self._start(rows, size), classes=rows.names)

    def _start(self, rows, size):
        self.n_started += 1
        assert self.n_started <= MOST_PASSES, "the rows were read too often"
        return blocks_of(rows, size)


def as_iterator(rows, folder=None):
    blocks = Iterator(rows)
    return Data(blocks.scores, blocks.labels, blocks.weight)


class OwnChunks(ScoreChunks):
    """Chunks that bring their labels and weights along: ``fit(chunks, None)``."""

    def __init__(self, rows, size=150):
        self.rows, self.size, self.n_passes = rows, size, 0
        self.classes = None if rows.names is None else np.array(rows.names)

    @property
    def n_columns(self):
        return self.rows.n_classes

    def map_chunks(self, function):
        self.n_passes += 1
        assert self.n_passes <= MOST_PASSES, "the rows were read too often"
        chunks = enumerate(blocks_of(self.rows, self.size))
        return [function(Chunk(*chunk, number * self.size)) for number, chunk in chunks]


def as_own_chunks(rows, folder=None, size=150):
    return Data(OwnChunks(rows, size), None, None)


PREFIXES = {"proba": "p_", "logits": "z_", "log_proba": "lp_"}
ARRAYS = {"proba": "probs", "logits": "logits", "log_proba": "log_probs"}


def table_of(rows):
    pa = pytest.importorskip("pyarrow")
    prefix = PREFIXES[rows.inputs]
    if rows.scores.ndim == 1:
        columns = {f"{prefix}1": rows.scores}
    else:
        names = [f"{prefix}{name}" for name in rows.names or range(rows.n_classes)]
        columns = dict(zip(names, rows.scores.T, strict=True))
    columns["label"] = rows.labels
    if rows.weight is not None:
        columns["w"] = rows.weight
    return pa.table({name: pa.array(np.ascontiguousarray(c)) for name, c in columns.items()})


def opened(path, rows):
    weight = None if rows.weight is None else "w"
    file = open_scores(path, weight=weight, proba="p_1" if rows.scores.ndim == 1 else None)
    return Data(file.scores, file.labels, file.weight)


def as_parquet(rows, folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table_of(rows), folder / "rows.parquet", row_group_size=83)
    return opened(folder / "rows.parquet", rows)


def as_arrow(rows, folder):
    """A file that is read in several blocks, however small it is: the batches that it holds."""
    pa = pytest.importorskip("pyarrow")
    table = table_of(rows)
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=83)
    return opened(folder / "rows.arrow", rows)


def as_csv(rows, folder):
    csv = pytest.importorskip("pyarrow.csv")
    csv.write_csv(table_of(rows), folder / "rows.csv")
    return opened(folder / "rows.csv", rows)


def as_npz(rows, folder):
    """Weights are passed as an array, because an ``.npz`` file has no column of weights."""
    pytest.importorskip("pyarrow")
    names = {} if rows.names is None else {"class_names": np.array(rows.names)}
    scores = {ARRAYS[rows.inputs]: rows.scores}
    np.savez(folder / "rows.npz", labels=rows.labels, **scores, **names)
    file = open_scores(folder / "rows.npz")
    return Data(file.scores, file.labels, rows.weight)


KINDS = {"memory map": as_memory_map, "dask array": as_dask, "row iterator": as_iterator}
KINDS |= {"own chunks": as_own_chunks, "parquet file": as_parquet, "arrow file": as_arrow}
KINDS |= {"csv file": as_csv, "npz file": as_npz}
CHUNKED = tuple(KINDS)[1:]
MAIN = ("dask array", "row iterator", "parquet file")
"""One kind of each sort, where a table is long."""


class Equal(NamedTuple):
    """The result in memory, up to rounding; ``reason`` says why it is not 1e-10."""

    tolerance: float = 1e-10
    reason: str = ""


class Within(NamedTuple):
    """The result in memory up to a documented bound. ``measure`` is the "largest" difference, or
    the largest "cumulated" mean difference, of rows ordered by their predictions in memory.
    """

    bound: float
    reason: str
    measure: str = "largest"


class Rejected(NamedTuple):
    """An error that says what is wrong, and what to do instead."""

    error: type[Exception]
    message: str


EQUAL = Equal()
SEARCHED = Equal(1e-6, "a search ends when a Newton step promises less than 1e-13 of the objective")
NEEDS_ROWS = Rejected(TypeError, r"(?is)(need|cannot be fitted|not fitted).*(memory|compute)")
"""The method needs all rows: the message names the way to load them."""


def assert_declared(declared, compute, memory, data):
    """Compare ``compute(data)`` with ``compute(memory)`` as a cell declares it."""
    if isinstance(declared, Rejected):
        with pytest.raises(declared.error, match=declared.message):
            compute(data)
    elif isinstance(declared, Equal):
        assert_close(compute(data), compute(memory), declared.tolerance)
    else:
        assert_within(compute(data), compute(memory), declared)


def assert_close(found, expected, tolerance, path="the result"):
    """Numbers, arrays, text and nested containers of them are equal up to a tolerance."""
    if isinstance(expected, Mapping):
        assert list(found) == list(expected), path
        for name, value in expected.items():
            assert_close(found[name], value, tolerance, f"{path}, {name}")
    elif isinstance(expected, str | bool | None):
        assert found == expected, path
    elif isinstance(expected, Sequence) and not all(isinstance(v, int | float) for v in expected):
        assert len(found) == len(expected), path
        for place, (own, value) in enumerate(zip(found, expected, strict=True)):
            assert_close(own, value, tolerance, f"{path}, {place}")
    elif np.asarray(expected).dtype.kind not in "fiub":
        np.testing.assert_array_equal(found, expected, err_msg=path)
    else:
        np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=path)


def assert_within(found, expected, declared):
    if isinstance(expected, Mapping):
        for name, value in expected.items():
            assert_within(found[name], value, declared)
        return
    found, expected = np.asarray(found), np.asarray(expected)
    difference = found - expected
    if declared.measure == "cumulated":
        order = np.argsort(expected, axis=0, kind="stable")
        difference = np.take_along_axis(difference, order, axis=0).cumsum(axis=0) / len(expected)
    assert np.abs(difference).max() <= declared.bound, declared.reason


def cells(*axes):
    """All combinations of the axes as parameters with readable names."""
    return [pytest.param(*cell, id=", ".join(map(str, cell))) for cell in product(*axes)]


SHOWN = ("converged_", "is_weighted_", "names_", "left_out_", "weights_", "losses_")


def fitted_view(model, scores):
    """What users see of a fitted model: attributes, and predictions of rows in memory."""
    shown = {name: getattr(model, name) for name in SHOWN if hasattr(model, name)}
    gain = getattr(model, "gain_", None)
    return {
        "classes_": model.classes_,
        "class_weights_": model.class_weights_,
        "n_classes_": model.n_classes_,
        "n_features_in_": model.n_features_in_,
        **shown,
        "gain_": None if gain is None else gain.to_dict(),
        "proba": model.predict_proba(scores),
    }
