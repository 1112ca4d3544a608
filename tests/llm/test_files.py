"""Text files that try to exhaust memory: one line each."""

from __future__ import annotations

import json

from llm_logs import lm_eval_line, refused, write_lines


def test_invalid_text(tmp_path):
    path = tmp_path / "samples_arc.jsonl"
    good = json.dumps(lm_eval_line(0, [-1, -2], 0)).encode()
    path.write_bytes(good + b"\n" + good.replace(b"option", b"opt\xff\xfe") + b"\n")
    refused(path, "line 2 is not valid UTF-8")
    path.write_bytes(good + b"\n" + b"[" * 200_000 + b"\n")
    refused(path, r"line 2 is nested too deeply|line 2 is not valid JSON")
    path.write_bytes(good + b"\n[1, 2]\n")
    refused(path, "line 2 is not a JSON object")
    csv = tmp_path / "answers.csv"
    csv.write_bytes(b"confidence,correct\n0.5,1\n\xff\xfe,1\n")
    path.unlink()
    refused(csv, "not valid UTF-8")


def test_nan_scores(tmp_path):
    line = lm_eval_line(0, [-1.0, -2.0], 0)
    line["filtered_resps"][0][0] = float("nan")
    refused(write_lines(tmp_path / "samples_arc.jsonl", [line]), "line 1: a log-probability is nan")


def test_lines_without_end_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.llm._files.MOST_BYTES", 100)
    path = write_lines(tmp_path / "samples_arc.jsonl", [lm_eval_line(0, [-1, -2], 0)] * 2)
    refused(path, "line 1 has more than 100 bytes")
