"""Write files such that they are complete or not there: to a temporary file that is renamed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

completed: list[str] = []
"""Paths that this process has replaced, for the message of a command that is interrupted."""


@contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` at the end, or is removed if an
    error occurs.

    The file is new, in the same folder, with an unpredictable name: a link that was planted is not
    followed, and concurrent writers of one path do not interfere. It gets the mode of the file that
    it replaces. Devices and pipes are written directly, because a renamed file would replace them.
    """
    check_writable(path)
    if _is_special(path):
        # The path as given: the real path of a pipe (/dev/stdout) is not a path.
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    aside = _make_aside(target)
    try:
        yield aside
        _copy_mode(target, aside)
        replace_file(aside, target, os.fspath(path))
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(aside)):
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        aside.unlink(missing_ok=True)


def replace_file(aside: Path, target: Path, shown: str) -> None:
    """Rename a temporary file and note that it was done. The command line does not let a signal
    interrupt this function, so the note is always correct.
    """
    os.replace(aside, target)
    completed.append(shown)


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe or a socket."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _make_aside(target: Path) -> Path:
    """A new empty file next to ``target``; private if it replaces another file."""
    # Its name does not hold that of the target, which may be as long as names can be.
    aside = target.with_name(f".{secrets.token_hex(12)}.part")
    mode = 0o600 if target.exists() else 0o666  # less what the umask of the user forbids
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return aside


def _copy_mode(target: Path, aside: Path) -> None:
    if target.exists():
        aside.chmod(stat.S_IMODE(target.stat().st_mode))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise if a file cannot be written, before anything is computed for it."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a directory: give the name of a file in it")
    is_special = _is_special(path)
    if not is_special and not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist: make it first, or write somewhere else"
        )
    # A file is replaced by a new one in its folder, so both must be writable.
    needed = [path] if is_special else [target.parent, *([target] if target.exists() else [])]
    for place in needed:
        if not os.access(place, os.W_OK):
            raise PermissionError(
                f"{os.fspath(path)} cannot be written: permission denied for {place}"
            )


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, completely or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def read_limited(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read a file of at most so many bytes. A device may have no end, and a pipe no size."""
    pieces: list[bytes] = []
    n_bytes = 0
    with open(path, "rb") as file:
        while piece := file.read(2**20):  # read(n) takes memory for n bytes at once
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise ValueError(f"it has more than the {most_bytes:,} bytes that are read")
    return b"".join(pieces)
