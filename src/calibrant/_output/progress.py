"""Show progress if standard error is a terminal, and print nothing otherwise.

`tracked` shows a bar and `spinning` a spinner. Functions with several steps call `next_step`, which
does nothing unless the caller shows the steps by `counted`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
    """Yield the items, and show a progress bar if standard error is a terminal.

    ``total`` is the number of steps, or None if it is unknown. ``size`` returns the number of steps
    of an item. There is no bar if ``progress`` is False.
    """
    if not is_shown(progress):
        yield from items
        return
    with _new_bar() as bar:
        task = bar.add_task(description, total=total)
        for item in items:
            yield item
            bar.advance(task, size(item))


_next_step: ContextVar[Callable[[str], None] | None] = ContextVar("_next_step", default=None)
"""Function that shows the start of a step, or None if steps are not shown."""


@contextmanager
def counted(total: int, *, progress: bool) -> Iterator[None]:
    """Show a bar of the steps that `next_step` announces, if standard error is a terminal."""
    if not is_shown(progress):
        yield
        return
    with _new_bar() as bar:
        task = bar.add_task("Starting", total=total)
        n_started = 0

        def show(description: str) -> None:
            nonlocal n_started
            bar.update(task, description=description, completed=n_started)
            n_started += 1

        token = _next_step.set(show)
        try:
            yield
        finally:
            _next_step.reset(token)


def next_step(description: str) -> None:
    """Announce the next step of a long computation, which means that earlier steps are complete."""
    show = _next_step.get()
    if show is not None:
        show(description)


def _new_bar() -> Any:
    rich = _import_rich()
    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    )
    return rich.Progress(*columns, console=_console(), transient=True)


@contextmanager
def spinning(description: str, *, progress: bool) -> Iterator[None]:
    """Show a spinner during a long computation if standard error is a terminal."""
    if not is_shown(progress):
        yield
        return
    _import_rich()
    with _console().status(description):
        yield


def is_shown(progress: bool) -> bool:
    """Return whether to show progress, which requires a terminal."""
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
