"""Calibration without choosing a method: maps averaged over folds, methods stacked, methods
compared.
"""

from calibrant.inference._gains import Gain
from calibrant.selection._auto import AutoCalibration, CrossFitted
from calibrant.selection._comparison import Comparison, compare
from calibrant.selection._methods import method

__all__ = ["AutoCalibration", "Comparison", "CrossFitted", "Gain", "compare", "method"]
