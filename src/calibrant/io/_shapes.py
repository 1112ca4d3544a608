"""Checks of the fitted attributes in a file, before a prediction uses the attributes.

A damaged or malicious file must not make a prediction use far more memory than the file size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.base import FittedValue
from calibrant.base.training import TrainingSummary

_EVERYWHERE = frozenset(
    {"classes_", "n_classes_", "n_features_in_", "feature_names_in_", "training_"}
    | {"out_of_fold_", "class_weights_", "converged_", "n_iter_", "objective_", "cv_scores_"}
)


def check_fitted_values(name: str, calibrator: Any, fitted: Mapping[str, Any]) -> None:
    """Raise if fitted attributes of a calibrator cannot be the result of a fit."""
    _check_known(name, type(calibrator), fitted)
    if not fitted:
        return
    sizes = dict(_check_classes(fitted))
    for key, expected in calibrator.fitted_values.items():
        if key in fitted and (problem := expected.check(fitted[key], sizes)):
            raise ValueError(f"{name}.{key} {problem}")
    calibrator._check_together(fitted)


def _check_known(name: str, cls: type, fitted: Mapping[str, Any]) -> None:
    if not cls.__module__.startswith("calibrant."):
        return  # calibrators of other packages may set attributes anywhere in their code
    possible = _EVERYWHERE | mentioned_names(cls)
    unknown = sorted(key for key in fitted if key not in possible)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a fitted attribute of {name}")


def mentioned_names(cls: type) -> frozenset[str]:
    """Return the names in the code of the methods of a class.

    `fit` can set only these attributes.
    """
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
        raise ValueError("classes_ must be an array of two or more labels")
    if type(n_classes) is not int or n_classes != len(labels):
        raise ValueError(f"n_classes_ is {n_classes!r}, but classes_ has {len(labels)} labels")
    _check_labels(labels)
    _check_summaries(fitted, n_classes)
    yield "K", n_classes


def _check_labels(labels: Any) -> None:
    listed = labels.tolist()
    if any(isinstance(label, float) and not np.isfinite(label) for label in listed):
        raise ValueError("the numbers in classes_ must be finite")
    if not all(isinstance(label, str | int | float | None) for label in listed):
        raise ValueError("classes_ must contain strings or numbers")
    if len(set(listed)) != len(listed):
        raise ValueError("classes_ must not contain duplicates")


def _check_summaries(fitted: Mapping[str, Any], n_classes: int) -> None:
    training = fitted.get("training_")
    if not isinstance(training, TrainingSummary | None):
        raise ValueError("training_ must be a summary of the training data")
    if training is not None and training.n_classes != n_classes:
        raise ValueError(f"training_ has {training.n_classes} classes instead of {n_classes}")
    names = fitted.get("feature_names_in_")
    if names is not None and not _are_names(names, fitted.get("n_features_in_")):
        raise ValueError("feature_names_in_ must contain one name per column, without duplicates")
    if "class_weights_" in fitted:
        problem = FittedValue((n_classes,), 0.0).check(fitted["class_weights_"], {})
        if problem:
            raise ValueError(f"class_weights_ {problem}")


def _are_names(names: Any, count: Any) -> bool:
    if not isinstance(names, np.ndarray) or names.shape != (count,):
        return False
    listed = names.tolist()
    return all(isinstance(name, str) for name in listed) and len(set(listed)) == len(listed)


@dataclass
class References:
    """Count the calibrators that a prediction runs, and limit their number.

    An inner calibrator counts once for each reference to it. Without a limit, a small file with
    nested references could describe a prediction that never ends.
    """

    costs: list[int] = field(default_factory=list)
    _n_references: int = 0
    _cost: int = 1

    LEAST = 1000
    """Number of runs that is always allowed."""

    def refer(self, place: int) -> None:
        """Count a reference from the current calibrator to an earlier calibrator."""
        self._n_references += 1
        self._cost += self.costs[place]

    def close(self) -> None:
        """Finish the current calibrator."""
        limit = self.LEAST + 10 * self._n_references
        if self._cost > limit:
            raise ValueError(
                f"a prediction would run {self._cost:,} calibrators, but at most {limit:,} are "
                "allowed"
            )
        self.costs.append(self._cost)
        self._cost = 1
