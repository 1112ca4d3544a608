"""Tests that need files which only a clone has."""

from __future__ import annotations

from pathlib import Path

import pytest

only_in_clone = pytest.mark.skipif(
    not (Path(__file__).parents[2] / ".github").exists(),
    reason="needs a clone: a source distribution has no pictures and no measured results",
)
