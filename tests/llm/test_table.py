"""Tables of confidences and correctness."""

from __future__ import annotations

import pytest

from calibrant import llm
from llm_logs import refused, write_lines


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_tables_with_tasks_and_features(tmp_path, suffix):
    rows = [
        {"task": "a", "confidence": "0.9", "correct": "yes", "mean_logprob": -0.1},
        {"task": "b", "confidence": "60%", "correct": "no", "mean_logprob": -0.2},
        {"task": "a", "confidence": "", "correct": "no", "mean_logprob": -0.3},
    ]
    path = tmp_path / f"answers.{suffix}"
    if suffix == "jsonl":
        write_lines(path, rows)
    elif suffix == "csv":
        text = "\n".join(",".join(map(str, row.values())) for row in rows)
        path.write_text("task,confidence,correct,mean_logprob\n" + text + "\n")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    runs = llm.read(path)
    assert runs["a"].confidence.tolist() == [0.9]
    assert runs["a"].n_missing == 1
    assert runs["a"].features["mean_logprob"].tolist() == [-0.1]
    assert runs["b"].correct.tolist() == [False]


def test_scale_of_confidences_is_declared(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("confidence,correct\n85,1\n")
    with pytest.raises(ValueError, match=r"line 2: 'confidence' is '85'.*percent=True"):
        llm.read(path)
    assert llm.read(path, percent=True)["answers"].confidence.tolist() == [0.85]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("confidence,correct\nnan%,1\n", "not a probability"),
        ("confidence,correct\n1e400,1\n", "not a probability"),
        ("confidence,correct\n0.5,perhaps\n", "'correct' is 'perhaps'"),
        ("confidence,correct\n-0.5,1\n", "not a probability"),
    ],
)
def test_invalid_values_of_a_table(tmp_path, text, match):
    path = tmp_path / "answers.csv"
    path.write_text(text)
    refused(path, match)


def test_parquet_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "answers.parquet"
    path.write_bytes(b"PAR1 this is no table")
    refused(path, "not a readable Parquet file")


def test_a_task_may_have_the_number_zero(tmp_path):
    rows = [{"task": task, "confidence": 0.5, "correct": True} for task in (0, 1)]
    assert set(llm.read(write_lines(tmp_path / "answers.jsonl", rows)).tasks) == {"0", "1"}


def test_small_confidences_may_have_an_exponent(tmp_path):
    (tmp_path / "answers.csv").write_text("confidence,correct\n1e-05,0\n9.5E-1,1\n")
    assert llm.read(tmp_path)["answers"].confidence.tolist() == [1e-05, 0.95]
