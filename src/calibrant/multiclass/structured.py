"""Structured scaling: temperature first, then a penalised affine map of the tempered
log-probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant._data.sample import Sample
from calibrant._kernels.simplex import EPS, centred, softmax_in_place
from calibrant._optim.penalties import diagonal_ridge_to_identity, ridge_to_identity
from calibrant._optim.temperature import find_log_beta
from calibrant._typing import FloatArray, Inputs
from calibrant._validation import check_eps, check_option, check_prior_scale
from calibrant.base import Citation
from calibrant.base.fitted import SHARE, TEMPERATURE, FittedValue
from calibrant.base.references import BERTA_2025
from calibrant.multiclass.scaling import AffineCalibrator, words_of_affine


class StructuredScaling(AffineCalibrator):
    r"""Affine calibration that needs no tuning: SMS and SVS of Berta et al.

    1. Temperature scaling, then a Laplace mixture
       :math:`q = (1 - a)\,\mathrm{softmax}(u / T) + a / K`, a = 1/(n + 1).
    2. :math:`\mathrm{softmax}(W \log q + b)` with a ridge towards the identity: ``mean NLL +
       K/n sum_k b_k^2 + K/n sum_k (W_kk - 1)^2 + K(K-1)/n sum_{k != l} W_kl^2``.
       ``structure="vector"`` keeps W diagonal.

    With few rows the penalty keeps the result near temperature scaling, with many it is a free
    affine map. Near is not at: of 940 cases of other data sets it raised the test log-loss by more
    than 0.005 in half of those with 30 rows, 40 % with 60 and 20 % with 120; use it from about 250
    rows on, and `TemperatureScaling` with a prior below.

    Parameters
    ----------
    structure : {"matrix", "vector"}
        "matrix" also corrects confusions between pairs of classes; "vector" costs O(n K) and is the
        choice for K > 300.
    centre : bool
        Take the row mean off ``log q`` before the affine map. The ridge then charges nothing for a
        constant that softmax ignores: better for "matrix" where n is below about K^2, a little
        worse where rows are plenty.
    prior_scale : float, optional
        Standard deviation of a Gaussian prior on log T around 0, as of `TemperatureScaling`.
    inputs : {"proba", "logits", "log_proba"}
    classes : labels of the columns, optional
    eps : float
        Floor of probabilities before their logarithm is taken.

    Attributes
    ----------
    temperature_ : float
    coef_ : ndarray of shape (K, K), or (K,) for "vector"
    intercept_ : ndarray of shape (K,)
    smoothing_ : float
        a, the share of the uniform forecast in q.
    converged_, n_iter_, objective_ : how the fit ended

    Notes
    -----
    Every parameter is penalised: missing classes keep the identity's parameters, separable data
    have a finite optimum. No class ever gets probability zero. n is the sum of the weights.

    References
    ----------
    Berta, Holzmüller, Jordan & Bach (2025), Structured matrix scaling for multi-class calibration.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = StructuredScaling().fit(data.val_proba, data.val_labels)
    >>> model.coef_.shape
    (10, 10)
    """

    _is_centred: ClassVar[bool] = False

    def __init__(
        self,
        structure: str = "matrix",
        centre: bool = False,
        prior_scale: float | None = None,
        *,
        inputs: Inputs = "proba",
        classes: Any = None,
        eps: float = EPS,
    ) -> None:
        self.structure = structure
        self.centre = centre
        self.prior_scale = prior_scale
        self.inputs = inputs
        self.classes = classes
        self.eps = eps

    @property
    def citation(self) -> Citation:
        return Citation(f"structured {self.structure} scaling", (BERTA_2025,))

    def _check_parameters(self, n_classes: int) -> None:
        check_eps(self.eps)
        check_option(self.structure, "structure", ("matrix", "vector"))
        check_prior_scale(self.prior_scale)

    @property
    def _is_diagonal(self) -> bool:  # type: ignore[override]
        return self.structure == "vector"

    @property
    def fitted_values(self) -> Mapping[str, FittedValue]:
        return {"temperature_": TEMPERATURE, "smoothing_": SHARE, **super().fitted_values}

    def _fit(self, sample: Sample) -> None:
        n_samples, n_classes = sample.total, sample.shape[1]
        # Whether T is finite does not matter here: the mixture bounds the scores that follow.
        t = find_log_beta(sample, prior_scale=self.prior_scale).parameters[0]
        self.temperature_ = float(np.exp(-t))
        self.smoothing_ = 1.0 / (n_samples + 1.0)
        tempered = sample.transformed(self._tempered)
        single, pair = n_classes / n_samples, n_classes * (n_classes - 1) / n_samples
        if self._is_diagonal:
            ridge = diagonal_ridge_to_identity(single, single, n_classes)
        else:
            ridge = ridge_to_identity(single, pair, single, n_classes)
        start = self.__dict__.pop("_start", None)
        if start is None or start.shape != ridge.centre.shape:
            start = ridge.centre  # the identity
        self._fit_affine(tempered, ridge, start)

    def _start_like(self, fitted: StructuredScaling) -> None:
        join = np.stack if self._is_diagonal else np.column_stack
        self._start = join([fitted.coef_, fitted.intercept_])

    def _tempered(self, u: FloatArray) -> FloatArray:
        proba = softmax_in_place(u / self.temperature_)
        proba *= 1.0 - self.smoothing_
        proba += self.smoothing_ / u.shape[1]
        log_q = np.log(proba, out=proba)
        return centred(log_q) if self.centre else log_q

    def _words(self) -> str:
        return words_of_affine(self.coef_, f" after tempering by T = {self.temperature_:.4g}")

    def _logits(self, u: FloatArray) -> FloatArray:
        return super()._logits(self._tempered(u))
