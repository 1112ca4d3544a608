"""Confidence on errors, doubt on correct predictions and sharpness (Wenger et al. 2020)."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import ClaimBlock, Claims, as_notion, claims_of


@dataclass(frozen=True)
class ConfidenceSums:
    """Sums over rows of the top score z: of weights, of z, of z^2, of weights and z over correct
    rows, and of squared weights.
    """

    weight: float = 0.0
    score: float = 0.0
    square: float = 0.0
    right: float = 0.0
    right_score: float = 0.0
    weight_square: float = 0.0

    @classmethod
    def of_block(cls, block: ClaimBlock, weight: FloatArray) -> ConfidenceSums:
        """Sums of the rows of a confidence block."""
        z, right = block.score[:, 0], block.hit
        hit_weight = weight[right]
        return cls(
            float(weight.sum()),
            float(weight @ z),
            float(weight @ z**2),
            float(hit_weight.sum()),
            float(hit_weight @ z[right]),
            float(weight @ weight),
        )

    def __add__(self, other: ConfidenceSums) -> ConfidenceSums:
        return ConfidenceSums(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def n_effective(self) -> float:
        """The effective number of rows (Kish)."""
        return self.weight**2 / self.weight_square

    @property
    def accuracy(self) -> float:
        return self.right / self.weight

    @property
    def confidence_on_errors(self) -> float:
        wrong = self.weight - self.right
        return (self.score - self.right_score) / wrong if wrong > 0 else 0.0

    @property
    def doubt_on_correct(self) -> float:
        return 1.0 - self.right_score / self.right if self.right > 0 else 0.0

    def sharpness(self, n_classes: int) -> float:
        """Variance of z (n - 1 in the denominator), scaled so that its largest value is about 1.

        With weights, n is the effective number of rows.
        """
        rows = self.n_effective
        if rows <= 1:
            return 0.0
        variance = max(0.0, self.square - self.score**2 / self.weight) / self.weight
        return variance * rows / (rows - 1) * 4 * n_classes**2 / (n_classes - 1) ** 2


def _claims(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: str,
) -> tuple[Claims, AnyArray]:
    return claims_of(as_notion("confidence"), y_true, y_prob, sample_weight, classes, inputs=inputs)


def confidence_on_errors(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    """Mean confidence of wrong predictions, E[z | wrong]; 0.0 if no prediction is wrong.

    The literature calls it overconfidence. It is positive for calibrated models too, so it does not
    show whether a model is overconfident. Mean confidence minus accuracy does: see `evaluate` with
    ``by=``, or `evaluate_confidence`.

    With o this number and u the `doubt_on_correct`, ``|o P(wrong) - u P(right)| <= ECE_p``
    (Wenger et al. 2020, Theorem 1, arXiv:1906.04933).

    Examples
    --------
    >>> confidence_on_errors([0, 1], [[0.75, 0.25], [0.5, 0.5]])
    0.5
    """
    claims, _ = _claims(y_true, y_prob, sample_weight, classes, inputs)
    sums: ConfidenceSums = claims.sum_over(ConfidenceSums.of_block)
    return sums.confidence_on_errors


def doubt_on_correct(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    """Mean of 1 - confidence of correct predictions, E[1 - z | right]; 0.0 if none is correct.

    The literature calls it underconfidence (Wenger et al. 2020, arXiv:1906.04933). See
    `confidence_on_errors`.

    Examples
    --------
    >>> doubt_on_correct([0, 1], [[0.75, 0.25], [0.5, 0.5]])
    0.25
    """
    claims, _ = _claims(y_true, y_prob, sample_weight, classes, inputs)
    sums: ConfidenceSums = claims.sum_over(ConfidenceSums.of_block)
    return sums.doubt_on_correct


def sharpness(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Variance of the top score (ddof 1) times :math:`4 K^2 / (K - 1)^2`, which makes its largest
    value n / (n - 1): half of the rows certain, half of them knowing nothing.

    The truth plays no part; it is an argument so that all metrics are called alike. 0.0 for a
    single row.

    References
    ----------
    Wenger et al. (2020), arXiv:1906.04933.

    Examples
    --------
    >>> round(sharpness([0, 1], [[1.0, 0.0], [0.5, 0.5]]), 12)
    2.0
    """
    claims, names = _claims(y_true, y_prob, sample_weight, classes, inputs)
    sums: ConfidenceSums = claims.sum_over(ConfidenceSums.of_block)
    return sums.sharpness(len(names))
