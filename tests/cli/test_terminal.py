"""Output on a terminal: wrapped between words, and tables instead of Markdown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rich")
pytest.importorskip("typer")
pytest.importorskip("pty")

import pty

from calibrant._output import progress
from calibrant.cli import main, wrap_lines

HELP = (
    ("--help",),
    *((name, "--help") for name in ("evaluate", "fit", "apply", "export", "compare", "report")),
    ("llm", "--help"),
    *(("demo", "--help"), ("monitor", "--help")),
    *(("monitor", name, "--help") for name in ("start", "update", "show")),
)
DATA = ("test.csv", "--label", "outcome")
COMMANDS = {
    "evaluate": ("evaluate", *DATA),
    "intervals": ("evaluate", *DATA, "--intervals"),
    "groups": ("evaluate", *DATA, "--by", "site"),
    "fit": ("fit", *DATA, "-m", "temperature", "-o", "model.json"),
    "compare": (
        "compare",
        *DATA,
        "-m",
        "temperature",
        "-m",
        "bayesian-temperature",
        "--by",
        "site",
    ),
    "report": ("report", *DATA, "-m", "temperature", "-o", "report.html"),
    "start": ("monitor", "start", *DATA, "-o", "state.json"),
    "error": ("evaluate", *DATA, "--by", "a_column_that_is_not_in_this_file"),
}


def run(capsys, arguments):
    """Standard output and error of a command, without styles."""
    with pytest.raises(SystemExit):
        main(list(arguments))
    both = "".join(capsys.readouterr())
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", both)


@pytest.fixture
def terminal(monkeypatch):
    """Let rich and the messages of errors write as on a terminal of some width."""

    def make(width):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setattr(progress, "is_shown", lambda wanted: False)

    return make


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("arguments", HELP, ids=" ".join)
def test_help_is_wrapped_between_words(capsys, monkeypatch, arguments, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = run(capsys, arguments)
    assert max(map(len, text.splitlines())) <= width
    assert not re.search(r"\w-$|\.\.\.$", text.replace("[ARGS]...", ""), flags=re.MULTILINE)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_wrapped_between_words(capsys, terminal, outcome_files, name, width):
    terminal(10_000)
    unwrapped = run(capsys, COMMANDS[name])
    for file in ("model.json", "state.json"):
        Path(file).unlink(missing_ok=True)
    terminal(width)
    wrapped = run(capsys, COMMANDS[name])
    assert max(len(line.rstrip()) for line in wrapped.splitlines()) <= width
    assert set(wrapped.split()) == set(unwrapped.split())


@pytest.mark.parametrize("width", [80, 120])
def test_a_comparison_is_a_table(capsys, terminal, outcome_files, width):
    terminal(width)
    text = run(capsys, COMMANDS["compare"])
    assert "**" not in text
    assert "|" not in text
    (row,) = re.findall(r"^bayesian-temperature +[\d.]+ .*", text.partition("north")[0], flags=re.M)
    assert len(re.findall(r"[+-]?\d+\.\d+", row)) == (5 if width == 80 else 8)


def test_a_piped_comparison_is_markdown(capsys, outcome_files):
    assert "| method | log_loss |" in run(capsys, COMMANDS["compare"])


def test_a_pseudo_terminal_gets_wrapped_text(outcome_files):
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "calibrant", *COMMANDS["report"], "-q"]
    process = subprocess.Popen(command, stdout=child, stderr=child, env=environment)
    os.close(child)
    text = b""
    while True:
        try:
            block = os.read(parent, 4096)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        text += block
    os.close(parent)
    assert process.wait() == 0
    lines = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", text).decode().split("\r\n")
    assert len(lines) > 5
    assert max(map(len, lines)) <= 60


def test_lines_keep_their_indentation_and_long_words_stay_in_one_piece():
    path = "/a/very/long/path/that-does-not-fit.html"
    text = f"Wrote {path} for you\n\n  indented text that is long enough"
    assert wrap_lines(text, 20).split("\n") == [
        "Wrote",
        path,
        "for you",
        "",
        "  indented text that",
        "  is long enough",
    ]


def test_lines_of_a_table_in_text_keep_their_spaces():
    assert wrap_lines("accuracy       0.685", 80) == "accuracy       0.685"
