"""Honest every night: alarms that may be watched for ever, recalibration as labels arrive, and
what can be said without labels.
"""

from calibrant.monitoring._chunk import MonitorChunk
from calibrant.monitoring._discoveries import discoveries
from calibrant.monitoring._drift import DriftStep, ScoreDrift
from calibrant.monitoring._experts import Expert
from calibrant.monitoring._monitor import CalibrationMonitor
from calibrant.monitoring._online import OnlineCalibration
from calibrant.monitoring._performance import PerformanceEstimate, estimate_performance
from calibrant.monitoring._results import Gap, MonitorStep

__all__ = [
    "CalibrationMonitor",
    "DriftStep",
    "Expert",
    "Gap",
    "MonitorChunk",
    "MonitorStep",
    "OnlineCalibration",
    "PerformanceEstimate",
    "ScoreDrift",
    "discoveries",
    "estimate_performance",
]
