"""What a proper score is made of: calibration and refinement, and per claim miscalibration,
discrimination, uncertainty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy

from calibrant._crossfit.scores import AnyCalibrator, paired_scores
from calibrant._kernels.simplex import EPS, as_proba, log_clipped
from calibrant._typing import FloatArray, Inputs, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, check_predictions
from calibrant.binning import distinct_sums
from calibrant.notions import Claim, Claims, Notion, as_notion


@dataclass(frozen=True)
class ClaimDecomposition:
    """A proper score of one claim: ``score = miscalibration - discrimination + uncertainty``.

    ``claim`` is its index in the notion, ``name`` what it is about, ``share`` its weight v_c.
    Miscalibration and discrimination are never negative.
    """

    claim: int
    name: str
    share: float
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True)
class ScoreDecomposition:
    """A proper score taken apart.

    Attributes
    ----------
    score : {"log_loss", "brier_score"}
    value : float
        Mean score of the predictions; ``value = calibration + refinement``.
    calibration : float
        What cross-fitted recalibration gains; negative where it harms.
    refinement : float
        What is left after it.
    notion : str
    claims : tuple of ClaimDecomposition
        The score of each claim, a binary problem, by isotonic regression.
    """

    score: str
    value: float
    calibration: float
    refinement: float
    notion: str
    claims: tuple[ClaimDecomposition, ...]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        head = (
            f"{self.score} {self.value:.5f} = calibration {self.calibration:.5f} + refinement "
            f"{self.refinement:.5f}"
        )
        width = max(8, *(len(c.name) for c in self.claims))
        title = (
            f"{'claim':>{width}}{'score':>10}{'miscal.':>10}{'discrim.':>10}{'uncert.':>10}   "
            f"({self.notion})"
        )
        lines = [
            f"{c.name:>{width}}{c.score:>10.5f}{c.miscalibration:>10.5f}{c.discrimination:>10.5f}{c.uncertainty:>10.5f}"
            for c in self.claims
        ]
        return "\n".join([head, title, *lines])


def score_decomposition(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    calibrator: AnyCalibrator | None = None,
    *,
    score: str = "log_loss",
    notion: str | Notion = "class-wise",
    cv: Any = 5,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    rng: Rng = None,
) -> ScoreDecomposition:
    r"""Take a proper score apart: how much of it is miscalibration?

    Of the whole vector, with maps :math:`g_{-i}` fitted on other rows,

    .. math:: \bar S(p) = \underbrace{\bar S(p) - \bar S(g(p))}_{\text{calibration}} +
        \underbrace{\bar S(g(p))}_{\text{refinement}} .

    Of each claim of ``notion``, with :math:`\hat f` the isotonic regression of the outcomes on the
    scores f and
    :math:`\bar o` their mean (CORP),

    .. math:: \bar S(f) = \underbrace{\bar S(f) - \bar S(\hat f)}_{\text{miscalibration}} -
        \underbrace{(\bar S(\bar o) - \bar S(\hat f))}_{\text{discrimination}} +
        \underbrace{\bar S(\bar o)}_{\text{uncertainty}} .

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
    calibrator : calibrator, optional
        As for `calibration_gain`; by default `StructuredScaling`.
    score : {"log_loss", "brier_score"}
        For a claim the binary score: ``-log`` of what was given to the outcome, or ``(score -
        outcome)^2``.
    notion : str
        Which claims are taken apart, see `calibrant.notions`.
    cv : int
        Folds of the cross-fitting, at random.
    inputs : {"proba", "logits", "log_proba"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
    classes : labels of the columns, optional
    rng : int, Generator or None
        Decides the folds.

    Returns
    -------
    ScoreDecomposition

    Notes
    -----
    The terms of a claim are of the sample on which the isotonic map was fitted: miscalibration and
    discrimination are not negative and both too large. For a calibrated model of two classes the
    miscalibration of the log-loss came out as 0.137 with 30 rows, 0.073 with 100 and 0.018 with
    1,000, which is 32, 19 and 5 % of the discrimination; of ten classes 46, 33 and 11 %. Tied
    scores are taken together, logarithms of probabilities clipped to ``[1e-12, 1 - 1e-12]``.
    O(n log n) per claim.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers, doi:10.1073/pnas.2016191118; Berta et al. (2025), arXiv:2501.19195; Bröcker (2009),
    doi:10.1002/qj.456.

    Examples
    --------
    >>> from calibrant.datasets import power_family
    >>> data = power_family(1000, 2.0, rng=0)
    >>> parts = score_decomposition(data.labels, data.proba, notion="class-1", rng=0)
    >>> parts.calibration > 0, parts.claims[0].miscalibration > 0
    (True, True)
    """
    data = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs, hint=LOGITS_HINT
    )
    chosen = as_notion(notion).bound(data.classes)
    pairs = paired_scores(data, calibrator, score=score, inputs=inputs, cv=cv, rng=rng)
    value, refinement = pairs.mean(pairs.before), pairs.mean(pairs.after)
    proba = data.scores if inputs == "proba" else as_proba(data.scores, inputs)
    names = chosen.claim_names([str(label) for label in data.classes.tolist()])
    claims = _corp(chosen.claims(proba, data.y, data.weight), _CLAIM_SCORES[score], names)
    return ScoreDecomposition(score, value, value - refinement, refinement, chosen.name, claims)


def _brier_sum(score: FloatArray, total: FloatArray, hits: FloatArray) -> float:
    return float(np.sum(hits * (1 - score) ** 2 + (total - hits) * score**2))


def _log_sum(score: FloatArray, total: FloatArray, hits: FloatArray) -> float:
    return float(
        -np.sum(hits * log_clipped(score, EPS) + (total - hits) * log_clipped(1 - score, EPS))
    )


ClaimScore = Callable[[FloatArray, FloatArray, FloatArray], float]
_CLAIM_SCORES: dict[str, ClaimScore] = {"log_loss": _log_sum, "brier_score": _brier_sum}


def _corp(
    claims: Claims, score_sum: ClaimScore, names: Sequence[str]
) -> tuple[ClaimDecomposition, ...]:
    return tuple(
        _claim_parts(claim, score_sum, claims.share(claim), names[claim.index])
        for claim in claims
        if claim.weight.any()
    )


def _claim_parts(
    claim: Claim, score_sum: ClaimScore, share: float, name: str
) -> ClaimDecomposition:
    values, rows, hits = distinct_sums(claim.score, claim.outcome, claim.weight)
    n = float(rows.sum())
    rate = np.clip(scipy.optimize.isotonic_regression(hits / rows, weights=rows).x, 0, 1)
    score, best = score_sum(values, rows, hits) / n, score_sum(rate, rows, hits) / n
    uncertainty = score_sum(np.full_like(rate, hits.sum() / n), rows, hits) / n
    # The isotonic fit is the best of all isotonic maps, the identity and the constant among them,
    # up to round-off.
    best = min(best, score, uncertainty)
    return ClaimDecomposition(
        claim.index, name, share, score, score - best, uncertainty - best, uncertainty
    )
