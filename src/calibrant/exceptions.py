"""Warnings and errors, and the decorator of deprecated functions.

Invalid input raises ``ValueError`` or ``TypeError``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = ["ConvergenceWarning", "DataWarning", "NotFittedError", "TooFewRowsError"]

P = ParamSpec("P")
R = TypeVar("R")

NOTICE = 2
"""Minor releases during which a deprecated name still works (docs/development/policies.md)."""


class DataWarning(UserWarning):
    """Warning about suspicious data that were accepted after an assumption or a repair."""


class TooFewRowsError(ValueError):
    """Raised if there are too few rows for an operation, but the input is valid otherwise."""


class Deprecation(NamedTuple):
    """A deprecated name with its replacement and the versions of its deprecation and removal."""

    name: str
    since: str
    removed_in: str
    instead: str


DEPRECATIONS: list[Deprecation] = []
"""All deprecated names. A test fails if a name still exists in the version of its removal."""


def deprecated(
    *, since: str, removed_in: str, instead: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function as deprecated. Calls warn, and its docstring states the replacement.

    Examples
    --------
    >>> @deprecated(since="0.2", removed_in="0.4", instead="new_name(y, p)")
    ... def old_name(y, p):
    ...     return y
    """
    if _minor(removed_in) < _minor(since) + NOTICE:
        raise ValueError(
            f"A deprecated name works for at least {NOTICE} minor releases, but since={since!r} "
            f"and removed_in={removed_in!r}."
        )

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        DEPRECATIONS.append(Deprecation(function.__qualname__, since, removed_in, instead))
        message = (
            f"{function.__qualname__} is deprecated since version {since} and will be removed in "
            f"version {removed_in}. Use {instead}."
        )

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(message, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        call.__doc__ = (
            f"{function.__doc__ or ''}\n\n    .. deprecated:: {since}\n       {message}\n"
        )
        return call

    return decorate


def _minor(version: str) -> int:
    """Return 3 for "0.3". A major release counts as a hundred minor releases."""
    major, minor = map(int, version.split(".")[:2])
    return 100 * major + minor


def __dir__() -> list[str]:
    return __all__
