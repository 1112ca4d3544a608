"""Tests, confidence intervals, score decompositions and rankings.

All results are frozen dataclasses. Results have an attribute ``guarantee``, which states when the
confidence or test level holds. An "exact" or "finite-sample" level holds for every number of rows,
and an "asymptotic" level only for many rows. The level of a "heuristic" result is not guaranteed.
"""

from calibrant.inference._bootstrap import bootstrap_interval
from calibrant.inference._claim_tests import (
    hosmer_lemeshow_test,
    ks_test,
    kuiper_test,
    mean_test,
    spiegelhalter_test,
)
from calibrant.inference._consistency import consistency_test
from calibrant.inference._curve_band import CalibrationBand, calibration_band
from calibrant.inference._cutoff import cutoff_interval
from calibrant.inference._debiased import debiased_interval
from calibrant.inference._decision_gain import decision_gain
from calibrant.inference._decomposition import (
    ClaimDecomposition,
    ScoreDecomposition,
    score_decomposition,
)
from calibrant.inference._find_groups import FoundGroup, find_groups
from calibrant.inference._gain import Gain as Gain
from calibrant.inference._gain import LossMoments as LossMoments
from calibrant.inference._gain import calibration_gain
from calibrant.inference._gain import paired_gain as paired_gain
from calibrant.inference._kernel_test import kernel_test
from calibrant.inference._line import CalibrationLine, calibration_line
from calibrant.inference._planning import DetectableError, detectable_error, rows_needed
from calibrant.inference._ranking import FriedmanResult, critical_difference, friedman_test
from calibrant.inference._results import CalibrationTestResult, Interval
from calibrant.inference._risk_coverage import RiskCoverageCurve, risk_coverage
from calibrant.inference._validity import ValidityCurve, validity_curve

__all__ = [
    "CalibrationBand",
    "CalibrationLine",
    "CalibrationTestResult",
    "ClaimDecomposition",
    "DetectableError",
    "FoundGroup",
    "FriedmanResult",
    "Interval",
    "RiskCoverageCurve",
    "ScoreDecomposition",
    "ValidityCurve",
    "bootstrap_interval",
    "calibration_band",
    "calibration_gain",
    "calibration_line",
    "consistency_test",
    "critical_difference",
    "cutoff_interval",
    "debiased_interval",
    "decision_gain",
    "detectable_error",
    "find_groups",
    "friedman_test",
    "hosmer_lemeshow_test",
    "kernel_test",
    "ks_test",
    "kuiper_test",
    "mean_test",
    "risk_coverage",
    "rows_needed",
    "score_decomposition",
    "spiegelhalter_test",
    "validity_curve",
]
