"""Text files: separators, and the lines of rows."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from calibrant.io import open_scores


@pytest.mark.parametrize("sep", [";;", '"', "\n", "ä"])
def test_a_separator_is_one_character(sep, tmp_path):
    (tmp_path / "x.csv").write_text("p_a,p_b,y\n0.5,0.5,a\n")
    with pytest.raises(ValueError, match="must be one character"):
        open_scores(tmp_path / "x.csv", sep=sep)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,2,a\n", 3),
        ("\n\np_a,p_b,y\n\n0.5,0.5,a\n\n0.5,2,a\n", 7),
        ('p_a,p_b,y,note\n0.5,0.5,a,"1\n2\n3"\n0.5,2,a,x\n', 5),
    ],
)
def test_a_row_is_on_the_line_where_an_editor_shows_it(text, line, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"Row 1 \(line {line}\), column 'p_b'"):
        open_scores(tmp_path / "x.csv", label="y", proba="p_*").load()


def test_a_tab_may_be_spelled_as_shells_do(tmp_path):
    (tmp_path / "x.txt").write_text("p_a\tp_b\ty\n0.5\t0.5\ta\n")
    assert open_scores(tmp_path / "x.txt", sep="\\t", label="y").classes.tolist() == ["a", "b"]
