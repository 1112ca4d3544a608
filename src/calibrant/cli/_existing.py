"""Protect existing files. A command replaces only files of its own kind."""

from __future__ import annotations

from pathlib import Path

from calibrant._output.files import check_writable

_MARKS = {
    "model": b'"calibrant-model"',
    "state": b'"calibrant.monitor/',
    "metrics": b"# HELP calibrant_monitor",
}
"""Text at the beginning of files that a command cannot recreate."""

_NAMES = {"model": "a saved calibrator", "state": "the state of a monitor"}
_HEAD_BYTES = 4096


def check_output(output: Path, kind: str, *inputs: Path | None) -> None:
    """Raise if a file cannot be written, or would replace an input or another kind of file."""
    check_other_file(output, *inputs)
    check_writable(output)
    check_replaceable(output, kind)


def check_other_file(output: Path, *inputs: Path | None) -> None:
    """Raise if the output would replace an input."""
    for path in inputs:
        if path is not None and output.exists() and path.exists() and output.samefile(path):
            raise ValueError(
                f"{output} is an input file and would be overwritten. Pass another file to "
                "--output."
            )


def check_replaceable(path: Path, kind: str) -> None:
    """Raise if ``path`` is another kind of file, or a monitor state with rows.

    ``kind`` is a key of `_MARKS`, or any other word for files without a mark.
    """
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    actual = next((name for name, mark in _MARKS.items() if mark in head), None)
    expected = kind if kind in _MARKS else None
    if actual == "state" == expected:
        _check_empty_state(path)
    elif actual != expected:
        content = _NAMES.get(actual or "", "other data")
        raise ValueError(
            f"{path} contains {content}, which would be overwritten. Pass another file to "
            "--output, or remove this file first."
        )


def _check_empty_state(path: Path) -> None:
    from calibrant.cli._monitor_state import read_monitor

    n_rows = sum(entry.n_rows for entry in read_monitor(path).history)
    if n_rows:
        raise ValueError(
            f"{path} contains a monitor state with {n_rows:,} rows, which would be overwritten. "
            "Pass another file to --output, or pass --force."
        )
