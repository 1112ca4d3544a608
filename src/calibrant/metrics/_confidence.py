"""Confidence on incorrect predictions, doubt on correct predictions, and sharpness."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import ClaimBlock, Claims, as_notion, claims_of


@dataclass(frozen=True)
class ConfidenceSums:
    """Sums over rows of the confidence z.

    All rows contribute their weights, z, z^2 and squared weights. Correct rows also contribute
    their weights and z.
    """

    weight: float = 0.0
    score: float = 0.0
    square: float = 0.0
    right: float = 0.0
    right_score: float = 0.0
    weight_square: float = 0.0

    @classmethod
    def of_block(cls, block: ClaimBlock, weight: FloatArray) -> ConfidenceSums:
        """Compute the sums of a block of confidences."""
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
        """Effective number of rows (Kish's formula)."""
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
        """Variance of z (n - 1 in the denominator), scaled to a maximum of about 1.

        With weights, n is the effective number of rows.
        """
        rows = self.n_effective
        if rows <= 1:
            return 0.0
        variance = max(0.0, self.square - self.score**2 / self.weight) / self.weight
        # Confidences lie in [1/K, 1], so their variance is at most ((K - 1) / 2K)^2.
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
    """Compute the mean confidence on incorrect predictions, or 0.0 if there are none.

    The literature calls this mean overconfidence. Neither lower nor higher is better by itself. The
    metric is also positive for calibrated models, so it does not show whether a model is
    overconfident. Use mean confidence minus accuracy for this purpose, see `evaluate` with ``by=``
    or `evaluate_answers`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        Mean confidence on incorrect predictions, between 0 and 1.

    See Also
    --------
    doubt_on_correct : Mean of 1 - confidence on correct predictions.
    expected_calibration_error : Binned calibration error.

    Notes
    -----
    The metric is ``o = E[z | wrong]`` with the confidence z. Let u be the metric
    `doubt_on_correct`. Then ``|o P(wrong) - u P(correct)| <= ECE_p`` (Theorem 1 of the reference).

    References
    ----------
    Wenger et al. (2020), arXiv:1906.04933.

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
    """Compute the mean of 1 - confidence on correct predictions, or 0.0 if there are none.

    The literature calls this mean underconfidence. Neither lower nor higher is better by itself,
    because the metric is also positive for calibrated models.

    Parameters
    ----------
    y_true, y_prob, inputs, sample_weight, classes
        As in `confidence_on_errors`.

    Returns
    -------
    float
        Mean of 1 - confidence on correct predictions, between 0 and 1.

    See Also
    --------
    confidence_on_errors : Mean confidence on incorrect predictions.

    Notes
    -----
    The metric is ``E[1 - z | correct]`` with z the confidence.

    References
    ----------
    Wenger et al. (2020), arXiv:1906.04933.

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
    """Compute the scaled variance of the confidence, or 0.0 for a single row.

    Sharpness measures how much the confidence differs between rows. Higher is better among models
    that are equally well calibrated.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels. The result does not depend on ``y_true``, which is accepted because all metrics
        have the same arguments.
    y_prob, inputs, sample_weight, classes
        As in `confidence_on_errors`.

    Returns
    -------
    float
        The scaled variance, between 0 and n / (n - 1).

    See Also
    --------
    expected_calibration_error : Binned calibration error.
    brier_score : Proper score of calibration and sharpness together.

    Notes
    -----
    The metric is the variance of the confidence (n - 1 in the denominator) times
    :math:`4 K^2 / (K - 1)^2`. With this factor, the maximum is n / (n - 1). A model reaches the
    maximum if its confidence is 1 for half of the rows and 1 / K for the other half.

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
