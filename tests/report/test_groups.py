from __future__ import annotations

import numpy as np
import pytest

from calibrant import GroupCalibration, TemperatureScaling, evaluate
from calibrant._data.read import as_sample
from calibrant._output.numbers import format_number
from calibrant.datasets import digits_predictions
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._groups import group_note

DATA = digits_predictions()


@pytest.fixture(scope="module")
def report():
    group = np.where(np.arange(len(DATA.val_labels)) % 2, "<b>odd</b>", "even")
    return summarize(
        DATA.val_labels,
        DATA.val_proba,
        calibrator=TemperatureScaling(),
        n_resamples=19,
        by={"row": group},
    )


def test_every_group_has_its_gaps_before_and_after():
    group = np.arange(len(DATA.val_labels)) % 3
    sample, _ = as_sample(DATA.val_proba, DATA.val_labels, columns=(group,))
    table = group_note(sample, sample, ("third",), 15)
    assert table.caption == "Groups by third"
    assert "After calibration: No difference between the groups" in table.text
    assert [row[0] for row in table.rows] == ["0", "1", "2"]
    gap = evaluate(DATA.val_labels, DATA.val_proba, by=group)["1"].gap
    assert table.rows[1][3].startswith(f"{format_number(gap, signed=True)} (")
    assert table.rows[1][3] == table.rows[1][4]


def test_the_report_says_it_in_every_form(report):
    assert [row[0] for row in report.groups.rows] == ["<b>odd</b>", "even"]
    assert "## Groups" in to_markdown(report)
    assert "<h3>Groups by row</h3>" in to_html(report)
    assert report.to_dict()["groups"]["header"][0] == "Group"


def test_names_of_groups_are_escaped(report):
    assert "<b>odd</b>" not in to_markdown(report)
    body = to_html(report).partition("<script")[0]
    assert "<b>odd</b>" not in body
    assert "&lt;b&gt;odd" in body


def test_without_groups_nothing_is_said():
    plain = summarize(
        DATA.val_labels, DATA.val_proba, calibrator=TemperatureScaling(), n_resamples=19
    )
    assert plain.groups is None
    assert "## Groups" not in to_markdown(plain)


def test_the_page_has_a_forest_plot_and_a_small_diagram_of_each_group(report):
    page = to_html(report)
    assert "Forest plot of the gap of each group" in page
    assert page.count("Reliability diagram of ") == 2
    (odd, even) = report.groups.charts
    assert (odd.name, even.name) == ("<b>odd</b>", "even")
    assert sum(odd.before.count) + sum(even.before.count) == len(DATA.val_labels)
    assert odd.gap_before.low < odd.gap_before.value < odd.gap_before.high


def test_small_groups_can_be_suppressed():
    group = np.where(np.arange(len(DATA.val_labels)) < 20, "rare", "common")
    report = summarize(
        DATA.val_labels,
        DATA.val_proba,
        calibrator=TemperatureScaling(),
        n_resamples=19,
        by=group,
        min_rows=30,
    )
    assert [row[0] for row in report.groups.rows] == ["common"]
    assert "rare" not in to_html(report).partition("<script")[0].partition("<style")[0]


def test_a_report_without_any_group_of_enough_rows_is_written():
    group = np.arange(len(DATA.val_labels)) % 3
    options = {"calibrator": TemperatureScaling(), "n_resamples": 19}
    report = summarize(DATA.val_labels, DATA.val_proba, by=group, min_rows=1000, **options)
    page = to_html(report)
    assert "The table omits 3 groups with too few rows." in page
    assert "Forest plot" not in page
    assert report.groups.rows == ()


def test_the_code_repeats_the_groups(monkeypatch):
    group = np.arange(len(DATA.val_labels)) % 3
    options = {"calibrator": GroupCalibration("temperature"), "n_resamples": 19}
    report = summarize(DATA.val_labels, DATA.val_proba, by={"third": group}, min_rows=20, **options)
    assert "by=by, n_resamples=19, min_rows=20" in report.code
    assert "fit(scores, labels, by=by)" in report.code
    scope = {"scores": DATA.val_proba, "labels": DATA.val_labels, "by": {"third": group}}
    monkeypatch.setattr("calibrant.save", lambda *_: None)
    exec(report.code, scope)
    assert scope["report"].groups == report.groups
    assert scope["model"].by_ == ("third",)


def test_numbers_of_groups_are_aligned_and_sorted_by_their_first_number(report):
    table = to_html(report).partition("<h3>Groups by row</h3>")[2].partition("</table>")[0]
    assert '<td class="number" data-value="300">300</td>' in table
    assert table.count('<th scope="row">') == 2


def test_the_label_of_the_axis_fits_on_a_phone(rng):
    y, p = rng.integers(0, 2, 60), rng.uniform(size=60)
    report = summarize(y, p, calibrator=TemperatureScaling(), n_resamples=19, by=[0, 1] * 30)
    assert ">mean probability minus frequency</text>" in to_html(report)
    assert "mean predicted probability of the second class minus its" in report.groups.text
