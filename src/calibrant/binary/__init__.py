"""Calibrators of one claim: a score in [0, 1] and an outcome in {0, 1}."""

from calibrant.binary.histogram import HistogramBinning

__all__ = ["HistogramBinning"]
