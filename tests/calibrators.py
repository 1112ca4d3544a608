"""The one list of calibrators that every check of all of them runs over."""

from __future__ import annotations

import calibrant

WHOLE_VECTOR = [
    calibrant.Identity(),
    calibrant.TemperatureScaling(),
    calibrant.TemperatureScaling(prior_scale=0.25),
    calibrant.EnsembleTemperatureScaling(),
    calibrant.VectorScaling(),
    calibrant.MatrixScaling(lam=0.01),
    calibrant.DirichletCalibration(),
    calibrant.DirichletCalibration(lam=0.01, penalty="l2"),
    calibrant.StructuredScaling(),
    calibrant.StructuredScaling(structure="vector"),
]

ONE_CLAIM = [
    calibrant.PlattScaling(),
    calibrant.BetaCalibration(),
    calibrant.IsotonicCalibration(),
    calibrant.BayesianBinning(),
    calibrant.SplineCalibration(),
    calibrant.VennAbers(),
]

ALL = WHOLE_VECTOR + ONE_CLAIM
