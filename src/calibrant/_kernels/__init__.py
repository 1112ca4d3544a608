"""Computations on blocks of rows.

`blocks` divides rows into blocks and adds up results. `simplex` contains functions of probabilities
and logits. This module exports the few loops that take most of the time. ``_numpy`` defines these
loops. ``_numba`` (optional dependency ``fast``) has compiled counterparts that return the same
numbers up to rounding.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any

from calibrant._kernels import _numpy
from calibrant._kernels._numpy import (
    cell_sums,
    entries,
    ordered_pairs,
    packed_pairs,
    power_sums,
    top_labels,
    unpacked_pairs,
)

__all__ = [
    "cell_sums",
    "entries",
    "kernel",
    "ordered_pairs",
    "packed_pairs",
    "power_sums",
    "top_labels",
    "unpacked_pairs",
]

WORTH_IMPORT = 2**23
"""Number of elements from which a compiled loop saves more time than importing numba takes (half a
second)."""

WORTH_CALL = 2**12
"""Number of elements from which a compiled function is faster, if numba is already imported."""

_COMPILED = "calibrant._kernels._numba"


def kernel(name: str, n_elements: int) -> Any:
    """Return a function of `_numpy`, or its compiled counterpart for a loop over many elements.

    Compiled functions need numba. If the environment variable ``CALIBRANT_FAST`` is 0, compiled
    functions are never used. If the variable is 1, compiled functions are always used.
    """
    setting = os.environ.get("CALIBRANT_FAST")
    least = WORTH_CALL if _COMPILED in sys.modules else WORTH_IMPORT
    if setting == "0" or (setting != "1" and n_elements < least) or not _is_installed():
        return getattr(_numpy, name)
    from calibrant._kernels import _numba

    return _numba.FUNCTIONS[name]


def _is_installed() -> bool:
    return "numba" in sys.modules or find_spec("numba") is not None
