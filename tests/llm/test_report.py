"""Reports about runs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant.llm import Run, Runs, summarize, write_report


def report_of(rng):
    confidence = rng.uniform(0.3, 1, 100)
    run = Run("a", "stated", rng.random(100) < confidence, confidence, skipped={"other": 2})
    few = Run("b", "stated", np.array([True]), np.array([0.5]))
    return summarize(Runs({"a": run, "b": few}), name="results")


def test_reports_are_html_and_json(rng, tmp_path):
    report = report_of(rng)
    write_report(report, tmp_path / "report.html")
    assert "results" in (tmp_path / "report.html").read_text()
    write_report(report, tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["tasks"][0]["task"] == "a"
    assert content["tasks"][1]["gain"] is None
    assert content["skipped"] == {"a": {"other": 2}}
    with pytest.raises(ValueError, match=r"must end in \.html or \.json"):
        write_report(report, tmp_path / "report.txt")


def test_thresholds_need_a_risk(rng):
    assert report_of(rng).thresholds == {}
    pytest.importorskip("calibrant.decisions")
    confidence = rng.uniform(0.3, 1, 500)
    run = Run("a", "stated", rng.random(500) < confidence, confidence)
    report = summarize(Runs({"a": run}), risk=0.2)
    assert report.thresholds["a"].coverage > 0.2
    assert report.to_dict()["thresholds"]["a"]["risk"] == 0.2
