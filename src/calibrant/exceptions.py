"""Warnings and errors. Bad input is a plain ``ValueError`` or ``TypeError``."""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = ["ConvergenceWarning", "DataWarning", "NotFittedError", "TooFewRowsError"]


class DataWarning(UserWarning):
    """Data were taken, and something was assumed about them or repaired: the message says what,
    and how to say otherwise.
    """


class TooFewRowsError(ValueError):
    """There are too few rows for what was asked, and nothing else is wrong."""


def __dir__() -> list[str]:
    return __all__
