"""A report as a file."""

from __future__ import annotations

import json

import pytest

from calibrant.report import render, to_json


def test_the_ending_says_the_form(hostile, tmp_path):
    for ending, start in (
        (".html", "<!DOCTYPE html>"),
        (".md", "# Calibration report"),
        (".json", "{"),
    ):
        render(hostile, tmp_path / f"report{ending}")
        assert (tmp_path / f"report{ending}").read_text().startswith(start)
    with pytest.raises(ValueError, match=r"must end in \.html, \.md or \.json"):
        render(hostile, tmp_path / "report.pdf")


def test_json_is_the_content(hostile):
    assert json.loads(to_json(hostile)) == json.loads(json.dumps(hostile.to_dict()))
