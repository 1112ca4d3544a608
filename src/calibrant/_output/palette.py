"""Colors of results, which have the same meaning in figures, in reports and on the terminal."""

from __future__ import annotations

BEFORE = "#B84A00"
"""Results before calibration. A vermilion that is dark enough for text on white."""

AFTER = "#0072B2"
"""Results after calibration: the blue of Okabe and Ito, which color-blind readers can distinguish
from `BEFORE`."""

REFERENCE = "#56606B"
"""References for calibrated predictions: the diagonal, zero, and consistency bands."""

ALARM = "#B00040"
"""Alarms and errors."""

DARK = {
    "before": "#F2A36B",
    "after": "#6CB8EE",
    "reference": "#A5AFBA",
    "alarm": "#FF8FA8",
}
"""The same colors on a dark background."""

LIGHT = {"before": BEFORE, "after": AFTER, "reference": REFERENCE, "alarm": ALARM}
