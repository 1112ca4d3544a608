"""The code that repeats the fit of a report."""

from __future__ import annotations

import calibrant
from calibrant.report._code import code_lines
from calibrant.report._request import Request


def code_of(calibrator, classes=None, command=None, *, is_held_out=False):
    request = Request(calibrator, "proba", "method", "data", command, classes, 5, 15, 99, 0)
    return code_lines(request, is_held_out=is_held_out)


def test_the_code_runs(report, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = []
    proba, labels = data
    exec(report.code, {"scores": proba, "labels": labels, "print": printed.append})
    assert printed[0] == calibrant.evaluate(labels, proba)
    assert calibrant.load("model.json").temperature_ > 1


def test_the_calibrator_inside_is_imported_too():
    binning = calibrant.MulticlassToBinary(calibrant.HistogramBinning())
    assert "from calibrant import HistogramBinning, MulticlassToBinary" in code_of(binning)


def test_names_of_classes_cannot_end_the_block():
    code = code_of(calibrant.Identity(), classes=["<b>", "```"])
    assert "<" not in code
    assert "`" not in code
    scope = {}
    exec(code.splitlines()[3], scope)
    assert scope["classes"] == ["<b>", "```"]


def test_a_command_stays_on_its_line():
    first, second, *_ = code_of(calibrant.Identity(), command="report a\nimport os").splitlines()
    assert first.startswith("# report a")
    assert second == "# and the calibrator in Python:"


def test_rows_to_fit_on_are_those_of_the_validation_set():
    code = code_of(calibrant.Identity(), is_held_out=True)
    assert "model.fit(val_scores, val_labels)" in code
