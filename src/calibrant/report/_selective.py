"""Risk-coverage curves of a report, and the share of rows that can be answered per error rate."""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.decisions._threshold import find_threshold
from calibrant.inference import RiskCoverageCurve, risk_coverage
from calibrant.report._case import Case
from calibrant.report._charts import rounded
from calibrant.report._risk_content import RiskCoverage, RiskCurve

RISKS = (0.01, 0.02, 0.05, 0.1)
"""Error rates for which a report states how many rows can be answered."""

_LEVEL = 0.9
"""Probability that all bounds of a curve hold, as in `calibrant.inference.risk_coverage`."""

_LINE_POINTS = 200
"""Number of points of a line, more than a reader can distinguish."""


def risk_coverage_of(case: Case) -> RiskCoverage | None:
    """Return the curves before and after calibration, or None for weighted rows.

    The upper bounds of the curves do not hold for weighted rows. After cross-fitting, the upper
    bounds are heuristic, because the label of a row was used to fit the calibrators that predict
    other rows.
    """
    rows = case.drawn
    if rows.sample_weight is not None:
        return None
    before, after = (risk_coverage(rows.y, proba, level=_LEVEL) for proba in rows.both)
    shares = (_proved_shares(proba, case.tested.y, case.request.seed) for proba in case.tested.both)
    proved = tuple(zip(RISKS, *shares, strict=True))
    guarantee = after.guarantee if case.fits.is_held_out else "heuristic"
    return RiskCoverage(_LEVEL, _drawn(before), _drawn(after), proved, guarantee)


def _proved_shares(proba: FloatArray, y: IntArray, seed: int) -> list[float]:
    """Return the share of rows that `SelectiveClassifier` answers at each error rate.

    Each rate gets an equal part of the error probability, so the guarantees of all rates hold
    jointly. These shares are larger than the shares at which the bounds of the curve reach the
    rates, because the bounds hold jointly at 16 points.
    """
    confidence, errors = proba.max(axis=1), (proba.argmax(axis=1) != y).astype(np.float64)
    delta = (1.0 - _LEVEL) / len(RISKS)
    thresholds = (
        find_threshold(confidence, errors, risk, delta, np.random.default_rng(seed))
        for risk in RISKS
    )
    return [threshold.n_answered / len(y) for threshold in thresholds]


def _drawn(curve: RiskCoverageCurve) -> RiskCurve:
    """Return the numbers of a curve, which begins at the first bound."""
    first = curve.coverage[0]
    coverage = np.linspace(first, 1.0, _LINE_POINTS)
    rows = coverage * curve.path.total
    return RiskCurve(
        rounded(coverage),
        rounded(curve.path.errors_at(rows) / rows),
        rounded(curve.coverage),
        rounded(curve.high),
    )
