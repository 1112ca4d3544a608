"""Maps of folds, averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from calibrant._crossfit.members import fit_folds, fit_on, proba_of, set_up
from calibrant._data.fold_plan import plan_folds
from calibrant._data.sample import Sample
from calibrant._typing import FloatArray, LabelsLike
from calibrant.base import Calibrator, Citation
from calibrant.base.references import KULL_2019
from calibrant.selection.methods import as_calibrator, check_members, needs_rows

__all__ = ["CrossFitted"]


class CrossFitted(Calibrator):
    r"""One map per fold, their predictions averaged: :math:`\frac 1 J \sum_j g_{-j}(p)`.

    Each map is fitted on all folds but one, as Kull et al. report all their results. The average is
    a little better than one map of all rows where maps vary from sample to sample.

    Parameters
    ----------
    calibrator : calibrator, or its name
        Cloned for each fold, with ``inputs`` and ``classes`` set. A binary calibrator of a problem
        with more than two classes becomes ``MulticlassToBinary(calibrator, notion="class-wise",
        normalize=True)``.
    cv : int, splitter or iterable of (train, test) rows
        An integer deals rows to folds at random, whatever their order; a row of weight 2 as if it
        were there twice. With ``fit(X, y, groups=...)`` it deals whole groups.
    random_state : int, optional
        Decides the folds; None is 0, so that a refit gives the same result.
    inputs : {"proba", "logits", "log_proba"}
    classes : labels of the columns, optional

    Attributes
    ----------
    calibrators_ : list of fitted calibrators, one per fold

    Notes
    -----
    Costs J fits and J predictions. One row alone has no folds: one map is fitted to it. Scores that
    come in parts, such as dask arrays, are cut by the number of the row: row i is in fold i mod cv.

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

    @property
    def citation(self) -> Citation:
        return Citation(
            f"the mean of {len(self.calibrators_)} cross-fitted maps of {{parts}}",
            (KULL_2019,),
            tuple(self.calibrators_),
        )

    _folds_by_row: ClassVar[bool] = True

    @property
    def needs_rows(self) -> bool:
        """As its calibrator does."""
        return needs_rows(as_calibrator(self.calibrator))

    def _check_sample(self, sample: Sample) -> None:
        member = as_calibrator(self.calibrator)
        check_members({type(member).__name__: member}, sample)

    def _fit(self, sample: Sample) -> None:
        calibrator = as_calibrator(self.calibrator)
        member = set_up(calibrator, self.inputs, sample.n_columns, self.classes)
        plan = plan_folds(self.cv, sample, self.random_state)
        # One row has no folds.
        self.calibrators_ = fit_folds(member, plan, self.inputs) or [
            fit_on(member, sample, self.inputs)
        ]

    def _chunked_note(self) -> str:
        note: str = self.calibrators_[0]._chunked_note()
        return note

    def _words(self) -> str:
        name = type(self.calibrator).__name__
        return f"The average of {len(self.calibrators_)} maps of {name}, each of other rows."

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        total = proba_of(self.calibrators_[0], scores, self.inputs)
        for fitted in self.calibrators_[1:]:
            total += proba_of(fitted, scores, self.inputs)
        return total / len(self.calibrators_)

    _member_name: ClassVar[str] = "folds"

    def _members(self) -> Sequence[Any]:
        return self.calibrators_

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        """Those of the calibrator; one that counts rows is given whole weights as copies."""
        return getattr(as_calibrator(self.calibrator), "check_exceptions", {})
