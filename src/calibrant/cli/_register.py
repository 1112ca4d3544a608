"""Register functions as commands, with the fields of their dataclasses as options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from calibrant.cli._deferred import import_sklearn


def register_command(
    app: typer.Typer, example: str, cls: type[TyperCommand] | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Add a command to an app, with an example at the end of its help."""

    def register(command: Callable[..., None]) -> Any:
        return app.command(cls=cls, epilog=f"\b\nExample:\n  {example}")(flatten(command))

    return register


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """Convert a command with dataclass parameters to a typer command with one option per field."""
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options = [option for p in parameters for option in _options(p, hints[p.name])]

    @wraps(command)
    def run(**values: Any) -> None:
        import_sklearn()
        for name, group in groups.items():
            members = {entry.name: values.pop(entry.name) for entry in fields(group)}
            values[name] = group(**members)
        command(**values)

    # typer reads the options from the signature.
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _options(parameter: inspect.Parameter, hint: Any) -> Iterator[inspect.Parameter]:
    """Return the parameter, or a keyword parameter for each field of its dataclass."""
    if not is_dataclass(hint):
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for entry in fields(hint):
        default = parameter.empty if entry.default is MISSING else entry.default
        yield inspect.Parameter(
            entry.name, parameter.KEYWORD_ONLY, default=default, annotation=hints[entry.name]
        )
