"""Open and read prediction files for the commands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._typing import AnyArray
from calibrant._validation import Message, ParameterError, shortened
from calibrant.base import Calibrator
from calibrant.cli import spell_option
from calibrant.cli._options import FileArguments
from calibrant.cli._output import Output
from calibrant.io import LOADED_BYTES, LoadedRows, ModelScores, ScoreFile


def open_file(
    arguments: FileArguments,
    output: Output,
    *,
    model: ModelScores | None = None,
    needs_label: bool = True,
    keeps_text: bool = False,
    takes_top_scores: bool = False,
) -> ScoreFile:
    """Open the file of a command, and print notes about guessed columns and labels."""

    def note(message: Message) -> None:
        output.say(f"note: {message.spell(spell_option)}")

    file = ScoreFile(
        arguments.options(),
        model=model,
        needs_label=needs_label,
        keeps_text=keeps_text,
        note=note,
        progress=not output.quiet,
    )
    if file.has_top_scores and not takes_top_scores:
        raise ValueError(
            f"This command needs the scores of all classes, but {file.path} has only the top "
            "scores of each row. Use calibrant evaluate, or calibrant fit -m temperature and "
            "calibrant apply."
        )
    for guess in file.guesses:
        output.say(guess)
    return file


def rows_for(
    calibrators: Iterable[Calibrator], file: ScoreFile, is_chunked: bool | None
) -> ScoreFile | LoadedRows:
    """Return the rows to fit on, either as a file that is read in blocks or in memory.

    By default, a file is loaded if its scores take at most ``LOADED_BYTES``, or if a calibrator
    needs all rows.
    """
    loaded_calibrators = [calibrator for calibrator in calibrators if calibrator.needs_rows]
    if is_chunked and loaded_calibrators:
        raise ParameterError(
            "{name} needs all rows in memory, so it cannot be fitted in blocks. Pass "
            "{in_memory:True}.",
            {"name": type(loaded_calibrators[0]).__name__},
        )
    if is_chunked is None:
        is_chunked = file.n_bytes > LOADED_BYTES and not loaded_calibrators
    return file if is_chunked and not file.has_top_scores else file.load()


def read_groups(file: ScoreFile, name: str, option: str) -> list[str]:
    """Read the group of every row from the column that an option names."""
    groups = read_text(file, name, option)
    for row, group in enumerate(groups):
        if not group:
            raise ValueError(
                f"Row {row} has no value in the group column {name!r}. Fill in all groups, or "
                f"remove {option}."
            )
    return [str(group) for group in groups]


def read_text(file: ScoreFile, name: str, option: str) -> list[str | None]:
    """Read the text or integers of the column that an option names."""
    columns = list(file.reader.kinds)
    if name not in columns:
        hint = (
            f"Pass one of {shortened(columns)} to" if columns else "The file has no columns. Remove"
        )
        raise ValueError(f"{file.path} has no column {name!r}. {hint} {option}.")
    try:
        return file.reader.text_column(name)
    except ValueError:
        raise ValueError(
            f"The column {name!r} of {option} must contain strings or integers. Convert this "
            "column, or pass another column."
        ) from None


def read_model_columns(
    file: ScoreFile, model: Any, names: list[str] | None = None
) -> dict[str, AnyArray] | None:
    """Read the group columns of a fitted calibrator, or return None if it has no groups.

    ``names`` contains the names of the group columns in the file. The default is the names in the
    fit. A group may be missing.
    """
    expected = vars(model).get("by_", ())
    if names and not expected:
        raise ValueError("The model was fitted without --by. Remove --by.")
    if names and len(names) != len(expected):
        raise ValueError(
            f"The model was fitted with --by {' --by '.join(expected)}, so {len(expected)} group "
            f"columns are needed, but {len(names)} were passed. Pass --by once per group column."
        )
    pairs = zip(expected, names or expected, strict=True)
    texts = {column: read_text(file, name, "--by") for column, name in pairs}
    return {name: np.array(text, dtype=object) for name, text in texts.items()} or None


def read_columns(file: ScoreFile, names: list[str] | None) -> dict[str, AnyArray] | None:
    """Read group columns by name, or return None if there are no names."""
    return {name: np.array(read_groups(file, name, "--by")) for name in names or ()} or None


def digest_file(path: Path) -> str:
    """Return the SHA-256 digest of a file, or an empty string for a pipe."""
    if not path.is_file():  # a pipe cannot be read twice
        return ""
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
