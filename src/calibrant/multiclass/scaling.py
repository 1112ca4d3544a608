"""Vector and matrix scaling, which are affine functions of the logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant._data.sample import Sample
from calibrant._kernels.simplex import EPS
from calibrant._optim.fit import fit_map
from calibrant._optim.maps import AffineMap, DiagonalMap
from calibrant._optim.penalties import QuadraticPenalty, no_penalty, off_diagonal_and_intercept
from calibrant._optim.solution import Outcome
from calibrant._typing import FloatArray, Inputs
from calibrant._validation import check_eps, check_strength
from calibrant.base import Citation, SoftmaxCalibrator, store_outcome
from calibrant.base.fitted import FittedValue
from calibrant.base.references import GUO_2017, KULL_2019

PENALTY_REMEDIES: Mapping[Outcome, str] = {
    Outcome.ITERATION_LIMIT: "Use a penalty (lam > 0), which makes the problem easier.",
    Outcome.SEPARABLE: "Fit on more rows, use a penalty (lam > 0), or use StructuredScaling().",
    Outcome.MISSING_CLASS: (
        "Add rows of that class, use a penalty (lam > 0), or use StructuredScaling()."
    ),
}
"""Advice for calibrators with the parameter ``lam``."""


class AffineCalibrator(SoftmaxCalibrator):
    """Base class of calibrators that return the softmax of an affine function of the scores."""

    coef_: FloatArray
    intercept_: FloatArray
    _is_diagonal: bool = False

    @property
    def fitted_values(self) -> Mapping[str, FittedValue]:
        shape = ("K",) if self._is_diagonal else ("K", "K")
        return {"coef_": FittedValue(shape), "intercept_": FittedValue(("K",))}

    def _fit_affine(
        self, sample: Sample, penalty: QuadraticPenalty, start: FloatArray | None = None
    ) -> None:
        """Set the coefficients and intercepts that minimize the penalized mean log-loss."""
        score_map = (DiagonalMap if self._is_diagonal else AffineMap)(sample.shape[1])
        solution = fit_map(score_map, sample, penalty, start=start)
        theta = solution.parameters
        self.coef_, self.intercept_ = theta if self._is_diagonal else (theta[:, :-1], theta[:, -1])
        store_outcome(self, solution)

    def _description(self) -> str:
        return words_of_affine(self.coef_)

    def _logits(self, u: FloatArray) -> FloatArray:
        logits = u * self.coef_ if self._is_diagonal else u @ self.coef_.T
        logits += self.intercept_
        return logits


class VectorScaling(AffineCalibrator):
    r"""Scale and shift the logit of each class: :math:`\mathrm{softmax}(d \odot u + b)`.

    The 2K parameters are fitted by maximum likelihood without a penalty. With fewer than about 50
    rows per class, use ``StructuredScaling("vector")`` instead.

    Parameters
    ----------
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken.

    Attributes
    ----------
    coef_ : array of shape (K,)
        The scales d.
    intercept_ : array of shape (K,)
        The shifts b. The sum of the shifts is zero, because a common shift changes no probability.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    StructuredScaling : Vector or matrix scaling with a penalty that needs no tuning.
    MatrixScaling : Transform the logits by a full matrix.

    Notes
    -----
    The row mean is subtracted from logits first, so adding a constant to all logits of a row does
    not change the result. Each pass of Newton's method over the data takes O(n K) time.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks, arXiv:1706.04599.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> VectorScaling().fit(data.val_proba, data.val_labels).coef_.shape
    (10,)
    """

    remedies: ClassVar[Mapping[Outcome, str]] = {
        Outcome.SEPARABLE: 'Fit on more rows, or use StructuredScaling("vector").',
        Outcome.MISSING_CLASS: 'Add rows of that class, or use StructuredScaling("vector").',
    }
    _is_diagonal = True

    def __init__(self, *, inputs: Inputs = "proba", classes: Any = None, eps: float = EPS) -> None:
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation("vector scaling", (GUO_2017,))

    def _check_parameters(self, n_classes: int) -> None:
        check_eps(self.eps)

    def _fit(self, sample: Sample) -> None:
        self._fit_affine(sample, no_penalty((2, sample.shape[1])))


class MatrixScaling(AffineCalibrator):
    r"""Transform the logits by a matrix: :math:`\mathrm{softmax}(W u + b)`, with the ODIR penalty.

    Use `MatrixScaling` with many rows and few classes. Without a penalty, matrix scaling overfits
    unless n is far above :math:`K^2`.

    Parameters
    ----------
    lam : float, default 0
        Strength of the penalty on the off-diagonal entries of W. With 0, the entries are not
        penalized.
    mu : float, optional
        Strength of the penalty on the intercepts. If None, ``mu`` equals ``lam``.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken.

    Attributes
    ----------
    coef_ : array of shape (K, K)
        The matrix W. Row k determines the logit of class k.
    intercept_ : array of shape (K,)
        The intercepts b.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    DirichletCalibration : Transform log-probabilities, and choose ``lam`` by cross-validation.
    StructuredScaling : Matrix scaling with a penalty that needs no tuning.

    Notes
    -----
    The fit minimizes ``mean NLL + lam * sum_{k != l} W_kl^2 + mu * sum_k b_k^2``. The row mean is
    subtracted from logits first. ODIR stands for off-diagonal and intercept regularization. Each
    pass of Newton's method over the data takes O(n K^2) time. The memory is O(block + K^2). With up
    to 160 classes, the K^3 entries of the preconditioner add at most 33 MB.

    References
    ----------
    Guo et al. (2017), arXiv:1706.04599; Kull et al. (2019), arXiv:1910.12656 (ODIR).

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> MatrixScaling(lam=0.01).fit(data.val_proba, data.val_labels).coef_.shape
    (10, 10)
    """

    remedies = PENALTY_REMEDIES

    def __init__(
        self,
        lam: float = 0.0,
        mu: float | None = None,
        *,
        inputs: Inputs = "proba",
        classes: Any = None,
        eps: float = EPS,
    ) -> None:
        self.lam = lam
        self.mu = mu
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation(
        "matrix scaling with off-diagonal and intercept regularization", (GUO_2017, KULL_2019)
    )

    def _check_parameters(self, n_classes: int) -> None:
        check_eps(self.eps)
        check_strength(self.lam, "lam")
        check_strength(self.lam if self.mu is None else self.mu, "mu")

    def _fit(self, sample: Sample) -> None:
        mu = self.lam if self.mu is None else self.mu
        self._fit_affine(sample, off_diagonal_and_intercept(self.lam, mu, sample.shape[1]))


def words_of_affine(coef: FloatArray, first: str = "") -> str:
    """Describe an affine function with coefficients ``coef``.

    ``first`` describes the steps before the affine function.
    """
    if np.ndim(coef) == 1:
        return f"The logit of each class{first} is multiplied by a factor and shifted."
    return (
        f"The logits{first} are transformed by a matrix and shifted. The matrix corrects "
        "confusions between pairs of classes."
    )
