"""Calibrators of the whole vector of class scores. Each module contains one family of methods."""

from calibrant.multiclass.bayesian_temperature import BayesianTemperatureScaling
from calibrant.multiclass.canonical import CanonicalBinning
from calibrant.multiclass.dirichlet import DirichletCalibration
from calibrant.multiclass.gaussian_process import GaussianProcessCalibration
from calibrant.multiclass.identity import Identity
from calibrant.multiclass.scaling import MatrixScaling, VectorScaling
from calibrant.multiclass.structured import StructuredScaling
from calibrant.multiclass.temperature import EnsembleTemperatureScaling, TemperatureScaling

__all__ = [
    "BayesianTemperatureScaling",
    "CanonicalBinning",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GaussianProcessCalibration",
    "Identity",
    "MatrixScaling",
    "StructuredScaling",
    "TemperatureScaling",
    "VectorScaling",
]
