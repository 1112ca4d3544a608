"""The guarantee of a report."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant
from calibrant._data.read import as_sample
from calibrant._output.numbers import format_number
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
    assert note.text.startswith(
        "The following guarantee is not about the calibrator of this report. The guarantee holds "
        "if you use top-label histogram binning (50 rows per bin) instead. "
    )


@pytest.mark.parametrize("names", [("0", "1", "2", "3"), ("d", "a", "c", "b")])
def test_the_table_is_sorted_by_class_and_probability(data, names):
    proba, y = data
    labels = np.array(names)
    sample = as_sample(proba, labels[y], classes=labels)[0]
    note = guarantee_note(read_rows(sample, 0), labels, "proba")
    order = [(names.index(row[0]), row[1]) for row in note.bins]
    assert order == sorted(order)
    assert {row[0] for row in note.bins} == set(names)


def test_the_table_of_both_forms_has_the_bounds(report):
    header = "| Predicted class | Probability | Lower | Upper | Rows |"
    name, value, count, low, high = report.guarantee.bins[0]
    cells = [name, *map(format_number, (value, low, high)), f"{count:.0f}"]
    assert f"{header}\n| --- | --- | --- | --- | --- |\n| {' | '.join(cells)} |" in to_markdown(
        report
    )
    section = to_html(report).partition('id="guarantee"')[2].partition("</section>")[0]
    assert re.findall(r"<button[^>]*>([^<]*)", section) == header.strip("| ").split(" | ")
    assert re.findall(r"<t[hd][^>]*>([^<]+)</t[hd]>", section)[:5] == cells


def test_rows_with_weights_have_no_guarantee(data):
    assert note_of(*data, np.arange(600) % 2) is None


def test_few_rows_have_no_guarantee_and_a_warning(data):
    proba, labels = data
    report = summarize(
        labels[:40], proba[:40], calibrator=calibrant.TemperatureScaling(), n_resamples=99
    )
    assert report.guarantee is None
    assert any("Classes with fewer than 20 calibration rows" in line for line in report.warnings)
    for form in (to_html, to_markdown):
        assert "too few calibration rows for a distribution-free guarantee" in form(report)


def test_an_error_that_is_not_about_few_rows_is_not_hidden(data, monkeypatch):
    def broken(self, alpha):
        raise ValueError("something else is wrong")

    monkeypatch.setattr(calibrant.MulticlassToBinary, "guarantee", broken)
    with pytest.raises(ValueError, match="something else"):
        note_of(*data)
