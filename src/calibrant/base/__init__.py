"""What all calibrators are made of.

Subclass `BaseCalibrator` for a map of whole vectors in log space (`SoftmaxCalibrator` where it ends
in a softmax of new logits), `BaseBinaryCalibrator` for a map of one claim, and `Calibrator` for
anything else that turns scores into probabilities. A fit that iterates ends with a `Solution`,
which `store_outcome` keeps. What `calibrant.load` may expect of its fitted attributes it declares
by `FittedValue`, and who is cited for it by `Citation`.
"""

from calibrant._optim.solution import Outcome, Solution
from calibrant.base._binary import BaseBinaryCalibrator
from calibrant.base._calibrator import Calibrator
from calibrant.base._citation import Citation
from calibrant.base._outcome import store_outcome
from calibrant.base._whole import BaseCalibrator, SoftmaxCalibrator
from calibrant.base.fitted import FittedValue
from calibrant.base.references import Reference

__all__ = [
    "BaseBinaryCalibrator",
    "BaseCalibrator",
    "Calibrator",
    "Citation",
    "FittedValue",
    "Outcome",
    "Reference",
    "SoftmaxCalibrator",
    "Solution",
    "store_outcome",
]
