"""Collect the rows of a run in compact arrays, then build the `Run`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from calibrant._typing import IntArray
from calibrant._validation import OptionScores
from calibrant.llm._run import Run


class _Questions:
    """Questions of rows, stored as hashes. A row without a question has a question of its own.

    A dict of a million questions would need 100 MB. With 64 bits, two of a million questions have
    the same hash with a probability of about 3e-8.
    """

    def __init__(self) -> None:
        self._hashes, self._is_named = array("q"), array("b")

    def add(self, question: str | int | None) -> None:
        self._is_named.append(question is not None)
        self._hashes.append(hash(repr(question)))  # hash(-1) would equal hash(-2)

    def groups(self) -> IntArray | None:
        """Return the number of each row, or None if no question was answered several times."""
        is_named = np.array(self._is_named, dtype=bool)
        hashes = np.array(self._hashes, dtype=np.int64)[is_named]
        if len(np.unique(hashes)) == len(hashes):
            return None
        _, index, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        # Number the questions by their first row, because hashes of text differ between processes.
        first_row = np.arange(len(is_named))
        first_row[is_named] = np.flatnonzero(is_named)[index][inverse]
        return np.unique(first_row, return_inverse=True)[1]


class OptionRows:
    """Rows of multiple-choice questions, with scores of all options and the correct options."""

    def __init__(self) -> None:
        self._scores, self._counts, self._labels = array("d"), array("q"), array("q")
        self._questions = _Questions()
        self.skipped: Counter[str] = Counter()

    def add(
        self, scores: Sequence[float], right: Sequence[int], question: str | int | None = None
    ) -> None:
        """Add a question with the positions of its correct options."""
        right = [label for label in right if 0 <= label < len(scores)]
        if not right:
            self.skipped["no correct option among the options"] += 1
            return
        if max(scores) == float("-inf"):
            self.skipped["all options impossible"] += 1
            return
        if len(right) > 1:
            self.skipped["several correct options (used)"] += 1
        self._scores.extend(scores)
        self._counts.append(len(scores))
        self._labels.append(max(right, key=lambda label: scores[label]))
        self._questions.add(question)

    def build(
        self,
        task: str,
        source: str,
        path: str,
        *,
        n_missing: int = 0,
        figures: Mapping[str, float] | None = None,
    ) -> Run:
        """Return the run with all rows that were added."""
        counts = np.frombuffer(self._counts, dtype=np.int64) if self._counts else np.empty(0, int)
        options, labels = None, None
        correct, confidence = np.empty(0, bool), np.empty(0)
        if len(counts):
            table = np.full((len(counts), max(2, int(counts.max()))), -np.inf)
            table[np.arange(table.shape[1]) < counts[:, None]] = np.frombuffer(self._scores)
            labels = np.frombuffer(self._labels, dtype=np.int64).astype(np.intp)
            # The option with the highest raw score is the answer, as in the tools that wrote the
            # logs. Normalization could merge scores that differ in the last bit.
            correct = table.argmax(axis=1) == labels
            options = OptionScores(table, counts.astype(np.intp))
            confidence = options.proba.max(axis=1)
        return Run(
            task=task,
            source=source,
            correct=correct,
            confidence=confidence,
            options=options,
            labels=labels,
            groups=self._questions.groups(),
            n_missing=n_missing,
            skipped=dict(self.skipped),
            figures=dict(figures or {}),
            path=path,
        )


class AnswerRows:
    """Rows of answers, with or without a confidence."""

    def __init__(self, features: Sequence[str] = ()) -> None:
        self._correct, self._confidence = array("b"), array("d")
        self._questions = _Questions()
        self._features = {name: array("d") for name in features}
        self.n_missing = 0
        self.skipped: Counter[str] = Counter()

    def add(
        self,
        correct: bool,
        confidence: float | None,
        features: Mapping[str, float] | None = None,
        question: str | int | None = None,
    ) -> None:
        """Add an answer. An answer without a confidence is only counted."""
        if confidence is None:
            self.n_missing += 1
            return
        self._correct.append(correct)
        self._confidence.append(confidence)
        for name, values in self._features.items():
            values.append((features or {}).get(name, float("nan")))
        self._questions.add(question)

    def build(self, task: str, source: str, path: str) -> Run:
        """Return the run with all rows that were added."""
        features = {name: np.array(values) for name, values in self._features.items()}
        return Run(
            task=task,
            source=source,
            correct=np.array(self._correct, dtype=bool),
            confidence=np.array(self._confidence),
            features={name: x for name, x in features.items() if not np.isnan(x).all()},
            groups=self._questions.groups(),
            n_missing=self.n_missing,
            skipped=dict(self.skipped),
            path=path,
        )
