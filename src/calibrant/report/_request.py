"""The options of a report, as one value."""

from __future__ import annotations

from typing import Any, NamedTuple

from calibrant._crossfit.members import set_up
from calibrant._typing import LabelsLike
from calibrant._validation import check_fitted
from calibrant.selection import AutoCalibration


class Request(NamedTuple):
    """The options of a report: the calibrator, the names of things, and the settings."""

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
    """Whether the calibrator was fitted before, and is only evaluated."""

    def set_up(self, n_classes: int) -> Request:
        """The same options with a calibrator that is ready to be fitted to such scores."""
        if self.is_fitted:
            return self
        return self._replace(calibrator=set_up(self.calibrator, self.inputs, n_classes))


def choose_calibrator(calibrator: Any, method: str | None) -> tuple[Any, str]:
    """The calibrator, by default `AutoCalibration`, and its name, by default that of its class."""
    if calibrator is None:
        return AutoCalibration(), method or "auto"
    return calibrator, method or type(calibrator).__name__


def check_model(model: Any, inputs: str, calibrator: Any, calibration: Any) -> None:
    """Raise if a calibrator is not fitted, was fitted to other scores, or is to be fitted too."""
    if calibrator is not None or calibration is not None:
        raise ValueError(
            "model= is a fitted calibrator, so calibrator= and calibration= do not apply. Leave "
            "them out."
        )
    check_fitted(model)
    if model.inputs != inputs:
        raise ValueError(
            f"the model takes inputs={model.inputs!r} and the scores are {inputs!r}. Pass "
            f"inputs={model.inputs!r} and such scores."
        )
