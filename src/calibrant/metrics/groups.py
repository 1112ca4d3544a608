"""Evaluate each group of rows, with intervals that hold for all groups jointly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._data.group_columns import cut_groups
from calibrant._data.sample import ArraySample, Sample
from calibrant._output.numbers import format_gap, format_number, format_p_value
from calibrant._output.results import as_frame, html_table
from calibrant._typing import AnyArray, Inputs, IntArray
from calibrant._validation import check_number, check_same_length, is_missing, shortened
from calibrant.guarantees import clopper_pearson
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._group_difference import (
    MOST_SCORES,
    GroupDifference,
    GroupGain,
    compare_groups,
    recalibration_gains,
)

if TYPE_CHECKING:
    from calibrant.metrics._answers import AnswerEvaluation

VISIBLE = 0.1
"""A group is too small if its interval is too wide to detect a gap of this size."""


@dataclass(frozen=True)
class GroupEvaluation:
    """Evaluation of one group of rows, with confidence intervals of accuracy and gap.

    Attributes
    ----------
    name : str
        Value of the group, or "column=value, ..." with several columns.
    evaluation : Evaluation or AnswerEvaluation
        Metrics of the group.
    gap : float
        Mean confidence minus accuracy, which is positive if the model is overconfident in the
        group. With two classes, the gap is the mean predicted probability of the second class minus
        its frequency. This gap is positive if the probabilities are too high.
    gap_low, gap_high, accuracy_low, accuracy_high : float
        Confidence intervals, which hold jointly for all groups.
    gain : GroupGain or None
        Cross-fitted reduction in log-loss by recalibration with group effects. The fields are
        ``value``, ``low`` and ``high``. None if the reduction was not computed.

    See Also
    --------
    evaluate : Pass ``by=`` to evaluate groups.
    """

    name: str
    evaluation: Evaluation | AnswerEvaluation
    gap: float
    gap_low: float
    gap_high: float
    accuracy_low: float
    accuracy_high: float
    gain: GroupGain | None = None

    @property
    def is_small(self) -> bool:
        """Whether no gap was detected and the group is too small to detect a gap of 0.1."""
        holds_zero = self.gap_low <= 0 <= self.gap_high
        return holds_zero and self.gap_high - self.gap_low > 2 * VISIBLE

    @property
    def finding(self) -> str:
        """Conclusion from the interval of the gap."""
        high, low = (
            ("probabilities too high", "probabilities too low")
            if self.evaluation.is_binary
            else ("overconfident", "underconfident")
        )
        if self.gap_low > 0:
            return high
        if self.gap_high < 0:
            return low
        return "too few rows" if self.is_small else "no gap detected"

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, for example for JSON."""
        return {
            "group": self.name,
            **self.evaluation.to_dict(),
            "gap": self.gap,
            "gap_low": self.gap_low,
            "gap_high": self.gap_high,
            "accuracy_low": self.accuracy_low,
            "accuracy_high": self.accuracy_high,
            "finding": self.finding,
            **({} if self.gain is None else _prefixed("gain", self.gain._asdict())),
        }


@dataclass(frozen=True, repr=False)
class GroupedEvaluation:
    """Evaluations of groups of rows, returned by ``evaluate(..., by=...)``.

    ``str()`` returns a table. Iterate over the groups, or select a group by its name.

    Attributes
    ----------
    by : tuple of str
        Names of the columns that define the groups.
    groups : tuple of GroupEvaluation
        Groups in the order of their values. The group of rows with missing values comes last.
    overall : Evaluation or AnswerEvaluation
        Evaluation of all rows.
    level : float
        Probability that all intervals hold jointly.
    difference : GroupDifference or None
        Test of the null hypothesis that all groups are miscalibrated in the same way. The fields
        are ``statistic``, ``p_value`` and ``n_resamples``. None for chunked rows, a single group,
        or more than 4 million scores.
    suppressed : tuple of str
        Names of groups with fewer than ``min_rows`` rows, whose figures are not shown.

    See Also
    --------
    evaluate : Pass ``by=`` to evaluate groups.
    evaluate_answers : Evaluate stated confidences of groups.
    calibrant.plots.GroupDisplay : Plot of the gaps.

    Notes
    -----
    The accuracy has the exact interval of Clopper and Pearson at level 1 - (1 - level) / groups
    (Bonferroni). The interval of the gap is the interval of the accuracy, subtracted from the mean
    confidence, because only the outcomes are random given the scores. Rows of a group may differ in
    difficulty. In this case, the interval covers the mean accuracy of the rows and is conservative
    (Hoeffding 1956, doi:10.1214/aoms/1177728178). Rows must be independent. For example, several
    rows of the same patient are not independent. With weights, the intervals are approximate and
    use the effective number of rows (Kish).

    Binned errors are larger in small groups because of sampling noise. Compare gaps, not ECEs.

    The test and the reductions in log-loss use group effects on the logits. Each group has a slope
    and, with at most 50 classes, an offset per class. The null hypothesis of the test is that all
    groups have the same slope and offsets. The null distribution of the statistic is simulated with
    labels that are drawn from this common fit. Reductions in log-loss are cross-fitted on 5 folds.
    Group effects are shrunk toward the effects of all rows, as in `GroupCalibration`.

    With two classes, the gap is computed for the probability of the second class, not for the
    confidence. The confidence is the larger of the two probabilities. If all probabilities of a
    group are too low, the confidence is too low for probabilities above 0.5 and too high for
    probabilities below 0.5. The errors of the confidence could then cancel.
    """

    by: tuple[str, ...]
    groups: tuple[GroupEvaluation, ...]
    overall: Evaluation | AnswerEvaluation
    level: float
    difference: GroupDifference | None = None
    suppressed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[GroupEvaluation]:
        return iter(self.groups)

    def __getitem__(self, name: Any) -> GroupEvaluation:
        """Return a group by its name."""
        for group in self.groups:
            if group.name == str(name):
                return group
        names = [group.name for group in self.groups]
        raise KeyError(f"There is no group {name!r}. The groups are {shortened(names, show=repr)}.")

    @property
    def too_small(self) -> tuple[str, ...]:
        """Names of the groups that are too small to detect a gap of 0.1."""
        return tuple(group.name for group in self.groups if group.is_small)

    @property
    def miscalibrated(self) -> tuple[str, ...]:
        """Names of the groups whose confidence interval of the gap excludes 0."""
        return tuple(group.name for group in self if group.gap_low > 0 or group.gap_high < 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, for example for JSON."""
        return {
            "by": list(self.by),
            "level": self.level,
            "overall": self.overall.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "difference": None if self.difference is None else self.difference._asdict(),
            "suppressed": list(self.suppressed),
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per group."""
        frame = as_frame(*(group.to_dict() for group in self.groups))
        return (frame if self.groups else frame.assign(group=[])).set_index("group")

    @property
    def header(self) -> list[str]:
        """Column headers of `rows`."""
        gap = f"gap ({self.level:.0%} CI)"
        gains = ["change"] if self.has_gains else []
        return [", ".join(self.by), "rows", "accuracy", gap, "ECE", "log-loss", *gains, "finding"]

    @property
    def has_gains(self) -> bool:
        """Whether reductions in log-loss by recalibration were computed."""
        return any(group.gain is not None for group in self.groups)

    def rows(self) -> list[list[str]]:
        """Return the table, one row per group."""
        return [
            [
                group.name,
                f"{group.evaluation.n_samples:,.0f}",
                format_number(group.evaluation.accuracy),
                format_gap(group.gap, group.gap_low, group.gap_high),
                format_number(group.evaluation.conf_ece),
                format_number(group.evaluation.log_loss),
                *([_gain_text(group.gain)] if self.has_gains else []),
                group.finding,
            ]
            for group in self.groups
        ]

    def __repr__(self) -> str:
        miscalibrated, small = len(self.miscalibrated), len(self.too_small)
        counts = f"{len(self)} groups, {miscalibrated} miscalibrated, {small} too small"
        return f"<GroupedEvaluation by {', '.join(self.by)}: {counts}>"

    def _repr_html_(self) -> str:
        return html_table(self.rows(), header=self.header, note=self.note())

    def __str__(self) -> str:
        lines = [self.header, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*texts, self.note()])

    def note(self, *, with_test: bool = True) -> str:
        """Return an explanation of the table, and the names of groups that are too small."""
        parts = [f"The gap is {self.gap_title}. {self._interval_sentence()}"] if len(self) else []
        if with_test:
            parts += self._test_sentences()
        if self.suppressed:
            parts.append(f"The table omits {_n_groups(len(self.suppressed))} with too few rows.")
        if self.too_small:
            names = shortened(self.too_small)
            groups = "This group has" if len(self.too_small) == 1 else "These groups have"
            parts.append(f"{groups} too few rows to detect a gap of {VISIBLE:g}: {names}.")
        return " ".join(parts)

    def _test_sentences(self) -> list[str]:
        sentences = [] if self.difference is None else [self.difference_sentence()]
        if self.has_gains:
            sentences.append(
                "Change is the cross-fitted change in log-loss from recalibration (negative is "
                "better)."
            )
        return sentences

    def _interval_sentence(self) -> str:
        if len(self) < 2:
            return f"If rows are independent, each interval holds with probability {self.level:g}."
        return (
            f"If rows are independent, the intervals hold jointly for all {len(self)} groups with "
            f"probability {self.level:g}."
        )

    def difference_sentence(self) -> str:
        """Return the conclusion of the test for group differences, or an empty string."""
        if self.difference is None:
            return ""
        p_value = format_p_value(self.difference.p_value)
        if self.difference.p_value <= 1 - self.level:
            return f"The calibration of the groups differs (p = {p_value})."
        return f"No difference between the groups was detected (p = {p_value})."

    @property
    def gap_title(self) -> str:
        """Definition of the gap."""
        if self.overall.is_binary:
            return "mean predicted probability of the second class minus its frequency"
        return "mean confidence minus accuracy"


_Values = tuple[Any, ...]
"""Values of the columns that define a group, with None for missing values."""


_ALL: _Values = ()
"""Key of the sums over all rows."""


class _GroupSums(dict[_Values, MetricAccumulator]):
    """Sums of the non-empty groups."""

    def __add__(self, other: _GroupSums) -> _GroupSums:
        sums = {key: self[key] + other[key] for key in self if key in other}
        return _GroupSums({**self, **other, **sums})


def _prefixed(prefix: str, values: dict[str, float]) -> dict[str, float]:
    """Add a prefix to the names of values. The name ``value`` is replaced by the prefix."""
    return {prefix if name == "value" else f"{prefix}_{name}": v for name, v in values.items()}


def _n_groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"


def _gain_text(gain: GroupGain | None) -> str:
    """Format the change in log-loss with its interval. Negative values are improvements."""
    if gain is None:
        return "-"
    return format_gap(-gain.value, -gain.high, -gain.low)


def evaluate_groups(
    sample: Sample,
    names: tuple[str, ...],
    level: float,
    *,
    inputs: Inputs,
    n_bins: int,
    min_rows: float = 0,
) -> GroupedEvaluation:
    """Evaluate each group of a sample in one pass. ``names`` are the names of the group columns.

    The KS error of chunked rows is not computed, because the KS error requires sorted scores.
    Groups with fewer than ``min_rows`` effective rows are left out of the result, and listed as
    ``suppressed``.
    """
    check_number(min_rows, "min_rows")
    for name, column in zip(names, sample.columns, strict=False):
        check_same_length(**{"y_true": sample.rows("by").y, f"by {name!r}": column})
    keep_top = sample.kept_rows(None)
    total, accumulators = sum_groups(sample, names, inputs, n_bins, keep_top)
    overall = total.compute()
    alpha = (1 - level) / len(accumulators)
    evaluations = [_evaluate(name, part, alpha) for name, part in accumulators.items()]
    difference, rows = None, sample.memory_rows(MOST_SCORES)
    if rows is not None:
        codes = _group_codes(names, rows, tuple(accumulators))
        difference, evaluations = _compare(rows, codes, evaluations, inputs, alpha)
    # Rounding removes the rounding errors of sums of equal weights.
    small = {name for name, part in accumulators.items() if round(part.n_effective, 6) < min_rows}
    visible_groups = tuple(group for group in evaluations if group.name not in small)
    suppressed = tuple(group.name for group in evaluations if group.name in small)
    return GroupedEvaluation(names, visible_groups, overall, level, difference, suppressed)


def _group_codes(names: tuple[str, ...], sample: ArraySample, order: tuple[str, ...]) -> IntArray:
    """Return the group number of each row, or -1 if all rows of the group have weight zero."""
    codes = np.full(sample.shape[0], -1)
    for name, rows in cut_groups(dict(zip(names, sample.columns, strict=True))).items():
        codes[rows] = order.index(name) if name in order else -1
    return codes


def _compare(
    sample: ArraySample,
    codes: IntArray,
    evaluations: list[GroupEvaluation],
    inputs: Inputs,
    alpha: float,
) -> tuple[GroupDifference | None, list[GroupEvaluation]]:
    """Test whether groups differ, and add the gains by recalibration to the evaluations."""
    indices = np.flatnonzero((codes >= 0) & (sample.weight > 0))
    rows, group, n_groups = sample.subset(indices), codes[indices], len(evaluations)
    difference = compare_groups(rows, group, n_groups, inputs) if n_groups > 1 else None
    gains = recalibration_gains(rows, group, n_groups, inputs, alpha)
    pairs = zip(evaluations, gains, strict=True)
    return difference, [replace(group, gain=gain) for group, gain in pairs]


def sum_groups(
    sample: Sample, names: tuple[str, ...], inputs: Inputs, n_bins: int, keep_top: int | None
) -> tuple[MetricAccumulator, dict[str, MetricAccumulator]]:
    """Compute the sums over all rows and over each group in one pass."""
    sums = sample.sum_chunks(partial(_sum_groups, names, inputs, n_bins, keep_top))
    total = sums.pop(_ALL)
    columns = map(_joined, zip(*sums, strict=True))
    groups = cut_groups(dict(zip(names, columns, strict=True)))
    parts = list(sums.values())
    return total, {name: parts[int(places[0])] for name, places in groups.items()}


def _sum_groups(
    names: tuple[str, ...], inputs: Inputs, n_bins: int, keep_top: int | None, chunk: ArraySample
) -> _GroupSums:
    """Compute the sums of each group that has rows in the chunk."""
    columns, sums = dict(zip(names, chunk.columns, strict=True)), _GroupSums()

    def add(values: _Values, rows: ArraySample) -> None:
        if rows.weight.any():
            accumulator = MetricAccumulator(n_bins, inputs=inputs, keep_top=keep_top)
            sums[values] = accumulator._update_checked(rows)

    add(_ALL, chunk)
    for rows in cut_groups(columns).values():
        add(tuple(_value(column[rows[0]]) for column in columns.values()), chunk.subset(rows))
    return sums


def _value(value: Any) -> Any:
    """Return a value that can be a dictionary key: None for NaN and NaT, dates unchanged."""
    if is_missing(value):
        return None
    # item() of a date would lose its unit, such as months.
    is_date = isinstance(value, np.datetime64)
    return value.item() if isinstance(value, np.generic) and not is_date else value


def _joined(values: Sequence[Any]) -> AnyArray:
    """Return the values of groups as an array."""
    dates = [value for value in values if isinstance(value, np.datetime64)]
    if dates:
        # NumPy deprecates a missing date without a unit.
        missing = np.array("NaT", dtype=np.result_type(*{date.dtype for date in dates}))[()]
        return np.array([missing if value is None else value for value in values])
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _evaluate(name: str, part: MetricAccumulator, alpha: float) -> GroupEvaluation:
    evaluation = part.compute()
    mean, rate = part.mean_score(1) if evaluation.is_binary else part.mean_score()
    count = np.full(2, part.n_effective)
    low, high = clopper_pearson(count * [evaluation.accuracy, rate], count, alpha)
    # Given the scores, only the frequency is random, so the gap has the mirrored interval of the
    # frequency.
    return GroupEvaluation(
        name=name,
        evaluation=evaluation,
        gap=mean - rate,
        gap_low=mean - float(high[1]),
        gap_high=mean - float(low[1]),
        accuracy_low=float(low[0]),
        accuracy_high=float(high[0]),
    )


def check_level(level: float) -> None:
    """Raise ValueError if the level of an interval is not between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(
            f"level must lie between 0 and 1, got {level!r}. Pass level=0.95 for a 95% interval."
        )
