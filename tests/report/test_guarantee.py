"""The guarantee of a report."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant._data.read import as_sample
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._guarantee import guarantee_note
from calibrant.report._rows import read_rows


def note_of(proba, labels, weight=None):
    return guarantee_note(read_rows(as_sample(proba, labels, weight)[0], 0), np.arange(4), "proba")


def test_the_guarantee_is_that_of_histogram_binning(data):
    note = note_of(*data)
    binning = calibrant.MulticlassToBinary(calibrant.HistogramBinning(), notion="top-label")
    expected = binning.fit(*data).guarantee(0.05)
    assert note.text.endswith(str(expected))
    assert len(note.bins) == len(expected.intervals)


def test_rows_with_weights_have_no_guarantee(data):
    assert note_of(*data, np.arange(600) % 2) is None


def test_few_rows_have_no_guarantee_and_a_warning(data):
    proba, labels = data
    report = summarize(
        labels[:40], proba[:40], calibrator=calibrant.TemperatureScaling(), n_resamples=99
    )
    assert report.guarantee is None
    assert any("Few calibration rows" in line for line in report.warnings)
    for form in (to_html, to_markdown):
        assert "too few calibration rows for a distribution-free guarantee" in form(report)


def test_an_error_that_is_not_about_few_rows_is_not_hidden(data, monkeypatch):
    def broken(self, alpha):
        raise ValueError("something else is wrong")

    monkeypatch.setattr(calibrant.MulticlassToBinary, "guarantee", broken)
    with pytest.raises(ValueError, match="something else"):
        note_of(*data)
