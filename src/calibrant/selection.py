"""Calibration without choosing a method: maps averaged over folds, methods stacked, methods compared."""

from calibrant._auto import AutoCalibration, CrossFitted
from calibrant._comparison import Comparison, compare
from calibrant._gains import Gain

__all__ = ["AutoCalibration", "Comparison", "CrossFitted", "Gain", "compare"]
