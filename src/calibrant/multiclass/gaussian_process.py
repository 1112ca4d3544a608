"""Gaussian process calibration with one latent function that all classes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky

from calibrant._data.sample import LazyRows, Rows, Sample
from calibrant._kernels.blocks import row_blocks
from calibrant._kernels.simplex import (
    EPS,
    LOG_ZERO,
    TINY,
    log_clipped,
    log_floored,
    softmax,
    true_class,
)
from calibrant._optim.solution import Outcome
from calibrant._output.numbers import format_number
from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike, Rng
from calibrant._validation import (
    as_array,
    as_seed,
    check_count,
    check_eps,
    check_fitted,
    check_option,
)
from calibrant.base import BaseCalibrator, Citation, store_outcome
from calibrant.base.fitted import FittedValue
from calibrant.base.references import WENGER_2020
from calibrant.multiclass._gp.bound import DiagonalResidual, FullResidual, ResidualOf
from calibrant.multiclass._gp.kernel import InducingInputs, Kernel, rbf
from calibrant.multiclass._gp.monotone import fit_free, fit_increasing
from calibrant.multiclass._gp.scores import ScoreSummary, standardize, summarize_scores
from calibrant.multiclass._gp.search import Evidence

_RESIDUALS: dict[str, ResidualOf] = {"diagonal": DiagonalResidual, "full": FullResidual}

# Share of the variance added to the diagonal of the covariance of a row, which is singular if two
# scores are equal.
_JITTER = 1e-8


class GaussianProcessCalibration(BaseCalibrator):
    r"""Calibrate by a smooth function with a Gaussian process prior.

    Use `GaussianProcessCalibration` with several hundred rows or more if no parametric method fits
    the data well. The same function transforms all scores of a row. The function stays near the
    identity far from the calibration scores. The model is

    .. math:: P(y = k \mid u) = \mathrm{softmax}(f(u_1), \dots, f(u_K))_k, \qquad
              f \sim \mathrm{GP}\bigl(u,\; v\, e^{-(u - u')^2 / (2 l^2)} + \mathrm{noise}\, 1_{u =
              u'}\bigr).

    Parameters
    ----------
    n_inducing : int, default 10
        Number M of inducing inputs.
    n_samples : int, default 100
        Number of draws of the latent function over which predictions are averaged. With 0,
        predictions use the latent mean.
    covariance : {"diagonal", "full"}, default "diagonal"
        Form of the residual prior covariance of a row, which the inducing inputs do not explain.
        The form is a diagonal or a full K x K matrix. See Notes.
    monotone : bool, default False
        Whether the latent mean must increase, so predicted classes do not change. See Notes.
    random_state : int, Generator or None, default None
        Seed for the draws, which `fit` makes once for all rows. None means a fixed seed. A
        Generator is copied, so its state does not change.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithm is taken.

    Attributes
    ----------
    elbo_ : float
        Second-order approximation of the evidence lower bound (ELBO).
    kernel_variance_, lengthscale_, noise_ : float
        The variance v and the lengthscale l of the kernel, and the variance of the white noise. The
        unit of l is the unit of u.
    inducing_inputs_ : array of shape (M,)
        The inducing inputs, in units of u.
    inducing_mean_, inducing_covariance_ : arrays of shape (M,) and (M, M)
        Mean m and covariance S of the whitened inducing variables.
    score_range_ : array of shape (2,)
        Smallest and largest u of the calibration rows.
    draws_ : array of shape (n_samples, M + K)
        Standard normal numbers in antithetic pairs, from which predictions draw latent functions.
    converged_, n_iter_ : bool, int
        Whether the fit converged, and its number of iterations.
    objective_ : float
        The minimum of the objective. The objective is minus the sum of `elbo_` and the log prior of
        the kernel parameters, per unit of weight.

    See Also
    --------
    TemperatureScaling : Calibrate by a latent function that is a line through the origin.

    Notes
    -----
    *Inputs.* u is ``log(clip(p, eps, 1 - eps))`` for probabilities, and the logit minus its row
    mean for logits. The prior mean ``f(u) = u`` assumes a calibrated classifier. In comparison,
    temperature scaling is ``f(u) = u / T``.

    *Objective.* M inducing variables with the distribution ``N(m, S)`` represent the posterior. The
    fit maximizes a variational bound on the evidence over m, S, the inducing inputs and the kernel
    parameters. A row has the latent mean ``phi = u + A m`` and the latent covariance
    ``C = R + A S A'``. With ``s = softmax(phi)`` and ``H = diag(s) - s s'``, its expected
    log-likelihood is approximated by ``log s_y - tr(H C) / 2`` (eq. 7 of the paper). The result
    approximates the bound of eq. 6 and can exceed the evidence. For fixed kernel parameters and
    inducing inputs, S is ``(I + sum A' H A)^-1``, and a few Newton steps find m. L-BFGS with exact
    gradients finds the kernel parameters and inducing inputs from the best of four starts.

    *Covariance.* The rows of A are ``L^-1 k(w, u_k)`` with ``L L' = K_w + noise I`` and the RBF
    kernel K_w of the inducing inputs w. The prior covariance of a row is ``K_u + noise I``. The
    inducing variables explain ``A A'``, so ``R = K_u + noise I - A A'``. "diagonal" uses only the
    diagonal of R. White noise is independent between evaluations of f, so the noise is only on the
    diagonals of ``K_w`` and R. The log-likelihood is concave, so more noise decreases the bound.
    The fitted noise is therefore at its lower limit of 1e-6.

    *Differences from the paper.* (1) The kernel acts on u, not on the probability. A kernel on
    probabilities would make the latent values of 1e-12 and 1e-3 almost equal. With a kernel on u,
    the bound was at least as large on ten of ten data sets. (2) The kernel parameters have the log
    prior ``-sqrt(v) / a - sd(u) / (2 l)`` with ``a = max(3, sd(u) / 3)``, because eq. 7 hardly
    penalizes a large variance. (3) If the penalized bound is not at least 3 units above its value
    for the identity, v is set to 1e-4, so scores hardly change. This fixed threshold is
    conservative. None of 430 fits to calibrated samples exceeded the threshold. Only one of
    30 fits to 50 rows with T = 1.5 exceeded the threshold.

    *Properties.* The latent function returns to the prior mean far from the calibration scores.
    With ``monotone=True``, the slope of the latent mean is at least 1e-3 / max(1, sd(u)) on the
    range of the calibration scores. Outside this range, the slope is 1. The fit enforces the
    minimum slope on a grid. With a bound on the third derivative, the minimum also holds between
    grid points. The latent values of each draw are sorted in the order of the scores. Calibration
    therefore keeps the order of the scores within each row, up to rounding and clipping. The result
    does not depend on the order of rows or classes. An integer weight is equivalent to repeating
    the row.

    *Cost.* A pass over the data takes O(n K M^2) time, plus O(n K^2) with "full". A fit takes about
    100 passes, and several times as many if the monotone constraint is active.

    References
    ----------
    Wenger, Kjellström & Triebel (2020), Non-parametric calibration for classification, AISTATS,
    arXiv:1906.04933. Hensman, Matthews & Ghahramani (2015), Scalable variational Gaussian process
    classification, AISTATS, arXiv:1411.2005. Simpson et al. (2017), Penalizing model component
    complexity, Statistical Science 32, doi:10.1214/16-STS576.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> gp = GaussianProcessCalibration().fit(data.val_proba, data.val_labels)
    >>> mean, deviation = gp.latent([0.01, 0.99])
    >>> bool(mean[1] - mean[0] < np.log(0.99 / 0.01))  # the classifier was overconfident
    True
    """

    remedies: ClassVar[Mapping[Outcome, str]] = dict.fromkeys(
        (Outcome.ITERATION_LIMIT, Outcome.STALLED),
        "The fit uses the best kernel so far. Reduce n_inducing to make the search easier.",
    )

    def __init__(
        self,
        n_inducing: int = 10,
        n_samples: int = 100,
        covariance: str = "diagonal",
        monotone: bool = False,
        random_state: Rng = None,
        *,
        inputs: Inputs = "proba",
        classes: LabelsLike | None = None,
        eps: float = EPS,
    ) -> None:
        self.n_inducing = n_inducing
        self.n_samples = n_samples
        self.covariance = covariance
        self.monotone = monotone
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    citation: ClassVar[Citation] = Citation("Gaussian process calibration", (WENGER_2020,))

    def _check_parameters(self, n_classes: int) -> None:
        as_seed(self.random_state)
        check_count(self.n_inducing, "n_inducing")
        check_count(self.n_samples, "n_samples", minimum=0)
        check_option(self.covariance, "covariance", tuple(_RESIDUALS))
        check_option(self.monotone, "monotone", (False, True))
        check_eps(self.eps)

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        **dict.fromkeys(("kernel_variance_", "lengthscale_", "noise_"), FittedValue((), 0.0)),
        **dict.fromkeys(("inducing_inputs_", "inducing_mean_"), FittedValue(("M",))),
        "inducing_covariance_": FittedValue(("M", "M")),
        "draws_": FittedValue(("S", "M+K")),
    }

    needs_rows = True

    def _fit(self, sample: Sample) -> None:
        rows = sample.rows(type(self).__name__)
        summary = summarize_scores(standardize(*_distinct(rows.u, rows.y, rows.weight)))
        residual = _RESIDUALS[self.covariance]
        fit = fit_increasing if self.monotone else fit_free
        self._keep(fit(summary, residual, n_inducing=self.n_inducing), summary)
        self.draws_ = _antithetic(
            as_seed(self.random_state), self.n_samples, self.n_inducing + self.n_classes_
        )

    def _keep(self, evidence: Evidence, summary: ScoreSummary) -> None:
        """Set the fitted attributes, in units of u."""
        center, scale = summary.rows.center, summary.rows.scale
        self.kernel_variance_ = evidence.inducing.kernel.variance
        self.lengthscale_ = evidence.inducing.kernel.lengthscale * scale
        self.noise_ = evidence.inducing.kernel.noise
        self.inducing_inputs_ = evidence.inducing.inputs * scale + center
        self.inducing_mean_ = evidence.point.mean
        self.inducing_covariance_ = evidence.point.covariance
        self.score_range_ = np.array([summary.low, summary.high]) * scale + center
        self.elbo_ = evidence.point.value
        store_outcome(self, evidence.solution)

    def latent(self, z: Any) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean and standard deviation of the latent function.

        Parameters
        ----------
        z : array-like of any shape
            Probabilities, or logits minus their row mean, depending on ``inputs``.

        Returns
        -------
        mean, deviation : ndarray of the shape of z
            Posterior mean and standard deviation at each score.
        """
        check_fitted(self)
        scores = np.asarray(as_array(z), dtype=np.float64)
        u = self._transform_scalars(scores.reshape(1, -1))
        prior = self._inducing()
        features = prior.features(self._kernel_inputs(u))
        spread = np.einsum("nkm,nkm->nk", features @ self.inducing_covariance_, features)
        deviation = np.sqrt(spread + prior.unexplained(features))
        return (u + features @ self.inducing_mean_).reshape(scores.shape), deviation.reshape(
            scores.shape
        )

    def _transform_scalars(self, z: FloatArray) -> FloatArray:
        if self.inputs == "proba":
            if not ((z >= 0) & (z <= 1)).all():
                raise ValueError(
                    "z must contain probabilities between 0 and 1, because the calibrator was "
                    "fitted with inputs='proba'. For logits, fit with inputs='logits'."
                )
            return log_clipped(z, self.eps)
        if not (z < np.inf).all():
            raise ValueError(
                "z must contain logits without NaN and +inf. Pass logits minus their row mean."
            )
        return np.where(np.isneginf(z), LOG_ZERO, z)

    def _inducing(self) -> InducingInputs:
        return InducingInputs(
            Kernel(self.kernel_variance_, self.lengthscale_, self.noise_), self.inducing_inputs_
        )

    def _kernel_inputs(self, u: FloatArray) -> FloatArray:
        """Return the inputs of the kernel.

        Beyond the range of the calibration scores, a monotone latent function has slope 1.
        """
        return np.clip(u, *self.score_range_) if self.monotone else u

    def _description(self) -> str:
        return (
            "A latent Gaussian process transforms the scores. The kernel has variance "
            f"{format_number(self.kernel_variance_)}, length scale "
            f"{format_number(self.lengthscale_)} and noise {format_number(self.noise_)}, with "
            f"{len(self.inducing_inputs_)} inducing points."
        )

    def _log_proba(self, u: FloatArray) -> FloatArray:
        # Sort each row, so a draw belongs to the rank of a score and not to its column. Then a
        # permutation of the classes only permutes the result.
        order = np.argsort(u, axis=1)
        out = np.empty_like(u)
        n_elements = u.shape[1] * (u.shape[1] if self.covariance == "full" else 1)
        for rows in row_blocks(len(u), n_elements):
            ranked = self._ranked_log_proba(np.take_along_axis(u[rows], order[rows], axis=1))
            np.put_along_axis(out[rows], order[rows], ranked, axis=1)
        return out

    def _ranked_log_proba(self, u: FloatArray) -> FloatArray:
        """Return the log-probabilities of sorted rows."""
        total = np.zeros_like(u)
        for latent in self._latent_values(u):
            total += softmax(np.sort(latent, axis=1) if self.monotone else latent)
        return log_floored(_averaged_over_ties(total / max(1, len(self.draws_)), u), TINY)

    def _latent_values(self, u: FloatArray) -> Iterator[FloatArray]:
        """Yield draws of the latent values of sorted rows, or their mean if ``n_samples`` is 0."""
        x = self._kernel_inputs(u)
        prior = self._inducing()
        features = prior.features(x)
        mean = u + features @ self.inducing_mean_
        if not len(self.draws_):
            yield mean
            return
        root = cholesky(self.inducing_covariance_, lower=True)
        spread = (_full_spread if self.covariance == "full" else _diagonal_spread)(
            prior, x, features
        )
        for draw in self.draws_:
            shared, residual = np.split(draw, [len(root)])
            yield mean + features @ (root @ shared) + spread(residual)


# These functions map K standard normal numbers to a part of the latent values of sorted rows. The
# inducing inputs do not explain this part.


def _diagonal_spread(
    prior: InducingInputs, x: FloatArray, features: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return independent deviations. Equal scores in a row have the same deviation."""
    deviation, rank = np.sqrt(prior.unexplained(features)), _ranks(x)
    return lambda draw: deviation * draw[rank]


def _full_spread(
    prior: InducingInputs, x: FloatArray, features: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return deviations with the K x K covariance of the row."""
    kernel = prior.kernel
    covariance = rbf(x, x, kernel) - features @ features.transpose(0, 2, 1)
    diagonal = np.arange(x.shape[1])
    covariance[:, diagonal, diagonal] += kernel.noise + _JITTER * kernel.variance
    root = np.linalg.cholesky(covariance)
    return lambda draw: root @ draw


def _ranks(ordered: FloatArray) -> IntArray:
    """Return ranks in sorted rows. Equal values have equal ranks."""
    return np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) > 0, axis=1)


def _averaged_over_ties(proba: FloatArray, ordered: FloatArray) -> FloatArray:
    """Replace the probabilities of equal scores in a row by their mean."""
    n_rows, n_classes = proba.shape
    group = (_ranks(ordered) + n_classes * np.arange(n_rows)[:, None]).ravel()
    count = np.maximum(np.bincount(group, minlength=proba.size), 1)
    mean = np.bincount(group, proba.ravel(), minlength=proba.size) / count
    return mean[group].reshape(proba.shape)


def _distinct(u: Rows, y: IntArray, weight: FloatArray) -> tuple[Rows, IntArray, FloatArray]:
    """Remove rows without weight, sort the scores in each row, sort the rows, and merge duplicates.

    These steps do not change the bound. After these steps, rounding errors do not depend on the
    order of rows and classes, or on whether a row is duplicated or weighted. Rows that are read on
    demand are not sorted.
    """
    rows = np.flatnonzero(weight)
    if isinstance(u, LazyRows):
        present = u if len(rows) == len(weight) else u.take(rows)
        return present, y[rows], weight[rows]
    true_score = true_class(u[rows], y[rows])[:, None]
    ranked = np.sort(u[rows], axis=1)
    place = (ranked < true_score).sum(axis=1)
    unique, inverse = np.unique(np.column_stack([ranked, place]), axis=0, return_inverse=True)
    return unique[:, :-1], unique[:, -1].astype(np.intp), np.bincount(inverse.ravel(), weight[rows])


def _antithetic(seed: int | None, n_samples: int, n_numbers: int) -> FloatArray:
    """Draw standard normal numbers in pairs of opposite sign, so their mean is exactly zero."""
    half = np.random.default_rng(seed or 0).standard_normal(((n_samples + 1) // 2, n_numbers))
    return np.stack([half, -half], axis=1).reshape(-1, n_numbers)[:n_samples]
