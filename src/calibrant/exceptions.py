"""Warnings and errors. Bad input is a plain ``ValueError`` or ``TypeError``."""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = ["ConvergenceWarning", "NotFittedError"]
