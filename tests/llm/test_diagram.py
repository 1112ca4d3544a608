"""Small reliability diagrams."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.llm import Run
from calibrant.llm._diagram import draw_diagram, task_diagram


def test_bins_hold_all_rows(rng):
    confidence = rng.uniform(0.3, 1, 205)
    run = Run("a", "stated", rng.random(205) < confidence, confidence)
    diagram = task_diagram("a", run)
    assert sum(diagram.rows) == 205
    assert len(diagram.rows) == 10
    mean = np.average(diagram.confidence, weights=diagram.rows)
    assert mean == pytest.approx(confidence.mean())
    assert np.average(diagram.accuracy, weights=diagram.rows) == pytest.approx(run.accuracy)
    assert all(
        a <= b <= c for a, b, c in zip(diagram.low, diagram.accuracy, diagram.high, strict=True)
    )
    assert diagram.to_dict()["rows"] == list(diagram.rows)


def test_few_rows_have_one_bin_and_names_are_escaped():
    run = Run("<b>", "stated", np.array([True, False]), np.array([0.5, 0.5]))
    drawing = draw_diagram(task_diagram("<b>", run))
    assert drawing.count('class="before"') == 1
    assert "<b>" not in drawing
    assert "accuracy 50%" in drawing
