"""Calibrated columns beside those of the input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from calibrant.io._readers import FileBlock
from calibrant.io._writers import add_columns, write_scores

FILE = SimpleNamespace(classes=np.array(["a", "b"]), has_top_scores=False, reader=None)
PROBA = np.array([[0.75, 0.25], [0.5, 0.5]])


def block(**columns):
    return FileBlock(0, PROBA, table=pa.table(columns))


def test_columns_that_are_called_alike_are_kept_under_another_name():
    new = {"p_a": pa.array(PROBA[:, 0]), "p_b": pa.array(PROBA[:, 1])}
    table = add_columns(pa.table({"p_a": [1, 2], "x": [3, 4]}), new)
    assert table.column_names == ["raw_p_a", "x", "p_a", "p_b"]
    assert table.column("p_a").to_pylist() == [0.75, 0.5]


def test_text_is_quoted_where_it_must_be(tmp_path):
    for text, line in (("plain", "plain,0.75,0.25"), ("a,b", '"a,b",0.75,0.25')):
        write_scores(tmp_path / "out.csv", FILE, iter([(block(t=[text, text]), PROBA)]))
        assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ["t,p_a,p_b", line]


def test_arrays_are_joined_at_the_end(tmp_path):
    write_scores(tmp_path / "out.npy", FILE, iter([(block(), PROBA)] * 2))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.vstack([PROBA, PROBA]))


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_failure_leaves_nothing(ending, tmp_path):
    def fail():
        yield block(t=["x", "y"]), PROBA
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_scores(tmp_path / f"out.{ending}", FILE, fail())
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_ending_is_rejected(tmp_path):
    with pytest.raises(ValueError, match=r"\.csv, \.tsv, \.parquet"):
        write_scores(tmp_path / "out.xls", FILE, iter([]))
