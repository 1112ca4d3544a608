"""Validation of costs, and of shares strictly between 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray
from calibrant._validation._text import shortened
from calibrant._validation.arrays import as_array


def check_share(value: Any, name: str) -> float:
    """Return a number between 0 and 1, both excluded, or raise."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1 (both excluded), got {value!r}.")
    return float(value)


def check_costs(
    cost: Any,
    n_classes: int | None = None,
    *,
    name: str = "cost",
    classes: Any = None,
    actions: Any = None,
) -> FloatArray:
    """Return costs of actions as a float array of shape (K, A), or raise.

    ``n_classes`` is the required number of rows. With ``n_classes=None``, the number of rows must
    be at least two. The index and the columns of a pandas frame are matched to ``classes`` and
    ``actions``.
    """
    if hasattr(cost, "reindex") and hasattr(cost, "columns"):
        for axis, labels in enumerate((classes, actions)):
            cost = _in_order(cost, axis, labels, name)
    table = as_array(cost)
    _check_shape(table, n_classes, name)
    try:
        costs = table.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must contain numbers, got an array of {table.dtype}.") from None
    if not np.isfinite(costs).all():
        row, column = np.argwhere(~np.isfinite(costs))[0].tolist()
        raise ValueError(
            f"{name}[{row}, {column}] is {costs[row, column]}, but costs must be finite. For an "
            f"action that must not be taken, pass a large cost, for example 1e9."
        )
    return costs


def _check_shape(table: AnyArray, n_classes: int | None, name: str) -> None:
    required_shape = "(K, A)" if n_classes is None else f"({n_classes}, A)"
    rows = table.shape[0] if table.ndim == 2 else 0
    if rows < 2 or not table.shape[1] or (n_classes is not None and rows != n_classes):
        fix = "one row per true class and one column per action"
        if table.ndim == 2 and n_classes is not None and table.shape[1] == n_classes:
            fix = f"{name}.T, with {fix}"
        raise ValueError(f"{name} must have shape {required_shape}, got {table.shape}. Pass {fix}.")


def _in_order(cost: Any, axis: int, labels: Any, name: str) -> Any:
    """Return a pandas frame with an axis in the order of ``labels``.

    An axis that contains none of the labels is matched by position.
    """
    actual = list(cost.axes[axis])
    wanted = [] if labels is None else as_array(labels).tolist()[: len(actual)]
    if set(actual).isdisjoint(wanted):
        return cost
    if sorted(map(repr, actual)) != sorted(map(repr, wanted)):
        axis_name = ("index", "columns")[axis]
        raise ValueError(
            f"The {axis_name} of {name} has the labels {shortened(actual, show=repr)}, but the "
            f"labels must be {shortened(wanted, show=repr)}. Pass {name}.to_numpy() to match by "
            f"position."
        )
    return cost.reindex(wanted, axis=axis)


def add_abstention(cost: FloatArray, abstain: Any) -> FloatArray:
    """Return costs with the abstention as the last action, or the costs if ``abstain`` is None.

    ``abstain`` is a number, or one number per true class.
    """
    if abstain is None:
        return cost
    values = as_array(abstain)
    if values.shape not in ((), (len(cost),)) or values.dtype.kind not in "iuf":
        raise ValueError(
            f"abstain must be a number or one number for each of the {len(cost)} classes, got "
            f"{abstain!r:.80}. For example, pass abstain=1.0."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"abstain must be finite, got {abstain!r:.80}. Pass abstain=None for no abstention."
        )
    return np.column_stack([cost, np.broadcast_to(values, len(cost))])
