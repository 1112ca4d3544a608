"""The lowest confidence above which answers are rarely wrong, with a guarantee for new answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._output.numbers import format_number, format_percent
from calibrant._output.results import AsText
from calibrant._validation import check_share
from calibrant.llm._run import Run

DELTA = 0.1
"""Probability that the guarantee fails, as in `calibrant.decisions.SelectiveClassifier`."""


@dataclass(frozen=True)
class AnswerThreshold(AsText):
    """A confidence above which answers are given, with its guarantee.

    Attributes
    ----------
    threshold : float or None
        Give answers with a confidence above this threshold. The threshold is None if no answer can
        be given, and -inf if all answers can be given.
    risk : float
        Maximum share of wrong answers among the given answers.
    delta : float
        Maximum probability, over the draw of the rows, that the share of wrong answers exceeds the
        risk.
    coverage : float
        Share of the rows that are answered.
    n_samples : int
        Number of independent rows in the proof of the threshold.

    See Also
    --------
    calibrant.decisions.SelectiveClassifier : Answer or abstain with a classifier.
    """

    threshold: float | None
    risk: float
    delta: float
    coverage: float
    n_samples: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON.

        A threshold of -inf becomes 0.
        """
        values = asdict(self)
        values["threshold"] = None if self.threshold is None else max(self.threshold, 0.0)
        return values

    def __str__(self) -> str:
        if self.threshold is None:
            return (
                f"No threshold could be proved. The {self.n_samples:,} rows do not suffice to "
                f"prove an error rate of at most {format_percent(self.risk)} at any threshold."
            )
        rule = (
            "Give all answers"
            if self.threshold == -np.inf
            else f"Give answers with a confidence above {format_number(self.threshold)}"
        )
        return (
            f"{rule}. With {format_percent(1 - self.delta)} confidence, at most "
            f"{format_percent(self.risk)} of these answers are wrong. "
            f"{format_percent(self.coverage)} of the questions are answered."
        )


def find_answer_threshold(run: Run, risk: float, delta: float = DELTA) -> AnswerThreshold:
    r"""Find the lowest confidence above which at most a given share of the answers is wrong.

    Parameters
    ----------
    run : Run
        Answers with confidences, which were not used to fit a calibrator.
    risk : float
        Maximum accepted share of wrong answers among the given answers.
    delta : float, default 0.1
        Probability that the guarantee fails.

    Returns
    -------
    AnswerThreshold

    See Also
    --------
    calibrant.decisions.SelectiveClassifier : Answer or abstain with a classifier.

    Notes
    -----
    The proof of `calibrant.decisions.SelectiveClassifier` holds for every distribution of
    independent questions. If a question was answered several times, the function uses one random
    answer.
    """
    # Imported here, because only thresholds need this subpackage.
    from calibrant.decisions._threshold import find_threshold

    check_share(risk, "risk")
    check_share(delta, "delta")
    if not isinstance(run, Run) or not len(run):
        raise ValueError(
            f"A threshold needs one Run with rows, got {run!r:.80}. For example, pass runs['task']."
        )
    rng = np.random.default_rng(0)
    rows = np.arange(len(run))
    if run.groups is not None:
        shuffled = rng.permutation(len(run))
        rows = shuffled[np.unique(run.groups[shuffled], return_index=True)[1]]
    confidence, wrong = run.confidence[rows], 1.0 - run.correct[rows]
    result = find_threshold(confidence, wrong, risk, delta, rng)
    return AnswerThreshold(
        threshold=None if result.n_answered == 0 else float(result.value),
        risk=risk,
        delta=delta,
        coverage=result.n_answered / len(rows),
        n_samples=len(rows),
    )
