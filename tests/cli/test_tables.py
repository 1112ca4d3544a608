"""Tables of the command line; `test_terminal` has their layout."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("rich")


import calibrant
from calibrant._output import palette
from calibrant._output.numbers import format_number
from calibrant.cli._output import Output
from calibrant.cli._tables import (
    before_after,
    report_table,
    show_comparison,
    show_evaluation,
    show_monitor,
)
from calibrant.inference import bootstrap_interval
from calibrant.monitoring import CalibrationMonitor
from calibrant.report import summarize


def test_two_evaluations_stand_side_by_side_by_the_titles_of_the_metrics(capsys):
    one = calibrant.evaluate([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    two = calibrant.MetricAccumulator(keep_top=0).update([0, 1], [[0.6, 0.4], [0.2, 0.8]])
    Output(as_json=False, quiet=False).show(before_after(one, two.compute()))
    lines = {
        title: numbers.split()
        for title, numbers in re.findall(r"(?m)^(\S.*?)  +(\S.*?) *$", capsys.readouterr().out)
    }
    scores = [one.brier_score, two.compute().brier_score]
    assert lines["Brier score"] == [format_number(score) for score in scores]
    assert lines["KS error"] == [format_number(one.ks), "-"]
    assert "rows" not in lines


@pytest.fixture
def data(rng):
    proba = rng.dirichlet(np.full(3, 0.5), 300)
    return calibrant.datasets.draw_labels(proba, rng=rng), proba


@pytest.fixture
def output(monkeypatch):
    """An output of 200 columns on a terminal."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    return Output(as_json=False, quiet=False)


def printed(capsys):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out)


def test_a_report_has_values_and_intervals(data, capsys):
    labels, proba = data
    report = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    Output(as_json=False, quiet=False).show(report_table(report))
    (line,) = [line for line in printed(capsys).splitlines() if line.startswith("Log-loss ")]
    row = next(row for row in report.metrics if row.name == "log_loss")
    for value in (row.before.value, row.before.low, row.before.high, row.after.value):
        assert format_number(value) in line.split()


def test_groups_are_a_table_on_a_terminal_and_text_in_a_pipe(data, output, capsys):
    labels, proba = data
    groups = calibrant.evaluate(labels, proba, by=np.arange(300) % 2)
    show_evaluation(groups, output)
    table = printed(capsys)
    assert [cell for row in groups.rows() for cell in row if cell not in table] == []
    assert groups.note() in " ".join(table.split())  # it is wrapped
    assert str(groups) not in table


def test_a_comparison_has_the_numbers_of_all_methods(data, output, capsys):
    labels, proba = data
    result = calibrant.compare(labels, proba, methods=["temperature"], cv=2)
    show_comparison(result, output)
    lines = printed(capsys).splitlines()
    for m, method in enumerate(result.methods):
        (row,) = [line.split() for line in lines if line.startswith(f"{method} ")]
        assert row[1:6] == [format_number(value) for value in result.mean[0, m]]
    gain = result.gains["data", "temperature", "log_loss"]
    assert row[6:] == [
        format_number(gain.gain, signed=True),
        format_number(gain.low, signed=True),
        "to",
        format_number(gain.high, signed=True),
    ]


def test_names_cannot_style_the_output(data, output, capsys):
    labels, proba = data
    methods = {"[bold]x[/bold]": calibrant.Identity()}
    show_comparison(calibrant.compare(labels, proba, methods=methods, cv=2), output)
    assert "[bold]x[/bold]" in printed(capsys)


def test_an_evaluation_is_a_table_on_a_terminal_and_text_in_a_pipe(data, output, capsys):
    result = calibrant.evaluate(*data)
    interval = bootstrap_interval("log_loss", *data, n_resamples=19, rng=0)
    show_evaluation(result, output, {"log_loss": interval})
    (line,) = [line for line in printed(capsys).splitlines() if line.startswith("log-loss ")]
    assert line.split()[1:] == [
        format_number(interval.estimate),
        *f"{format_number(interval.low)} to {format_number(interval.high)}".split(),
    ]
    show_evaluation(result, Output(as_json=True, quiet=False))
    assert printed(capsys) == ""


def watched(n_wrong):
    monitor = CalibrationMonitor(classes=["a", "b"], horizon=1000)
    monitor.update(["a"] * (1000 - n_wrong) + ["b"] * n_wrong, [[0.9, 0.1]] * 1000, when="May")
    return monitor


def test_a_monitor_has_a_colored_headline_and_a_table_on_a_terminal(output, capsys):
    monitor = watched(500)
    show_monitor(monitor, output)
    text = capsys.readouterr().out
    assert text.startswith("\x1b[1;")
    assert "Alarm: the model is no longer calibrated." in text
    assert "check" in text
    assert "mean" in text


def test_piped_text_of_a_monitor_is_plain(monkeypatch, capsys):
    for name in ("FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monitor = watched(100)
    show_monitor(monitor, Output(as_json=False, quiet=False))
    assert capsys.readouterr().out == f"{monitor}\n"


def test_colors_of_columns_are_those_of_reports(data):
    one = calibrant.evaluate(*data)
    styles = {str(column.header): column.style for column in before_after(one, one).columns}
    assert (styles["before"], styles["after"]) == (palette.BEFORE, palette.AFTER)
