"""What the fitted attributes of a calibrator must be, checked before anything is computed with
them: a file must not make a prediction take more memory than its own size accounts for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.base._training import TrainingSummary

Size = int | str
"""Of an axis: a number, or a letter that is the same number throughout a calibrator. "K" is the
number of classes."""


@dataclass(frozen=True)
class Expected:
    """A number or an array of numbers: its shape, and the range of its entries."""

    shape: tuple[Size, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    is_finite: bool = True

    def check(self, value: Any, sizes: dict[str, int]) -> str | None:
        """What is wrong with a value, if anything is; letters that are met get their numbers."""
        kind = np.asarray(value).dtype.kind if _is_number(value) else "O"
        if kind not in "fiu":
            return "must be a number" if not self.shape else "must be an array of numbers"
        array = np.asarray(value)
        if array.ndim != len(self.shape) or not self._fits(array.shape, sizes):
            return f"has shape {array.shape} and must have {self._wanted(sizes)}"
        if self.is_finite and not np.isfinite(array).all():
            return "must be finite"
        if array.size and not (array.min() >= self.low and array.max() <= self.high):
            return f"must be between {self.low:g} and {self.high:g}"
        return None

    def _fits(self, shape: tuple[int, ...], sizes: dict[str, int]) -> bool:
        return all(
            size == (sizes.setdefault(want, size) if isinstance(want, str) else want)
            for size, want in zip(shape, self.shape, strict=True)
        )

    def _wanted(self, sizes: Mapping[str, int]) -> str:
        return f"({', '.join(str(sizes.get(str(want), want)) for want in self.shape)})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.generic) and not isinstance(value, bool)


_NUMBER = Expected()
_SHARE = Expected((), 0.0, 1.0)
_MOST_TEMPERATURE = 1e30
"""A separable fit stops somewhere; beyond this, and below its inverse, no score survives."""
_TEMPERATURE = Expected((), 1 / _MOST_TEMPERATURE, _MOST_TEMPERATURE)
_LINE = {"coef_": _NUMBER, "intercept_": _NUMBER}
_DIAGONAL = {"coef_": Expected(("K",)), "intercept_": Expected(("K",))}
_MATRIX = {"coef_": Expected(("K", "K")), "intercept_": Expected(("K",))}
_EDGES = Expected(("B",), is_finite=False)
_RATES = Expected(("B",), 0.0, 1.0)
_ROWS = Expected(("B",), 0.0)

_FITTED: dict[str, dict[str, Expected]] = {
    "PlattScaling": _LINE,
    "BetaCalibration": {"a_": _NUMBER, "b_": _NUMBER, "c_": _NUMBER},
    "IsotonicCalibration": {"edges_": _EDGES, "centres_": _EDGES, "values_": _RATES},
    "HistogramBinning": {"edges_": _EDGES, "counts_": _ROWS, "hits_": _ROWS, "values_": _RATES},
    "BayesianBinning": {"edges_": _EDGES, "values_": _RATES, "weights_": Expected(("M",), 0, 1)},
    "SplineCalibration": {"scores_": _EDGES, "values_": _RATES},
    "VennAbers": {"scores_": _EDGES, "p0_": _RATES, "p1_": _RATES},
    "TemperatureScaling": {"temperature_": _TEMPERATURE},
    "EnsembleTemperatureScaling": {"temperature_": _TEMPERATURE, "weights_": Expected((3,), 0, 1)},
    "VectorScaling": _DIAGONAL,
    "MatrixScaling": _MATRIX,
    "DirichletCalibration": _MATRIX,
    "GaussianProcessCalibration": {
        "kernel_variance_": Expected((), 0.0),
        "lengthscale_": Expected((), 0.0),
        "noise_": Expected((), 0.0),
        "inducing_inputs_": Expected(("M",)),
        "inducing_mean_": Expected(("M",)),
        "inducing_covariance_": Expected(("M", "M")),
        "draws_": Expected(("S", "D")),
    },
    "CanonicalBinning": {
        "occupied_": Expected(("B",), 0),
        "counts_": _ROWS,
        "values_": Expected(("B", "K"), 0.0, 1.0),
        "directions_": Expected(("C", "K")),
        "thresholds_": Expected(("C",), is_finite=False),
    },
    "MulticlassToBinary": {"claim_weights_": Expected(("C",), 0.0)},
    "AutoCalibration": {"weights_": Expected(("M",), 0.0, 1.0)},
}
"""Of our own calibrators, by what files call them; attributes that are not here are not computed
with, or are calibrators, which are checked themselves."""

_EVERYWHERE = frozenset(
    {"classes_", "n_classes_", "n_features_in_", "feature_names_in_", "training_"}
    | {
        "out_of_fold_",
        "class_weights_",
        "class_prior_",
        "converged_",
        "n_iter_",
        "objective_",
        "cv_scores_",
    }
)


def check_fitted_values(name: str, made: Any, fitted: Mapping[str, Any]) -> None:
    """Raise where fitted attributes of a calibrator are not what a fit leaves behind."""
    _check_known(name, type(made), fitted)
    sizes = dict(_check_classes(fitted)) if fitted else {}
    for key, expected in _expected_of(name, made).items():
        if key in fitted and (wrong := expected.check(fitted[key], sizes)):
            raise ValueError(f"{name}.{key} {wrong}")
    if name == "GaussianProcessCalibration" and fitted:
        _check_draws(sizes)
    if name == "CanonicalBinning" and fitted:
        _check_bins(made, fitted)


def _expected_of(name: str, made: Any) -> Mapping[str, Expected]:
    if name == "StructuredScaling":
        maps = _MATRIX if made.get_params(deep=False)["structure"] == "matrix" else _DIAGONAL
        return {"temperature_": _TEMPERATURE, "smoothing_": _SHARE, **maps}
    return _FITTED.get(name, {})


def _check_draws(sizes: Mapping[str, int]) -> None:
    if "D" in sizes and sizes["D"] != sizes.get("M", 0) + sizes["K"]:
        raise ValueError("GaussianProcessCalibration.draws_ do not belong to its inducing inputs")


def _check_bins(made: Any, fitted: Mapping[str, Any]) -> None:
    n_bins, occupied = fitted.get("n_bins_"), fitted.get("occupied_")
    cuts = fitted.get("thresholds_")
    is_whole = type(n_bins) is int and n_bins >= 1
    if not is_whole or (cuts is not None and n_bins != len(cuts) + 1):
        raise ValueError("CanonicalBinning.n_bins_ is not the number of its bins")
    if isinstance(occupied, np.ndarray) and occupied.size and occupied.max() >= n_bins:
        raise ValueError("CanonicalBinning.occupied_ names bins that there are not")


def _check_known(name: str, cls: type, fitted: Mapping[str, Any]) -> None:
    if not cls.__module__.startswith("calibrant."):
        return  # a fit that others wrote may set attributes from anywhere
    known = _EVERYWHERE | mentioned_names(cls)
    strange = sorted(key for key in fitted if key not in known)
    if strange:
        raise ValueError(f"{strange[0]!r} is no fitted attribute of {name}")


def mentioned_names(cls: type) -> frozenset[str]:
    """The attributes that the methods of a class mention: those that its fit can have set."""
    members = (member for owner in cls.__mro__ for member in vars(owner).values())
    return frozenset(name for member in members for name in _names_of(member))


def _names_of(member: Any) -> Iterator[str]:
    function = member.fget if isinstance(member, property) else member
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from _names_in(code)


def _names_in(code: Any) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if hasattr(inner, "co_names"):
            yield from _names_in(inner)


def _check_classes(fitted: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    labels, n_classes = fitted.get("classes_"), fitted.get("n_classes_")
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or len(labels) < 2:
        raise ValueError("classes_ must be the labels of two or more columns")
    if type(n_classes) is not int or n_classes != len(labels):
        raise ValueError(f"n_classes_ is {n_classes!r} and there are {len(labels)} labels")
    _check_labels(labels)
    _check_summaries(fitted, n_classes)
    yield "K", n_classes


def _check_labels(labels: Any) -> None:
    listed = labels.tolist()
    if any(isinstance(label, float) and not np.isfinite(label) for label in listed):
        raise ValueError("classes_ must be finite")
    if not all(isinstance(label, str | int | float | None) for label in listed):
        raise ValueError("classes_ must be names or numbers")
    if len(set(listed)) != len(listed):
        raise ValueError("classes_ must differ from each other")


def _check_summaries(fitted: Mapping[str, Any], n_classes: int) -> None:
    training = fitted.get("training_")
    if not isinstance(training, TrainingSummary | None):
        raise ValueError("training_ must be a summary of the training data")
    if training is not None and training.n_classes != n_classes:
        raise ValueError(f"training_ speaks of {training.n_classes} classes, not of {n_classes}")
    if "class_weights_" in fitted:
        wrong = Expected((n_classes,), 0.0).check(fitted["class_weights_"], {})
        if wrong:
            raise ValueError(f"class_weights_ {wrong}")


@dataclass
class References:
    """How many calibrators a prediction runs through: a part that several refer to counts for each
    of them, so that few entries can stand for more than can ever be run.
    """

    costs: list[int] = field(default_factory=list)
    _given: int = 0
    _cost: int = 1

    LEAST = 1000
    """Runs that are allowed whatever refers to what."""

    def refer(self, place: int) -> None:
        """Note that the calibrator that is read has another as a part."""
        self._given += 1
        self._cost += self.costs[place]

    def close(self) -> None:
        """Note that it has been read."""
        if self._cost > self.LEAST + 10 * self._given:
            raise ValueError(
                f"its calibrators refer to each other so often that a prediction would run "
                f"{self._cost:,} of them"
            )
        self.costs.append(self._cost)
        self._cost = 1
