"""Calibrators of one claim: a score and an outcome. One method a file."""

from calibrant.binary.platt import PlattScaling

__all__ = [
    "PlattScaling",
]
