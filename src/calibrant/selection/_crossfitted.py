"""Average of the fits of a calibrator over folds."""

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
    r"""Average the fits of one calibrator over folds: :math:`\frac 1 J \sum_j g_{-j}(p)`.

    Each calibrator :math:`g_{-j}` is fitted without fold j. The average has a slightly lower
    log-loss than one fit on all rows if the fits vary from sample to sample. Kull et al. (2019)
    report all results for such averages.

    Parameters
    ----------
    calibrator : calibrator or str
        The calibrator or its name. The calibrator is cloned for each fold. With more than two
        classes, a binary calibrator becomes
        ``MulticlassToBinary(calibrator, notion="class-wise", normalize=True)``.
    cv : int, splitter or iterable of (train, test) rows
        An integer assigns rows to folds at random, independent of their order. A weight of 2 is
        equivalent to duplicating the row. With ``fit(X, y, groups=...)``, rows of a group stay in
        one fold.
    random_state : int, optional
        Seed for the folds. None means 0, so a second fit gives the same result.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Attributes
    ----------
    calibrators_ : list of calibrators
        The fitted calibrator of each fold.

    See Also
    --------
    AutoCalibration : Combine several calibrators.

    Notes
    -----
    With J folds, a fit consists of J fits of the calibrator, and a prediction consists of J
    predictions. A single row has no folds, so one calibrator is fitted to the row. Row number i of
    chunked data, such as dask arrays, is in fold i mod cv.

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
            f"the average of {len(self.calibrators_)} cross-fitted fits of {{parts}}",
            (KULL_2019,),
            tuple(self.calibrators_),
        )

    _folds_by_row: ClassVar[bool] = True

    @property
    def needs_rows(self) -> bool:
        """Whether the calibrator needs all rows in memory."""
        return needs_rows(as_calibrator(self.calibrator))

    def _check_sample(self, sample: Sample) -> None:
        member = as_calibrator(self.calibrator)
        check_members({type(member).__name__: member}, sample)

    def _fit(self, sample: Sample) -> None:
        calibrator = as_calibrator(self.calibrator)
        member = set_up(calibrator, self.inputs, sample.n_columns, self.classes_)
        plan = plan_folds(self.cv, sample, self.random_state)
        # A single row has no folds, so the calibrator is fitted to it directly.
        self.calibrators_ = fit_folds(member, plan, self.inputs) or [
            fit_on(member, sample, self.inputs)
        ]

    def _chunked_note(self) -> str:
        note: str = self.calibrators_[0]._chunked_note()
        return note

    def _description(self) -> str:
        name = type(self.calibrator).__name__
        return f"The average of {len(self.calibrators_)} fits of {name}, each on different rows."

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
        """Checks that the calibrator does not pass, with the reasons.

        If the calibrator counts rows, rows with integer weights are duplicated.
        """
        return getattr(as_calibrator(self.calibrator), "check_exceptions", {})
