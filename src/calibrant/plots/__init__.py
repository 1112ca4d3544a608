"""Plot calibration with matplotlib (optional dependency ``plot``).

Displays follow scikit-learn: ``from_predictions`` or ``from_estimator`` computes the numbers.
``plot`` draws the figure and returns the display. You can also create a display from results that
were computed before. matplotlib is imported when the first display is created.
"""

from calibrant.plots.bars import ChoiceDisplay, ClassErrorDisplay
from calibrant.plots.cumulative import CumulativeDisplay
from calibrant.plots.decision import DecisionCurveDisplay
from calibrant.plots.groups import GroupDisplay
from calibrant.plots.monitor import MonitorDisplay
from calibrant.plots.parameters import ConfusionChangeDisplay, ParameterDisplay
from calibrant.plots.ranking import CriticalDifferenceDisplay
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.plots.risk_coverage import RiskCoverageDisplay
from calibrant.plots.simplex import SimplexDisplay
from calibrant.plots.validity import ValidityDisplay

__all__ = [
    "ChoiceDisplay",
    "ClassErrorDisplay",
    "ConfusionChangeDisplay",
    "CriticalDifferenceDisplay",
    "CumulativeDisplay",
    "DecisionCurveDisplay",
    "GroupDisplay",
    "MonitorDisplay",
    "ParameterDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SimplexDisplay",
    "ValidityDisplay",
]
