"""Update the weights of a Bayesian mixture of experts."""

from __future__ import annotations

from math import log

import numpy as np

from calibrant._kernels.simplex import TINY
from calibrant._typing import FloatArray


def mix_rows(weights: FloatArray, log_f: FloatArray, share: float) -> tuple[float, FloatArray]:
    """Return the total log-loss of the mixture on rows, and the weights after the last row.

    ``log_f`` (n, M) are the log-likelihoods of the experts.
    """
    # A plain Python loop over a few experts is faster than NumPy calls on short arrays.
    top = log_f.max(axis=1)
    w, loss, even = weights.tolist(), -float(top.sum()), share / len(weights)
    for row in np.exp(log_f - top[:, None]).tolist():
        posterior = [a * b for a, b in zip(w, row, strict=True)]
        total = sum(posterior)
        loss -= log(total)
        scale = (1.0 - share) / total
        w = [scale * p + even for p in posterior]
    return loss, np.array(w)


def mix_batch(
    weights: FloatArray, log_f: FloatArray, share: float, *, largest: int, before: int
) -> FloatArray:
    """Return the weights after a batch of rows that were all predicted without their labels.

    ``log_f`` (n, M) are the log-likelihoods of the experts. ``largest`` is the size of the largest
    batch so far, including this batch. ``before`` is the size of the largest earlier batch. Weights
    that were learned at the rate ``1 / before`` are flattened to the lower rate ``1 / largest``. A
    fraction of the weight is then distributed evenly, which depends on ``share`` and on the size of
    the batch. `OnlineCalibration` states a bound of the cost of both steps.
    """
    log_weights = np.log(np.maximum(weights, TINY)) * (before / largest)
    log_weights += log_f.sum(axis=0) / largest
    posterior = np.exp(log_weights - log_weights.max())
    part = 1.0 - (1.0 - share) ** (len(log_f) / largest)
    return (1.0 - part) * posterior / posterior.sum() + part / len(weights)
