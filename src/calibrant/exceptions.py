"""Warnings and errors. Bad input is a plain ``ValueError`` or ``TypeError``."""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = ["ConvergenceWarning", "NotFittedError", "TooFewRowsError"]


class TooFewRowsError(ValueError):
    """There are too few rows for what was asked, and nothing else is wrong."""


def __dir__() -> list[str]:
    return __all__
