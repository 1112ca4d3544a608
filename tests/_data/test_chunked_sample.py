"""Rows that come in parts: read alike in every pass, and gathered as sums only."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import (
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    MulticlassToBinary,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant._data.chunked_sample import as_chunked_sample, reader_for
from parts import Slices


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(1000, 4)).astype(np.float32)
    y = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


@pytest.mark.parametrize(
    "made",
    [
        TemperatureScaling(),
        TemperatureScaling(prior_scale=0.1),
        VectorScaling(),
        MatrixScaling(lam=0.01),
        StructuredScaling("vector"),
        StructuredScaling("matrix"),
        DirichletCalibration(lam=0.01),
        DirichletCalibration(grid=(1e-3, 1e-1)),
    ],
    ids=repr,
)
def test_a_fit_to_parts_is_that_to_all_rows(made, data, rng):
    logits, y = data
    weight = rng.integers(3, size=len(y)).astype(float)
    whole = made.set_params(inputs="logits").fit(logits, y, weight).predict_proba(logits)
    parts = made.fit(Slices(logits, y, weight), None)
    np.testing.assert_allclose(parts.predict_proba(logits), whole, atol=1e-8)
    assert parts.n_passes_ <= (80 if getattr(parts, "cv_scores_", None) is not None else 15)


def test_the_number_of_passes_is_printed_where_it_is_asked_for(data, capsys):
    source = Slices(*data)
    fitted = TemperatureScaling(inputs="logits").fit(source, None, verbose=True)
    assert fitted.n_passes_ == source.n_read <= 5
    said = f"TemperatureScaling: {source.n_read} passes over 1,000 rows in 8 chunks\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (HistogramBinning(), "8,192 cells"),
        (HistogramBinning(n_bins=7, strategy="uniform"), None),
        # Each claim has bins of its own.
        (HistogramBinning(points_per_bin=30, strategy="uniform"), "8,192 cells"),
        (IsotonicCalibration(), "8,192 cells"),
    ],
)
def test_what_is_made_of_cells_says_so_where_it_is_asked(made, said, data, capsys):
    scores, y = data
    MulticlassToBinary(made, inputs="logits").fit(Slices(scores, y), None, verbose=True)
    first, *rest = capsys.readouterr().out.splitlines()
    assert "2 passes" in first
    assert [said in line for line in rest] == ([True] if said else [])


def test_rows_that_were_checked_once_are_not_checked_again(data):
    logits, y = data
    source = Slices(logits, y)
    sample = as_chunked_sample(source, reader_for(source, None, "logits"))
    assert sample.shape == (1000, 4)
    np.testing.assert_array_equal(sample.class_weights, np.bincount(y))
    assert [start for start, _ in sample.class_rows] == list(range(0, 1000, 130))
    np.testing.assert_array_equal(sum(rows for _, rows in sample.class_rows), np.bincount(y))
    logits[500] = np.nan
    assert sample.sum_chunks(lambda part: part.shape[0]) == 1000


def test_labels_of_all_parts_name_the_columns(data):
    logits, y = data
    order = np.argsort(y)  # no part has all classes
    names = np.array(["a", "b", "c", "d"])
    source = Slices(logits[order], names[y[order]])
    with pytest.warns(UserWarning, match="in sorted order"):
        fitted = TemperatureScaling(inputs="logits").fit(source, None)
    assert fitted.classes_.tolist() == names.tolist()
    whole = TemperatureScaling(inputs="logits").fit(logits, y)
    assert fitted.temperature_ == pytest.approx(whole.temperature_, abs=1e-8)


def test_bad_rows_are_named_by_their_number_among_all(data):
    logits, y = data
    weight = np.zeros(1000)
    model = TemperatureScaling(inputs="logits")
    with pytest.raises(ValueError, match="All sample weights are zero"):
        model.fit(Slices(logits, y, weight), None)
    weight[900], y[800] = -1.0, 7
    with pytest.raises(ValueError, match="starts at row 780: Label 7 in row 800"):
        model.fit(Slices(logits, y), None)
    y[800], logits[777, 2] = 0, np.nan
    with pytest.raises(ValueError, match="Row 777 of the logits"):
        model.fit(Slices(logits, y), None)
    logits[777, 2] = 0
    with pytest.raises(ValueError, match="starts at row 780: sample_weight of row 900"):
        model.fit(Slices(logits, y, weight), None)
