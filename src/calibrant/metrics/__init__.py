"""How honest and how good predictions are: functions ``(y_true, y_prob, *, ...)`` that return a
float.
"""

from calibrant.metrics._accumulator import MetricAccumulator
from calibrant.metrics._binned import calibration_curve, expected_calibration_error
from calibrant.metrics._confidence import overconfidence, sharpness, underconfidence
from calibrant.metrics._kde import kde_calibration_error
from calibrant.metrics._kernel import kernel_calibration_error
from calibrant.metrics._ks import ks_error
from calibrant.metrics._scorer import scorer
from calibrant.metrics._scores import accuracy, brier_score, log_loss
from calibrant.metrics._smooth import smooth_calibration_error

__all__ = [
    "MetricAccumulator",
    "accuracy",
    "brier_score",
    "calibration_curve",
    "expected_calibration_error",
    "kde_calibration_error",
    "kernel_calibration_error",
    "ks_error",
    "log_loss",
    "overconfidence",
    "scorer",
    "sharpness",
    "smooth_calibration_error",
    "underconfidence",
]
