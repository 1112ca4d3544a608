"""Start commands quickly, without modules that scikit-learn and pyarrow import needlessly."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_NAMES = ("scipy.stats", "numpy.f2py", "narwhals", "narwhals.stable", "narwhals.stable.v2")
"""Modules that SciPy and scikit-learn import, but that no command uses."""


class _Deferred(ModuleType):
    """Placeholder that imports its module when an attribute is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # the import system looks up these names
        return getattr(import_module(self.__name__), name)


_OPTIONAL = frozenset({"pandas", "psutil"})
"""Packages that scikit-learn, joblib and pyarrow import if installed, but no command needs."""


class _WithoutOptional:
    """Import finder that hides the optional packages."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name in _OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_out_optional() -> None:
    """Hide packages that no command needs from imports of this process.

    Only `calibrant.cli.main` calls this function, because a program that calls `calibrant.cli.run`
    may need these packages.
    """
    # A class with static methods is a valid finder, but not for the type checker.
    sys.meta_path.insert(0, _WithoutOptional)  # type: ignore[arg-type]


def import_sklearn() -> None:
    """Import the base of scikit-learn, with placeholders for slow modules."""
    if "sklearn" in sys.modules or any(name in sys.modules for name in _NAMES):
        return
    _add_placeholders()
    # NumPy looks up these modules as its attributes, and imports them if they are missing.
    numpy = import_module("numpy")
    numpy.f2py = sys.modules["numpy.f2py"]  # type: ignore[attr-defined]
    try:
        import_module("sklearn.base")
    finally:
        del numpy.f2py  # type: ignore[attr-defined]
        for name in _NAMES:
            del sys.modules[name]


def _add_placeholders() -> None:
    for name in _NAMES:
        sys.modules[name] = _Deferred(name)
        parent, _, child = name.rpartition(".")
        # "import a.b.c as d" reads b and c as attributes of their parents.
        if parent in _NAMES:
            setattr(sys.modules[parent], child, sys.modules[name])
