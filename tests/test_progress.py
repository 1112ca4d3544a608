from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from calibrant._progress import AsText, ShortRepr, html_table, spinning, tracked


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_items_pass_through_without_a_bar():
    assert list(tracked(iter("abc"), total=3, description="Work", progress=False)) == [
        "a",
        "b",
        "c",
    ]


def test_nothing_is_written_where_standard_error_is_not_a_terminal(capsys):
    assert list(tracked(range(3), total=3, description="Work", progress=True)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_on_standard_error(monkeypatch, capsys):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert list(tracked(range(3), total=3, description="Work", progress=True)) == [0, 1, 2]
    assert "Work" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_a_terminal_without_rich_gets_an_error_that_names_the_remedy(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"calibrant\[cli\], or leave progress=False"):
        list(tracked(range(3), total=3, description="Work", progress=True))


def test_items_count_as_many_steps_as_their_size(monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    bar = tracked(["ab", "cde"], total=5, description="rows", progress=True, size=len)
    assert list(bar) == ["ab", "cde"]
    assert "5/5" in terminal.getvalue()


def test_a_spinner_turns_on_a_terminal_only(monkeypatch, capsys):
    pytest.importorskip("rich")
    with spinning("Fitting", progress=True):
        pass
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with spinning("Fitting", progress=True):
        pass
    assert "Fitting" in terminal.getvalue()


@dataclass(repr=False)
class Result(ShortRepr, AsText):
    """Something to show."""

    table: np.ndarray
    level: float
    name: str | None = None
    parts: tuple[int, ...] = ()


def test_a_repr_of_one_line_tells_large_values_by_their_size():
    assert (
        repr(Result(np.zeros((3, 2)), 0.95)) == "Result(table=<array 3 x 2>, level=0.95, parts=())"
    )
    long = Result(np.zeros(3), 0.5, "n" * 100, tuple(range(100)))
    assert repr(long).endswith("nnn..., parts=<tuple of 100>)")


def test_a_result_without_a_table_is_shown_as_its_text_escaped():
    shown = Result(np.zeros(1), 0.5, "<b>")._repr_html_()
    assert shown.startswith("<pre")
    assert "&lt;b&gt;" in shown


def test_a_table_for_a_notebook_is_escaped_in_all_its_parts():
    shown = html_table([["<r>", "<c>"]], header=["<h>", "x"], title="<t>", note="<n>")
    for part in "rchtn":
        assert f"&lt;{part}&gt;" in shown
    assert shown.endswith("</table><p>&lt;n&gt;</p>")
