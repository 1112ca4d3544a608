"""Base classes for new calibrators.

Subclass `BaseCalibrator` for a calibrator of whole vectors in log space, or `SoftmaxCalibrator` if
the calibrator ends in a softmax of new logits. Subclass `BaseBinaryCalibrator` for a calibrator of
one binary problem, and `Calibrator` for any other calibrator. An iterative fit returns a
`Solution`, which `store_outcome` stores. Declare the shapes and ranges of fitted attributes with
`FittedValue`, so `calibrant.load` can check them. Declare the references with `Citation`.
"""

from calibrant._optim.solution import Outcome, Solution
from calibrant.base._binary import BaseBinaryCalibrator
from calibrant.base._calibrator import Calibrator
from calibrant.base._citation import Citation
from calibrant.base._whole import BaseCalibrator, SoftmaxCalibrator
from calibrant.base.fitted import FittedValue
from calibrant.base.outcome import store_outcome
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
