"""Evaluate a file with the confidence and the correctness of answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import BoolArray
from calibrant.cli._files import open_file, read_columns, read_text
from calibrant.cli._options import TopFileArguments
from calibrant.cli._output import Output
from calibrant.io import ScoreFile
from calibrant.metrics import evaluate_answers
from calibrant.metrics._answers import is_pair

_OUTCOMES = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "correct", "right"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "incorrect", "wrong"), False),
}
"""Accepted values for correct and incorrect answers."""


def evaluate_pairs(
    data: TopFileArguments,
    confidence: str | None,
    correct: str | None,
    n_bins: int,
    by: list[str] | None,
    output: Output,
) -> Any:
    """Evaluate a column of confidences and a column of outcomes."""
    if confidence is None or correct is None:
        raise ValueError("--confidence and --correct must be used together. Pass both columns.")
    if any((data.proba, data.logits, data.log_proba, data.label, data.n_classes, data.classes)):
        raise ValueError(
            "--confidence and --correct replace score and label columns. Remove --proba, --logits, "
            "--log-proba, --label, --classes and --n-classes."
        )
    file = open_file(replace(data, proba=confidence), output, needs_label=False)
    outcomes = _read_outcomes(file, correct)
    blocks = list(file.blocks())
    weights = [block.weight for block in blocks if block.weight is not None]
    return evaluate_answers(
        outcomes,
        np.concatenate([block.scores[:, 1] for block in blocks]),
        n_bins=n_bins,
        sample_weight=np.concatenate(weights) if weights else None,
        by=read_columns(file, by),
    )


def note_pair(file: ScoreFile, output: Output) -> None:
    """Print a note if columns look like confidence and correctness, not like a binary problem."""
    if len(file.score_columns) != 1:
        return
    label, score = file.label_column, file.score_columns[0]
    if is_pair(label, score):
        output.say(
            f"note: The column {score!r} is evaluated as the probability of class 1. For "
            "confidences of answers that are correct or not, pass "
            f"--confidence {score} --correct {label}"
        )


def _read_outcomes(file: ScoreFile, name: str) -> BoolArray:
    values = read_text(file, name, "--correct")
    outcomes = [_OUTCOMES.get((value or "").strip().lower()) for value in values]
    if None in outcomes:
        row = outcomes.index(None)
        raise ValueError(
            f"Row {row} of column {name!r} is {values[row] or ''!r}. Use 1, true, yes or correct "
            "for correct answers, and 0, false, no or wrong for wrong answers."
        )
    return np.array(outcomes, dtype=bool)
