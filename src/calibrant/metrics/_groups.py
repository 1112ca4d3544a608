"""Evaluate each group of rows, with intervals that hold for all groups together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._data.sample import ArraySample, Sample
from calibrant._output.results import as_frame, html_table
from calibrant._typing import AnyArray, Inputs, IntArray
from calibrant._validation import as_array, check_same_length, shortened
from calibrant.guarantees import clopper_pearson
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator

if TYPE_CHECKING:
    from calibrant.metrics._stated_confidence import ConfidenceEvaluation

VISIBLE = 0.1
"""A gap of this size should be visible. If the interval of a group is wider, the group is small."""

MISSING = "missing"
"""Name of the group of rows whose group is missing."""

_MOST_GROUPS = 200


@dataclass(frozen=True)
class GroupEvaluation:
    """Evaluation of one group of rows, with intervals of its accuracy and of its gap.

    Attributes
    ----------
    name : str
        Value of the group, or "column=value, ..." with several columns.
    evaluation : Evaluation or ConfidenceEvaluation
        Metrics of the group.
    gap : float
        Mean confidence minus accuracy; positive if the model is overconfident in the group. With
        two classes, the mean predicted probability of the second class minus its frequency;
        positive if the probabilities are too high.
    gap_low, gap_high, accuracy_low, accuracy_high : float
        Confidence intervals, which hold for all groups together.

    See Also
    --------
    evaluate : Pass ``by=`` to evaluate groups.
    """

    name: str
    evaluation: Evaluation | ConfidenceEvaluation
    gap: float
    gap_low: float
    gap_high: float
    accuracy_low: float
    accuracy_high: float

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
        """Return all values as plain values."""
        return {
            "group": self.name,
            **self.evaluation.to_dict(),
            "gap": self.gap,
            "gap_low": self.gap_low,
            "gap_high": self.gap_high,
            "accuracy_low": self.accuracy_low,
            "accuracy_high": self.accuracy_high,
            "finding": self.finding,
        }


@dataclass(frozen=True, repr=False)
class GroupedEvaluation:
    """Evaluations of groups of rows, returned by ``evaluate(..., by=...)``.

    ``str()`` is a table. Iterate over the groups, or select one by its name.

    Attributes
    ----------
    by : tuple of str
        Names of the columns that define the groups.
    groups : tuple of GroupEvaluation
        Groups in the order of their values; rows without a group come last.
    overall : Evaluation or ConfidenceEvaluation
        Evaluation of all rows.
    level : float
        Probability that all intervals hold together.

    See Also
    --------
    evaluate : Pass ``by=`` to evaluate groups.
    evaluate_confidence : The same for stated confidences.
    calibrant.plots.GroupDisplay : Plot of the gaps.

    Notes
    -----
    The accuracy has the exact interval of Clopper and Pearson at level 1 - (1 - level) / groups
    (Bonferroni). The interval of the gap is the same interval, shifted, because only the outcomes
    are random given the scores. Rows of a group need not be equally difficult: the interval is then
    one of their mean, and conservative (Hoeffding 1956, doi:10.1214/aoms/1177728178). Rows must be
    independent; many rows of one patient are not. With weights, the intervals are approximate and
    use the effective number of rows (Kish).

    Binned errors are larger in small groups because of sampling noise. Compare gaps, not ECEs.

    With two classes the gap is that of the second class. The confidence, the larger of the two
    probabilities, would not show that probabilities are too low in a whole group: errors below and
    above one half change it in opposite directions.
    """

    by: tuple[str, ...]
    groups: tuple[GroupEvaluation, ...]
    overall: Evaluation | ConfidenceEvaluation
    level: float

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
        """Names of the groups whose interval of the gap excludes 0."""
        return tuple(group.name for group in self if group.gap_low > 0 or group.gap_high < 0)

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain values."""
        return {
            "by": list(self.by),
            "level": self.level,
            "overall": self.overall.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
        }

    def to_frame(self) -> Any:
        """Return a pandas frame with one row per group."""
        return as_frame(*(group.to_dict() for group in self.groups)).set_index("group")

    @property
    def header(self) -> list[str]:
        """Column headers of `rows`."""
        gap = f"gap ({self.level:.0%} CI)"
        return [", ".join(self.by), "rows", "accuracy", gap, "ECE", "log-loss", "finding"]

    def rows(self) -> list[list[str]]:
        """Return the table, one row per group."""
        return [
            [
                group.name,
                f"{group.evaluation.n_samples:,.0f}",
                f"{group.evaluation.accuracy:.3f}",
                f"{group.gap:+.3f} ({group.gap_low:+.3f} to {group.gap_high:+.3f})",
                f"{group.evaluation.conf_ece:.3f}",
                f"{group.evaluation.log_loss:.4f}",
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

    def note(self) -> str:
        """Explain the gap and the intervals, and name groups that are too small."""
        text = (
            f"Gap: {self.gap_title}. If rows are independent, the intervals hold for all "
            f"{len(self)} groups together with probability {self.level:g}."
        )
        if not self.too_small:
            return text
        names = shortened(self.too_small)
        return f"{text} Too few rows to detect a gap of {VISIBLE:g}: {names}."

    @property
    def gap_title(self) -> str:
        """Definition of the gap."""
        if self.overall.is_binary:
            return "mean predicted probability of the second class minus its frequency"
        return "mean confidence minus accuracy"


_Values = tuple[Any, ...]
"""The values of a group, one per column; None if they are missing."""


_ALL: _Values = ()
"""Key of the sums over all rows."""


class _GroupSums(dict[_Values, MetricAccumulator]):
    """Sums of each group with rows."""

    def __add__(self, other: _GroupSums) -> _GroupSums:
        both = {key: self[key] + other[key] for key in self if key in other}
        return _GroupSums({**self, **other, **both})


def evaluate_groups(
    sample: Sample, names: tuple[str, ...], level: float, *, inputs: Inputs, n_bins: int
) -> GroupedEvaluation:
    """Evaluate each group of a sample in one pass; ``names`` are the names of its columns.

    The KS error of chunked rows is not computed, because their scores would have to be sorted.
    """
    for name, column in zip(names, sample.columns, strict=False):
        check_same_length(**{"y_true": sample.rows("by").y, f"by {name!r}": column})
    keep_top = sample.kept_rows(None)
    sums = sample.sum_chunks(partial(_sum_groups, names, inputs, n_bins, keep_top))
    overall = sums.pop(_ALL).compute()
    columns = map(_joined, zip(*sums, strict=True))
    groups = cut_groups(dict(zip(names, columns, strict=True)))
    parts = list(sums.values())
    accumulators = {name: parts[int(places[0])] for name, places in groups.items()}
    alpha = (1 - level) / len(accumulators)
    evaluations = tuple(_evaluate(name, part, alpha) for name, part in accumulators.items())
    return GroupedEvaluation(names, evaluations, overall, level)


def _sum_groups(
    names: tuple[str, ...], inputs: Inputs, n_bins: int, keep_top: int | None, chunk: ArraySample
) -> _GroupSums:
    """Sums of each group with rows in a chunk."""
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
    if value is None or value != value:  # NaN and NaT
        return None
    # item() of a date would lose its unit, such as months.
    is_date = isinstance(value, np.datetime64)
    return value.item() if isinstance(value, np.generic) and not is_date else value


def _joined(values: Sequence[Any]) -> AnyArray:
    """Array of the values of groups."""
    if any(isinstance(value, np.datetime64) for value in values):
        return np.array([np.datetime64("NaT") if value is None else value for value in values])
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _evaluate(name: str, part: MetricAccumulator, alpha: float) -> GroupEvaluation:
    evaluation = part.compute()
    mean, rate = part.mean_score(1) if evaluation.is_binary else part.mean_score()
    count = np.full(2, part.n_effective)
    low, high = clopper_pearson(count * [evaluation.accuracy, rate], count, alpha)
    # Given the scores, only the frequency is random: its interval is that of the gap, mirrored.
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
    """Raise if the level of an interval is not between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(
            f"level must lie between 0 and 1, got {level!r}. Pass level=0.95 for a 95% interval."
        )


def as_columns(by: Any) -> dict[str, Any]:
    """Return the columns that define groups by name, from a mapping, data frame, series or array.

    Dask columns are not computed.
    """
    if isinstance(by, Mapping):
        columns = {str(name): _as_column(part) for name, part in by.items()}
    elif getattr(by, "columns", None) is not None:  # pandas, polars and dask
        columns = {str(name): _as_column(by[name]) for name in by.columns}
    else:
        # The name of a dask array is a key of its graph, which means nothing to users.
        name = None if hasattr(by, "chunks") else getattr(by, "name", None)
        columns = {str(name or "group"): _as_column(by)}
    if not columns:
        raise ValueError(
            "by has no columns. Pass an array with the group of each row, or a dict of such arrays."
        )
    for name, part in columns.items():
        if part.ndim != 1:
            raise ValueError(
                f"by {name!r} must be a 1D array with the group of each row, got shape "
                f"{part.shape}. To combine several columns, pass several columns as a dict: "
                f"by={{'site': site, 'sex': sex}}."
            )
    return columns


def _as_column(column: Any) -> Any:
    return column if hasattr(column, "chunks") else as_array(column)


def name_groups(by: Any) -> AnyArray:
    """Return the name of each row's group, (n,)."""
    columns = as_columns(by)
    check_same_length(**columns)
    names = np.empty(len(next(iter(columns.values()))), dtype=object)
    for name, rows in cut_groups({key: np.asarray(part) for key, part in columns.items()}).items():
        names[rows] = name
    return names.astype(str)


def cut_groups(columns: Mapping[str, AnyArray]) -> dict[str, IntArray]:
    """Return the rows of every combination of values that occurs, in the order of the values."""
    coded = [_code(name, part) for name, part in columns.items()]
    codes = np.stack([code for code, _ in coded], axis=1)
    combinations, place = np.unique(codes, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(place.ravel()))[:-1])
    levels = [values for _, values in coded]
    names = [_name(tuple(columns), levels, combination) for combination in combinations]
    return dict(zip(names, rows, strict=True))


def _name(columns: tuple[str, ...], levels: Sequence[list[str]], codes: IntArray) -> str:
    values = [values[code] for values, code in zip(levels, codes, strict=True)]
    if len(columns) == 1:
        return values[0]
    return ", ".join(f"{name}={value}" for name, value in zip(columns, values, strict=True))


def _code(name: str, column: AnyArray) -> tuple[IntArray, list[str]]:
    """Return the codes of a column and their names; missing values form the last group."""
    values = (_dated(column) if column.dtype.kind == "M" else column).tolist()
    is_missing = [value is None or value != value or value == "NaT" for value in values]
    present = {value for value, missing in zip(values, is_missing, strict=True) if not missing}
    if len(present) > _MOST_GROUPS:
        raise ValueError(
            f"by {name!r} has {len(present):,} different values, more than {_MOST_GROUPS}. Cut it "
            f"into groups first: numbers with np.digitize(x, edges), dates with "
            f"dates.astype('datetime64[M]')."
        )
    order = _sorted(present)
    place = {value: code for code, value in enumerate(order)}
    codes = [
        len(order) if missing else place[value]
        for value, missing in zip(values, is_missing, strict=True)
    ]
    names = [*map(str, order), MISSING]
    if len(set(names)) < len(names):  # 1 and "1" have the same str(), but not the same repr()
        names = [*map(repr, order), MISSING]
    return np.array(codes, dtype=np.intp), names


def _dated(column: AnyArray) -> AnyArray:
    """Return dates as text, without the time if all times are midnight."""
    days = column.astype("datetime64[D]")
    is_finer = column.dtype > days.dtype
    has_hours = is_finer and bool((column != days)[~np.isnat(column)].any())
    return (days if is_finer and not has_hours else column).astype(str)


def _sorted(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # values of different types cannot be compared
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
