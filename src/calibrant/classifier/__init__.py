"""Any scikit-learn classifier with calibrated probabilities."""

from calibrant.classifier._classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
