"""Pictures of calibration: displays that draw computed numbers with matplotlib (extra ``plot``).

Every display is built from result objects, or by ``from_predictions`` or ``from_estimator``, which
compute them; ``plot`` draws and returns the display. matplotlib is imported when the first display
is made.
"""

from calibrant.plots.bars import ChoiceDisplay, ClassErrorDisplay
from calibrant.plots.cumulative import CumulativeDisplay
from calibrant.plots.groups import GroupDisplay
from calibrant.plots.monitor import MonitorDisplay
from calibrant.plots.parameters import ConfusionChangeDisplay, ParameterDisplay
from calibrant.plots.ranking import CriticalDifferenceDisplay
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.plots.simplex import SimplexDisplay
from calibrant.plots.validity import ValidityDisplay

__all__ = [
    "ChoiceDisplay",
    "ClassErrorDisplay",
    "ConfusionChangeDisplay",
    "CriticalDifferenceDisplay",
    "CumulativeDisplay",
    "GroupDisplay",
    "MonitorDisplay",
    "ParameterDisplay",
    "ReliabilityDisplay",
    "SimplexDisplay",
    "ValidityDisplay",
]
