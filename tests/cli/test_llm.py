"""The command for evaluation logs."""

from __future__ import annotations

import json

import pytest

from calibrant.cli import run
from llm_logs import lm_eval_line, write_lines

pytest.importorskip("typer")


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    for task in ("arc", "piqa"):
        lines = []
        for doc in range(150):
            sums = (3 * rng.normal(size=4)).round(3).tolist()
            label = int(rng.integers(4)) if doc % 3 else sums.index(max(sums))
            lines.append(lm_eval_line(doc, sums, label, acc=float(sums.index(max(sums)) == label)))
        name = f"samples_{task}_2026-11-01T10-20-30.123456.jsonl"
        write_lines(tmp_path / "results" / "model" / name, lines)
    return tmp_path


def test_table_page_and_json(folder, capsys):
    assert run(["llm", "results", "-o", "report.html"]) == 0
    out = capsys.readouterr().out
    assert "arc" in out
    assert "overconfident" in out
    assert "Wrote report.html" in out
    assert "Reliability" in (folder / "report.html").read_text()
    assert run(["llm", "results", "--json", "-q"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [task["task"] for task in content["tasks"]] == ["arc", "piqa"]
    assert content["tasks"][0]["figures"]["acc"] == content["tasks"][0]["accuracy"]


def test_a_log_in_the_folder_is_not_overwritten(folder, capsys):
    log = folder / "results" / "log.json"
    log.write_text('{"version": 2, "status": "success"}')
    assert run(["llm", "results", "-o", "results/log.json"]) == 2
    assert "results/log.json is in the folder of logs" in capsys.readouterr().err
    assert log.read_text() == '{"version": 2, "status": "success"}'
    assert run(["llm", "results", "-o", "results/report.html"]) == 0


def test_bad_input_is_one_line_and_writes_nothing(folder, capsys):
    before = sorted(folder.rglob("*"))
    cases = [
        (["llm", "nothing"], "There is no file or folder 'nothing'"),
        (["llm", "results", "--reading", "tokens"], "reading must be one of"),
        (["llm", "results", "-o", "report.txt"], "must end in .html or .json"),
        (["llm", "results", "--reading", "mutual", "-o", "r.html"], "acc_mutual_info"),
    ]
    for arguments, message in cases:
        assert run(arguments) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert not captured.out
    assert sorted(folder.rglob("*")) == before


def test_risk_adds_thresholds(folder, capsys):
    pytest.importorskip("calibrant.decisions")
    assert run(["llm", "results", "--risk", "0.7", "-o", "report.html", "-q"]) == 0
    assert "With 90% confidence, at most 70% of these answers are wrong" in capsys.readouterr().out
    assert "Threshold" in (folder / "report.html").read_text()


def test_tasks_without_a_threshold_share_a_line(folder, capsys):
    assert run(["llm", "results", "--risk", "0.0001", "-o", "report.html"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "threshold" in line]
    assert len(lines) == 1
    assert lines[0].startswith("No threshold could be proved for 2 of 2 tasks. The rows do")
    assert "Threshold</button>" not in (folder / "report.html").read_text()
