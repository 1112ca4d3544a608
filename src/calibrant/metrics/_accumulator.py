"""Evaluate predictions in batches, and merge the results of several machines."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from calibrant._data.read import as_sample
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import CACHE_BLOCK
from calibrant._output.numbers import format_number
from calibrant._output.results import as_frame, html_table
from calibrant._typing import (
    AnyArray,
    Inputs,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import check_classes, check_count, check_inputs
from calibrant.metrics._sums import EvaluationSums, KeptScores, SumRule, state_of, sums_of
from calibrant.metrics.registry import METRICS

SCHEMA = "calibrant.metric-accumulator/2"

KEEP_TOP = 4_000_000
"""Maximum number of rows whose confidence is kept for the KS error. These rows take 68 MB."""

_ADDING = Lock()
"""Lock for adding sums. All accumulators share one lock, because an object that contains a lock
cannot be pickled. """

_SIZES = {"n_samples": "rows", "n_classes": "classes"}


@dataclass(frozen=True)
class Evaluation:
    """Accuracy, proper scores and calibration errors of a set of predictions.

    `evaluate` and `MetricAccumulator.compute` return an `Evaluation`. ``str()`` returns a table.
    Each value equals the metric with the same name in `calibrant.metrics`.

    Attributes
    ----------
    n_samples : float
        Sum of the weights, or the number of rows if there are no weights.
    n_classes : int
        Number of classes.
    accuracy : float
        Share of rows whose predicted class is correct. Higher is better.
    log_loss : float
        Mean negative log-probability of the true class, in nats. Lower is better.
    brier_score : float
        Mean squared error, summed over classes, between 0 and 2. For binary problems, this score is
        twice the usual binary Brier score. Lower is better.
    conf_ece, cw_ece, tl_ece : float
        Binned calibration errors of the confidence, of each class, and of the confidence per
        predicted class. These errors are never negative, so sampling noise biases them upward.
        Lower is better.
    mce : float
        Maximum calibration error (MCE) over the bins of ``conf_ece``. Lower is better.
    ks : float or None
        Kolmogorov-Smirnov error of the confidence. Lower is better. The value is None if there were
        more rows than ``keep_top`` of the `MetricAccumulator`.
    confidence_on_errors : float
        Mean confidence on incorrect predictions. This mean is also positive for calibrated models.
        To find out whether a model is overconfident, compare its mean confidence with its accuracy.
    doubt_on_correct : float
        Mean of 1 - confidence on correct predictions.
    sharpness : float
        Variance of the confidence, scaled to a maximum of n / (n - 1). Higher is better.

    See Also
    --------
    evaluate : Compute the evaluation.
    MetricAccumulator : Compute the evaluation in batches.
    """

    n_samples: float
    n_classes: int
    accuracy: float
    log_loss: float
    brier_score: float
    conf_ece: float
    cw_ece: float
    tl_ece: float
    mce: float
    ks: float | None
    confidence_on_errors: float
    doubt_on_correct: float
    sharpness: float

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return self.n_classes == 2

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers."""
        return asdict(self)

    def to_frame(self) -> Any:
        """Return a pandas frame with one row."""
        return as_frame(self.to_dict())

    def _repr_html_(self) -> str:
        items = [(entry.name, getattr(self, entry.name)) for entry in fields(self)]
        return html_table([title(name), _shown(name, value)] for name, value in items)

    def __str__(self) -> str:
        width = max(len(title(entry.name)) for entry in fields(self))
        lines = [
            f"{title(entry.name):<{width}}  {_shown(entry.name, getattr(self, entry.name)):>12}"
            for entry in fields(self)
        ]
        return "\n".join(lines)


def title(name: str) -> str:
    """Return the title of a field of an `Evaluation` in tables."""
    return _SIZES[name] if name in _SIZES else METRICS[name].title


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "not computed"
    return f"{value:,.0f}" if name in _SIZES else format_number(value)


class MetricAccumulator:
    """Evaluate data that arrives in batches.

    Call `update` for each batch and `compute` at the end. Accumulators of several machines can be
    sent as JSON and merged. Several threads can update the same accumulator. The result equals the
    result of `calibrant.evaluate` on all rows.

    Parameters
    ----------
    n_bins : int, default 15
        Number of equal-width bins of the binned errors.
    classes : array-like of labels, optional
        Labels of the columns.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `update`.
    keep_top : int or None, default 4000000
        Maximum number of rows for which the KS error is computed. The KS error needs the confidence
        of every row. With more rows, ``ks`` is None. Pass 0 to keep no rows, or None to keep all
        rows.
    renormalize : bool, default False
        Whether to divide rows of probabilities by their sum, even if the sum is far from one.

    See Also
    --------
    evaluate : Evaluate all rows in one call.

    Notes
    -----
    The memory is O(n_bins x n_classes), plus 17 bytes per kept row (9 bytes without weights).

    Examples
    --------
    >>> a = MetricAccumulator().update([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    >>> b = MetricAccumulator(inputs="logits").update([1], [[0.5, 0.1]])
    >>> round(a.merge(b).compute().accuracy, 3)
    0.667
    """

    def __init__(
        self,
        n_bins: int = 15,
        classes: LabelsLike | None = None,
        *,
        inputs: Inputs = "proba",
        keep_top: int | None = KEEP_TOP,
        renormalize: bool = False,
    ) -> None:
        self.n_bins = check_count(n_bins, "n_bins")
        self.classes = classes
        self.inputs = check_inputs(inputs)
        self.keep_top = (
            keep_top if keep_top is None else check_count(keep_top, "keep_top", minimum=0)
        )
        self.renormalize = renormalize
        self._sums: EvaluationSums | None = None
        self._names: AnyArray | None = None

    def update(
        self, y: LabelsLike, p: ScoresLike, sample_weight: WeightsLike | None = None
    ) -> MetricAccumulator:
        """Add rows of scores of the type ``inputs``, and return self.

        If the labels or a data frame name the columns, later batches use the same classes. Dask
        workers evaluate the chunks of a dask array. For dask arrays, the KS error is not computed,
        because all confidences would have to be gathered.
        """
        sample, names = as_sample(
            p,
            y,
            sample_weight,
            classes=self._known_classes,
            inputs=self.inputs,
            renormalize=self.renormalize,
        )
        self._update_checked(sample)
        if not np.array_equal(names, np.arange(len(names))):
            self._names = names
        return self

    @property
    def _known_classes(self) -> LabelsLike | None:
        """Labels of the columns, passed by the user or taken from the first rows."""
        return self._names if self.classes is None else self.classes

    def _update_checked(self, sample: Sample) -> MetricAccumulator:
        """Add the rows of a checked sample."""
        self._check_n_classes(sample.n_columns)
        rule = SumRule(self.inputs, self.n_bins, sample.kept_rows(self.keep_top))
        sums = sample.sum_chunks(partial(_evaluation_sums, rule))
        if not sums.top.weight > 0:
            raise ValueError(
                "All sample weights are zero, but at least one must be positive. Pass "
                "sample_weight=None to weight all rows equally."
            )
        self._add(sums)
        return self

    def _add(self, sums: EvaluationSums) -> None:
        with _ADDING:
            if self._sums is None:
                # The sum keeps the limit of its first term, so start with the limit of this
                # accumulator.
                self._sums = replace(sums, tops=KeptScores(self.keep_top) + sums.tops)
            else:
                self._sums = self._sums + sums

    def merge(self, other: MetricAccumulator) -> MetricAccumulator:
        """Add the rows of another accumulator and return self.

        The two accumulators may have different ``inputs``.
        """
        self._check_mergeable(other)
        if other._sums is not None:
            self._check_n_classes(other._sums.class_wise.n_claims)
            self._add(other._sums)
            self._names = other._names
        return self

    def _check_mergeable(self, other: MetricAccumulator) -> None:
        if other.n_bins != self.n_bins:
            raise ValueError(
                f"Only accumulators with the same n_bins can be merged, got {self.n_bins} and "
                f"{other.n_bins}. Create both with MetricAccumulator(n_bins={self.n_bins})."
            )
        if _as_list(self.classes) != _as_list(other.classes) or self._contradicts(other):
            raise ValueError(
                f"Only accumulators with the same classes can be merged, got "
                f"{_as_list(self._known_classes)} and {_as_list(other._known_classes)}. Create "
                f"both with the same MetricAccumulator(classes=...)."
            )

    def _contradicts(self, other: MetricAccumulator) -> bool:
        """Return whether both accumulators have rows, but columns of different classes."""
        both_have_rows = self._sums is not None and other._sums is not None
        return both_have_rows and _as_list(self._names) != _as_list(other._names)

    def __add__(self, other: MetricAccumulator) -> MetricAccumulator:
        """Return a new accumulator with the rows of both accumulators."""
        if not isinstance(other, MetricAccumulator):
            return NotImplemented
        total = MetricAccumulator(
            self.n_bins,
            self.classes,
            inputs=self.inputs,
            keep_top=self.keep_top,
            renormalize=self.renormalize,
        )
        return total.merge(self).merge(other)

    def reset(self) -> MetricAccumulator:
        """Remove all rows, for example before the next epoch, and return self."""
        self._sums = self._names = None
        return self

    def __repr__(self) -> str:
        rows = 0 if self._sums is None else _whole(self._sums.top.weight)
        return f"<MetricAccumulator: {rows:,} rows of {self.inputs}, {self.n_bins} bins>"

    def compute(self) -> Evaluation:
        """Evaluate all rows that were added."""
        if self._sums is None:
            raise ValueError("No rows were added. Call update(y_true, y_prob) first.")
        sums, top, n_classes = self._sums, self._sums.top, self._sums.class_wise.n_claims
        return Evaluation(
            n_samples=_whole(top.weight),
            n_classes=n_classes,
            accuracy=top.accuracy,
            log_loss=sums.log_loss / top.weight,
            brier_score=sums.brier / top.weight,
            conf_ece=sums.confidence.error(),
            cw_ece=sums.class_wise.error(),
            tl_ece=sums.top_label.error(),
            mce=sums.confidence.error(norm=np.inf),
            ks=sums.tops.ks(),
            confidence_on_errors=top.confidence_on_errors,
            doubt_on_correct=top.doubt_on_correct,
            sharpness=top.sharpness(n_classes),
        )

    @property
    def n_effective(self) -> float:
        """Effective number of rows, ``(sum w)^2 / sum w^2``.

        Without weights, this is the number of rows.
        """
        if self._sums is None:
            raise ValueError("No rows were added. Call update(y_true, y_prob) first.")
        return self._sums.top.n_effective

    @property
    def mean_confidence(self) -> float:
        """Mean of the highest probabilities of all rows."""
        return self.mean_score()[0]

    def mean_score(self, column: int | None = None) -> tuple[float, float]:
        """Return the mean probability of a class and its frequency.

        If ``column`` is None, return mean confidence and accuracy.
        """
        if self._sums is None:
            raise ValueError("No rows were added. Call update(y_true, y_prob) first.")
        claim = 0 if column is None else column
        table = self._sums.confidence if column is None else self._sums.class_wise
        weight = table.weight[claim].sum()
        return float(table.score[claim].sum() / weight), float(table.outcome[claim].sum() / weight)

    def _check_n_classes(self, n_classes: int) -> None:
        check_classes(self.classes, n_classes)
        if self._sums is not None and self._sums.class_wise.n_claims != n_classes:
            raise ValueError(
                f"The scores have {n_classes} columns, but earlier rows had "
                f"{self._sums.class_wise.n_claims} classes. Pass scores of all classes, or call "
                f"reset() first."
            )

    def to_json(self) -> str:
        """Return the state as JSON text, for storage or for another process.

        Kept confidences take about 24 bytes per row.
        """
        return json.dumps(
            {
                "schema": SCHEMA,
                "n_bins": self.n_bins,
                "classes": _as_list(self.classes),
                "names": _as_list(self._names),
                "renormalize": self.renormalize,
                "inputs": self.inputs,
                "keep_top": self.keep_top,
                **state_of(self._sums),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> MetricAccumulator:
        """Restore an accumulator from the text of `to_json`. Other text raises ValueError."""
        try:
            state = json.loads(text)
            if state["schema"] != SCHEMA:
                raise ValueError(f"schema is {state['schema']!r}, expected {SCHEMA!r}")
            return cls._from_state(state)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"The text is not the JSON of a MetricAccumulator ({error}). Pass the text that "
                f"MetricAccumulator.to_json() returned."
            ) from None

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> MetricAccumulator:
        options = {name: state[name] for name in ("inputs", "keep_top")}
        options["renormalize"] = state.get("renormalize", False) is True
        accumulator = cls(state["n_bins"], state["classes"], **options)
        if state["tables"]:
            sums = sums_of(state, accumulator.n_bins, accumulator.keep_top)
            accumulator._check_n_classes(sums.class_wise.n_claims)
            accumulator._sums = sums
            if state.get("names") is not None:
                accumulator._names = check_classes(state["names"], sums.class_wise.n_claims)
        return accumulator


def _evaluation_sums(rule: SumRule, chunk: ArraySample) -> EvaluationSums:
    # Each block fills new tables of K x n_bins cells, so small blocks would cost more than their
    # rows.
    elements = max(8 * CACHE_BLOCK, 8 * chunk.shape[1] * rule.n_bins)
    total: EvaluationSums = chunk.sum(
        lambda block: EvaluationSums.of_block(block.u, block.y, block.weight, rule),
        elements=elements,
    )
    return total


def _as_list(classes: LabelsLike | None) -> list[Any] | None:
    return None if classes is None else np.asarray(classes).tolist()


def _whole(value: float) -> float:
    """Convert a sum of weights to an int if the sum is a whole number."""
    return int(value) if value == int(value) else value
