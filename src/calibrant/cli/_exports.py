"""Export calibrators to other systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrant import export
from calibrant._output.files import write_text
from calibrant._validation import shortened, unknown_name
from calibrant.cli._options import ExportArguments
from calibrant.io import PREFIXES


def export_file(model: Any, options: ExportArguments, output: Path) -> None:
    """Export a calibrator to a file."""
    if options.to not in EXPORTS:
        raise ValueError(unknown_name("target", options.to, EXPORTS))
    if options.compose is not None and options.to != "onnx":
        raise ValueError(f"--compose requires --to onnx, got --to {options.to}. Remove --compose.")
    EXPORTS[options.to](_select_group(model, options.group), options, output)


def _select_group(model: Any, texts: list[str] | None) -> Any:
    """Return the calibrator of the group that --group defines, or a model without groups."""
    groups = {} if vars(model).get("group_") is not None else vars(model).get("groups_", {})
    values = dict(_split_group(text) for text in texts or ())
    if not groups:
        if values:
            raise ValueError("The model was fitted without --by. Remove --group.")
        return model
    if set(values) != set(groups):
        needed = " ".join(f"--group {column}=VALUE" for column in groups)
        raise ValueError(
            f"The model was fitted with --by {' --by '.join(groups)}, and only one group can be "
            f"exported. Pass {needed}."
        )
    for column, value in values.items():
        if value not in groups[column]:
            names = shortened(groups[column].tolist())
            raise ValueError(f"Column {column!r} had no group {value!r}. Pass one of {names}.")
    return model.for_group(values)


def _split_group(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--group must have the form COLUMN=VALUE, got {text!r}.")
    return column, value


def _export_onnx(model: Any, options: ExportArguments, output: Path) -> None:
    export.to_onnx(model, output, model=options.compose, output=options.score_output)


def _export_sql(model: Any, options: ExportArguments, output: Path) -> None:
    start = PREFIXES[export.program(model).inputs][0]
    columns = _split_names(options.columns) or [
        f"{start}{label}" for label in model.classes_.tolist()
    ]
    query = export.to_sql(
        model,
        table=options.table,
        columns=columns,
        dialect=options.dialect,
        keep=_split_names(options.keep),
    )
    write_text(output, query)


def _split_names(names: str | None) -> list[str]:
    return names.split(",") if names else []


EXPORTS: dict[str, Callable[[Any, ExportArguments, Path], None]] = {
    "onnx": _export_onnx,
    "torch": lambda model, options, output: export.save_torch(model, output),
    "sql": _export_sql,
    "python": lambda model, options, output: write_text(output, export.to_python(model)),
    "javascript": lambda model, options, output: write_text(output, export.to_javascript(model)),
}
"""Export functions by the name of the target."""
