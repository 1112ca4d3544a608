"""Calibrators of the whole vector, one family a file."""

from calibrant.multiclass.gaussian_process import GaussianProcessCalibration

__all__ = ["GaussianProcessCalibration"]
