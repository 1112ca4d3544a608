"""Calibration without choosing a method: maps averaged over folds, methods stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from calibrant._crossfit.members import fit_fold, fit_on, proba_of, set_up
from calibrant._folds import as_folds
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike
from calibrant._validation import check_fitted
from calibrant.base import Calibrator
from calibrant.binary import IsotonicCalibration
from calibrant.multiclass import Identity, StructuredScaling, TemperatureScaling
from calibrant.selection._pool import cautious_weights, out_of_fold, pool_gain

__all__ = ["AutoCalibration", "CrossFitted"]


class CrossFitted(Calibrator):
    r"""One map per fold, their predictions averaged: :math:`\frac 1 J \sum_j g_{-j}(p)`.

    Each map is fitted on all folds but one, as Kull et al. report all their results. The average is
    a little better than one map of all rows where maps vary from sample to sample.

    Parameters
    ----------
    calibrator : calibrator
        Cloned for each fold, with ``inputs`` and ``classes`` set. A binary calibrator of a problem
        with more than two classes becomes ``MulticlassToBinary(calibrator, notion="class-wise",
        normalize=True)``.
    cv : int, splitter or iterable of (train, test) rows
        An integer deals rows to folds at random, whatever their order; a row of weight 2 as if it
        were there twice.
    random_state : int, optional
        Decides the folds; None is 0, so that a refit gives the same result.
    inputs : {"proba", "logits"}
    classes : labels of the columns, optional

    Attributes
    ----------
    calibrators_ : list of fitted calibrators, one per fold

    Notes
    -----
    Costs J fits and J predictions. One row alone has no folds: one map is fitted to it.

    References
    ----------
    Kull et al. (2019), arXiv:1910.12656, supplement.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = CrossFitted(TemperatureScaling()).fit(data.val_proba, data.val_labels)
    >>> len(model.calibrators_)
    5
    """

    def __init__(
        self,
        calibrator: Any,
        cv: Any = 5,
        random_state: int | None = None,
        *,
        inputs: str = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.cv = cv
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes

    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        made = set_up(self.calibrator, self.inputs, scores.shape[1])
        folds = as_folds(self.cv, scores, y, weight, self.random_state)
        if folds:
            self.calibrators_ = [fit_fold(made, scores, y, fold, self.inputs) for fold in folds]
        else:
            self.calibrators_ = [fit_on(made, scores, y, weight, self.inputs)]

    _part_name: ClassVar[str] = "folds"

    def _parts(self) -> Sequence[Any]:
        return self.calibrators_

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        total = proba_of(self.calibrators_[0], scores, self.inputs)
        for fitted in self.calibrators_[1:]:
            total = total + proba_of(fitted, scores, self.inputs)
        return total / len(self.calibrators_)

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        """Those of the calibrator; one that counts rows is given whole weights as copies."""
        return getattr(self.calibrator, "check_exceptions", {})

    @classmethod
    def _of(cls, calibrators: Sequence[Any], inputs: str, classes: AnyArray) -> Self:
        """The average of maps that are fitted already."""
        made = cls(clone(calibrators[0]), cv=len(calibrators), inputs=inputs, classes=classes)
        made.classes_, made.n_classes_, made.n_features_in_ = classes, len(classes), len(classes)
        made.class_weights_ = np.sum(
            [getattr(fitted, "class_weights_", np.nan) for fitted in calibrators], axis=0
        )
        made.calibrators_ = list(calibrators)
        return made


class AutoCalibration(Calibrator):
    r"""Stack calibrators so that the result does no harm: :math:`\sum_j w_j\, g_j(p)`.

    Every candidate is cross-fitted; the weights, on the simplex, maximise the likelihood of the
    probabilities that the candidates gave to rows that they had not seen. The identity and the
    uniform forecast are always among them. Two rows' worth of caution keep the result near the
    identity where data are few: one additional row that only the identity foresaw, and 1/n taken
    off the weight of the uniform forecast. Then the candidates are fitted on all rows.

    Parameters
    ----------
    candidates : dict of name -> calibrator, or list of calibrators, optional
        By default temperature scaling with a prior, structured vector scaling, structured matrix
        scaling on raw and on row-centred log-probabilities, and smoothed isotonic regression per
        class; see Notes for when.
    cv : int, splitter or iterable of (train, test) rows
    random_state : int, optional
        Decides the folds; None is 0, so that a refit gives the same result.
    inputs : {"proba", "logits"}
    classes : labels of the columns, optional

    Attributes
    ----------
    names_ : tuple of str
        The members: "identity", the candidates, "uniform".
    weights_ : array of shape (n_members,)
    members_ : dict of name -> fitted calibrator
        Those with a weight above zero, but for the uniform forecast.
    gain_ : Gain
        Cross-fitted log-loss gain of the stack over the scores as they are, with its 95 % interval.
        The weights were cross-fitted for it as well.
    losses_ : array of shape (n_members,)
        Cross-fitted log-loss of every member.

    Notes
    -----
    By default, with n the sum of the weights: the matrix members take part up to K = 100 and n K^2
    = 2^30 (time), isotonic where there are at least 10 rows a class on average. A single row gives
    the identity. Costs J + 1 fits of every candidate.

    In 535 experiments on real predictions with 50 to 5,000 calibration rows (docs/do-no-harm.md) it
    never raised the test log-loss by 0.005 or more, and on average it was better than any of its
    members at every number of rows.

    References
    ----------
    Wolpert (1992), Stacked generalization, doi:10.1016/S0893-6080(05)80023-1; Kim et al. (2020),
    arXiv:1806.01412 (the weights).

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = AutoCalibration().fit(data.val_proba, data.val_labels)
    >>> round(float(model.weights_.sum()), 9), model.gain_.low > 0
    (1.0, True)
    """

    def __init__(
        self,
        candidates: Mapping[str, Any] | Sequence[Any] | None = None,
        cv: Any = 5,
        random_state: int | None = None,
        *,
        inputs: str = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes

    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        n_classes = scores.shape[1]
        chosen = (
            default_candidates(float(weight.sum()), n_classes)
            if self.candidates is None
            else named(self.candidates)
        )
        members = {
            name: set_up(made, self.inputs, n_classes)
            for name, made in {"identity": Identity(), **chosen}.items()
        }
        self.names_ = (*members, "uniform")
        folds = as_folds(self.cv, scores, y, weight, self.random_state)
        # Members that do not converge are judged by their loss on other rows, and not warned of.
        self._weigh(members, scores, y, folds)
        present = np.flatnonzero(weight)
        self.members_ = {
            name: fit_on(made, scores[present], y[present], weight[present], self.inputs)
            for (name, made), w in zip(members.items(), self.weights_, strict=False)
            if w > 0
        }

    def _weigh(
        self, members: Mapping[str, Any], scores: FloatArray, y: IntArray, folds: Any
    ) -> None:
        if not folds:
            self.weights_ = np.eye(1, len(self.names_))[0]
            self.losses_, self.gain_ = np.full(len(self.names_), np.nan), None
            return
        pool = out_of_fold(members, scores, y, folds, self.inputs)
        self.weights_ = cautious_weights(pool)
        self.losses_ = -(pool.weight @ np.log(pool.likelihood)) / pool.weight.sum()
        self.gain_ = pool_gain(pool, folds)

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        total = np.full(scores.shape, self.weights_[-1] / self.n_classes_)
        for name, fitted in self.members_.items():
            total += self.weights_[self.names_.index(name)] * proba_of(fitted, scores, self.inputs)
        return total

    def explain(self) -> str:
        """What was chosen, and why, in words."""
        check_fitted(self)
        members = sorted(zip(-self.weights_, self.names_, self.losses_, strict=True))
        lines = [f"  {name:<26} {-weight:6.3f}   {loss:.5f}" for weight, name, loss in members]
        return "\n".join(
            [self._verdict(), "Members by weight, with their cross-fitted log-loss:", *lines]
        )

    def _verdict(self) -> str:
        gain = self.gain_
        if gain is None:
            return "One row cannot be cross-fitted: the scores are left as they are."
        shares = sorted(zip(self.weights_.tolist(), self.names_, strict=True), reverse=True)
        top = " and ".join(
            f"{name} ({weight:.0%})" for weight, name in shares[:2] if weight >= 0.01
        )
        measured = (
            f"on rows that were not used for fitting, log-loss goes from {gain.before:.4f} to "
            f"{gain.after:.4f}, "
            f"a gain of {gain.gain:.4f} with {gain.level:.0%} interval [{gain.low:.4f}, "
            f"{gain.high:.4f}]"
        )
        if shares[0][1] == "identity" and shares[0][0] > 0.99:
            return f"The scores are left as they are: no candidate is better; {measured}."
        if gain.low > 0:
            return f"Calibration helps: the probabilities are mostly those of {top}; {measured}."
        return (
            f"Whether calibration helps is not certain with these rows, so that weights stay close "
            f"to the identity where "
            f"they can: the probabilities are mostly those of {top}; {measured}."
        )


_MATRIX_CLASSES = 100
_MATRIX_WORK = 2**30
_ROWS_PER_CLASS = 10


def default_candidates(n_samples: float, n_classes: int) -> dict[str, Any]:
    """What `AutoCalibration` stacks by default for so many rows and classes."""
    chosen: dict[str, Any] = {
        "temperature": TemperatureScaling(prior_scale=0.25),
        "structured-vector": StructuredScaling("vector"),
    }
    if n_classes <= _MATRIX_CLASSES and n_samples * n_classes**2 <= _MATRIX_WORK:
        chosen["structured-matrix"] = StructuredScaling("matrix")
        chosen["structured-matrix-centred"] = StructuredScaling(
            "matrix", centre=True, prior_scale=0.25
        )
    if n_samples >= _ROWS_PER_CLASS * n_classes:
        chosen["isotonic"] = IsotonicCalibration("linear", smoothing=1.0)
    return chosen


def named(candidates: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Candidates by name; those of a list are named after their class."""
    if isinstance(candidates, Mapping):
        chosen = dict(candidates)
    else:
        kinds = [type(candidate).__name__ for candidate in candidates]
        numbered = [
            f"{kind}-{kinds[:i].count(kind) + 1}" if kinds.count(kind) > 1 else kind
            for i, kind in enumerate(kinds)
        ]
        chosen = dict(zip(numbered, candidates, strict=True))
    taken = {"identity", "uniform"} & set(chosen)
    if taken:
        raise ValueError(
            f"{', '.join(sorted(taken))} is always a member: give the candidate another name, or "
            f"leave it out"
        )
    return chosen
