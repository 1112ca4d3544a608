"""Dirichlet calibration and its three parametrizations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from calibrant._data.folds import assign_folds
from calibrant._data.sample import ArraySample, RowBlock, Sample
from calibrant._kernels.simplex import EPS, log_softmax, true_class
from calibrant._optim.fit import fit_map
from calibrant._optim.maps import AffineMap
from calibrant._optim.penalties import QuadraticPenalty, off_diagonal_and_intercept, ridge_to_zero
from calibrant._typing import FloatArray, Inputs, IntArray
from calibrant._validation import check_count, check_eps, check_fitted, check_option, check_strength
from calibrant.base import Citation
from calibrant.base.references import KULL_2019
from calibrant.multiclass.scaling import PENALTY_REMEDIES, AffineCalibrator

FALLBACK_LAM = 1e-3
"""The penalty strength if the smallest class has fewer than two rows, so none can be held out."""

_HELD_OUT_FLOOR = 1e-15
"""Floor of probabilities in the held-out loss. The reference implementation cal_dirichlet uses the
same floor, so both choose the same lam."""

# The fits of the folds are only compared by their held-out loss, so they may be less accurate. The
# reference implementation cal_dirichlet stops these fits at a relative change of 1e-8 or after 500
# iterations. Fits without a penalty need up to 500 iterations.
_FOLD_TOLERANCE = 1e-9
_FOLD_WORK = 500


class _Choice(NamedTuple):
    """Selected penalty strength, score of each candidate, and start of the final fit."""

    lam: float
    scores: FloatArray | None = None
    start: FloatArray | None = None


class DirichletCalibration(AffineCalibrator):
    r"""Calibrate by penalized multinomial logistic regression on log-probabilities.

    Use `DirichletCalibration` with 3 to about 20 classes and several hundred rows or more. The
    method corrects confusions between pairs of classes. The calibrated probabilities are
    :math:`\mathrm{softmax}(W \log p + b)`.

    Parameters
    ----------
    lam : float, optional
        Strength of the penalty, see Notes. If None, ``lam`` is chosen from ``grid`` by
        cross-validation.
    mu : float, optional
        Strength of the penalty on the intercepts, for "odir" only. If None, ``mu`` equals ``lam``.
    penalty : {"odir", "l2"}, default "odir"
        "odir" (off-diagonal and intercept regularization) penalizes off-diagonal entries and
        intercepts. "l2" penalizes all entries and intercepts.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken, and are not
        normalized again. Logits are not clipped.
    grid : sequence of float, default (0, 1e-4, 1e-3, 1e-2, 1e-1)
        Candidates for ``lam``.
    cv : int, default 3
        Maximum number of folds. The number of rows of the smallest class is also a limit.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Attributes
    ----------
    coef_ : array of shape (K, K)
        The matrix W. Row k determines the logit of class k.
    intercept_ : array of shape (K,)
        The intercepts b.
    lam_, mu_ : float
        The penalty strengths of the fit.
    cv_scores_ : array or None
        Mean held-out log-loss of each candidate. None if there was no cross-validation.
    converged_, n_iter_, objective_ : bool, int, float
        Whether the fit converged, its number of iterations, and the minimum of the objective.

    See Also
    --------
    MatrixScaling : Apply the same function to logits.
    StructuredScaling : Fit a matrix with a penalty that needs no tuning.

    Notes
    -----
    The fit minimizes ``mean NLL + lam * sum_{k != l} W_kl^2 + mu * sum_k b_k^2`` for "odir", or
    ``mean NLL + lam * (sum_kl W_kl^2 + sum_k b_k^2)`` for "l2". Kull's normalized strengths are ``K
    (K - 1) lam`` and ``K mu``.

    ``lam=None`` follows the reference implementation cal_dirichlet. The rows of each class are
    assigned to at most ``cv`` folds in their existing order. So the choice of ``lam`` depends on
    the order of rows. The selected candidate has the smallest mean held-out log-loss, with equal
    weights of the folds. If candidates tie, the first one is chosen. If the smallest class has
    fewer than two rows, ``lam`` is 1e-3. Each fit of the grid starts from the fit with the next
    stronger penalty.

    To search a grid over (lam, mu) as in Kull's experiments, use ``GridSearchCV`` of scikit-learn
    with ``calibrant.metrics.scorer("log_loss")``.

    Newton's method uses the exact Hessian as preconditioner for up to 21 classes, and the K
    diagonal blocks of the Hessian for more classes. A pass over the data takes O(n K^2) time. The
    memory is O(block + K^2). With up to 160 classes, the K^3 entries of the preconditioner add at
    most 33 MB.

    References
    ----------
    Kull et al. (2019), Beyond temperature scaling, NeurIPS, arXiv:1910.12656.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = DirichletCalibration(lam=0.01).fit(data.val_proba, data.val_labels)
    >>> A, c = model.canonical()
    >>> A.shape, round(float(c.sum()), 12)
    ((10, 10), 1.0)
    """

    form = "log_softmax"
    remedies = PENALTY_REMEDIES

    def __init__(
        self,
        lam: float | None = None,
        mu: float | None = None,
        penalty: str = "odir",
        eps: float = EPS,
        grid: Sequence[float] = (0, 1e-4, 1e-3, 1e-2, 1e-1),
        cv: int = 3,
        *,
        inputs: Inputs = "proba",
        classes: Any = None,
    ) -> None:
        self.lam = lam
        self.mu = mu
        self.penalty = penalty
        self.eps = eps
        self.grid = grid
        self.cv = cv
        self.inputs = inputs
        self.classes = classes

    citation: ClassVar[Citation] = Citation("Dirichlet calibration", (KULL_2019,))

    def _check_parameters(self, n_classes: int) -> None:
        check_eps(self.eps)
        check_option(self.penalty, "penalty", ("odir", "l2"))
        check_count(self.cv, "cv", minimum=2)
        for lam in self.grid if self.lam is None else [self.lam]:
            check_strength(lam, "lam")
        if self.mu is not None:
            check_strength(self.mu, "mu")
        if self.lam is None and not len(self.grid):
            raise ValueError("grid must not be empty. Pass candidates, such as grid=(1e-3, 1e-2).")

    def _penalty(self, lam: float, n_classes: int) -> QuadraticPenalty:
        if self.penalty == "l2":
            return ridge_to_zero(lam, n_classes)
        return off_diagonal_and_intercept(lam, lam if self.mu is None else self.mu, n_classes)

    def _fit(self, sample: Sample) -> None:
        choice = self._select(sample) if self.lam is None else _Choice(self.lam)
        self.lam_, self.cv_scores_, start = choice
        self.mu_ = self.lam_ if self.mu is None else self.mu
        self._fit_affine(sample, self._penalty(self.lam_, sample.shape[1]), start)

    def _select(self, sample: Sample) -> _Choice:
        """Select the penalty strength with the smallest mean held-out loss."""
        smallest = int(np.sum([rows for _, rows in sample.class_rows], axis=0).min())
        if smallest < 2:
            return _Choice(FALLBACK_LAM)
        n_folds = min(self.cv, smallest)
        paths = [self._path(*fold) for fold in _cut_folds(sample, n_folds)]
        scores = np.sum([losses for losses, _ in paths], axis=0)
        # Scores that differ by less than the tolerance of the fits are ties. Choose the first
        # candidate.
        best = int(np.flatnonzero(scores <= scores.min() + _FOLD_TOLERANCE)[0])
        _, last = paths[-1]
        return _Choice(float(self.grid[best]), scores / n_folds, last[best])

    def _path(self, train: Sample, test: Sample) -> tuple[FloatArray, list[FloatArray | None]]:
        """Return the held-out loss of each candidate, and its parameters if the fit converged.

        The first fit has the strongest penalty. Each fit starts at the result of the previous one.
        """
        n_classes = train.shape[1]
        score_map = AffineMap(n_classes)
        fit = partial(fit_map, score_map, train, tol=_FOLD_TOLERANCE, max_work=_FOLD_WORK)
        losses = np.empty(len(self.grid))
        optima: list[FloatArray | None] = [None] * len(self.grid)
        start = score_map.identity()
        for place in np.argsort(self.grid)[::-1]:
            solution = fit(self._penalty(self.grid[place], n_classes), start=start)
            losses[place] = _held_out_loss(score_map, solution.parameters, test)
            # If there is no finite optimum, the parameters are a bad start for the next penalty.
            optima[place] = solution.parameters if solution.converged else None
            start = solution.parameters if solution.converged else score_map.identity()
        return losses, optima

    @property
    def counts_rows(self) -> bool:
        """Whether weights differ from duplicated rows, because a row of weight 2 is in one fold."""
        return self.lam is None

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        if self.lam is not None:
            return {}
        return {"check_row_order_is_irrelevant": "lam=None assigns rows to folds in their order"}

    def _description(self) -> str:
        return (
            "With K classes and original probabilities p, the calibrated probabilities are "
            f"softmax(A log(K p) + log c). The fit uses the penalty lam = {self.lam_:g}. A uniform "
            "prediction becomes c. Entry (k, l) of A is the effect of the score of class l on "
            "class k."
        )

    def canonical(self) -> tuple[FloatArray, FloatArray]:
        r"""Return A and c of the canonical form :math:`\mathrm{softmax}(A \log(K p) + \log c)`.

        The canonical form is unique. A uniform prediction becomes c.

        Returns
        -------
        A : ndarray of shape (K, K)
            The matrix. The smallest entry of each column is zero.
        c : ndarray of shape (K,)
            The calibrated probabilities of a uniform prediction.

        See Also
        --------
        canonical_to_linear : The inverse function.
        """
        check_fitted(self)
        coef = self.coef_ - self.coef_.min(axis=0)
        center = self.intercept_ - self.coef_.sum(axis=1) * np.log(self.n_classes_)
        return coef, np.exp(log_softmax(center[None])[0])

    def generative(self) -> tuple[FloatArray, FloatArray]:
        """Return alpha and pi of the generative form.

        In this form, the predictions for rows of class k have the distribution Dirichlet(alpha[k]).

        Returns
        -------
        alpha : ndarray of shape (K, K)
            The parameters of the Dirichlet distributions, with one row per class.
        pi : ndarray of shape (K,)
            The prior probabilities of the classes.

        See Also
        --------
        generative_to_linear : The inverse function.
        """
        check_fitted(self)
        coef = self.coef_ - self.coef_.min(axis=0)
        alpha = coef + 1.0
        return alpha, np.exp(log_softmax((self.intercept_ + _log_beta(alpha))[None])[0])


def canonical_to_linear(coef: FloatArray, center: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Convert the canonical form (A, c) to (W, b): ``W = A``, ``b = log c - A log(1/K)``.

    See Kull et al. (2019), Theorem 1.

    Examples
    --------
    >>> canonical_to_linear(np.eye(2), np.array([0.5, 0.5]))[1].round(12).tolist()
    [0.0, 0.0]
    """
    return coef, np.log(center) + coef.sum(axis=1) * np.log(len(center))


def generative_to_linear(alpha: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Convert the generative form (alpha, pi) to (W, b).

    The result is ``W = alpha - 1``, ``b = log pi - log B(alpha)``.

    Examples
    --------
    >>> alpha, pi = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.5, 0.5])
    >>> generative_to_linear(alpha, pi)[1].round(12).tolist()
    [0.0, 0.0]
    """
    return alpha - 1.0, np.log(prior) - _log_beta(alpha)


def _log_beta(alpha: FloatArray) -> FloatArray:
    """Return the logarithm of the multivariate beta function of each row."""
    return gammaln(alpha).sum(axis=1) - gammaln(alpha.sum(axis=1))


def _cut_folds(sample: Sample, n_folds: int) -> Iterator[tuple[Sample, Sample]]:
    """Yield the training rows and the held-out rows of each fold.

    Unused rows get weight zero, so no rows are copied.
    """
    # Count the rows of each class before every chunk, because chunks continue the assignment to
    # folds.
    counts_before, count = {}, np.zeros(sample.shape[1], dtype=np.intp)
    for start, rows in sample.class_rows:
        counts_before[start] = count
        count = count + rows
    for held in range(n_folds):
        keep = partial(_keep_rows, n_folds, counts_before, held)
        yield sample.map(partial(keep, False)), sample.map(partial(keep, True))


def _keep_rows(
    n_folds: int, before: Mapping[int, IntArray], held: int, is_test: bool, chunk: ArraySample
) -> ArraySample:
    """Select the held-out rows or the training rows of a chunk by setting other weights to zero."""
    present = chunk.weight > 0  # a row with weight zero is absent
    fold = np.zeros(len(chunk.y), dtype=np.intp)
    fold[present] = assign_folds(chunk.y[present], n_folds, before[chunk.start])
    return chunk.weighted(np.where((fold == held) == is_test, chunk.weight, 0.0))


def _held_out_loss(score_map: AffineMap, theta: FloatArray, sample: Sample) -> float:
    """Return the weighted mean log-loss, with probabilities clipped to [1e-15, 1 - 1e-15]."""
    return -float(sample.sum(partial(_log_true_sum, score_map, theta))) / sample.total


def _log_true_sum(score_map: AffineMap, theta: FloatArray, block: RowBlock) -> Any:
    true = true_class(log_softmax(score_map.apply(theta, block.u)), block.y)
    return block.weight @ np.clip(true, np.log(_HELD_OUT_FLOOR), np.log1p(-_HELD_OUT_FLOOR))
