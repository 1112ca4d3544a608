"""A parameter ``score`` of estimators that also have scikit-learn's method ``score``."""

from __future__ import annotations

from types import MethodType
from typing import Any


class ScoreParameter:
    """Descriptor for a class with a parameter and a method of the name ``score``.

    The constructor and `set_params` set the parameter, and `get_params` returns it.
    ``estimator.score(X, y)`` is the method, as scikit-learn expects. Without this descriptor, the
    parameter would hide the method.
    """

    def __init__(self, method: Any) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.method if instance is None else MethodType(self.method, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)["score"] = value


class HasScoreParameter:
    """Base of estimators whose parameter ``score`` is a `ScoreParameter`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of estimators inside.

        Returns
        -------
        dict
            Names and values.
        """
        params: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        return {**params, "score": vars(self)["score"]}
