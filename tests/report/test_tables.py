"""Tables of a report: charts in rows, folded rows, and colors of changes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from calibrant._output.numbers import format_p_value
from calibrant.report._content import Estimate, GuaranteeNote, MapTable, MetricRow
from calibrant.report._tables import (
    change,
    class_table,
    count_text,
    curve_table,
    guarantee_tables,
    metric_tables,
    number,
    parameter_table,
    scrolled,
)


def test_changes_are_colored_only_where_chance_does_not_explain_them():
    def row(before, after, better, name="m"):
        pair = [Estimate(value, value - 0.02, value + 0.02) for value in (before, after)]
        return MetricRow(name, "M", *pair, better, "")

    assert change(row(0.2, 0.1, "lower"), "mixed") == "better"
    assert change(row(0.2, 0.1, "higher"), "mixed") == "worse"
    assert change(row(0.2, 0.1, "neither"), "good") == ""
    assert change(row(0.2173, 0.2167, "higher"), "good") == ""
    assert change(row(0.2, 0.19, "lower", "log_loss"), "good") == "better"
    assert change(row(0.2, 0.1, "lower", "log_loss"), "mixed") == ""
    alone = MetricRow("m", "M", Estimate(0.5), Estimate(0.1), "lower", "")
    assert change(alone, "good") == ""


def test_a_missing_number_is_a_dash():
    assert number(None) == '<td class="number" data-value="">-</td>'
    assert number(0.25) == '<td class="number" data-value="0.25">0.250</td>'
    assert number(1234.0, count_text) == '<td class="number" data-value="1234.0">1,234</td>'


def test_text_of_a_number_is_escaped():
    assert number(1e-9, format_p_value) == '<td class="number" data-value="1e-09">&lt;0.001</td>'
    assert number(0.5, label="Lower") == (
        '<td class="number" data-value="0.5" data-label="Lower">0.500</td>'
    )


def test_a_measure_has_a_dot_and_an_interval_before_and_after(report):
    text = metric_tables(report.metrics[:1], "good")
    assert text.count("<svg") == 1
    assert text.count("whisker") == 2
    assert "details" not in text


def test_bounds_of_a_guarantee_keep_their_order_and_the_last_are_folded():
    bins = tuple((f"class {k}", 0.5, 60, 0.4, 0.6) for k in range(25))
    text = guarantee_tables(GuaranteeNote("binning", "text", bins))
    assert re.findall(r'<th scope="row">class (\d+)', text) == [str(k) for k in range(25)]
    assert "<summary>5 more bounds</summary>" in text
    assert text.count('class="row-chart"') == 25


def test_cells_of_a_matrix_are_shaded_by_their_value():
    rows = (("a", 2.0, -1.0, 0.0), ("b", 0.5, 1.0, 0.1))
    text = parameter_table(MapTable("Matrix W", ("Class", "a", "b", "Intercept"), rows))
    assert "var(--positive) 60%" in text
    assert "var(--negative) 30%" in text
    factors = MapTable("Factors", ("Class", "Factor"), (("a", 2.0),))
    assert "style" not in parameter_table(factors)


def test_wide_tables_show_that_they_scroll(report):
    assert 'class="scroll-hint"' in scrolled(class_table(report))
    assert 'class="scroll"' in curve_table(report.reliability[0])


def test_of_many_classes_those_with_the_largest_errors_come_first(report):
    row = report.per_class[0]
    errors = np.linspace(0.1, 0.9, 50).tolist()
    rows = tuple(replace(row, class_before=error, name=f"{error:.3f}") for error in errors)
    text = class_table(replace(report, per_class=rows, n_classes=50))
    names = re.findall(r'<th scope="row">([\d.]+)', text)
    assert names == sorted(names, reverse=True)
