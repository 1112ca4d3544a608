from __future__ import annotations

import io
import sys

import pytest

from calibrant._output.progress import counted, next_step, spinning, tracked


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
    with pytest.raises(
        ImportError, match=r'pip install "calibrant\[cli\]", or pass progress=False'
    ):
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


def test_steps_are_counted_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with counted(2, progress=True):
        next_step("Fitting")
        next_step("Testing")
    assert "Testing" in terminal.getvalue()
    assert "1/2" in terminal.getvalue()


def test_steps_that_nobody_watches_do_nothing(capsys):
    next_step("Fitting")
    with counted(2, progress=True):  # standard error is not a terminal
        next_step("Fitting")
    assert capsys.readouterr() == ("", "")
