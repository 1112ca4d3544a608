"""Implementation of `GaussianProcessCalibration`, with kernel, bound and parameter search."""
