"""Which metric is meant: by name, as a function, and whether it is a binned error, of which only
counts are random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calibrant.metrics import expected_calibration_error
from calibrant.metrics._scorer import _METRICS

Metric = Callable[[Any, Any], float]

_BINNED: dict[str, dict[str, Any]] = {
    "conf_ece": {"notion": "confidence"},
    "cw_ece": {"notion": "class-wise"},
    "tl_ece": {"notion": "top-label"},
    "mce": {"notion": "confidence", "norm": np.inf},
    "expected_calibration_error": {},
}
_OTHERS = {
    "ks": _METRICS["ks_error"],
    **{name: metric for name, metric in _METRICS.items() if name not in _BINNED},
}


def binned_options(metric: str | Metric) -> dict[str, Any] | None:
    """Options of `expected_calibration_error` if the metric is one, else None."""
    if isinstance(metric, str):
        return dict(_BINNED[metric]) if metric in _BINNED else None
    if metric is expected_calibration_error:
        return {}
    if (
        isinstance(metric, partial)
        and metric.func is expected_calibration_error
        and not metric.args
    ):
        return dict(metric.keywords)
    return None


def as_metric(metric: str | Metric) -> Metric:
    """The function ``(y, p) -> float`` that is meant."""
    if callable(metric):
        return metric
    if metric in _BINNED:
        return partial(expected_calibration_error, **_BINNED[metric])
    if metric not in _OTHERS:
        raise ValueError(
            f"unknown metric {metric!r}; give a function (y, p) -> float or one of "
            f"{', '.join([*_BINNED, *_OTHERS])}"
        )
    return _OTHERS[metric]


def metric_name(metric: str | Metric) -> str:
    """A name to show."""
    if isinstance(metric, str):
        return metric
    function = metric.func if isinstance(metric, partial) else metric
    return str(getattr(function, "__name__", type(function).__name__))
