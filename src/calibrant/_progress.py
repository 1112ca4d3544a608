"""What is shown while work goes on and when it is done: progress on a terminal, silent everywhere
else; results in one line, and as tables in a notebook.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, TypeVar

Item = TypeVar("Item")

_BRIEF, _LINE = 40, 240
"""Characters of a value in a repr, and of all values."""


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


class ShortRepr:
    """Of a dataclass: a repr of one line, in which large values are told by their size."""

    def __repr__(self) -> str:
        own = [entry.name for entry in fields(self) if entry.init]  # type: ignore[arg-type]
        parts = [f"{name}={_brief(getattr(self, name))}" for name in own]
        text = ", ".join(part for part in parts if not part.endswith("=None"))
        return f"{type(self).__name__}({text if len(text) <= _LINE else f'{text[:_LINE]} ...'})"


class AsText:
    """A result that a notebook shows as its ``str()``."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap">{escape(str(self))}</pre>'


def html_table(
    rows: Iterable[Sequence[Any]], *, header: Sequence[str] = (), title: str = "", note: str = ""
) -> str:
    """A table for a notebook, everything escaped; the first column is text, the others numbers.

    >>> html_table([["a", 1]], title="x<y")
    '<table><caption>x&lt;y</caption><tbody><tr><th>a</th><td>1</td></tr></tbody></table>'
    """
    cells = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    head = f"<thead><tr>{cells}</tr></thead>" if cells else ""
    body = "".join(
        f"<tr><th>{escape(str(first))}</th>"
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    after = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{after}"


def _brief(value: Any) -> str:
    """A value in a few words: arrays by their shape, collections by their length."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"<array {' x '.join(map(str, shape))}>"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list | dict | set | frozenset) and len(repr(value)) > _BRIEF:
        return f"<{type(value).__name__} of {len(value)}>"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 4]}..."
