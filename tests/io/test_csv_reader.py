"""Text files: separators, and the lines of rows."""

from __future__ import annotations

import numpy as np
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


def message_about(path, **options):
    with pytest.raises(ValueError, match=r".") as caught:
        open_scores(path, **options).load()
    return str(caught.value)


def test_percentages_may_have_a_decimal_comma(tmp_path):
    (tmp_path / "x.csv").write_text("p_a;p_b;y\n12,5 %;87,5%;a\n40%;60%;b\n")
    file = open_scores(tmp_path / "x.csv", sep=";", decimal=",", percent=True)
    np.testing.assert_allclose(file.load().scores, [[0.125, 0.875], [0.4, 0.6]])


def test_a_message_about_text_suggests_the_other_decimal_separator(tmp_path):
    (tmp_path / "comma.csv").write_text("p_a;p_b;y\n0,5;0,5;a\n")
    (tmp_path / "point.csv").write_text("p_a;p_b;y\n0.5;0.5;a\n")
    message = message_about(tmp_path / "comma.csv", sep=";")
    assert message.endswith("or decimal=',' for numbers such as 0,95.")
    message = message_about(tmp_path / "point.csv", sep=";", decimal=",")
    assert message.endswith("or decimal='.' for numbers such as 0.95.")


def test_a_message_about_tabs_can_be_pasted(tmp_path):
    (tmp_path / "x.txt").write_text("p_a\tp_b\ty\n0.5\t0.5\ta\n")
    assert r"Pass sep='\\t' for columns" in message_about(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("encoding", "message"),
    [("utf-16", "is encoded as UTF-16. Save the file as"), ("latin-1", "is not valid UTF-8")],
)
def test_a_message_about_another_encoding_names_the_file(encoding, message, tmp_path):
    (tmp_path / "x.csv").write_text("p_kätzchen,p_b,y\n0.5,0.5,b\n", encoding=encoding)
    text = message_about(tmp_path / "x.csv")
    assert "x.csv" in text
    assert message in text
    assert "UTF-8" in text


def test_a_file_without_a_header_line_is_named_as_such(tmp_path):
    (tmp_path / "x.csv").write_text("0.25,0.75,a,n\n0.5,0.5,b,s\n")
    assert message_about(tmp_path / "x.csv").endswith("Add a header line if the file has none.")


def test_groups_keep_their_leading_zeros(tmp_path):
    (tmp_path / "x.csv").write_text("p_a,p_b,y,zip\n0.5,0.5,a,01234\n0.5,0.5,b,1234\n")
    assert open_scores(tmp_path / "x.csv").reader.text_column("zip") == ["01234", "1234"]
