"""A progress bar for long work: shown on a terminal, silent everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def tracked(
    items: Iterable[Item], *, total: int, description: str, progress: bool
) -> Iterator[Item]:
    """The items, with a bar of ``total`` steps on standard error where ``progress`` asks for one
    and a terminal shows it.
    """
    if not progress or not sys.stderr.isatty():
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        raise ImportError(
            "progress=True draws its bar with the package rich, which is not installed; "
            "install calibrant[cli], or leave progress=False"
        ) from None
    yield from track(items, description, total=total, console=Console(stderr=True), transient=True)
