"""Isotonic curves (CORP) of reliability diagrams."""

from __future__ import annotations

from typing import Any

from calibrant._typing import Rng
from calibrant._validation import check_count
from calibrant.inference._isotonic_curve import IsotonicCurve, isotonic_curve
from calibrant.notions import Claims, Notion
from calibrant.plots._style import AFTER, ALONE, BEFORE, REFERENCE, Series


def fit_curve(
    notion: Notion, claims: Claims, level: float, n_resamples: int, rng: Rng
) -> IsotonicCurve:
    """Fit the isotonic curve of a notion with one claim, or raise ValueError for several claims."""
    check_count(n_resamples, "n_resamples")
    if claims.n_claims > 1:
        raise ValueError(
            f"curve='isotonic' needs one claim, but notion {notion.name!r} has {claims.n_claims} "
            "claims. Pass notion='confidence' or notion='class-1', or curve='bins'."
        )
    return isotonic_curve(next(iter(claims)), level, n_resamples, rng)


def draw_curve(ax: Any, curve: IsotonicCurve, style: Series, name: str, **keywords: Any) -> Any:
    """Draw a curve and return its line. ``keywords`` are options of the line in matplotlib."""
    look = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.6, "zorder": 4}
    (line,) = ax.plot(curve.score, curve.frequency, **(look | keywords))
    line.set_label(name)
    return line


def draw_curves(ax: Any, after: IsotonicCurve, before: IsotonicCurve | None) -> list[Any]:
    """Draw the curve after calibration with its band and, if passed, the curve before calibration.

    Return handles for a legend.
    """
    band = {"color": REFERENCE, "alpha": 0.2, "linewidth": 0, "zorder": 2}
    shade = ax.fill_between(after.score, after.low, after.high, **band)
    if before is None:
        return [draw_curve(ax, after, ALONE, "observed"), shade]
    return [draw_curve(ax, before, BEFORE, "before"), draw_curve(ax, after, AFTER, "after"), shade]
