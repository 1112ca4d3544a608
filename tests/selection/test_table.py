"""Tables in Markdown."""

from __future__ import annotations

from calibrant.selection._table import markdown_table, plain


def test_numbers_have_three_digits_and_none_is_a_dash():
    lines = markdown_table(["a", "b", "c"], [[1 / 3, 2, None]]).splitlines()
    assert lines == ["| a | b | c |", "| --- | --- | --- |", "| 0.333 | 2 | - |"]


def test_a_name_cannot_break_out_of_its_cell():
    (line,) = markdown_table(["name"], [["a | b\n<b>`c`"]]).splitlines()[2:]
    assert line == "| a \\| b &lt;b&gt;\\`c\\` |"


def test_a_backslash_is_shown_as_one():
    assert plain("a\\b") == "a\\\\b"
