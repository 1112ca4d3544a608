"""Folders of evaluation logs."""

from __future__ import annotations

import pytest

from calibrant import llm
from llm_logs import (
    helm_instance,
    inspect_sample,
    lm_eval_line,
    write_helm,
    write_inspect,
    write_lines,
)


def test_folder_with_several_formats(tmp_path):
    pytest.importorskip("pyarrow")  # for zstd
    write_lines(tmp_path / "samples_arc.jsonl", [lm_eval_line(0, [-1, -2], 0)])
    write_inspect(tmp_path / "log.eval", [inspect_sample(1, {"score": "C", "confidence": 50})])
    write_helm(tmp_path / "helm", [helm_instance("a", 1.0, 0.5)])
    (tmp_path / "notes.json").write_text("{}")
    runs = llm.read(tmp_path)
    assert set(runs.tasks) == {"arc", "hle", "mmlu:subject=anatomy,model=m"}
    assert [name.rpartition("/")[2] for name in runs.ignored[:1]] == ["run_spec.json"]
    with pytest.raises(ValueError, match="different sources: max_prob, options"):
        runs.one_source("calibrator")


def test_empty_files_are_ignored(tmp_path):
    write_lines(tmp_path / "samples_arc.jsonl", [lm_eval_line(0, [-1, -2], 0)])
    (tmp_path / "samples_new.jsonl").touch()
    runs = llm.read(tmp_path)
    assert (runs.tasks, len(runs.ignored)) == (("arc",), 1)


def test_missing_paths_and_empty_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file or folder"):
        llm.read(tmp_path / "nothing")
    with pytest.raises(ValueError, match="contains no evaluation"):
        llm.read(tmp_path)
    with pytest.raises(ValueError, match="reading must be"):
        llm.read(tmp_path, reading="tokens")
