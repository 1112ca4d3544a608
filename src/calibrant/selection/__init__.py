"""Combine and compare calibrators by stacking, averages over folds, and cross-validation."""

from calibrant.inference import Gain
from calibrant.selection._auto import AutoCalibration
from calibrant.selection._compare import compare
from calibrant.selection._comparison import Comparison
from calibrant.selection._crossfitted import CrossFitted
from calibrant.selection._group_calibration import GroupCalibration
from calibrant.selection._models import compare_models
from calibrant.selection.methods import method

__all__ = [
    "AutoCalibration",
    "Comparison",
    "CrossFitted",
    "Gain",
    "GroupCalibration",
    "compare",
    "compare_models",
    "method",
]
