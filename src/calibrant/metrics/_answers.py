"""Evaluate stated confidences of answers that are marked as correct or incorrect."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, overload

import numpy as np

from calibrant._data.group_columns import as_columns, cut_groups
from calibrant._kernels.simplex import EPS
from calibrant._output.numbers import format_number
from calibrant._output.results import as_frame, html_table
from calibrant._typing import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import (
    as_array,
    as_labels,
    check_count,
    check_same_length,
    check_scores,
    check_weight,
    raise_if_missing,
    warn_data,
)
from calibrant.binning import UniformBins, bin_table
from calibrant.guarantees import clopper_pearson
from calibrant.metrics.groups import GroupedEvaluation, GroupEvaluation, check_level
from calibrant.metrics.ks import claims_ks
from calibrant.notions import as_notion

_CORRECT_NAMES = frozenset({"correct", "is_correct", "was_correct", "answer_correct"})
_CONFIDENCE_NAMES = frozenset({"confidence", "stated_confidence", "verbal_confidence"})


@dataclass(frozen=True)
class AnswerEvaluation:
    """Evaluation of stated confidences. ``str()`` returns a table.

    Attributes
    ----------
    n_samples : float
        Sum of the weights, or the number of rows if there are no weights.
    accuracy : float
        Share of correct answers.
    mean_confidence : float
        Mean of the confidences.
    gap : float
        Mean confidence minus accuracy. A positive gap means overconfidence.
    gap_low, gap_high : float
        Ends of the confidence interval of the gap. The interval assumes independent rows.
    log_loss : float
        Mean negative log-likelihood of correct and wrong answers, in nats.
    brier_score : float
        Mean squared difference between confidence and outcome, between 0 and 1.
    conf_ece : float
        Expected calibration error in equal-width bins. Sampling noise biases the error upward.
    mce : float
        Maximum calibration error of the same bins.
    ks : float
        Kolmogorov-Smirnov calibration error.

    See Also
    --------
    evaluate_answers : Compute the evaluation.
    """

    n_samples: float
    accuracy: float
    mean_confidence: float
    gap: float
    gap_low: float
    gap_high: float
    log_loss: float
    brier_score: float
    conf_ece: float
    mce: float
    ks: float

    @property
    def is_binary(self) -> bool:
        """Always False, because the gap refers to the confidence, as for multiclass problems."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers."""
        return asdict(self)

    def to_frame(self) -> Any:
        """Return a pandas frame with one row."""
        return as_frame(self.to_dict())

    def _rows(self) -> list[tuple[str, str]]:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return [
            (_TITLES[name], f"{value:,.0f}" if name == "n_samples" else format_number(value))
            for name, value in values.items()
        ]

    def _repr_html_(self) -> str:
        return html_table(self._rows())

    def __str__(self) -> str:
        width = max(map(len, _TITLES.values()))
        return "\n".join(f"{title:<{width}}  {value:>12}" for title, value in self._rows())


_TITLES = {
    "n_samples": "rows",
    "accuracy": "accuracy",
    "mean_confidence": "mean confidence",
    "gap": "gap (mean confidence - accuracy)",
    "gap_low": "gap, lower end of the interval",
    "gap_high": "gap, upper end of the interval",
    "log_loss": "log-loss",
    "brier_score": "Brier score",
    "conf_ece": "ECE",
    "mce": "maximum calibration error (MCE)",
    "ks": "KS error",
}


@overload
def evaluate_answers(
    correct: LabelsLike,
    confidence: ScoresLike,
    *,
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    by: None = None,
    level: float = 0.95,
) -> AnswerEvaluation: ...


@overload
def evaluate_answers(
    correct: LabelsLike,
    confidence: ScoresLike,
    *,
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    by: Any,
    level: float = 0.95,
) -> GroupedEvaluation: ...


def evaluate_answers(
    correct: LabelsLike,
    confidence: ScoresLike,
    *,
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    by: Any = None,
    level: float = 0.95,
) -> AnswerEvaluation | GroupedEvaluation:
    """Evaluate stated confidences of answers that are marked as correct or incorrect.

    Use this function for language models that state a confidence, for object detectors and for
    human forecasts. Each row has one number, which is the probability that the answer of the row is
    correct. Do not pass confidences to `evaluate`, which expects probabilities of classes.
    `evaluate` would treat an incorrect answer with confidence 0.3 as a correct prediction with
    confidence 0.7. `evaluate` warns if the labels are booleans.

    Parameters
    ----------
    correct : array of shape (n,)
        Whether the answer was correct, as booleans or as 0 and 1.
    confidence : array of shape (n,)
        Stated probability that the answer is correct, between 0 and 1.
    n_bins : int
        Number of equal-width bins of the binned errors.
    sample_weight : weights of shape (n,), optional
        Row weights. The scale of the weights does not matter. Intervals use the effective number of
        rows, ``w.sum() ** 2 / (w ** 2).sum()``.
    by : groups of shape (n,), or dict or data frame of such columns, optional
        Columns that define groups. Each group is evaluated, and the intervals hold jointly for all
        groups.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    AnswerEvaluation or GroupedEvaluation
        The result is a `GroupedEvaluation` if ``by`` is passed.

    See Also
    --------
    evaluate : Evaluate probabilities of classes.

    Examples
    --------
    >>> result = evaluate_answers([True, False, True, False], [0.9, 0.9, 0.8, 0.8])
    >>> result.accuracy, round(result.gap, 3)
    (0.5, 0.35)
    >>> groups = evaluate_answers([0] * 100, [0.3] * 100, by=["math"] * 100)
    >>> groups["math"].finding
    'overconfident'
    """
    check_level(level)
    pairs = _check_pairs(correct, confidence, sample_weight)
    overall = pairs.evaluate(check_count(n_bins, "n_bins"), 1 - level)
    if by is None:
        return overall
    return _evaluate_groups(pairs, as_columns(by), overall, n_bins, level)


def _evaluate_groups(
    pairs: _Pairs,
    columns: dict[str, AnyArray],
    overall: AnswerEvaluation,
    n_bins: int,
    level: float,
) -> GroupedEvaluation:
    """Evaluate each group that the columns define, with joint intervals."""
    for name, column in columns.items():
        check_same_length(**{"correct": pairs.correct, f"by {name!r}": column})
    groups = {name: rows for name, rows in cut_groups(columns).items() if pairs.weight[rows].any()}
    alpha = (1 - level) / len(groups)
    evaluations = (
        _as_group(name, pairs.subset(rows).evaluate(n_bins, alpha)) for name, rows in groups.items()
    )
    return GroupedEvaluation(tuple(columns), tuple(evaluations), overall, level)


def is_pair(label: str | None, score: str | None) -> bool:
    """Return whether column names suggest a pair for `evaluate_answers`."""
    return str(label).lower() in _CORRECT_NAMES or str(score).lower() in _CONFIDENCE_NAMES


def warn_if_pair(y_true: Any, y_prob: Any, classes: Any = None) -> None:
    """Warn if the arguments look like (correct, confidence) of `evaluate_answers`.

    The function checks the names of columns. The function also warns about labels True and False
    with one score per row. This warning is omitted if ``classes`` declares a binary problem.
    """
    names = [getattr(data, "name", None) for data in (y_true, y_prob)]
    if is_pair(*names):
        text = " and ".join(repr(name) for name in names if name is not None)
        warn_data(
            f"The name {text} suggests confidences of answers that were correct or not, but the "
            "scores are evaluated as probabilities of class 1. For confidences, call "
            "calibrant.evaluate_answers(correct, confidence)."
        )
    elif classes is None and _has_boolean_labels(y_true) and len(np.shape(y_prob)) == 1:
        warn_data(
            "The labels are True or False, and there is one score per row. The scores are "
            "evaluated as probabilities of True, so a score of 0.3 with the label False counts as "
            "a correct prediction with confidence 0.7. If the scores are confidences of answers, "
            "and the labels mark correct answers, call "
            "calibrant.evaluate_answers(correct, confidence). Otherwise pass "
            "classes=[False, True]."
        )


def _has_boolean_labels(y_true: Any) -> bool:
    dtype = getattr(y_true, "dtype", None)
    if dtype is not None:
        # pandas and polars have boolean types whose names differ from NumPy's.
        return str(dtype).lower() in ("bool", "boolean")
    return isinstance(y_true, list | tuple) and all(isinstance(label, bool) for label in y_true)


class _Pairs(NamedTuple):
    """Checked outcomes, confidences and weights, (n,) each."""

    correct: BoolArray
    confidence: FloatArray
    weight: FloatArray

    def subset(self, rows: IntArray) -> _Pairs:
        """Select rows."""
        return _Pairs(self.correct[rows], self.confidence[rows], self.weight[rows])

    def evaluate(self, n_bins: int, alpha: float) -> AnswerEvaluation:
        """Compute all metrics, with an interval of level 1 - alpha."""
        correct, confidence, weight = self
        # The binary event of each row is a correct answer (class 1).
        claims = as_notion("confidence").reported(
            confidence[:, None],
            np.ones((len(weight), 1), np.intp),
            correct.astype(np.intp),
            weight,
            2,
        )
        table, total = bin_table(claims, bins=UniformBins(n_bins)), float(weight.sum())
        accuracy, mean = float(weight @ correct / total), float(weight @ confidence / total)
        # Kish's effective number of rows, which does not depend on the scale of the weights.
        n_effective = np.array([total**2 / float(weight @ weight)])
        low, high = clopper_pearson(accuracy * n_effective, n_effective, alpha)
        likelihood = np.where(correct, confidence, 1 - confidence)
        return AnswerEvaluation(
            n_samples=int(total) if total == int(total) else total,
            accuracy=accuracy,
            mean_confidence=mean,
            gap=mean - accuracy,
            gap_low=mean - float(high[0]),
            gap_high=mean - float(low[0]),
            log_loss=-float(weight @ np.log(np.maximum(likelihood, EPS)) / total),
            brier_score=float(weight @ (confidence - correct) ** 2 / total),
            conf_ece=table.error(),
            mce=table.error(norm=np.inf),
            ks=claims_ks(claims),
        )


def _check_shapes(outcome: AnyArray, score: AnyArray) -> None:
    """Raise unless there is one confidence per row, and at least one row."""
    if score.ndim != 1 or outcome.ndim != 1:
        raise ValueError(
            f"evaluate_answers needs one confidence per row, got arrays of shape "
            f"{outcome.shape} and {score.shape}. For probabilities of classes, call "
            f"calibrant.evaluate(y_true, y_prob)."
        )
    check_same_length(correct=outcome, confidence=score)
    if not len(score):
        raise ValueError(
            "evaluate_answers needs at least one row, got 0 rows. Pass rows with answers."
        )


def _check_pairs(correct: Any, confidence: Any, sample_weight: Any) -> _Pairs:
    outcome, score = as_array(correct), as_array(confidence)
    _check_shapes(outcome, score)
    raise_if_missing(correct, outcome)
    is_correct = as_outcomes(outcome)
    checked = check_scores(score, inputs="proba")[:, 1].astype(np.float64)
    return _Pairs(is_correct, checked, check_weight(sample_weight, len(checked)))


def as_outcomes(values: AnyArray) -> BoolArray:
    """Convert outcomes to booleans, or raise if they are not 0 and 1, or True and False."""
    values = as_labels(values)
    is_object = values.dtype.kind == "O"
    has_text = is_object and any(isinstance(value, str) for value in values.tolist())
    if values.dtype.kind in "SU" or has_text:
        raise ValueError(
            "correct must be 0 or 1, or True or False, got strings. Compare predictions and labels "
            "first, for example with correct = predictions == labels."
        )
    if not np.isin(values, (0, 1)).all():
        wrong = values[~np.isin(values, (0, 1))][0]
        raise ValueError(
            f"correct must be 0 or 1, or True or False, got {wrong}. Compare predictions and "
            f"labels first, for example with correct = predictions == labels."
        )
    return values.astype(bool)


def _as_group(name: str, evaluation: AnswerEvaluation) -> GroupEvaluation:
    mean = evaluation.mean_confidence
    return GroupEvaluation(
        name=name,
        evaluation=evaluation,
        gap=evaluation.gap,
        gap_low=evaluation.gap_low,
        gap_high=evaluation.gap_high,
        accuracy_low=mean - evaluation.gap_high,
        accuracy_high=mean - evaluation.gap_low,
    )
