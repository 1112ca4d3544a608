"""Show progress on a terminal; print nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")


def tracked(
    items: Iterable[Item],
    *,
    total: int | None,
    description: str,
    progress: bool,
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """Yield the items, with a progress bar on standard error if it is a terminal.

    ``total`` is the number of steps, or None if it is unknown. ``size`` returns the number of steps
    of an item. There is no bar if ``progress`` is False.
    """
    if not is_shown(progress):
        yield from items
        return
    rich = _import_rich()
    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=_console(), transient=True) as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task, size(item))


@contextmanager
def spinning(description: str, *, progress: bool) -> Iterator[None]:
    """Show a spinner on standard error during long work, if it is a terminal."""
    if not is_shown(progress):
        yield
        return
    _import_rich()
    with _console().status(description):
        yield


def is_shown(progress: bool) -> bool:
    """Whether progress is wanted and standard error is a terminal."""
    return progress and sys.stderr.isatty()


def _import_rich() -> Any:
    try:
        import rich.progress
    except ImportError:
        raise ImportError(
            "progress=True needs the package rich, which is not installed. Run pip install "
            '"calibrant[cli]", or pass progress=False.'
        ) from None
    return rich.progress


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
