"""Calibrators of one binary problem (claim), which consists of scores in [0, 1] and outcomes.

Each module defines one method.
"""

from calibrant.binary.bayesian_binning import BayesianBinning
from calibrant.binary.beta import BetaCalibration
from calibrant.binary.histogram import HistogramBinning
from calibrant.binary.isotonic import IsotonicCalibration
from calibrant.binary.platt import PlattScaling
from calibrant.binary.spline import SplineCalibration
from calibrant.binary.venn_abers import VennAbers

__all__ = [
    "BayesianBinning",
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "PlattScaling",
    "SplineCalibration",
    "VennAbers",
]
