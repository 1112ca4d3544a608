"""The names of classes in saved files: those of this package, and those that others register.

A file never says where to import a class from; it holds a name, and this table says what the name
means. So nothing is run that the user did not import and register beforehand.
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

_OURS: Mapping[str, str] = {
    **{name: _HOMES[name] for name in CALIBRATORS},
    "TrainingSummary": "base._training",
    "Gain": "inference",
}
"""Every class of this package that a file may name, and its module. Modules are imported when a
file names one of their classes, because imports take most of the time of a command."""

LONGEST_NAME = 200
"""Characters of a registered name: it is read back in errors."""

_theirs: dict[str, type] = {}

AnyCalibrator = TypeVar("AnyCalibrator", bound=type[Calibrator])


def register(cls: AnyCalibrator, name: str | None = None) -> AnyCalibrator:
    """Let `save` and `load` know a calibrator that is not of this package.

    Parameters
    ----------
    cls : subclass of `calibrant.base.Calibrator`
        Its parameters and its fitted attributes (``name_``) are what is written; ``load`` calls it
        with the former and sets the latter, once they are what its ``fitted_values`` declare.
    name : str, optional
        What files call it, for as long as there are files; by default the name of the class.
        ``"package.Class"`` keeps it apart from those of others.

    Returns
    -------
    cls : so that ``@register`` decorates a class

    Raises
    ------
    ValueError
        For a name that is taken: those of this package always are.

    Examples
    --------
    >>> from calibrant.multiclass import TemperatureScaling
    >>> class Lukewarm(TemperatureScaling):
    ...     pass
    >>> register(Lukewarm, name="docs.Lukewarm").__name__
    'Lukewarm'
    """
    if not (inspect.isclass(cls) and issubclass(cls, Calibrator)) or inspect.isabstract(cls):
        raise TypeError(f"register takes a class made of calibrant.base.Calibrator, got {cls!r}")
    name = cls.__name__ if name is None else name
    _check_name(name)
    if name in _OURS or not _is_same(_theirs.get(name, cls), cls):
        raise ValueError(
            f"{name!r} is the name of another calibrator already: register "
            f"{cls.__module__}.{cls.__qualname__} by a name of its own, such as "
            f"name='my_package.{cls.__name__}'"
        )
    other = next((n for n, known in _theirs.items() if known is cls and n != name), None)
    if other is not None:
        raise ValueError(f"{cls.__qualname__} is registered as {other!r} already")
    _theirs[name] = cls
    return cls


class _Registered(Mapping[str, type]):
    """Classes by their names in files; those of this package are imported when they are used."""

    def __getitem__(self, name: str) -> type:
        if name in _OURS:
            found: type = getattr(import_module(f"calibrant.{_OURS[name]}"), name)
            return found
        return _theirs[name]

    def __contains__(self, name: object) -> bool:
        return name in _OURS or name in _theirs

    def __iter__(self) -> Iterator[str]:
        return iter([*_OURS, *_theirs])

    def __len__(self) -> int:
        return len(_OURS) + len(_theirs)


def registered() -> Mapping[str, type]:
    """Every class that a file may name."""
    return _Registered()


def _check_name(name: str) -> None:
    parts = name.split(".") if isinstance(name, str) else [""]
    if not all(part.isidentifier() for part in parts) or len(name) > LONGEST_NAME:
        raise ValueError(
            f"name must be words with dots between them, such as 'my_package.MyCalibrator', got "
            f"{name!r}"
        )


def _is_same(known: type, cls: type) -> bool:
    """Whether a class is the one that is known, or its definition run again, as in a notebook."""
    return (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
