"""Content of the section on risk and coverage in a report."""

from __future__ import annotations

from dataclasses import dataclass

RISK_COLUMNS = ("Error rate of answers", "Answered before", "Answered after")
"""Labels of the columns of the table, which `calibrant.report._glossary` explains."""


@dataclass(frozen=True)
class RiskCurve:
    """Error rates of the most confident rows by share of rows, and upper bounds at some shares."""

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    bound_coverage: tuple[float, ...]
    bound: tuple[float, ...]


@dataclass(frozen=True)
class RiskCoverage:
    """Risk-coverage curves before and after calibration.

    The bounds of a curve hold jointly with probability ``level``. ``proved`` has a row per error
    rate. The row contains the rate, and the shares of rows that
    `calibrant.decisions.SelectiveClassifier` answers with this guaranteed rate, before and after
    calibration. The guarantees of a column also hold jointly with probability ``level``. After
    cross-fitting, ``guarantee_after`` is "heuristic".
    """

    level: float
    before: RiskCurve
    after: RiskCurve
    proved: tuple[tuple[float, float, float], ...]
    guarantee_after: str
