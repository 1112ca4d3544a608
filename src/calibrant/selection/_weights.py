r"""Weights of a stacked ensemble, which maximize a penalized out-of-fold likelihood.

The trusted members (the identity and the averaged temperature) enter as one member. Their average
has probability :math:`P_{i0}` for the true class of row i. With the likelihoods P of this average
and of all other members, and row weights c, the weights w on the simplex maximize

.. math:: \sum_i c_i \log (P w)_i + 2 \log w_0 - \sqrt{\sum_i c_i (g_i - \bar g)^2}, \quad
    g_i = \log \frac{(P w)_i}{P_{i0}}.

The root is a norm of g. So the objective is a minimum over vectors u of the functions
:math:`\sum_i c_i (1 - u_i) \log (P w)_i + 2 \log w_0`. If all row weights are at least one, these
functions and therefore their minimum are concave in w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._crossfit.scores import likelihood_losses
from calibrant._kernels.blocks import sum_blocks
from calibrant._kernels.simplex import softmax_in_place
from calibrant._optim.mixture import newton_point
from calibrant._typing import FloatArray
from calibrant.inference import Gain, paired_gain
from calibrant.selection._out_of_fold import OutOfFold

PSEUDO_ROWS = 2.0
"""Pseudo-observations that favor the trusted members. They bound the weight of the others, so one
row with a surprising label costs little.
"""

STANDARD_ERRORS = 1.0
"""Number of standard errors that are subtracted from a total gain."""

_ROWS_PER_CLASS = 0.5
"""With fewer rows per class, only a part of a standard error is subtracted from the gain of the
averaged temperature. The value was chosen on simulated calibrated scores with 30 rows, where a
smaller value increased the log-loss more often.
"""

_SMOOTHING = (1e-1, 1e-3, 1e-5, 1e-7)
"""Numbers added in quadrature to the standard error, in nats. The standard error has a kink where
all weight is on the trusted members. Newton steps would stall at the kink, so the smoothing
decreases in stages. """

_TOLERANCE = 1e-2
"""Tolerance of the optimality conditions, in units of the smoothing."""

_MAX_STEPS = 100
_SHORTEST_STEP = 1e-8

_INVISIBLE = 1e-15
"""Rounding hides a smaller predicted decrease, because the loss is about one."""

_NEGLIGIBLE = 1e-6
"""Smaller weights are set to zero, because such a member would not be worth fitting and storing."""


def stack_weights(rows: OutOfFold, n_errors: float = STANDARD_ERRORS) -> FloatArray:
    """Return the weights (J,) of the members of a stacked ensemble.

    The gain over the trusted members is reduced by ``n_errors`` standard errors.
    """
    shares = trusted_shares(rows)
    trusted = rows.likelihood[:, rows.is_trusted] @ shares
    problem = _Problem(
        np.column_stack([trusted, rows.likelihood[:, ~rows.is_trusted]]), rows.weight, n_errors
    )
    w = problem.solve()
    weights = np.empty(len(rows.is_trusted))
    weights[rows.is_trusted], weights[~rows.is_trusted] = w[0] * shares, w[1:]
    weights[weights < _NEGLIGIBLE] = 0.0
    return weights / weights.sum()


def trusted_shares(rows: OutOfFold) -> FloatArray:
    """Return the shares of the trusted members in their average.

    The shares are proportional to the exponential of the out-of-fold log-likelihood, minus one
    standard error of the gain over the identity. With fewer rows than half of the classes, only the
    fraction 2 n / K of a standard error is subtracted. With a full standard error, the share of the
    temperature would be too small. A few rows cannot show a significant gain over the identity,
    although each row determines the temperature well.
    """
    logs = np.log(rows.likelihood[:, rows.is_trusted])
    gain = logs - logs[:, :1]
    total = float(rows.weight.sum())
    deviation = gain - rows.weight @ gain / total
    n_errors = STANDARD_ERRORS * min(1.0, total / (_ROWS_PER_CLASS * rows.n_classes))
    evidence = rows.weight @ gain - n_errors * np.sqrt(rows.weight @ deviation**2)
    shares: FloatArray = softmax_in_place(evidence[None, :])[0]
    return shares


class _Sums(NamedTuple):
    """Sums over rows for given weights of the members.

    With the row :math:`a = (P_i / (P w)_i, g_i, 1)` for each i, the sums are the matrices of c a a'
    and of c g a a'.
    """

    products: FloatArray
    gain_products: FloatArray

    @property
    def deviation(self) -> float:
        """Sum of the squared deviations of the gains from their mean."""
        total, gain, square = self.products[-1, -1], self.products[-2, -1], self.products[-2, -2]
        return max(float(square - gain * gain / total), 0.0)


class _Problem(NamedTuple):
    """Likelihoods (n, J) of members, of which the first is the reference, and row weights.

    ``n_errors`` is the number of standard errors that are subtracted from a gain.
    """

    likelihood: FloatArray
    weight: FloatArray
    n_errors: float = STANDARD_ERRORS

    def solve(self) -> FloatArray:
        """Return the weights (J,) on the simplex."""
        n_members = self.likelihood.shape[1]
        w = np.full(n_members, 1.0 / n_members)
        sums = self._sums(w)
        for smoothing in _SMOOTHING:
            w, sums = self._maximize(w, sums, smoothing)
        return w / w.sum()

    def _maximize(self, w: FloatArray, sums: _Sums, smoothing: float) -> tuple[FloatArray, _Sums]:
        """Apply Newton's method over non-negative weights, and return the weights and their sums.

        The objective at t w is the objective at w plus log t times the number of rows. The maximum
        over the simplex is therefore the maximum over w >= 0 of the objective minus the sum of the
        weights.
        """
        for _ in range(_MAX_STEPS):
            gradient, curvature = _quadratic_model(sums, w, smoothing, self.n_errors)
            violation = np.maximum(gradient - 1.0, w * (1.0 - gradient)).max()
            if violation <= _TOLERANCE * smoothing:
                break
            step = _newton_step(gradient, curvature, w)
            if (gradient - 1.0) @ step <= _INVISIBLE:
                break
            value, length = _loss(sums, w, smoothing, self.n_errors), 1.0
            while length > _SHORTEST_STEP:
                trial = w + length * step
                trial_sums = self._sums(trial)
                if _loss(trial_sums, trial, smoothing, self.n_errors) < value:
                    w, sums = trial, trial_sums
                    break
                length *= 0.5
            else:  # rounding hides any further decrease
                break
        return w, sums

    def _sums(self, w: FloatArray) -> _Sums:
        """Sum over rows in blocks, which needs no temporary arrays of the size of the data."""

        def block_sums(block: slice) -> FloatArray:
            likelihood, c = self.likelihood[block], self.weight[block]
            mixed = likelihood @ w
            gain = np.log(mixed / likelihood[:, 0])
            row = np.column_stack([likelihood / mixed[:, None], gain, np.ones(len(c))])
            weighted = row * c[:, None]
            return np.array([weighted.T @ row, (weighted * gain[:, None]).T @ row])

        return _Sums(*sum_blocks(block_sums, *self.likelihood.shape))


def _loss(sums: _Sums, w: FloatArray, smoothing: float, n_errors: float) -> float:
    """Return minus the objective per row, plus the sum of the weights, up to a constant."""
    if w[0] <= 0.0:
        return np.inf
    total, gain = sums.products[-1, -1], sums.products[-2, -1]
    error = np.sqrt(sums.deviation + smoothing**2)
    objective = gain + PSEUDO_ROWS * np.log(w[0]) - n_errors * error
    return float(w.sum() - objective / (total + PSEUDO_ROWS))


def _quadratic_model(
    sums: _Sums, w: FloatArray, smoothing: float, n_errors: float
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient and the negative Hessian of the objective per row."""
    total = sums.products[-1, -1]
    mean = sums.products[-2, -1] / total
    error = np.sqrt(sums.deviation + smoothing**2)
    ratio, ratio_gain = sums.products[:-2, -1], sums.products[:-2, -2]
    products = sums.products[:-2, :-2]
    # Gradient of the standard error, and the part of its Hessian that comes from the logarithms.
    slope = (ratio_gain - mean * ratio) / error
    bend = (sums.gain_products[:-2, :-2] - mean * products) / error
    spread = products - np.outer(ratio, ratio) / total
    gradient = ratio - n_errors * slope
    curvature = products + n_errors * ((spread - np.outer(slope, slope)) / error - bend)
    gradient[0] += PSEUDO_ROWS / w[0]
    curvature[0, 0] += PSEUDO_ROWS / w[0] ** 2
    n_rows = total + PSEUDO_ROWS
    return gradient / n_rows, curvature / n_rows


def _newton_step(gradient: FloatArray, curvature: FloatArray, w: FloatArray) -> FloatArray:
    try:
        if np.diag(curvature).min() > 0.0:
            return newton_point(curvature, gradient) - w
    except np.linalg.LinAlgError:
        pass
    # Row weights below one can make the objective convex somewhere, so a Newton step can be
    # invalid. Take an EM step instead.
    return w * np.maximum(gradient, 0.0) - w


def stack_gain(rows: OutOfFold, ratios: FloatArray, n_errors: float = STANDARD_ERRORS) -> Gain:
    """Return the cross-fitted reduction in log-loss.

    For each group, weights are fitted on the other groups.
    """
    after = np.empty(len(rows.weight))
    for number in np.unique(rows.group):
        held_out = rows.group == number
        others = rows.subset(~held_out)
        weights = (
            stack_weights(others, n_errors)
            if len(others.weight)
            else np.eye(1, rows.likelihood.shape[1])[0]
        )
        after[held_out] = likelihood_losses(rows.likelihood[held_out] @ weights)
    before = likelihood_losses(rows.likelihood[:, 0])
    return paired_gain(before, after, rows.weight, ratios, score="log_loss")
