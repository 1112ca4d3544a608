"""Start commands quickly: leave out what scikit-learn and pyarrow import and no command needs."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_NAMES = ("scipy.stats", "numpy.f2py")
"""SciPy and scikit-learn import these and do not use them before a command ends."""


class _Deferred(ModuleType):
    """Stands for a module until an attribute of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # the import system asks for these
        return getattr(import_module(self.__name__), name)


_OPTIONAL = frozenset({"pandas", "psutil"})
"""Packages that scikit-learn, joblib and pyarrow import if they can, and no command needs."""


class _WithoutOptional:
    """A finder that knows no optional packages."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name in _OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_out_optional() -> None:
    """Let this process be one without optional packages of other packages.

    For the process of a command only: a program that calls `calibrant.cli.run` may need them.
    """
    sys.meta_path.insert(0, _WithoutOptional)  # type: ignore[arg-type]  # a class with static methods


def import_sklearn() -> None:
    """Import the base of scikit-learn without modules that are imported on first use."""
    if "sklearn" in sys.modules or any(name in sys.modules for name in _NAMES):
        return
    for name in _NAMES:
        sys.modules[name] = _Deferred(name)
    # NumPy looks such modules up as attributes of its own, and imports them if they are missing.
    numpy = import_module("numpy")
    numpy.f2py = sys.modules["numpy.f2py"]  # type: ignore[attr-defined]
    try:
        import_module("sklearn.base")
    finally:
        del numpy.f2py  # type: ignore[attr-defined]
        for name in _NAMES:
            del sys.modules[name]
