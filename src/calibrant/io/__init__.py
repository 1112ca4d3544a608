"""Saved calibrators: JSON files that hold a fit exactly, and that load without running anything."""

from calibrant.io._saving import load, save

__all__ = ["load", "save"]
