"""Parameters and results of a monitor that tests of its parts share."""

from __future__ import annotations

from dataclasses import replace

from calibrant.monitoring import Gap, MonitorStep

RULE = {
    "false_alarm": 0.05,
    "horizon": 1000,
    "tolerance": 0.02,
    "notions": ("confidence", "class-wise"),
    "mode": "detector",
    "arl": None,
    "lag": 1,
    "inputs": "proba",
}

GAP = Gap("confidence", 100, 0.02, -0.01, 0.05, 0.5, False)

STEP = MonitorStep(
    *("May", 10, 100, 3.0, 3.5, 4.0, False), (GAP, replace(GAP, claim="group b", is_listed=True))
)
