"""The options of a report, as one value."""

from __future__ import annotations

from typing import Any, NamedTuple

from calibrant._crossfit.members import set_up
from calibrant._typing import LabelsLike
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

    def set_up(self, n_classes: int) -> Request:
        """The same options with a calibrator that is ready to be fitted to such scores."""
        return self._replace(calibrator=set_up(self.calibrator, self.inputs, n_classes))


def choose_calibrator(calibrator: Any, method: str | None) -> tuple[Any, str]:
    """The calibrator, by default `AutoCalibration`, and its name, by default that of its class."""
    if calibrator is None:
        return AutoCalibration(), method or "auto"
    return calibrator, method or type(calibrator).__name__
