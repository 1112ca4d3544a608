"""Error messages for keywords of other packages."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

_HINTS = {
    "method": "Pass the method as the second argument: CalibratedClassifier(estimator, {value!r}).",
    "random_state": "Pass the seed to the calibrator, as in "
    "CalibratedClassifier(estimator, AutoCalibration(random_state={value!r})), or to a splitter "
    "for cv=.",
}
"""Replacements of keywords."""


class KeywordHints:
    """Base class whose errors about unknown keywords contain the replacement.

    The class checks keywords in ``__new__``, because scikit-learn reads the parameters of
    ``__init__``.
    """

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        for name, hint in _HINTS.items():
            # A subclass may have a parameter of this name.
            if name in keywords and name not in signature(cls).parameters:
                raise TypeError(
                    f"{cls.__name__} has no parameter {name!r}. {hint.format(value=keywords[name])}"
                )
        return super().__new__(cls)
