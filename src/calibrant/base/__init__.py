"""What all calibrators are made of.

Subclass `BaseCalibrator` for a map of whole vectors in log space, `BaseBinaryCalibrator` for a map
of one claim, and `Calibrator` for anything else that turns scores into probabilities.
"""

from calibrant.base._binary import BaseBinaryCalibrator
from calibrant.base._calibrator import Calibrator
from calibrant.base._whole import BaseCalibrator

__all__ = ["BaseBinaryCalibrator", "BaseCalibrator", "Calibrator"]
