"""What all calibrators are made of: subclass `BaseCalibrator` or `BaseBinaryCalibrator` to write
one.
"""

from calibrant.base._calibrator import BaseBinaryCalibrator, BaseCalibrator

__all__ = ["BaseBinaryCalibrator", "BaseCalibrator"]
