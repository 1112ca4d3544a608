"""`GroupCalibration` on each kind of data: the same folds give the same effects of groups.

Chunked rows are assigned to folds by their number, so the folds in memory are
``cv=folds_by_number(n_rows, cv)``. The column of groups is passed as an array.

| argument                | on chunks                                                   |
|-------------------------|-------------------------------------------------------------|
| one or several columns  | equal to memory                                             |
| strength=               | equal to memory                                             |
| missing groups          | equal to memory: the rows are used by the pooled calibrator |
| sample_weight=          | equal to memory                                             |
| cv=splitter             | rejected: pass a number of folds                            |
| chunks with own labels  | rejected, because their rows cannot be matched with groups  |
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from calibrant import GroupCalibration
from data_kinds import (
    CHUNKED,
    MAIN,
    N_ROWS,
    Equal,
    Rejected,
    Rows,
    assert_declared,
    folds_by_number,
    in_memory,
    logits_and_labels,
    make_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # test_fits compares warnings

EFFECTS = Equal(1e-5, "effects of folds are searched to 1e-6 of their objective")
UNKNOWN_GROUPS = Rejected(TypeError, "(?s)groups|by")

rng = np.random.default_rng(3)
SITE = rng.integers(0, 5, N_ROWS)
WARD = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, N_ROWS)]
MISSING = WARD.copy()
MISSING[::7] = None
COLUMNS = {
    "one column": {"site": SITE},
    "two columns": {"site": SITE, "ward": WARD},
    "missing groups": {"ward": MISSING},
}


def shifted_rows(weight=None):
    """Overconfident logits whose class frequencies differ between sites."""
    logits, _ = logits_and_labels()
    shift = np.random.default_rng(4).normal(size=(5, 3))[SITE]
    utility = 0.6 * logits + shift + np.random.default_rng(5).gumbel(size=logits.shape)
    return Rows(logits, utility.argmax(axis=1), make_rows(weight=weight).weight, "logits")


def compute(rows, columns, **options):
    def fit(data):
        is_in_memory = isinstance(data.scores, np.ndarray)
        cv = folds_by_number(N_ROWS, 3) if is_in_memory else 3
        model = GroupCalibration("temperature", cv=cv, inputs="logits", **options)
        model.fit(*data, by=columns)
        return {
            "by_": model.by_,
            "weights_": model.weights_,
            "strengths_": model.strengths_,
            "group_weights_": model.group_weights_,
            "effects_": model.effects_,
            "gain": None if model.gain_ is None else model.gain_.gain,
            "proba": model.predict_proba(rows.scores, by=columns),
        }

    return fit


@pytest.mark.parametrize("kind", ["memory map", *CHUNKED])
@pytest.mark.parametrize("columns", COLUMNS)
def test_effects_of_groups_of_chunks_are_those_of_memory(columns, kind, make):
    rows = shifted_rows()
    declared = UNKNOWN_GROUPS if kind == "own chunks" else EFFECTS
    fit = compute(rows, COLUMNS[columns])
    assert_declared(declared, fit, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("kind", MAIN)
@pytest.mark.parametrize("options", [{"strength": 1.0}, {"strength": np.inf}], ids=str)
def test_a_strength_means_the_same_on_chunks_as_in_memory(options, kind, make):
    rows = shifted_rows("integer")
    fit = compute(rows, COLUMNS["one column"], **options)
    assert_declared(EFFECTS, fit, in_memory(rows), make(kind, rows))


@pytest.mark.parametrize("kind", MAIN)
def test_a_splitter_is_rejected_for_chunks(kind, make):
    rows = shifted_rows()
    model = GroupCalibration("temperature", cv=KFold(3), inputs="logits")
    declared = Rejected(TypeError, "cv.*number of folds")
    fit = lambda data: model.fit(*data, by=COLUMNS["one column"])  # noqa: E731  # one line is clear
    assert_declared(declared, fit, None, make(kind, rows))
