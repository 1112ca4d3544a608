"""Writing files so that they are whole or not there: aside first, then renamed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file to write instead of ``path``: it takes its place at the end, or is removed
    where writing fails.

    The file is new, in the same folder, under a name that nobody can foresee: a link that was
    planted is not followed, and writers of one path at the same time do not meet. It gets the mode
    of the file that it replaces. What is no regular file (a device, a pipe) is written directly,
    because a renamed file would replace it.
    """
    check_writable(path)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    aside = _make_aside(target)
    try:
        yield aside
        _copy_mode(target, aside)
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)


def _make_aside(target: Path) -> Path:
    """A new empty file beside ``target``; only the owner may read it where it replaces another."""
    # Its name does not hold that of the target, which may be as long as names can be.
    aside = target.with_name(f".{secrets.token_hex(12)}.part")
    mode = 0o600 if target.exists() else 0o666  # less what the umask of the user forbids
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return aside


def _copy_mode(target: Path, aside: Path) -> None:
    if target.exists():
        aside.chmod(stat.S_IMODE(target.stat().st_mode))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise where a file cannot be written, before anything is computed for it."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a directory: give the name of a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist: make it first, or write somewhere else"
        )
    if not os.access(target.parent if not target.exists() else target, os.W_OK):
        raise PermissionError(f"{os.fspath(path)} cannot be written: permission denied")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, whole or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")
