"""Files of predictions on the command line: what is said about them, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable

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
    """Open the file of a command, and say what was guessed about it."""

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
            f"This command needs the scores of all classes, and {file.path} holds the best few of "
            "each row. Use calibrant evaluate, or calibrant fit -m temperature and calibrant apply."
        )
    for guess in file.guesses:
        output.say(guess)
    return file


def rows_for(
    calibrators: Iterable[Calibrator], file: ScoreFile, is_chunked: bool | None
) -> ScoreFile | LoadedRows:
    """The rows that calibrators are fitted on: the file, which is read in blocks, or all rows.

    If the user does not decide, a file is loaded if its scores take at most ``LOADED_BYTES``, or if
    a calibrator needs all rows.
    """
    needing = [calibrator for calibrator in calibrators if calibrator.needs_rows]
    if is_chunked and needing:
        raise ParameterError(
            "{name} needs all rows at once, and cannot be fitted in blocks. Pass {in_memory:True}.",
            {"name": type(needing[0]).__name__},
        )
    if is_chunked is None:
        is_chunked = file.n_bytes > LOADED_BYTES and not needing
    return file if is_chunked and not file.has_top_scores else file.load()


def read_groups(file: ScoreFile, name: str, option: str) -> list[str]:
    """The group of every row, from a column that an option names."""
    groups = read_text(file, name, option)
    for row, group in enumerate(groups):
        if not group:
            raise ValueError(f"row {row} has no group in column {name!r}")
    return [str(group) for group in groups]


def read_text(file: ScoreFile, name: str, option: str) -> list[str | None]:
    """The names or whole numbers of a column that an option names."""
    columns = list(file.reader.kinds)
    if name not in columns:
        has = (
            f"has columns {shortened(columns)}" if columns else "holds arrays without such columns"
        )
        raise ValueError(f"{option} names the column {name!r}: {file.path} {has}")
    try:
        return file.reader.text_column(name)
    except ValueError:
        raise ValueError(
            f"{option} {name}: the column must hold names or whole numbers, and it does not"
        ) from None


def read_columns(file: ScoreFile, names: list[str] | None) -> dict[str, AnyArray] | None:
    """Columns of groups by name; None if there are none."""
    return {name: np.array(read_groups(file, name, "--by")) for name in names or ()} or None
