"""Options of a report."""

from __future__ import annotations

from typing import Any, NamedTuple

from calibrant._crossfit.members import set_up
from calibrant._typing import AnyArray, LabelsLike
from calibrant._validation import check_fitted
from calibrant.selection import AutoCalibration


class Request(NamedTuple):
    """Options of a report, such as the calibrator and the names in sentences."""

    calibrator: Any
    inputs: str
    method: str
    name: str
    command: str | None
    classes: LabelsLike | None
    cv: int
    n_bins: int
    n_resamples: int
    seed: int
    is_fitted: bool = False
    """Whether the calibrator is already fitted and only evaluated."""
    min_rows: float = 0
    """Groups with fewer rows are not shown."""
    has_groups: bool = False
    """Whether groups are evaluated separately."""
    has_fit_weights: bool = False
    """Whether the separate rows to fit on have weights."""

    def set_up(self, labels: AnyArray) -> Request:
        """Return the options with the calibrator set up for scores with these column labels."""
        if self.is_fitted:
            return self
        return self._replace(calibrator=set_up(self.calibrator, self.inputs, len(labels), labels))


def choose_calibrator(calibrator: Any, method: str | None) -> tuple[Any, str]:
    """Return the calibrator (default: `AutoCalibration`) and its name.

    The default name is the class name, or "auto" if no calibrator is passed.
    """
    if calibrator is None:
        return AutoCalibration(), method or "auto"
    return calibrator, method or type(calibrator).__name__


def check_model(model: Any, inputs: str, calibrator: Any, calibration: Any) -> None:
    """Raise if ``model`` is not fitted or expects other inputs, or if fit options are passed."""
    if calibrator is not None or calibration is not None:
        raise ValueError(
            "model is a fitted calibrator, so the arguments calibrator and calibration do not "
            "apply. Pass only model=..., or only calibrator=... and calibration=...."
        )
    check_fitted(model)
    if model.inputs != inputs:
        raise ValueError(
            f"The model was fitted with inputs={model.inputs!r}, but inputs={inputs!r} was passed. "
            f"Pass inputs={model.inputs!r} and scores of this kind."
        )
