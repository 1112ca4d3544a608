"""Pictures are drawn without a screen, and closed after every test."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("matplotlib") is None:
    collect_ignore_glob = ["test_*.py"]  # a plain installation has no displays
else:
    import matplotlib as mpl

    mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
