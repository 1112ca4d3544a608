"""Calibrators of the whole vector."""

from calibrant.multiclass.canonical import CanonicalBinning

__all__ = ["CanonicalBinning"]
