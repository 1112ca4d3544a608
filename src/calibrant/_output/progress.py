"""What is shown while work goes on: progress on a terminal, silent everywhere else."""

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
    """The items, with a bar of ``total`` steps on standard error where ``progress`` asks for one
    and a terminal shows it.

    ``total`` is None where it is not known; ``size`` says how many steps an item is.
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
    """A spinner on standard error while something takes long, where a terminal shows it."""
    if not is_shown(progress):
        yield
        return
    _import_rich()
    with _console().status(description):
        yield


def is_shown(progress: bool) -> bool:
    """Whether somebody asked for a bar, and there is a terminal to show it."""
    return progress and sys.stderr.isatty()


def _import_rich() -> Any:
    try:
        import rich.progress
    except ImportError:
        raise ImportError(
            "progress=True draws its bar with the package rich, which is not installed; "
            "install calibrant[cli], or leave progress=False"
        ) from None
    return rich.progress


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
