"""The report as text."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant._output.numbers import format_number
from calibrant.inference import Interval
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._content import Decomposition, Estimate, MapNote, MapTable
from calibrant.report._sentences import remaining


def test_markdown_shows_hostile_names_as_text(hostile):
    text = to_markdown(hostile)
    assert "<script" not in text
    assert "<img" not in text
    rows = [line for line in text.splitlines() if line.startswith("| x")]
    assert rows
    assert all("x\\|y\\`z\\`" in row for row in rows)


def test_every_section_of_the_page_is_there(hostile):
    text = to_markdown(hostile)
    for title in (
        "Before and after",
        "Reliability",
        "Classes",
        "Tests",
        "Guarantee",
        "Calibrator",
        "Methods",
        "Glossary",
    ):
        assert f"## {title}" in text


def test_rows_of_a_table_have_the_cells_of_its_header(hostile):
    blocks = [b for b in to_markdown(hostile).split("\n\n") if b.startswith("| ")]
    assert len(blocks) > 3
    for block in blocks:
        cells = {line.replace("\\|", "").count("|") for line in block.splitlines()}
        assert len(cells) == 1


def test_counts_are_integers(report):
    lines = to_markdown(report).splitlines()
    counts = [line.split("|")[-2].strip() for line in lines if line.startswith("| before |")]
    first = report.reliability[0].before
    assert counts == [str(int(count)) for count in first.count]
    classes = [line.split("|") for line in lines if line.startswith("| 0 |")]
    assert classes[0][2].strip() == str(report.per_class[0].rows)


def test_counts_of_fractional_weights_have_digits(data):
    proba, labels = data
    weight = np.linspace(0.1, 1.9, len(labels))
    report = summarize(
        labels, proba, sample_weight=weight, calibrator=calibrant.Identity(), n_resamples=9
    )
    lines = to_markdown(report).splitlines()
    counts = [line.split("|")[-2].strip() for line in lines if line.startswith("| before |")]
    assert counts == [format_number(count) for count in report.reliability[0].before.count]


@pytest.mark.parametrize(("tiny", "expected"), [(-2e-5, "-2.00e-05"), (-2e-7, "0")])
def test_no_number_is_a_negative_zero(report, tiny, expected):
    """Statistics and differences may lie just below zero."""
    tests = tuple(
        replace(test, statistic_after=tiny, expected_after=tiny, p_after=0.001)
        for test in report.tests
    )
    estimate = Estimate(tiny, tiny, tiny)
    shown = replace(
        report,
        tests=tests,
        verdict=remaining(
            Interval("gap", 0, -1, 1, 0.95, 1, "asymptotic", 9), tests, is_held_out=True
        )[1],
        metrics=tuple(replace(row, after=estimate) for row in report.metrics),
        decomposition=Decomposition("log_loss", (tiny, 1.0), (tiny, 1.0)),
        map=MapNote("Map", "A map.", (MapTable("Factors", ("class", "factor"), (("a", tiny),)),)),
    )
    page = to_html(shown).partition("<body")[2].partition("<script")[0]
    for text in (to_markdown(shown), re.sub(r"<[^>]*>", " ", page)):
        assert re.search(rf"(?<![\d.]){expected} (to|\(|\|)? *{expected}", text)
        assert not re.search(r"-0\.0+\b", text)
