"""The code that reproduces the figures of a report."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant.report import summarize
from calibrant.report._code import code_lines, with_loading
from calibrant.report._request import Request


def code_of(calibrator, classes=None, command=None, *, is_held_out=False):
    request = Request(calibrator, "proba", "method", "data", command, classes, 5, 15, 99, 0)
    return code_lines(request, is_held_out=is_held_out)


def run(code, **variables):
    """The variables that the code defines."""
    scope = {**variables, "print": lambda *values: None}
    exec(code, scope)
    return scope


def values_of(report):
    return [(row.name, row.before.value, row.after.value) for row in report.metrics]


def test_the_code_repeats_the_figures_of_a_cross_fitted_report(report, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proba, labels = data
    scope = run(report.code, scores=proba, labels=labels)
    assert values_of(scope["report"]) == values_of(report)
    in_sample = calibrant.evaluate(labels, scope["model"].predict_proba(proba))
    held_out = {name: after for name, _, after in values_of(report)}
    assert held_out["log_loss"] > in_sample.log_loss
    assert calibrant.load("model.json").temperature_ > 1


@pytest.mark.parametrize("has_weights", [False, True])
def test_the_code_repeats_the_figures_of_separate_rows(data, tmp_path, monkeypatch, has_weights):
    monkeypatch.chdir(tmp_path)
    proba, labels = data
    weight = np.linspace(0.5, 1.5, 300)
    fit_weight = (weight[::-1],) if has_weights else ()
    report = summarize(
        labels[300:],
        proba[300:],
        calibrator=calibrant.VectorScaling(),
        calibration=(proba[:300], labels[:300], *fit_weight),
        sample_weight=weight if has_weights else None,
        classes=range(4),
        n_resamples=19,
        n_bins=10,
        rng=3,
    )
    scope = run(
        report.code,
        scores=proba[300:],
        labels=labels[300:],
        weight=weight,
        fit_scores=proba[:300],
        fit_labels=labels[:300],
        fit_weight=weight[::-1],
    )
    assert values_of(scope["report"]) == values_of(report)


def test_the_code_repeats_the_figures_of_a_fitted_model(data):
    proba, labels = data
    logits = np.log(proba)
    model = calibrant.TemperatureScaling(inputs="logits").fit(logits[:300], labels[:300])
    report = summarize(labels[300:], logits[300:], model=model, inputs="logits", n_resamples=19)
    scope = run(report.code, scores=logits[300:], labels=labels[300:], model=model)
    assert values_of(scope["report"]) == values_of(report)


def test_the_first_lines_name_the_variables_to_define(report):
    first, second, third, *_ = report.code.splitlines()
    assert first == "# Define these variables first:"
    assert second.startswith("# scores: probabilities of shape (n_rows, n_classes); labels:")
    assert third == ""


def test_loading_replaces_the_variables_to_define(report):
    code = with_loading(report.code, ["scores, labels = read()"])
    assert code.startswith("scores, labels = read()\n\nimport calibrant\n")
    assert "Define these variables" not in code
    with_command = with_loading(code_of(calibrant.Identity(), command="calibrant demo"), ["pass"])
    assert with_command.startswith("# Command of this report: calibrant demo\npass\n")


def test_the_calibrator_inside_is_imported_too():
    binning = calibrant.MulticlassToBinary(calibrant.HistogramBinning())
    assert "from calibrant import HistogramBinning, MulticlassToBinary" in code_of(binning)


def test_names_of_classes_cannot_end_the_block():
    code = code_of(calibrant.Identity(), classes=["<b>", "```"])
    assert "<" not in code
    assert "`" not in code
    scope = {}
    (line,) = [line for line in code.splitlines() if line.startswith("classes = ")]
    exec(line, scope)
    assert scope["classes"] == ["<b>", "```"]


def test_a_command_stays_on_its_line():
    first, second, *_ = code_of(calibrant.Identity(), command="report a\nimport os").splitlines()
    assert first.startswith("# Command of this report: report a")
    assert second == "# Define these variables first:"


def test_rows_to_fit_on_are_those_of_the_validation_set():
    code = code_of(calibrant.Identity(), is_held_out=True)
    assert "calibration=(fit_scores, fit_labels)" in code
    assert "model = calibrator.fit(fit_scores, fit_labels)" in code


def test_calibrators_in_lists_and_names_of_calibrators_are_imported_correctly():
    inner = calibrant.MulticlassToBinary(calibrant.PlattScaling())
    calibrators = (
        (calibrant.GroupCalibration("temperature"), "GroupCalibration"),
        (
            calibrant.AutoCalibration([inner, "vector"]),
            "AutoCalibration, MulticlassToBinary, PlattScaling",
        ),
    )
    for calibrator, names in calibrators:
        request = Request(calibrator, "proba", "m", "data", None, ["a", "b"], 5, 15, 1000, 0)
        code = code_lines(request, is_held_out=False)
        assert f"from calibrant import {names}\n" in code
