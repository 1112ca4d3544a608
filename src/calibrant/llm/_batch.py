"""Batch output of OpenAI-style services with log-probabilities, and a table of correct answers.

A line is ``{"custom_id": ..., "response": {"body": {"choices": [{"message": {"content": ...},
"logprobs": {"content": [{"token", "logprob", "top_logprobs": [...]}]}}]}}}``. The table has the
columns ``custom_id`` and ``target``, and optionally ``n_options`` and ``task``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

from calibrant._validation import shortened
from calibrant.llm._collect import AnswerRows, OptionRows
from calibrant.llm._files import read_records
from calibrant.llm._run import Run
from calibrant.llm._tokens import (
    LETTERS,
    LetterScores,
    answer_text,
    letter_scores,
    mean_logprob,
    token_entries,
)


class Target(NamedTuple):
    """The correct answer of a request, and the number of options if the answer is a letter."""

    text: str
    n_options: int | None = None
    task: str | None = None


Targets = Mapping[str, Target]


def is_record(record: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a line of batch output."""
    return "custom_id" in record and "response" in record


def as_targets(rows: Mapping[str, Any]) -> Targets:
    """Convert a dictionary of custom_id -> text to targets."""
    return {str(key): Target(str(value).strip()) for key, value in rows.items()}


class _TaskRows:
    def __init__(self) -> None:
        self.options, self.answers = OptionRows(), AnswerRows(("mean_logprob", "length"))
        self.n_missing = self.n_unlisted = 0


def read_file(path: Path, targets: Targets) -> list[Run]:
    """Read one batch file, and return one run per task of the table."""
    if not targets:
        raise ValueError(
            f"{path} does not contain the correct answers. Pass targets={{custom_id: target}}, or "
            "put a CSV file with the columns custom_id and target into the same folder."
        )
    most = _most_options(targets)
    tasks: dict[str, _TaskRows] = {}
    for number, record in read_records(path, skipped := AnswerRows().skipped):
        place = f"{path}, line {number}"
        target = targets.get(str(record.get("custom_id")))
        if target is None:
            skipped["no target in the table"] += 1
            continue
        rows = tasks.setdefault(target.task or path.stem, _TaskRows())
        _add(rows, record, target, most, place)
    if not tasks and skipped:
        raise ValueError(
            f"{path}: none of the requests has a correct answer. The targets have the custom_id "
            f"{shortened(list(targets), show=repr)}. Pass targets={{custom_id: target}}."
        )
    return [_build(task, rows, dict(skipped), path) for task, rows in tasks.items()]


def _most_options(targets: Targets) -> int | None:
    """Return the number of options from the last letter, or None if a target is not a letter."""
    texts = [target.text for target in targets.values()]
    if all(len(text) == 1 and text in LETTERS for text in texts):
        return max(2, *(LETTERS.index(text) + 1 for text in texts), 2)
    return None


def _add(
    rows: _TaskRows, record: Mapping[str, Any], target: Target, most: int | None, place: str
) -> None:
    choice = _choice(record)
    entries = token_entries(choice.get("logprobs"))
    text, question = answer_text(choice).strip(), str(record.get("custom_id"))
    if not entries:
        rows.n_missing += 1
        return
    if most is not None:
        letters = letter_scores(entries, target.n_options or most, place)
        _add_letters(rows, letters, target, question)
        return
    mean = mean_logprob(entries, place)
    features = {"mean_logprob": mean, "length": float(len(text))}
    rows.answers.add(text.lower() == target.text.lower(), exp(mean), features, question)


def _add_letters(
    rows: _TaskRows, letters: LetterScores | None, target: Target, question: str
) -> None:
    if letters is None:
        rows.n_missing += 1
        return
    rows.n_unlisted += letters.has_unlisted
    rows.options.add(letters.scores, [LETTERS.index(target.text)], question)


def _choice(record: Mapping[str, Any]) -> Mapping[str, Any]:
    response = record.get("response")
    body = response.get("body") if isinstance(response, Mapping) else None
    choices = body.get("choices") if isinstance(body, Mapping) else None
    is_list = isinstance(choices, list) and choices and isinstance(choices[0], Mapping)
    return choices[0] if is_list and choices else {}


def _build(task: str, rows: _TaskRows, skipped: dict[str, int], path: Path) -> Run:
    if rows.n_unlisted:
        skipped["letter not among the top tokens (bounded)"] = rows.n_unlisted
    run = rows.options.build(task, "options (letters)", str(path), n_missing=rows.n_missing)
    if not len(run):
        rows.answers.n_missing += rows.n_missing
        rows.answers.skipped.update(skipped)
        return rows.answers.build(task, "mean token probability", str(path))
    rows.options.skipped.update(skipped)
    return rows.options.build(task, "options (letters)", str(path), n_missing=rows.n_missing)
