"""Read, write and lock the state file of a monitor."""

from __future__ import annotations

import errno
import hashlib
import os
import reprlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._output.files import read_limited, write_text
from calibrant.cli._options import WeightedFileArguments
from calibrant.io import KINDS, LoadedRows, ModelScores, ScoreFile

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from calibrant.monitoring import CalibrationMonitor

_MOST_BYTES = 2**28
"""Maximum size of a state file. Monitors write smaller files."""

_MOST_FILES = 10_000
"""Number of recent updates whose rows are recognized if a user passes them again."""

_REMEMBERED = ("label", *KINDS, "weight", "split", "sep", "decimal", "percent", "renormalize")
"""File options that `start` keeps for the updates."""


def read_monitor(path: Path) -> CalibrationMonitor:
    """Read a monitor, and raise a ``ValueError`` that names the file if it is damaged."""
    from calibrant.monitoring import CalibrationMonitor

    if not path.exists():
        raise FileNotFoundError(
            f"The state {path} does not exist. Run calibrant monitor start FILE -o {path}"
        )
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is not a regular file. Pass the state of a monitor.")
    try:
        text = read_limited(path, _MOST_BYTES).decode("utf-8")
        return CalibrationMonitor.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def write_monitor(path: Path, monitor: CalibrationMonitor) -> None:
    """Replace the state file.

    Raise if the new state could not be read again, because sums are out of range.
    """
    from calibrant.monitoring import CalibrationMonitor

    text = monitor.to_json()
    CalibrationMonitor.from_json(text)
    write_text(path, text)


def remember_options(
    monitor: CalibrationMonitor, data: WeightedFileArguments, file: ScoreFile
) -> None:
    """Keep the options and the columns of the reference file."""
    options = {name: getattr(data, name) for name in _REMEMBERED}
    monitor.metadata["options"] = {name: value for name, value in options.items() if value}
    monitor.metadata["columns"] = list(file.score_columns)
    monitor.metadata["files"] = []


def recall_options(
    monitor: CalibrationMonitor, data: WeightedFileArguments
) -> WeightedFileArguments:
    """Return the arguments of an update, completed by the options of `start`."""
    options = _read_options(monitor)
    has_scores = any(getattr(data, kind) for kind in KINDS)
    used = {
        name: value
        for name, value in options.items()
        if not getattr(data, name) and not (has_scores and name in KINDS)
    }
    # The classes come from the state.
    return replace(data, classes=None, **used)


def _read_options(monitor: CalibrationMonitor) -> dict[str, Any]:
    options = monitor.metadata.get("options", {})
    if not isinstance(options, dict) or not set(options) <= set(_REMEMBERED):
        raise ValueError(
            "'options' in the metadata of the state must be the options of monitor start. Run "
            "calibrant monitor start again."
        )
    for name, value in options.items():
        if not isinstance(value, str | bool):
            raise ValueError(
                "'options' in the metadata of the state must be strings or booleans, got "
                f"{reprlib.repr(value)} for {name!r}. Run calibrant monitor start again."
            )
    return options


def scores_of(monitor: CalibrationMonitor) -> ModelScores:
    """Return the classes, the kind of scores and the columns that a monitor expects."""
    columns = monitor.metadata.get("columns", [])
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError(
            "'columns' in the metadata of the state must be a list of column names, got "
            f"{reprlib.repr(columns)}. Run calibrant monitor start again."
        )
    classes: Any = monitor.classes
    return ModelScores(classes, monitor.to_dict()["rule"]["inputs"], tuple(columns))


def digest_rows(rows: LoadedRows, groups: list[str] | None) -> str:
    """Compute a digest of scores, labels, weights and groups, for any file format."""
    digest = hashlib.sha256()
    scores = np.asarray(rows.scores)
    digest.update(repr(scores.shape).encode())
    for block in np.array_split(scores, max(1, scores.size // 2**20)):
        digest.update(np.ascontiguousarray(block, dtype="<f8").data)
    digest.update("\0".join(map(str, rows.labels.tolist())).encode("utf-8", "surrogatepass"))
    if rows.weight is not None:
        digest.update(np.ascontiguousarray(rows.weight, dtype="<f8").data)
    digest.update("\0".join(groups or ()).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _read_files(monitor: CalibrationMonitor) -> list[list[str]]:
    files = monitor.metadata.get("files", [])
    if not isinstance(files, list) or not all(isinstance(entry, list) for entry in files):
        raise ValueError(
            "'files' in the metadata of the state must be pairs of a name and a digest. Run "
            "calibrant monitor start again."
        )
    return files


def note_file(monitor: CalibrationMonitor, when: str, digest: str, *, again: bool) -> None:
    """Record the name and the digest of an update, and raise if either was added before."""
    files = _read_files(monitor)
    names = {entry.when for entry in monitor.history}
    earlier = next((entry[0] for entry in files if digest in entry), None)
    if earlier is not None and not again:
        raise ValueError(
            f"These rows were already added with the name {earlier!r}. Pass --again to count these "
            "rows twice."
        )
    if when in names and not again:
        raise ValueError(
            f"An update with the name {when!r} was already added. Pass another name with --when, "
            "or pass --again to add these rows under the same name."
        )
    monitor.metadata["files"] = [*files, [when, digest]][-_MOST_FILES:]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a state against other updates, also through symbolic links."""
    target = Path(os.path.realpath(path))
    lock = target.with_name(target.name + ".lock")
    # Without flock (Windows), the existence of the file is the lock, which remains after a crash.
    has_flock = fcntl is not None
    acquire = _flock if has_flock else _create
    try:
        descriptor = acquire(lock)
    except (BlockingIOError, FileExistsError):
        hint = "Try again later." if has_flock else f"If no other update is running, remove {lock}."
        raise ValueError(f"{path} is locked by another update. {hint}") from None
    # Windows cannot remove an open file. On other systems, this process removes the file while it
    # still holds the lock.
    steps = [partial(lock.unlink, missing_ok=True), partial(os.close, descriptor)]
    try:
        yield
    finally:
        for step in steps if has_flock else reversed(steps):
            step()


def _flock(lock: Path) -> int:
    """Lock a file. The kernel releases the lock if the process ends."""
    while True:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another update may have removed the file after it was opened here.
            if lock.exists() and os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise BlockingIOError from None
            raise
        os.close(descriptor)


def _create(lock: Path) -> int:
    return os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
