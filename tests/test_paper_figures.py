"""The figures of `tools/paper_figures.py` show the numbers that they are about."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from calibrant.datasets import noisy_simplex
from calibrant.metrics import expected_calibration_error

pytest.importorskip("matplotlib").use("agg")

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "paper_figures.py"


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("paper_figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(500, 4, 0.4, rng=3)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    pytest.importorskip("matplotlib.pyplot").close("all")


def test_boxes_show_quartiles_means_and_deviations(figures, data):
    ax = figures.score_boxes(data.labels, data.proba, "abcd").axes[1]
    column = data.proba[data.labels == 1][:, 3]
    box = ax.patches[3].get_path().vertices[:, 1]
    quartiles = np.quantile(column, [0.25, 0.75], method="inverted_cdf")
    np.testing.assert_allclose([box.min(), box.max()], quartiles)
    lines = ax.containers[0].lines
    np.testing.assert_allclose(lines[0].get_ydata()[3], column.mean())
    ends = lines[2][0].get_segments()[3][:, 1]
    np.testing.assert_allclose(ends[1] - ends[0], 2 * column.std())


def test_the_latent_function_is_drawn_above_the_inputs(figures, data):
    class Process:
        def latent(self, z):
            return 2 * z, 0.1 + 0 * z

    above, below = figures.latent_function(Process(), data.proba, data.labels).axes
    mean, prior = above.lines
    np.testing.assert_allclose(mean.get_ydata(), 2 * mean.get_xdata())
    np.testing.assert_allclose(prior.get_ydata(), np.log(prior.get_xdata()))
    hits, misses = (collection.get_offsets() for collection in below.collections)
    np.testing.assert_allclose(hits[:, 0].sum() + misses[:, 0].sum(), 300)


def test_lines_are_the_errors_for_each_number_of_bins(figures, data):
    (ax,) = figures.errors_by_bins(data.labels, {"model": data.proba}).axes
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    for notion in ("top-label", "confidence"):
        error = expected_calibration_error(data.labels, data.proba, notion=notion, n_bins=15)
        assert lines[f"model, {notion}"][10] == pytest.approx(error, abs=1e-15)


def test_bars_are_the_shares_of_accepted_tests(figures):
    (ax,) = figures.accepted_tests({"a": [0.01, 0.2], "b": [0.5, 0.6], "c": [0.0]}).axes
    assert [patch.get_height() for patch in ax.patches] == [1.0, 0.5, 0.0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["b", "a", "c"]
