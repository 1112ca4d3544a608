"""Calibrated probabilities for any scikit-learn classifier."""

from calibrant.classifier._classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
