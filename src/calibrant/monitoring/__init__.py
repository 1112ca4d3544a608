"""Monitoring and online recalibration of deployed models, and estimates without labels."""

from calibrant.monitoring._evidence import discoveries
from calibrant.monitoring._experts import Expert
from calibrant.monitoring._monitor import CalibrationMonitor
from calibrant.monitoring._online import OnlineCalibration
from calibrant.monitoring._results import Gap, MonitorEntry, MonitorStep
from calibrant.monitoring._risk import RiskMonitor, RiskStep
from calibrant.monitoring._state import MonitorChunk
from calibrant.monitoring._unlabeled import (
    DriftStep,
    PerformanceEstimate,
    ScoreDrift,
    estimate_performance,
)

__all__ = [
    "CalibrationMonitor",
    "DriftStep",
    "Expert",
    "Gap",
    "MonitorChunk",
    "MonitorEntry",
    "MonitorStep",
    "OnlineCalibration",
    "PerformanceEstimate",
    "RiskMonitor",
    "RiskStep",
    "ScoreDrift",
    "discoveries",
    "estimate_performance",
]
