"""Save and load calibrators."""

from calibrant.io._registry import register
from calibrant.io._saving import load, save

__all__ = ["load", "register", "save"]
