"""Write files atomically, by renaming a temporary file at the end."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

completed: list[str] = []
"""Paths that this process has replaced, for the message of an interrupted command."""

_PAUSES = (0.05, 0.2, 0.8)
"""Seconds between attempts to replace a file. Windows does not replace a file that another program
has open. Virus scanners open new files for about a second."""


@contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` at the end.

    If an error occurs, the temporary file is removed. The temporary file is in the same folder and
    has an unpredictable name. An attacker therefore cannot prepare a symbolic link, and concurrent
    writers do not interfere. The new file has the permissions of the file that it replaces. Devices
    and pipes are written directly, because renaming would replace the device or pipe by a file.
    """
    check_writable(path)
    if _is_special(path):
        # The path is not resolved, because the real path of a pipe (/dev/stdout) cannot be opened.
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


def replace_file(aside: Path, target: Path, display_path: str) -> None:
    """Rename a temporary file and record its path in ``completed``.

    The command line does not let a signal interrupt this function, so the record is always correct.
    """
    for pause in (*_PAUSES, None):
        try:
            os.replace(aside, target)
        except PermissionError:
            if pause is None:
                raise PermissionError(
                    f"{display_path} cannot be replaced. Close the programs that have this file "
                    "open and try again, or pass another path."
                ) from None
            time.sleep(pause)
        else:
            break
    completed.append(display_path)


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a device, a pipe or a socket."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _make_aside(target: Path) -> Path:
    """Create an empty file next to ``target``.

    If ``target`` exists, only the owner can read and write the new file.
    """
    # The temporary name does not contain the name of the target, which may have the maximum length.
    aside = target.with_name(f".{secrets.token_hex(12)}.part")
    mode = 0o600 if target.exists() else 0o666  # the system also applies the umask of the user
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return aside


def _copy_mode(target: Path, aside: Path) -> None:
    if target.exists():
        aside.chmod(stat.S_IMODE(target.stat().st_mode))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise if a file cannot be written. Call this function before long computations."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a directory. Pass the path of a file.")
    is_special = _is_special(path)
    if not is_special and not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist. Create the folder, or pass another path."
        )
    # A new file in the same folder replaces the old file, so the folder must be writable. The old
    # file must also be writable, because read-only files must not be replaced.
    paths = [path] if is_special else [target.parent, *([target] if target.exists() else [])]
    for place in paths:
        if not os.access(place, os.W_OK):
            raise PermissionError(
                f"{os.fspath(path)} cannot be written, because you have no write permission for "
                f"{place}. Pass another path."
            )


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, completely or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def read_limited(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read a file of at most ``most_bytes``.

    Devices and pipes have no size, so the bytes of all files are counted while they are read.
    """
    pieces: list[bytes] = []
    n_bytes = 0
    with open(path, "rb") as file:
        while piece := file.read(2**20):  # read(most_bytes) would allocate all memory at once
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise ValueError(f"it has more than {most_bytes:,} bytes")
    return b"".join(pieces)
