"""Support for saving and loading decisions."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import as_seed, check_costs, check_fitted
from calibrant.base import Calibrator, FittedValue
from calibrant.guarantees import Certificate


class SavedDecision:
    """Base of decisions that `calibrant.save` writes, together with their calibrator."""

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {}
    """Shapes and ranges of fitted attributes."""

    def _portable(self) -> Self:
        """Return a copy that contains only numbers, text and calibrators."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        """Raise if parameters and fitted attributes contradict each other."""
        raise NotImplementedError

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        """Raise if fitted attributes of a file contradict each other."""


def calibrator_to_save(decision: Any) -> Calibrator:
    """Return the calibrator of a fitted decision, and raise if it predicts with a classifier."""
    calibrator = getattr(decision.estimator_, "estimator", decision.estimator_)
    if isinstance(calibrator, Calibrator):
        return calibrator
    name = type(decision).__name__
    fix = f"fit {name}() on its probabilities, or {name}(calibrator) on its scores"
    if hasattr(decision, "rule_"):
        fix = "save the decision rule: calibrant.save(decision.rule_, path)"
    raise TypeError(
        f"{name} predicts with a {type(calibrator).__name__}, which cannot be saved. Store the "
        f"classifier separately, and {fix}."
    )


class SavedModel(SavedDecision):
    """Base of fitted decisions with a calibrator and a certificate."""

    estimator_: Any
    classes_: AnyArray
    certificate_: Certificate

    @property
    def inputs_(self) -> str:
        """The kind of scores that the calibrator accepts."""
        inputs: str = self.estimator_.inputs
        return inputs

    def revoke(self, reason: str) -> Self:
        """Mark the certificate as no longer valid. Save the model to keep this mark.

        Parameters
        ----------
        reason : str
            Why the guarantee no longer holds, such as ``monitor.certificate.revoked``.

        Returns
        -------
        self
        """
        check_fitted(self)
        self.certificate_ = self.certificate_.revoke(reason)
        return self

    def _portable(self) -> Self:
        check_fitted(self)
        calibrator = calibrator_to_save(self)
        options: Any = vars(self)
        if callable(options["score"]):
            raise TypeError(
                "score is a function, which cannot be saved. Pass the name of a score, for example "
                'score="margin".'
            )
        portable = copy(self)
        seed = as_seed(options["random_state"])
        vars(portable).update(estimator=calibrator, estimator_=calibrator, random_state=seed)
        loss = options.get("loss", "error")
        if not isinstance(loss, str):
            classes = self.classes_
            table = check_costs(loss, len(classes), name="loss", classes=classes, actions=classes)
            vars(portable).update(loss=table)
        return portable

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        calibrator, certificate = fitted.get("estimator_"), fitted.get("certificate_")
        if not isinstance(calibrator, Calibrator) or not isinstance(certificate, Certificate):
            raise ValueError("the decision needs a calibrator and a certificate")
        if np.asarray(calibrator.classes_).tolist() != fitted["classes_"].tolist():
            raise ValueError("its classes differ from the classes of its calibrator")

    def _probe(self, proba: FloatArray) -> None:
        """Predict probabilities. Values that contradict each other raise an error."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        n_classes = len(self.classes_)
        self._probe(np.vstack([np.full(n_classes, 1 / n_classes), np.eye(2, n_classes)]))
        str(self.guarantee())  # type: ignore[attr-defined]
