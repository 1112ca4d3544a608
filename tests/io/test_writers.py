"""Calibrated columns beside those of the input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from calibrant.io._readers import FileBlock
from calibrant.io._writers import add_scores, open_writer

FILE = SimpleNamespace(classes=np.array(["a", "b"]), has_top_scores=False, reader=None)
PROBA = np.array([[0.75, 0.25], [0.5, 0.5]])


def block(**columns):
    return FileBlock(0, PROBA, table=pa.table(columns))


def test_columns_that_are_called_alike_are_kept_under_another_name():
    table = add_scores(pa.table({"p_a": [1, 2], "x": [3, 4]}), PROBA, ["p_a", "p_b"])
    assert table.column_names == ["raw_p_a", "x", "p_a", "p_b"]
    assert table.column("p_a").to_pylist() == [0.75, 0.5]


def test_text_is_quoted_where_it_must_be(tmp_path):
    for text, line in (("plain", "plain,0.75,0.25"), ("a,b", '"a,b",0.75,0.25')):
        with open_writer(tmp_path / "out.csv", FILE) as writer:
            writer.write(block(t=[text, text]), PROBA)
        assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ["t,p_a,p_b", line]


def test_arrays_are_joined_at_the_end(tmp_path):
    with open_writer(tmp_path / "out.npy", FILE) as writer:
        writer.write(block(), PROBA)
        writer.write(block(), PROBA)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.vstack([PROBA, PROBA]))


def test_a_failure_leaves_nothing(tmp_path):
    def fail():
        with open_writer(tmp_path / "out.parquet", FILE) as writer:
            writer.write(block(t=["x", "y"]), PROBA)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_ending_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match=r"\.csv, \.tsv, \.parquet"),
        open_writer(tmp_path / "out.xls", FILE),
    ):
        pass
