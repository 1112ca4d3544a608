"""Logs of Inspect: ``.eval`` archives, and logs in JSON format.

An archive contains ``header.json`` and one member ``samples/{id}_epoch_{n}.json`` per answer. A
score is "C", "I", "P" or "N", a number, a boolean, or a dictionary such as ``{"score": "C",
"confidence": 85}``. NaN and null mean that the answer was not scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import exp, isnan
from pathlib import Path
from typing import Any

from calibrant.llm._archive import Archive, is_archive
from calibrant.llm._collect import AnswerRows, OptionRows
from calibrant.llm._figures import hle_figures
from calibrant.llm._files import as_float, parse_json, read_document
from calibrant.llm._run import Run
from calibrant.llm._stated import parse_confidence
from calibrant.llm._tokens import LETTERS, answer_text, letter_scores, mean_logprob, token_entries

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's value of each grade: correct, incorrect, partially correct, no answer."""

_DEFAULT_CONFIDENCE = 100
"""Value that the scorers of HLE store if the model stated no confidence."""

FEATURES = ("mean_logprob", "length")


def is_log(document: Any) -> bool:
    """Return whether a JSON document is a log of Inspect."""
    return isinstance(document, Mapping) and "eval" in document and "samples" in document


def read_log(path: Path) -> list[Run]:
    """Read a log, and return one run per scorer."""
    if not is_archive(path):
        document = read_document(path)
        entries = document["samples"] or []
        if not isinstance(entries, list):
            raise ValueError(f"{path} is not an Inspect log, because 'samples' is not a list.")
        samples = [(f"{path}, sample {i}", s) for i, s in enumerate(entries)]
        return _runs(path, _task(document), iter(samples))
    with Archive(path) as archive:
        if "header.json" not in archive:
            raise ValueError(
                f"{path} has no member 'header.json', so it is not a finished Inspect log. "
                "Finish the evaluation with inspect eval-retry."
            )
        header = parse_json(archive.read("header.json"), f"{path}, member 'header.json'")
        return _runs(path, _task(header), _samples(archive))


def _samples(archive: Archive) -> Iterator[tuple[str, Any]]:
    for name in archive.names("samples/"):
        place = f"{archive.path}, member {name!r}"
        yield place, parse_json(archive.read(name), place)


def _task(header: Any) -> str:
    evaluation = header.get("eval") if isinstance(header, Mapping) else None
    return str(evaluation.get("task", "task")) if isinstance(evaluation, Mapping) else "task"


class _ScorerRows:
    """The rows of one scorer, by source of confidence."""

    def __init__(self) -> None:
        self.stated, self.tokens = AnswerRows(FEATURES), AnswerRows(FEATURES)
        self.options = OptionRows()
        self.n_stated = self.n_default = self.n_unscored = self.n_unlisted = 0
        self.n_answers = 0

    def add(self, sample: Mapping[str, Any], score: Mapping[str, Any], place: str) -> None:
        """Add one answer to the rows of each available source of confidence."""
        correct = _is_correct(score.get("value"), place)
        if correct is None:
            self.n_unscored += 1
            return
        self.n_answers += 1
        entries, length = _answer(sample)
        features = {"length": float(length)} if length else {}
        if entries:
            features["mean_logprob"] = mean_logprob(entries, place)
        question = str(sample.get("id"))
        confidence, is_default = _stated(score, place)
        self.n_stated += confidence is not None
        self.n_default += is_default
        self.stated.add(correct, confidence, features, question)
        token = exp(features["mean_logprob"]) if entries else None
        self.tokens.add(correct, token, features, question)
        self._add_options(sample, entries, question, place)

    def _add_options(
        self, sample: Mapping[str, Any], entries: Any, question: str, place: str
    ) -> None:
        choices, target = sample.get("choices"), sample.get("target")
        right = [target] if isinstance(target, str) else target
        if not isinstance(choices, list) or not entries or not isinstance(right, list):
            return
        letters = letter_scores(entries, len(choices), place)
        if letters is not None and 2 <= len(choices) <= len(LETTERS):
            self.n_unlisted += letters.has_unlisted
            places = [LETTERS.find(str(label)) for label in right]
            self.options.add(letters.scores, places, question)

    def build(self, task: str, path: str) -> Run:
        """Return the run of the first available source: stated, options or tokens."""
        unscored = Counter({"unscored": self.n_unscored} if self.n_unscored else {})
        if self.n_stated:
            return self._build_stated(task, path, unscored)
        options = self.options.build(task, "options (letters)", path)
        if len(options):
            if self.n_unlisted:
                unscored["letter not among the top tokens (bounded)"] = self.n_unlisted
            self.options.skipped.update(unscored)
            missing = self.n_answers - len(options)
            return self.options.build(task, "options (letters)", path, n_missing=missing)
        self.tokens.skipped.update(unscored)
        return self.tokens.build(task, "mean token probability", path)

    def _build_stated(self, task: str, path: str, unscored: Mapping[str, int]) -> Run:
        self.stated.skipped.update(unscored)
        if self.n_default:
            self.stated.skipped["confidence 100, stated or missing (used)"] += self.n_default
        run = self.stated.build(task, "stated", path)
        return replace(run, figures=hle_figures(run.correct, run.confidence))


def _runs(path: Path, task: str, samples: Iterator[tuple[str, Any]]) -> list[Run]:
    scorers: dict[str, _ScorerRows] = {}
    for place, sample in samples:
        scores = sample.get("scores") if isinstance(sample, Mapping) else None
        if scores is None:
            scores = {}
        if not isinstance(scores, Mapping):
            raise ValueError(f"{place}: 'scores' is not a JSON object.")
        for name, score in scores.items():
            if isinstance(score, Mapping):
                scorers.setdefault(name, _ScorerRows()).add(sample, score, place)
    names = {name: task if len(scorers) == 1 else f"{task}/{name}" for name in scorers}
    return [rows.build(names[name], str(path)) for name, rows in scorers.items()]


def _is_correct(value: Any, place: str) -> bool | None:
    """Return whether an answer is correct, or None if it was not scored."""
    if isinstance(value, Mapping):
        value = value.get("score")
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    if isinstance(value, str) and value in _GRADES:
        return _GRADES[value] == 1.0
    if isinstance(value, str) and value.lower() in ("yes", "true", "no", "false"):
        return value.lower() in ("yes", "true")
    if isinstance(value, list):
        return None
    return as_float(value, place, "a score") == 1.0


def _stated(score: Mapping[str, Any], place: str) -> tuple[float | None, bool]:
    """Return the stated confidence of an answer, and whether HLE may have filled in a missing
    value.
    """
    value = score.get("value")
    if isinstance(value, Mapping) and "confidence" in value:
        if value["confidence"] is None:
            return None, False
        stated = as_float(value["confidence"], place, "a confidence")
        # The metric of Inspect also clips this score, which is a percentage, to 0 and 100.
        return min(max(stated, 0.0), 100.0) / 100.0, stated == _DEFAULT_CONFIDENCE
    metadata = score.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("confidence"), str | float | int):
        return parse_confidence(metadata["confidence"]), False
    return None, False


def _answer(sample: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    """Return tokens of the answer with log-probabilities, and its length in characters."""
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return [], 0
    return token_entries(choices[0].get("logprobs")), len(answer_text(choices[0]))
