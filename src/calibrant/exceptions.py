"""Warnings and errors. Invalid input raises ``ValueError`` or ``TypeError``."""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = ["ConvergenceWarning", "DataWarning", "NotFittedError", "TooFewRowsError"]


class DataWarning(UserWarning):
    """Suspicious data were accepted, after an assumption or a repair that the message describes."""


class TooFewRowsError(ValueError):
    """There are too few rows for the requested operation; the input is valid otherwise."""


def __dir__() -> list[str]:
    return __all__
