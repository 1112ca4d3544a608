"""Start commands quickly: leave out what scikit-learn and pyarrow import and no command needs."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_NAME = "scipy.stats"
"""It takes longer to import than the rest of scikit-learn."""


class _Deferred(ModuleType):
    """Stands for a module until an attribute of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # the import system asks for these
        return getattr(import_module(self.__name__), name)


class _WithoutPandas:
    """A finder that knows no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def leave_out_pandas() -> None:
    """Let this process be one without pandas, which scikit-learn and pyarrow import if they can.

    For the process of a command only: a program that calls `calibrant.cli.run` may need pandas.
    """
    sys.meta_path.insert(0, _WithoutPandas)  # type: ignore[arg-type]  # a class with static methods


def import_sklearn() -> None:
    """Import the base of scikit-learn without ``scipy.stats``, which it imports on first use."""
    if "sklearn" in sys.modules or _NAME in sys.modules:
        return
    sys.modules[_NAME] = _Deferred(_NAME)
    try:
        import_module("sklearn.base")
    finally:
        del sys.modules[_NAME]
