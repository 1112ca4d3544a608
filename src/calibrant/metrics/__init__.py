"""How honest and how good predictions are: functions ``(y_true, y_prob, *, ...)`` that return a
float.
"""

from calibrant.metrics import registry
from calibrant.metrics._accumulator import MetricAccumulator
from calibrant.metrics._binned import calibration_curve
from calibrant.metrics._scorer import scorer
from calibrant.metrics._top_scores import log_loss_bounds
from calibrant.metrics.registry import *  # noqa: F403  # the metrics: stated once, in the registry
from calibrant.metrics.registry import Metric

__all__ = ["Metric", "MetricAccumulator", "calibration_curve", "log_loss_bounds", "scorer"]
__all__ += registry.__all__
