"""Calibrators of one claim: a method writes ``_fit(score, outcome, weight)`` and
``_predict(score)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import expit, log_expit

from calibrant._blocks import by_blocks
from calibrant._data.chunks import ChunkedSample
from calibrant._simplex import EPS, as_proba, finite_logits, log_odds, weighted_sum
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import as_seed
from calibrant.base._calibrator import Calibrator
from calibrant.notions import Claim, as_notion
from calibrant.notions._parted import parted_claims, words_of_cells

_EXAMPLES = (0.1, 0.5, 0.9)
"""Probabilities by which a map of one claim is explained."""


class BaseBinaryCalibrator(Calibrator):
    """A calibrator of one claim: a score in [0, 1] or its log-odds, and an outcome.

    A method sets ``form``, ``"score"`` or ``"log_odds"``, and writes ``_fit`` and ``_predict`` for
    one-dimensional float64 arrays. It is fitted with scores of shape (n,) or (n, 2); for more
    classes there is `MulticlassToBinary`.
    """

    form: ClassVar[Literal["score", "log_odds"]] = "score"
    eps: float = EPS

    @property
    def _takes_logarithms(self) -> bool:
        return self.form == "log_odds"

    @abstractmethod
    def _fit(self, score: FloatArray, outcome: FloatArray, weight: FloatArray) -> None:
        """Set the fitted attributes; ``outcome`` is 0.0 or 1.0."""

    @abstractmethod
    def _predict(self, score: FloatArray) -> FloatArray:
        """Calibrated probability of outcome 1."""

    def _check_parameters(self, n_classes: int) -> None:
        if n_classes > 2:
            raise ValueError(
                f"{type(self).__name__} calibrates one claim at a time and the scores have "
                f"{n_classes} classes; "
                f'use MulticlassToBinary({self!r}, notion="class-wise", normalize=True)'
            )

    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._fit(self._transform(scores), (y == 1).astype(np.float64), weight)

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        one = self._predict(self._transform(scores))
        return np.column_stack([1.0 - one, one])

    def _log_proba_of(self, scores: FloatArray) -> FloatArray:
        odds = self._log_odds(self._transform(scores))
        if odds is None:
            return super()._log_proba_of(scores)
        return np.column_stack([log_expit(-odds), log_expit(odds)])

    def _log_odds(self, score: FloatArray) -> FloatArray | None:
        """Calibrated log-odds of outcome 1, of a method that works in logarithms."""
        return None

    def _transform(self, scores: FloatArray) -> FloatArray:
        if self.inputs != "proba":
            is_odds = self.form == "log_odds"
            z = finite_logits(scores, self.eps) if is_odds else np.asarray(scores, np.float64)
            odds = z[:, 1] - z[:, 0]
            return odds if is_odds else np.asarray(expit(odds))
        return self._transform_score(np.asarray(scores[:, 1], dtype=np.float64))

    def _transform_score(self, score: FloatArray) -> FloatArray:
        if self.form != "log_odds":
            return score
        return by_blocks(lambda part: (log_odds(part, self.eps),), score, 1)[0]

    def _check_parted(self) -> None:
        """Every map of one claim is fitted to cells of scores, which add up."""

    def _fit_parted(self, sample: ChunkedSample) -> None:
        proba = sample.lifted(partial(as_proba, inputs=self.inputs))
        [claim] = parted_claims(as_notion("class-1"), proba, self._cuts(sample.total))
        self._fit_cells(claim)

    def _words_of_parts(self) -> str:
        total = float(self.class_weights_.sum())
        return "" if self._are_cut(total, [total]) else words_of_cells(1)

    def _are_cut(self, total: float, rows: Iterable[float]) -> bool:
        """Whether cells that were cut for so many rows lie across no cut of claims of ``rows``."""
        cuts = self._cuts(total)
        if cuts is None:
            return False
        return all(np.isin(np.asarray(self._cuts(n)), cuts).all() for n in set(rows))

    def _cuts(self, total: float) -> FloatArray | None:
        """Scores that cells must not lie across, of a claim of so many rows, where they are
        known beforehand.
        """
        return None

    def _fit_cells(self, claim: Claim) -> None:
        """`_fit` of a claim whose rows were gathered into cells of scores: as copies of rows that
        have the mean score of their cell.
        """
        score = self._transform_score(np.minimum(claim.score, 1.0))
        self._fit(score, claim.outcome.astype(np.float64), claim.weight)

    def _words(self) -> str:
        return f"{super()._words()} A probability of {self._words_at(_EXAMPLES)}."

    def _words_at(self, scores: Sequence[float]) -> str:
        """What the map makes of some probabilities."""
        said = self._predict_claim(np.array(scores)).tolist()
        return ", ".join(f"{a:g} becomes {b:.3g}" for a, b in zip(scores, said, strict=True))

    # What a reduction to claims asks of a calibrator. A claim is one column, a probability.

    def _fit_claim(self, score: FloatArray, outcome: FloatArray, weight: FloatArray) -> Self:
        """Fit on the checked scores (n,) and outcomes, 0 or 1, of one claim."""
        self._fit_claims([self], score[None], outcome[None], weight)
        return self

    def _fit_summary(self, claim: Claim) -> Self:
        """Fit on a claim whose rows were gathered into cells of scores."""
        self._begin_claim(float(claim.weight.sum()), weighted_sum(claim.weight, claim.outcome))
        self._fit_cells(claim)
        return self

    @classmethod
    def _fit_claims(
        cls,
        calibrators: Sequence[Self],
        score: FloatArray,
        outcome: AnyArray,
        weight: FloatArray,
    ) -> None:
        """Fit one calibrator to each of J claims about the same rows, whose scores and outcomes
        have shape (J, n); scores are lifted alike for all.
        """
        total = float(weight.sum())
        for calibrator, hit in zip(calibrators, outcome, strict=True):
            calibrator._begin_claim(total, weighted_sum(weight, hit))
        cls._fit_all(calibrators, calibrators[0]._transform_score(score), outcome, weight)

    def _begin_claim(self, total: float, right: float) -> None:
        """What is known of a claim before its fit: so many rows, so many of them right."""
        self._check_parameters(2)
        self.classes_ = np.arange(2)
        self.n_classes_, self.n_features_in_ = 2, 1
        self.class_weights_ = np.array([total - right, right])

    @classmethod
    def _fit_all(
        cls,
        calibrators: Sequence[Self],
        score: FloatArray,
        outcome: AnyArray,
        weight: FloatArray,
    ) -> None:
        """`_fit` of each, by lifted scores; a method that can fits them all at once. Outcomes may
        be of any kind of number.
        """
        for calibrator, own, hit in zip(calibrators, score, outcome, strict=True):
            calibrator._fit(own, hit.astype(np.float64), weight)

    def _predict_claim(self, score: FloatArray) -> FloatArray:
        """Calibrated probabilities (n,) of the scores of one claim."""
        return self._predict(self._transform_score(score))

    @classmethod
    def _predict_claims(cls, calibrators: Sequence[Self], score: FloatArray) -> FloatArray:
        """Calibrated probabilities (n, J) of the scores of J claims, one calibrator each."""
        return cls._predict_all(calibrators, calibrators[0]._transform_score(score))

    @classmethod
    def _predict_all(cls, calibrators: Sequence[Self], score: FloatArray) -> FloatArray:
        """`_predict` of each, by lifted scores; a method that can predicts them all at once."""
        out = np.empty(score.shape)
        for j, calibrator in enumerate(calibrators):
            out[:, j] = calibrator._predict(score[:, j])
        return out

    def _for_claim(self, label: int | None, index: int) -> Self:
        """A copy of this unfitted calibrator for claim ``index``, about the class in column
        ``label`` or about no single one: with a seed of its own, so that claims are not drawn
        alike.
        """
        adapted = copy(self)
        seed = as_seed(getattr(self, "random_state", None))
        if seed is not None:
            own = np.random.SeedSequence((seed, index + 1)).generate_state(1)[0]
            adapted.set_params(random_state=int(own))
        return adapted

    def _rows_needed(self) -> int:
        """Rows below which a claim is too small for a fit of its own."""
        return 2

    def _check_for_claims(self, n_classes: int, *, by_class: bool) -> None:
        """Raise on parameters that make no sense for the claims of a reduction; ``by_class``:
        each is about one of the classes.
        """
        self._check_parameters(2)
