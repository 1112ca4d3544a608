"""Calibrators of one binary problem: subclasses define ``_fit(claim)`` and ``_predict(score)``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import expit, log_expit

from calibrant._data.sample import Sample
from calibrant._kernels.blocks import map_elements
from calibrant._kernels.simplex import EPS, as_proba, finite_logits, log_odds, weighted_sum
from calibrant._output.numbers import format_number
from calibrant._typing import FloatArray
from calibrant._validation import as_seed
from calibrant.base._calibrator import Calibrator
from calibrant.notions import Claim, as_notion, note_on_cells

_EXAMPLES = (0.1, 0.5, 0.9)
"""Probabilities that `explain` shows before and after calibration."""


class BaseBinaryCalibrator(Calibrator):
    """Base class of calibrators of one binary problem (claim).

    A claim consists of scores in [0, 1], or their log-odds, and of outcomes 0 and 1. A subclass
    sets ``form`` to ``"score"`` or ``"log_odds"`` and defines ``_fit(claim)`` and
    ``_predict(score)`` for one-dimensional float64 arrays. Users pass scores of shape (n,) or
    (n, 2). Use `MulticlassToBinary` for more classes.

    See Also
    --------
    BaseCalibrator : Base class of calibrators of whole vectors.
    """

    form: ClassVar[Literal["score", "log_odds"]] = "score"
    eps: float = EPS

    @property
    def _takes_logarithms(self) -> bool:
        return self.form == "log_odds"

    @abstractmethod
    def _fit(self, claim: Claim) -> None:
        """Set the fitted attributes. ``claim.score`` has the form of the method."""

    @abstractmethod
    def _predict(self, score: FloatArray) -> FloatArray:
        """Return the calibrated probability of outcome 1. ``score`` has the form of the method."""

    @classmethod
    def _fit_many(cls, calibrators: Sequence[Self], claims: Sequence[Claim]) -> None:
        """Fit each calibrator to its claim, a binary problem.

        Override this method to fit claims of the same rows at once.
        """
        for calibrator, claim in zip(calibrators, claims, strict=True):
            calibrator._fit(claim)

    @classmethod
    def _predict_many(cls, calibrators: Sequence[Self], score: FloatArray) -> FloatArray:
        """Predict each column of (n, J) scores.

        Override this method to predict all columns at once.
        """
        out = np.empty(score.shape)
        for j, calibrator in enumerate(calibrators):
            out[:, j] = calibrator._predict(score[:, j])
        return out

    def _check_parameters(self, n_classes: int) -> None:
        if n_classes > 2:
            raise ValueError(
                f"{type(self).__name__} calibrates a binary problem, but the scores have "
                f"{n_classes} classes. "
                f'Use MulticlassToBinary({self!r}, notion="class-wise", normalize=True).'
            )

    def _inner(self, sample: Sample) -> Claim:
        """The binary problem with class 1 as its outcome."""
        if sample.is_chunked:
            # Chunked rows do not stay in memory, so count the rows in cells of similar scores.
            proba = sample.transformed(partial(as_proba, inputs=self.inputs))
            [claim] = proba.claims(as_notion("class-1"), self._cuts(sample.total))
            return self._transform_claim(claim)
        rows = sample.rows(type(self).__name__)
        hits = (rows.y == 1).astype(np.float64)
        return Claim(0, slice(None), self._transform(np.asarray(rows.u)), hits, rows.weight)

    def _transform(self, scores: FloatArray) -> FloatArray:
        if self.inputs != "proba":
            is_odds = self.form == "log_odds"
            z = finite_logits(scores, self.eps) if is_odds else np.asarray(scores, np.float64)
            odds = z[:, 1] - z[:, 0]
            return odds if is_odds else np.asarray(expit(odds))
        return self._transform_score(np.asarray(scores[:, 1], dtype=np.float64))

    def _transform_score(self, score: FloatArray) -> FloatArray:
        """Probabilities of a binary problem in the form of the method."""
        if self.form != "log_odds":
            return score
        return map_elements(lambda part: (log_odds(part, self.eps),), score, 1)[0]

    def _transform_claim(self, claim: Claim) -> Claim:
        if self.form == "score" and np.max(claim.score, initial=0.0) <= 1.0:
            # Most claims need no change. A copy of all scores would cost as much as sorting them.
            return claim
        # Rounding can make sums of probabilities exceed one.
        return claim.rescored(lambda score: self._transform_score(np.minimum(score, 1.0)))

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        hit = self._predict(self._transform(scores))
        return np.column_stack([1.0 - hit, hit])

    def _log_proba_of(self, scores: FloatArray) -> FloatArray:
        odds = self._log_odds(self._transform(scores))
        if odds is None:
            return super()._log_proba_of(scores)
        return np.column_stack([log_expit(-odds), log_expit(odds)])

    def _log_odds(self, score: FloatArray) -> FloatArray | None:
        """Return the calibrated log-odds of outcome 1, or None if the method has none."""
        return None

    def _chunked_note(self) -> str:
        total = float(self.class_weights_.sum())
        return "" if self._is_exact_on_cells(total, [total]) else note_on_cells(1)

    def _is_exact_on_cells(self, total: float, rows: Iterable[float]) -> bool:
        """Return whether cells for ``total`` rows are exact for claims with ``rows`` rows each.

        Cells are exact if their edges include the cuts of every claim.
        """
        cuts = self._cuts(total)
        if cuts is None:
            return False
        return all(np.isin(np.asarray(self._cuts(n)), cuts).all() for n in set(rows))

    def _cuts(self, total: float) -> FloatArray | None:
        """Return the scores that must be edges of cells for a claim of ``total`` rows.

        Return None if the method chooses edges from the data.
        """
        return None

    def _description(self) -> str:
        return f"{super()._description()} A probability of {self._describe_examples(_EXAMPLES)}."

    def _describe_examples(self, scores: Sequence[float]) -> str:
        """Examples of calibrated probabilities."""
        values = self._predict(self._transform_score(np.array(scores))).tolist()
        return ", ".join(
            f"{a:g} becomes {format_number(b)}" for a, b in zip(scores, values, strict=True)
        )

    # `MulticlassToBinary` calls the following methods. The scores of claims are probabilities.

    @classmethod
    def _fit_claims(cls, calibrators: Sequence[Self], claims: Sequence[Claim]) -> None:
        """Fit one calibrator to each of several claims."""
        for calibrator, claim in zip(calibrators, claims, strict=True):
            calibrator._start_claim(claim)
        cls._fit_many(calibrators, [calibrators[0]._transform_claim(claim) for claim in claims])

    def _start_claim(self, claim: Claim) -> None:
        """Set the attributes that do not depend on the method: classes and class weights."""
        self._check_parameters(2)
        self.classes_ = np.arange(2)
        self.n_classes_, self.n_features_in_ = 2, 1
        total, hits = float(claim.weight.sum()), weighted_sum(claim.weight, claim.outcome)
        self.class_weights_ = np.array([total - hits, hits])

    def _predict_claim(self, score: FloatArray) -> FloatArray:
        """Calibrated probabilities (n,) of the scores of one claim."""
        return self._predict(self._transform_score(score))

    @classmethod
    def _predict_claims(cls, calibrators: Sequence[Self], score: FloatArray) -> FloatArray:
        """Calibrated probabilities (n, J) of the scores of J claims, one calibrator each."""
        return cls._predict_many(calibrators, calibrators[0]._transform_score(score))

    def _for_claim(self, label: int | None, index: int) -> Self:
        """A copy of this unfitted calibrator for claim ``index``.

        ``label`` is the column of the class that the claim is about, or None for claims about
        several classes. Each copy has its own seed, so claims do not share random numbers.
        """
        calibrator = copy(self)
        seed = as_seed(getattr(self, "random_state", None))
        if seed is not None:
            claim_seed = np.random.SeedSequence((seed, index + 1)).generate_state(1)[0]
            calibrator.set_params(random_state=int(claim_seed))
        return calibrator

    def _rows_needed(self) -> int:
        """Minimum number of rows that a claim needs for its own fit."""
        return 2

    def _check_for_claims(self, n_classes: int, *, by_class: bool) -> None:
        """Raise if a parameter is invalid for the claims of a reduction.

        ``by_class`` means that each claim is about one class.
        """
        self._check_parameters(2)
