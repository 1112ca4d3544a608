"""All calibrators, for checks that all calibrators must pass."""

from __future__ import annotations

import calibrant

WHOLE_VECTOR = [
    calibrant.Identity(),
    calibrant.TemperatureScaling(),
    calibrant.TemperatureScaling(prior_scale=0.25),
    calibrant.EnsembleTemperatureScaling(),
    calibrant.BayesianTemperatureScaling(),
    calibrant.VectorScaling(),
    calibrant.MatrixScaling(lam=0.01),
    calibrant.DirichletCalibration(),
    calibrant.DirichletCalibration(lam=0.01, penalty="l2"),
    calibrant.StructuredScaling(),
    calibrant.StructuredScaling(structure="vector"),
    calibrant.GaussianProcessCalibration(),
    calibrant.CanonicalBinning(n_bins=5),
    calibrant.CanonicalBinning(partition="sierpinski", depth=2),
    calibrant.CanonicalBinning(partition="grid"),
]

ONE_CLAIM = [
    calibrant.PlattScaling(),
    calibrant.BetaCalibration(),
    calibrant.IsotonicCalibration(),
    calibrant.HistogramBinning(n_bins=5),
    calibrant.HistogramBinning(n_bins=5, boundary="include"),
    calibrant.BayesianBinning(),
    calibrant.SplineCalibration(),
    calibrant.VennAbers(),
]

LIFTED = [
    calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=3)),
    calibrant.MulticlassToBinary(calibrant.PlattScaling(), notion="class-wise", normalize=True),
    calibrant.MulticlassToBinary(calibrant.IsotonicCalibration(smoothing=1.0), notion="confidence"),
    calibrant.MulticlassToBinary(calibrant.SplineCalibration(), notion="within-top-2"),
    calibrant.MulticlassToBinary(calibrant.BetaCalibration(), notion="top-2-label"),
]

COMPOSED = [
    calibrant.CrossFitted(calibrant.DirichletCalibration(lam=0.01), cv=3),
    calibrant.CrossFitted(calibrant.IsotonicCalibration(), cv=3),
    calibrant.GroupCalibration(calibrant.TemperatureScaling(prior_scale=0.25), cv=3),
    calibrant.AutoCalibration(cv=3),
]

ALL = WHOLE_VECTOR + ONE_CLAIM + LIFTED
