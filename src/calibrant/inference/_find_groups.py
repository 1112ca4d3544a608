"""Search for groups of rows in which a model is miscalibrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.group_columns import MISSING, distinct_names
from calibrant._data.read import as_sample
from calibrant._kernels.simplex import as_proba
from calibrant._output.numbers import format_interval, format_number, format_percent
from calibrant._typing import (
    AnyArray,
    BoolArray,
    FloatArray,
    Inputs,
    LabelsLike,
    ScoresLike,
)
from calibrant._validation import as_array, as_seed, check_count, check_same_length, column_names
from calibrant.guarantees import clopper_pearson
from calibrant.inference._results import check_level

_LARGEST = float(np.finfo(np.float32).max)
"""Larger numbers, such as infinity, are replaced by this number, because trees of scikit-learn read
single precision."""

_MOST_LEVELS = 50
"""Maximum number of categories of a column that can define groups, the most frequent first."""

_LEAST_EVIDENCE = 2.0
"""Minimum mean residual of a group in the search, in standard errors. Other groups are not
tested."""


class _Feature(NamedTuple):
    """A column of numbers, or the indicator of a value of a column of categories."""

    column: str
    value: str | None = None
    """Value of the indicator, or None for a column of numbers."""


class _Condition(NamedTuple):
    """The condition that a feature is larger than a threshold, or at most the threshold.

    An infinite threshold only separates missing numbers from other numbers.
    """

    feature: _Feature
    is_larger: bool
    threshold: float
    includes_missing: bool = False
    """Whether rows without a number satisfy the condition."""


@dataclass(frozen=True)
class FoundGroup:
    """A group of rows in which a model is miscalibrated. ``str()`` returns a sentence.

    Attributes
    ----------
    name : str
        The conditions that define the group, such as "age <= 30 and region = north".
    n_samples : int
        Number of rows of the group in the half of the data that is used for tests.
    mean_score : float
        Mean confidence of these rows. For binary problems, the mean predicted probability of the
        second class.
    frequency : float
        Accuracy of these rows. For binary problems, the frequency of the second class.
    gap, gap_low, gap_high : float
        ``mean_score`` minus ``frequency``, and the ends of its confidence interval.
    level : float
        Confidence level of the interval.

    See Also
    --------
    find_groups : Search for such groups.
    """

    name: str
    n_samples: int
    mean_score: float
    frequency: float
    gap: float
    gap_low: float
    gap_high: float
    level: float
    _conditions: tuple[_Condition, ...] = field(repr=False, default=())

    def mask(self, X: Any) -> BoolArray:
        """Return a mask of the rows of a table in the group.

        ``X`` must have the columns that the search used.
        """
        table = _encode(X, tuple(condition.feature for condition in self._conditions))
        return _hold(table, self._conditions)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, for example for JSON."""
        return {
            "group": self.name,
            "n_samples": self.n_samples,
            "mean_score": self.mean_score,
            "frequency": self.frequency,
            "gap": self.gap,
            "gap_low": self.gap_low,
            "gap_high": self.gap_high,
            "level": self.level,
        }

    def __str__(self) -> str:
        interval = format_interval(self.gap_low, self.gap_high, signed=True)
        return (
            f"{self.name}: mean score {format_number(self.mean_score)}, frequency "
            f"{format_number(self.frequency)}, gap {format_number(self.gap, signed=True)} "
            f"({format_percent(self.level)} CI {interval}), {self.n_samples:,} rows."
        )


def find_groups(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    X: Any,
    *,
    max_depth: int = 3,
    min_rows: int = 50,
    level: float = 0.95,
    inputs: Inputs = "proba",
    classes: LabelsLike | None = None,
    random_state: int | None = None,
) -> tuple[FoundGroup, ...]:
    """Search for groups of rows in which the model is miscalibrated.

    A random half of the rows is searched for groups, and the groups are tested on the other half.
    If the model is calibrated, the probability that no group is reported is at least ``level``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted scores, of rows that the model was not trained on.
    X : data frame, dict of columns, or array of shape (n, n_features)
        Features that may define groups. Columns that are not numbers are categories. Rows without a
        number are in a group only if its name says so.
    max_depth : int, default 3
        Maximum number of conditions of a group.
    min_rows : int, default 50
        Minimum number of rows of a group in the half that is searched.
    level : float, default 0.95
        Probability that no group is reported if the model is calibrated.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    classes : array-like of labels, optional
        Labels of the columns.
    random_state : int, optional
        Seed of the random split into halves. None means 0.

    Returns
    -------
    tuple of FoundGroup
        Groups whose test on the second half rejects, in decreasing order of the evidence in the
        first half. Groups do not contain each other.

    See Also
    --------
    calibrant.evaluate : Evaluate known groups with ``by=``.
    calibrant.GroupCalibration : Correct known groups.

    Notes
    -----
    The residual of a row is its confidence minus its correctness. For binary problems, the residual
    is the predicted probability of the second class minus its indicator. A regression tree is
    fitted to the residuals of the first half. The nodes of the tree are the candidates, in
    decreasing order of the absolute mean residual divided by its standard error. On the second
    half, the candidates are tested in this order at level 1 - ``level``, until a test does not
    reject. This fixed sequence of tests controls the probability of any false rejection. A test
    rejects if the exact interval of Clopper and Pearson of the frequency excludes the mean score.
    The test is conservative if the rows of a group differ in difficulty. Rows must be independent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.integers(20, 80, 4000), rng.uniform(0.1, 0.9, 4000)
    >>> y = rng.uniform(size=4000) < np.where(age < 30, 0, p)
    >>> for group in find_groups(y.astype(int), p, {"age": age}):
    ...     print(group.name, round(group.gap, 2))
    age <= 29.5 0.49
    """
    check_count(max_depth, "max_depth")
    check_count(min_rows, "min_rows")
    check_level(level)
    score, outcome = _top_claims(y_true, y_prob, inputs, classes)
    features = _features(X)
    table = _encode(X, features)
    check_same_length(y_true=score, X=table)
    order = np.random.default_rng(as_seed(random_state) or 0).permutation(len(score))
    search, test = order[: len(order) // 2], order[len(order) // 2 :]
    residual = score - outcome
    groups = []
    for conditions in _candidates(table[search], residual[search], features, max_depth, min_rows):
        rows = test[_hold(table[test], conditions, features)]
        group = _tested(conditions, score[rows], outcome[rows], level)
        if group is None or group.gap_low <= 0 <= group.gap_high:
            break
        groups.append(group)
    return tuple(groups)


def _top_claims(
    y_true: LabelsLike, y_prob: ScoresLike, inputs: Inputs, classes: LabelsLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return confidence and correctness, or for binary problems score and indicator of class 1."""
    sample, _ = as_sample(y_prob, y_true, classes=classes, inputs=inputs)
    rows = sample.rows("find_groups")
    proba = as_proba(np.asarray(rows.u[:]), inputs)
    if proba.shape[1] == 2:
        return proba[:, 1], (rows.y == 1).astype(float)
    return proba.max(axis=1), (proba.argmax(axis=1) == rows.y).astype(float)


def _columns(X: Any) -> dict[str, AnyArray]:
    """Return the columns of a table by name."""
    if isinstance(X, Mapping):
        columns = {str(name): as_array(column) for name, column in X.items()}
        check_same_length(**columns)
        return columns
    names = column_names(X)
    if names is not None:
        return {str(name): as_array(X[name]) for name in names}
    table = as_array(X)
    if table.ndim != 2:
        raise ValueError(
            f"X must have shape (n, n_features), got shape {table.shape}. Pass a dict to name "
            f"single columns, as in {{'age': age}}."
        )
    return {f"x{number}": table[:, number] for number in range(table.shape[1])}


def _features(X: Any) -> tuple[_Feature, ...]:
    """Return the features of a table, which are columns of numbers and frequent categories."""
    features = []
    for name, column in _columns(X).items():
        if column.dtype.kind in "iuf":
            features.append(_Feature(name))
            continue
        values, counts = np.unique(_text(column), return_counts=True)
        frequent = values[np.argsort(-counts, kind="stable")][:_MOST_LEVELS]
        features += [_Feature(name, str(value)) for value in sorted(frequent.tolist())]
    if not features:
        raise ValueError("X has no columns. Pass the features that may define groups.")
    return tuple(features)


def _text(column: AnyArray) -> AnyArray:
    names, place = distinct_names(column)
    return np.array([MISSING if name is None else name for name in names], dtype=object)[place]


def _encode(X: Any, features: Sequence[_Feature]) -> FloatArray:
    """Return numbers and indicators, (n, features), with NaN for missing numbers."""
    columns = _columns(X)
    absent_columns = [feature.column for feature in features if feature.column not in columns]
    if absent_columns:
        raise ValueError(
            f"X has no column {absent_columns[0]!r}. Pass all columns that the search used."
        )
    parts = []
    for feature in features:
        column = columns[feature.column]
        if feature.value is None:
            parts.append(np.clip(column.astype(float), -_LARGEST, _LARGEST))
        else:
            parts.append((_text(column) == feature.value).astype(float))
    return np.column_stack(parts)


def _hold(
    table: FloatArray, conditions: Sequence[_Condition], features: Sequence[_Feature] | None = None
) -> BoolArray:
    """Return which rows satisfy all conditions. By default, condition j is about column j."""
    holds = np.ones(len(table), dtype=bool)
    for number, condition in enumerate(conditions):
        column = table[:, number if features is None else features.index(condition.feature)]
        is_true = (column > condition.threshold) == condition.is_larger
        holds &= np.where(np.isnan(column), condition.includes_missing, is_true)
    return holds


def _candidates(
    table: FloatArray,
    residual: FloatArray,
    features: Sequence[_Feature],
    max_depth: int,
    min_rows: int,
) -> Iterator[tuple[_Condition, ...]]:
    """Yield disjoint nodes of a tree with evidence of miscalibration, strongest evidence first."""
    from sklearn.tree import DecisionTreeRegressor  # this import takes half a second

    if len(residual) < 2 * min_rows:
        return
    model = DecisionTreeRegressor(max_depth=max_depth, min_samples_leaf=min_rows, random_state=0)
    tree = model.fit(table, residual).tree_
    count, mean = tree.n_node_samples, tree.value[:, 0, 0]
    evidence = np.abs(mean) * np.sqrt(count / np.maximum(tree.impurity, np.finfo(float).tiny))
    paths = _paths(tree.children_left.tolist(), tree.children_right.tolist())
    has_missing: BoolArray = np.asarray(np.isnan(table).any(axis=0))
    selected_paths: list[tuple[tuple[int, bool], ...]] = []
    for node in np.argsort(-evidence, kind="stable").tolist():
        path = paths[node]
        is_nested = any(
            _is_prefix(path, other) or _is_prefix(other, path) for other in selected_paths
        )
        if not path or is_nested or evidence[node] < _LEAST_EVIDENCE:
            continue
        selected_paths.append(path)
        yield tuple(
            _Condition(
                features[tree.feature[at]],
                is_larger,
                float(tree.threshold[at]),
                bool(has_missing[tree.feature[at]])
                and bool(tree.missing_go_to_left[at]) != is_larger,
            )
            for at, is_larger in path
        )


_Path = tuple[tuple[int, bool], ...]
"""Nodes on the path to a node, and whether the feature is larger than the threshold."""


def _paths(left: Sequence[int], right: Sequence[int]) -> list[_Path]:
    paths: list[_Path] = [()] * len(left)
    for node in range(len(left)):
        if left[node] >= 0:  # parents come before their children
            paths[left[node]] = (*paths[node], (node, False))
            paths[right[node]] = (*paths[node], (node, True))
    return paths


def _is_prefix(path: _Path, other: _Path) -> bool:
    return other[: len(path)] == path


def _tested(
    conditions: tuple[_Condition, ...], score: FloatArray, outcome: FloatArray, level: float
) -> FoundGroup | None:
    """Return the group with its results on the second half, or None if it has no rows there."""
    count = len(score)
    if not count:
        return None
    hits = np.array([outcome.sum()])
    low, high = clopper_pearson(hits, np.array([float(count)]), 1 - level)
    mean, frequency = float(score.mean()), float(outcome.mean())
    return FoundGroup(
        name=_describe(conditions),
        n_samples=count,
        mean_score=mean,
        frequency=frequency,
        gap=mean - frequency,
        gap_low=mean - float(high[0]),
        gap_high=mean - float(low[0]),
        level=level,
        _conditions=conditions,
    )


def _describe(conditions: Sequence[_Condition]) -> str:
    """Describe the conditions in words. Conditions on the same feature are joined."""
    parts = []
    # A condition "column = value" implies "column is not other", so omit the second condition.
    fixed_columns = {
        c.feature.column for c in conditions if c.feature.value is not None and c.is_larger
    }
    relevant = [c for c in conditions if c.is_larger or c.feature.column not in fixed_columns]
    for feature in dict.fromkeys(condition.feature for condition in relevant):
        same = [condition for condition in conditions if condition.feature == feature]
        if feature.value is not None:
            is_equal = any(condition.is_larger for condition in same)
            parts.append(f"{feature.column} {'=' if is_equal else 'is not'} {feature.value}")
        else:
            parts.append(_describe_number(feature.column, same))
    return " and ".join(parts)


def _describe_number(column: str, conditions: Sequence[_Condition]) -> str:
    """Describe the conditions on a column of numbers as one interval."""
    finite = [c for c in conditions if np.isfinite(c.threshold)]
    includes_missing = all(condition.includes_missing for condition in conditions)
    if not finite or any(c.is_larger and c not in finite for c in conditions):
        return f"{column} is {'' if includes_missing else 'not '}missing"
    low = [condition.threshold for condition in finite if condition.is_larger]
    high = [condition.threshold for condition in finite if not condition.is_larger]
    if low and high:
        text = f"{max(low):.6g} < {column} <= {min(high):.6g}"
    else:
        sign, bound = (">", max(low)) if low else ("<=", min(high))
        text = f"{column} {sign} {bound:.6g}"
    return f"({text} or missing)" if includes_missing else text
