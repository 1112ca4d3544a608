"""The thirteen numbers of a set of predictions: in parts, merged, or as JSON on the way."""

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
"""Rows whose top scores are kept for the KS error, which needs them in order: 68 MB."""

_ADDING = Lock()
"""Held while sums are added, which is quick. One lock for all accumulators, because a lock in each
could not be pickled."""

_SIZES = {"n_samples": "rows", "n_classes": "classes"}


@dataclass(frozen=True)
class Evaluation:
    """How good and how honest predictions are: unrounded numbers; ``str()`` is a table.

    Each number is that of the metric of its name in `calibrant.metrics`.

    Attributes
    ----------
    n_samples : float
        Sum of the weights: rows, where there are none.
    n_classes : int
    accuracy : float
        Share of rows whose highest probability is at the truth.
    log_loss : float
        Mean negative log-probability of the truth, in nats.
    brier_score : float
        Mean of the squared errors, summed over classes: between 0 and 2, and for two classes twice
        the score that is usual there.
    conf_ece, cw_ece, tl_ece : float
        Binned calibration errors of the top score, of each class, and of the top score by
        predicted class. Never negative, so that chance makes them larger.
    mce : float
        The largest gap among the bins of ``conf_ece``.
    ks : float or None
        Kolmogorov-Smirnov error of the top score; None where there were more rows than a
        `MetricAccumulator` was told to keep the top scores of, which it needs in order.
    confidence_on_errors : float
        Mean confidence of wrong predictions. A calibrated model, too, is confident in some errors;
        mean confidence minus accuracy shows whether a model is overconfident.
    doubt_on_correct : float
        Mean of 1 - confidence of correct predictions.
    sharpness : float
        Variance of the top score, scaled so that n / (n - 1) is the largest value.
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
        """The fields as plain numbers."""
        return asdict(self)

    def to_frame(self) -> Any:
        """A pandas frame with one row."""
        return as_frame(self.to_dict())

    def _repr_html_(self) -> str:
        shown = [(entry.name, getattr(self, entry.name)) for entry in fields(self)]
        return html_table([title(name), _shown(name, value)] for name, value in shown)

    def __str__(self) -> str:
        width = max(len(title(entry.name)) for entry in fields(self))
        lines = [
            f"{title(entry.name):<{width}}  {_shown(entry.name, getattr(self, entry.name)):>12}"
            for entry in fields(self)
        ]
        return "\n".join(lines)


def title(name: str) -> str:
    """What a field of an `Evaluation` is called in tables."""
    return _SIZES[name] if name in _SIZES else METRICS[name].title


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "not computed"
    return f"{value:,.0f}" if name in _SIZES else f"{value:.5f}"


class MetricAccumulator:
    """Evaluation of data that arrives in parts: feed blocks, merge across machines, compute at the
    end.

    The result is that of `calibrant.evaluate` on all rows, which is made of this. Memory is
    O(bins x claims) whatever the number of rows, plus 17 bytes a row (9 without weights) for the
    KS error, which needs all top scores in order: they are kept up to ``keep_top`` rows, and
    beyond that ``ks`` is None. With ``keep_top=0`` nothing is kept. Several threads may update one
    accumulator.

    Parameters
    ----------
    n_bins : int
    classes : labels of the columns, optional
    inputs : {"proba", "logits", "log_proba"}
        What `update` is given.
    keep_top : int or None
        Rows whose top scores are kept; None for all.
    renormalize : bool
        Divide rows of probabilities by their sum, however far from one it is.

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
        """Add rows of scores, probabilities or logits as ``inputs`` says; returns self.

        Columns that were named by the labels or by a data frame are those classes from then on.
        The chunks of a dask array are evaluated where they are, without the KS error, for which
        all top scores would have to be gathered.
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
        """The labels of the columns, as given or as the first rows had them."""
        return self._names if self.classes is None else self.classes

    def _update_checked(self, sample: Sample) -> MetricAccumulator:
        """Add the rows of a checked sample."""
        self._check_n_classes(sample.n_columns)
        rule = SumRule(self.inputs, self.n_bins, sample.kept_rows(self.keep_top))
        sums = sample.sum_chunks(partial(_evaluation_sums, rule))
        if not sums.top.weight > 0:
            raise ValueError("all sample weights are zero: at least one row must count")
        self._add(sums)
        return self

    def _add(self, sums: EvaluationSums) -> None:
        with _ADDING:
            if self._sums is None:
                # The empty sum of top scores knows how many this accumulator may keep.
                self._sums = replace(sums, tops=KeptScores(self.keep_top) + sums.tops)
            else:
                self._sums = self._sums + sums

    def merge(self, other: MetricAccumulator) -> MetricAccumulator:
        """Add what another accumulator has seen, of probabilities or logits; returns self."""
        if other.n_bins != self.n_bins:
            raise ValueError(
                f"accumulators merge only with the same n_bins; got {self.n_bins} and "
                f"{other.n_bins}"
            )
        if _as_list(self.classes) != _as_list(other.classes) or self._contradicts(other):
            raise ValueError(
                "accumulators merge only with the same classes, got "
                f"{_as_list(self._known_classes)} and {_as_list(other._known_classes)}"
            )
        if other._sums is not None:
            self._check_n_classes(other._sums.class_wise.n_claims)
            self._add(other._sums)
            self._names = other._names
        return self

    def _contradicts(self, other: MetricAccumulator) -> bool:
        """Whether the columns of the rows that both have seen are of different classes."""
        both_saw = self._sums is not None and other._sums is not None
        return both_saw and _as_list(self._names) != _as_list(other._names)

    def __add__(self, other: MetricAccumulator) -> MetricAccumulator:
        """A new accumulator of what both have seen."""
        if not isinstance(other, MetricAccumulator):
            return NotImplemented
        both = MetricAccumulator(
            self.n_bins,
            self.classes,
            inputs=self.inputs,
            keep_top=self.keep_top,
            renormalize=self.renormalize,
        )
        return both.merge(self).merge(other)

    def reset(self) -> MetricAccumulator:
        """Forget all rows, for the next epoch; returns self."""
        self._sums = self._names = None
        return self

    def __repr__(self) -> str:
        rows = 0 if self._sums is None else _whole(self._sums.top.weight)
        return f"<MetricAccumulator: {rows:,} rows of {self.inputs}, {self.n_bins} bins>"

    def compute(self) -> Evaluation:
        """The evaluation of all rows seen."""
        if self._sums is None:
            raise ValueError("nothing to evaluate: call update(y, p) first")
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
        """Effective number of the rows seen, ``(sum w)^2 / sum w^2``; without weights, all."""
        if self._sums is None:
            raise ValueError("nothing was seen: call update(y_true, y_prob) first")
        return self._sums.top.n_effective

    @property
    def mean_confidence(self) -> float:
        """Mean of the highest probabilities of the rows seen."""
        return self.mean_score()[0]

    def mean_score(self, column: int | None = None) -> tuple[float, float]:
        """Mean probability of a class and its frequency; without a class, mean confidence and
        accuracy.
        """
        if self._sums is None:
            raise ValueError("nothing was seen: call update(y_true, y_prob) first")
        claim = 0 if column is None else column
        table = self._sums.confidence if column is None else self._sums.class_wise
        weight = table.weight[claim].sum()
        return float(table.score[claim].sum() / weight), float(table.outcome[claim].sum() / weight)

    def _check_n_classes(self, n_classes: int) -> None:
        check_classes(self.classes, n_classes)
        if self._sums is not None and self._sums.class_wise.n_claims != n_classes:
            raise ValueError(
                f"expected {self._sums.class_wise.n_claims} classes as before, got {n_classes}"
            )

    def to_json(self) -> str:
        """The state as JSON text, for another process or a later day; top scores that are kept
        take about 24 bytes a row.
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
        """The accumulator that `to_json` wrote; anything else is a ``ValueError``."""
        try:
            state = json.loads(text)
            if state["schema"] != SCHEMA:
                raise ValueError(f"schema is {state['schema']!r}, expected {SCHEMA!r}")
            return cls._from_state(state)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not the JSON of a MetricAccumulator: {error}") from None

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
    # A block must outweigh the tables that it fills.
    elements = max(8 * CACHE_BLOCK, 8 * chunk.shape[1] * rule.n_bins)
    total: EvaluationSums = chunk.sum(
        lambda block: EvaluationSums.of_block(block.u, block.y, block.weight, rule),
        elements=elements,
    )
    return total


def _as_list(classes: LabelsLike | None) -> list[Any] | None:
    return None if classes is None else np.asarray(classes).tolist()


def _whole(value: float) -> float:
    """An int where the sum of weights is one."""
    return int(value) if value == int(value) else value
