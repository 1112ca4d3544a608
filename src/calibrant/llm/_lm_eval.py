"""Sample files of lm-evaluation-harness (``samples_{task}_{date}.jsonl``).

Versions 0.4.0 to 0.4.13 are supported. In multiple-choice lines, ``filtered_resps`` contains a pair
of log-probability and "is greedy" per option, as text or as numbers. The second entry does not
state whether the option is correct. ``arguments`` is a dictionary in newer files and a list of
pairs in older files. Version 0.4.0 writes one JSON list instead of lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.llm._collect import AnswerRows, OptionRows
from calibrant.llm._files import as_float, read_document, read_records
from calibrant.llm._run import Run

READINGS = {"sum": "acc", "char": "acc_norm", "byte": "acc_bytes", "mutual": "acc_mutual_info"}
"""The metric of the harness that chooses the option by this reading."""

_CORRECT_METRICS = ("exact_match", "acc", "acc_norm", "pass@1", "f1")
"""Metrics of generated answers that are 0 or 1, in order of preference."""

_INDEX = r"-?\d{1,9}"
_INDICES = rf"\[\s*(?:{_INDEX}\s*,\s*)*(?:{_INDEX}\s*)?\]"
"""Targets that are the position of the correct option, or a list of positions."""

_NAME = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d.+-]+)?$")


class Reading(NamedTuple):
    """Rule that computes option scores from log-probabilities, and the delimiter before options."""

    kind: str
    delimiter: str = " "


def is_record(record: dict[str, Any]) -> bool:
    """Return whether a JSON object is a line of a sample file."""
    return "doc_id" in record and ("filtered_resps" in record or "resps" in record)


def task_of(path: Path) -> str:
    """Return the task in the name of a sample file."""
    match = _NAME.match(path.stem)
    return match["task"] if match else path.stem


def read_delimiters(path: Path) -> dict[str, str]:
    """Read the target delimiter of each task from a ``results_*.json`` file."""
    document = read_document(path)
    configs = document.get("configs") if isinstance(document, dict) else None
    if not isinstance(configs, dict):
        return {}
    return {
        task: config["target_delimiter"]
        for task, config in configs.items()
        if isinstance(config, dict) and isinstance(config.get("target_delimiter"), str)
    }


def read_file(path: Path, reading: Reading) -> Run:
    """Read one sample file."""
    skipped: Counter[str] = Counter()
    options, answers = OptionRows(), AnswerRows()
    first_filter: str | None = None
    metric_total, metric_lines = 0.0, 0
    for number, record in _records(path, skipped):
        name = str(record.get("filter", "none"))
        first_filter = name if first_filter is None else first_filter
        if name != first_filter:
            skipped[f"other filter {name!r}"] += 1
            continue
        place = f"{path}, line {number}"
        responses = record.get("filtered_resps", record.get("resps"))
        if isinstance(responses, list) and _has_options(responses):
            question = record.get("doc_id")
            is_named = isinstance(question, str | int)
            row = _option_row(record, responses, reading, place)
            options.add(*row, question if is_named else None)
        else:
            answers.add(_is_correct(record), None)
        metric = _number(record.get(READINGS[reading.kind]))
        if not isnan(metric):
            metric_total, metric_lines = metric_total + metric, metric_lines + 1
    options.skipped.update(skipped)
    # The harness also prints the mean over all lines of the filter.
    figures = {READINGS[reading.kind]: metric_total / metric_lines} if metric_lines else {}
    return options.build(
        task_of(path),
        f"options ({reading.kind})",
        str(path),
        n_missing=answers.n_missing,
        figures=figures,
    )


def _records(path: Path, skipped: Counter[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        is_list = file.read(64).lstrip()[:1] == b"["
    if not is_list:
        yield from read_records(path, skipped)
        return
    for number, record in enumerate(read_document(path), 1):
        if not isinstance(record, dict):
            raise ValueError(f"{path}, entry {number} is not a JSON object.")
        yield number, record


def _has_options(responses: list[Any]) -> bool:
    """Return whether responses are pairs of a log-probability and a flag."""
    if len(responses) < 2:
        return False
    first = responses[0]
    # `resps` has one more level, because it lists repetitions of a request.
    if isinstance(first, list) and len(first) == 1 and isinstance(first[0], list):
        first = first[0]
    return isinstance(first, list) and len(first) == 2 and _is_flag(first[1])


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or value in ("True", "False")


def _option_row(
    record: dict[str, Any], responses: list[Any], reading: Reading, place: str
) -> tuple[list[float], list[int]]:
    """Return scores of the options of a line, and the positions of the correct options."""
    if not all(isinstance(pair, list) and pair for pair in responses):
        raise ValueError(f"{place}: responses must be pairs of a log-probability and a flag.")
    pairs = [pair[0] if isinstance(pair[0], list) else pair for pair in responses]
    sums = [as_float(pair[0], place, "a log-probability") for pair in pairs]
    is_doubled = "acc_mutual_info" in record and len(sums) % 2 == 0
    needs_text = is_doubled or reading.kind in ("char", "byte")
    requests = _requests(record.get("arguments"), place) if needs_text else []
    unconditional: list[float] = []
    if is_doubled:
        sums, unconditional, requests = _halves(sums, requests)
    texts = [_strip(request[1], reading.delimiter) for request in requests]
    scores = _scores(sums, unconditional, texts, reading.kind, place)
    right = _right_options(record, len(sums), place, reading)
    return scores, right or _right_by_accuracy(record, sums)


def _halves(
    sums: list[float], requests: list[tuple[str, str]]
) -> tuple[list[float], list[float], list[tuple[str, str]]]:
    """Separate conditional and unconditional log-probabilities.

    Newer versions append the unconditional log-probabilities, and older versions alternate between
    both types. The context of unconditional log-probabilities is empty.
    """
    half = len(sums) // 2
    empty = [place for place, request in enumerate(requests) if request[0] == ""]
    if len(empty) != half:
        empty = list(range(half, len(sums)))
    kept = [place for place in range(len(sums)) if place not in set(empty)]
    texts = [requests[place] for place in kept] if requests else []
    return [sums[place] for place in kept], [sums[place] for place in empty], texts


def _scores(
    sums: list[float], unconditional: list[float], texts: list[str], kind: str, place: str
) -> list[float]:
    if kind == "sum":
        return sums
    if kind == "mutual":
        if not unconditional:
            raise ValueError(
                f"{place} has no unconditional log-probabilities. Run the task with the metric "
                "acc_mutual_info, or pass reading='sum'."
            )
        return [a - b for a, b in zip(sums, unconditional, strict=True)]
    lengths = _lengths(texts, len(sums), kind, place)
    return [total / length for total, length in zip(sums, lengths, strict=True)]


def _lengths(texts: list[str], n_options: int, kind: str, place: str) -> list[int]:
    """Return the number of characters or bytes of each option."""
    if len(texts) != n_options or len(set(texts)) < len(texts) or not all(texts):
        raise ValueError(
            f"{place} does not contain the texts of the options, but reading={kind!r} needs "
            "their lengths. Pass reading='sum'."
        )
    return [len(text if kind == "char" else text.encode()) for text in texts]


def _requests(arguments: Any, place: str) -> list[tuple[str, str]]:
    """Return context and continuation of each request, in their order."""
    entries: Sequence[Any] = arguments if isinstance(arguments, list) else []
    if isinstance(arguments, dict):
        entries = [arguments.get(f"gen_args_{number}") for number in range(len(arguments))]
    pairs = []
    for entry in entries:
        texts = [entry.get("arg_0"), entry.get("arg_1")] if isinstance(entry, dict) else entry
        if not isinstance(texts, list) or len(texts) < 2 or not isinstance(texts[1], str):
            raise ValueError(
                f"{place}: 'arguments' must be pairs of context and continuation. Write the log "
                "again with --log_samples."
            )
        pairs.append((str(texts[0]), texts[1]))
    return pairs


def _strip(text: str, delimiter: str) -> str:
    return text[len(delimiter) :] if delimiter and text.startswith(delimiter) else text


def _right_options(
    record: dict[str, Any], n_options: int, place: str, reading: Reading
) -> list[int]:
    """Return positions of the correct options from an index, a list of indices or a text."""
    target = record.get("target")
    value = _parse_target(target)
    if isinstance(value, bool) or not isinstance(value, int | list):
        texts = [
            _strip(request[1], reading.delimiter)
            for request in _requests(record.get("arguments"), place)[:n_options]
        ]
        # If the options are in the context, all continuations are equal and identify no option.
        is_common = len(set(texts)) < len(texts)
        return [] if is_common else [i for i, text in enumerate(texts) if text == target]
    right = value if isinstance(value, list) else [value]
    return [label for label in right if isinstance(label, int)]


def _parse_target(target: Any) -> Any:
    """Return the index or the list of indices in a text, or the target itself."""
    text = target.strip() if isinstance(target, str) else ""
    if re.fullmatch(_INDEX, text):
        return int(text)
    is_list = re.fullmatch(_INDICES, text)
    return [int(index) for index in re.findall(_INDEX, text)] if is_list else target


def _right_by_accuracy(record: dict[str, Any], sums: list[float]) -> list[int]:
    """Return the correct option according to ``acc``, if the target identifies no option.

    Tasks with options in the context, such as winogrande, log the common continuation as target.
    """
    accuracy, best = _number(record.get("acc")), sums.index(max(sums))
    if accuracy == 1.0:
        return [best]
    return [1 - best] if accuracy == 0.0 and len(sums) == 2 else []


def _is_correct(record: dict[str, Any]) -> bool:
    """Return whether a generated answer is correct, by the first available metric of the list."""
    for name in _CORRECT_METRICS:
        if name in record:
            return _number(record[name]) == 1.0
    return False


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float)
    return float(value) if is_number else float("nan")
