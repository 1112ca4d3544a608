"""The names of classes in saved files.

A file contains the name of a class, and this table maps the name to a class of this package or to a
registered class. Files contain no import paths, so only code runs that the user has imported and
registered before.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from calibrant import _HOMES
from calibrant.base import Calibrator

_CALIBRATOR_HOMES = ("binary", "multiclass", "reductions", "selection")
_NO_CALIBRATORS = frozenset({"compare", "compare_models", "method"})

CALIBRATORS = tuple(
    name
    for name, home in _HOMES.items()
    if home in _CALIBRATOR_HOMES and name not in _NO_CALIBRATORS
)
"""Names of the calibrators of this package."""

DECISIONS = ("DecisionClassifier", "DecisionRule", "PredictionSets", "SelectiveClassifier")
"""Names of the decisions of this package that can be saved."""

_INTERNAL: Mapping[str, str] = {
    **{name: _HOMES[name] for name in CALIBRATORS},
    "TrainingSummary": "base.training",
    "Gain": "inference",
    "Certificate": "guarantees",
    **dict.fromkeys(DECISIONS, "decisions"),
}
"""Classes of this package that a file may name, and their modules. Modules are imported when a file
names one of their classes, because imports take most of the time of a command."""

LONGEST_NAME = 200
"""Maximum length of a registered name, because error messages repeat it."""

_external: dict[str, type] = {}
"""Registered classes of other packages."""

AnyCalibrator = TypeVar("AnyCalibrator", bound=type[Calibrator])


def register(cls: AnyCalibrator, name: str | None = None) -> AnyCalibrator:
    """Register a calibrator of another package, so `save` and `load` accept it.

    Parameters
    ----------
    cls : subclass of `calibrant.base.Calibrator`
        `save` writes its parameters and fitted attributes (``name_``). `load` calls the class with
        the parameters, checks the fitted attributes against its ``fitted_values``, and sets the
        attributes.
    name : str, optional
        Name of the class in files. The default is the name of the class. Use ``"package.Class"`` to
        avoid conflicts with other packages. Do not change the name while saved files still contain
        it.

    Returns
    -------
    cls : type
        The class itself, so ``@register`` works as a decorator.

    Raises
    ------
    ValueError
        If another class is registered with the same name. The names of this package are reserved.

    See Also
    --------
    save : Write a fitted calibrator to a file.
    load : Read a calibrator from a file.

    Examples
    --------
    >>> from calibrant.multiclass import TemperatureScaling
    >>> class Lukewarm(TemperatureScaling):
    ...     pass
    >>> register(Lukewarm, name="docs.Lukewarm").__name__
    'Lukewarm'
    """
    if not (inspect.isclass(cls) and issubclass(cls, Calibrator)) or inspect.isabstract(cls):
        raise TypeError(
            f"register needs a concrete subclass of calibrant.base.Calibrator, got {cls!r}."
        )
    name = cls.__name__ if name is None else name
    _check_name(name)
    if name in _INTERNAL or not _is_same(_external.get(name, cls), cls):
        raise ValueError(
            f"{name!r} is already the name of another calibrator. Pass another name for "
            f"{cls.__module__}.{cls.__qualname__}, such as name='my_package.{cls.__name__}'."
        )
    other = next((key for key, entry in _external.items() if entry is cls and key != name), None)
    if other is not None:
        raise ValueError(f"{cls.__qualname__} is already registered as {other!r}.")
    _external[name] = cls
    return cls


class _Registered(Mapping[str, type]):
    """Classes by their names in files. Classes of this package are imported when they are used."""

    def __getitem__(self, name: str) -> type:
        if name in _INTERNAL:
            cls: type = getattr(import_module(f"calibrant.{_INTERNAL[name]}"), name)
            return cls
        return _external[name]

    def __contains__(self, name: object) -> bool:
        return name in _INTERNAL or name in _external

    def __iter__(self) -> Iterator[str]:
        return iter([*_INTERNAL, *_external])

    def __len__(self) -> int:
        return len(_INTERNAL) + len(_external)


def registered() -> Mapping[str, type]:
    """Classes by name, for all names that may occur in a file."""
    return _Registered()


def _check_name(name: str) -> None:
    parts = name.split(".") if isinstance(name, str) else [""]
    if not all(part.isidentifier() for part in parts) or len(name) > LONGEST_NAME:
        raise ValueError(
            "name must consist of identifiers that are separated by dots, such as "
            f"'my_package.MyCalibrator', got {name!r}."
        )


def _is_same(registered_class: type, cls: type) -> bool:
    """Return whether two classes are the same, or one redefines the other, as in a notebook."""
    return (registered_class.__module__, registered_class.__qualname__) == (
        cls.__module__,
        cls.__qualname__,
    )
