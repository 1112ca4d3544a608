"""Small reliability diagrams as inline SVG, one per task."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant.guarantees import clopper_pearson
from calibrant.llm._run import Run
from calibrant.metrics import calibration_curve
from calibrant.report._svg import point

_ROWS_PER_BIN, _MOST_BINS = 20, 10
"""A task of n rows has n / 20 quantile bins, but at most 10, because the diagram is small."""

_SIZE, _LEFT, _BOTTOM, _TOP = 200.0, 34.0, 26.0, 8.0
"""Size and margins in units of the viewBox."""


@dataclass(frozen=True)
class TaskDiagram:
    """Bins of a reliability diagram, with mean confidence, accuracy, its 95% interval, and rows."""

    task: str
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    rows: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}


def task_diagram(name: str, run: Run) -> TaskDiagram:
    """Compute the bins of a task."""
    n_bins = int(np.clip(len(run) // _ROWS_PER_BIN, 1, _MOST_BINS))
    # In this binary problem, class 1 means that the answer is correct.
    outcome = run.correct.astype(int)
    table = calibration_curve(
        outcome, run.confidence, notion="class-1", n_bins=n_bins, strategy="quantile"
    )
    used = table.weight[0] > 0
    rows, hits = table.weight[0][used], table.outcome[0][used]
    low, high = clopper_pearson(hits, rows, 0.05)
    columns = (table.score[0][used] / rows, hits / rows, low, high, rows.astype(int))
    return TaskDiagram(name, *(tuple(column.tolist()) for column in columns))


def draw_diagram(diagram: TaskDiagram) -> str:
    """Return the diagram as SVG, with the colors of the page."""
    left, right, bottom, top = _LEFT, _SIZE - 8, _SIZE - _BOTTOM, _TOP

    def across(value: float) -> float:
        return left + value * (right - left)

    def up(value: float) -> float:
        return bottom - value * (bottom - top)

    ticks = (0.0, 0.5, 1.0)
    grid = "".join(f"M{across(t):.0f} {top}V{bottom}M{left} {up(t):.0f}H{right}" for t in ticks)
    texts = "".join(
        f'<text x="{across(t):.0f}" y="{bottom + 17}" text-anchor="middle">{t:g}</text>'
        f'<text x="{left - 5}" y="{up(t) + 4:.0f}" text-anchor="end">{t:g}</text>'
        for t in ticks
    )
    points = "".join(
        # The confidences are not calibrated, so they have the color and the mark of "before".
        f'<g class="point"><title>{_point_title(x, y, lo, hi, n)}</title><path '
        f'class="before whisker" d="M{across(x):.1f} {up(lo):.1f}V{up(hi):.1f}"/>'
        f"{point(across(x), up(y), 4.0, 'before')}</g>"
        for x, y, lo, hi, n in zip(
            diagram.confidence,
            diagram.accuracy,
            diagram.low,
            diagram.high,
            diagram.rows,
            strict=True,
        )
    )
    line = f"M{across(0):.0f} {up(0):.0f}L{across(1):.0f} {up(1):.0f}"
    label = f"Reliability diagram of {diagram.task}: accuracy against mean confidence."
    return (
        f'<svg viewBox="0 0 {_SIZE:.0f} {_SIZE:.0f}" role="img" aria-label="{escape(label)}">'
        f'<path class="grid" d="{grid}"/><path class="calibrated" d="{line}"/>{texts}{points}</svg>'
    )


def _point_title(score: float, share: float, low: float, high: float, rows: int) -> str:
    return (
        f"mean confidence {format_percent(score)}, accuracy {format_percent(share)} (95% CI "
        f"{format_percent(low)} to {format_percent(high)}), {rows:,} rows"
    )
