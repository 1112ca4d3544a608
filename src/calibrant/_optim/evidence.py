"""Kernel parameters and inducing inputs of largest variational bound, for a latent function shared by all classes.

For given ones the posterior follows (`calibrant._optim.variational`). What is left is a smooth problem in M + 3 unknowns,
the logarithms of the kernel parameters and the inducing inputs, solved by L-BFGS-B from the best of a few starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, Protocol

import numpy as np
from scipy.optimize import Bounds, OptimizeResult, minimize

from calibrant._optim.ascent import AnyPoint
from calibrant._optim.outline import Outline
from calibrant._optim.rbf import InducingInputs, Kernel, rbf
from calibrant._typing import FloatArray

NOISE_FLOOR = 1e-6
"""Smallest variance of the white noise."""

TOLERANCE = 1e-7
"""Gain of the bound per unit of weight that counts as none."""

# The kernel sees scores with standard deviation 1. Amplitudes are standard deviations of the latent function: those of
# the starts are multiples of what temperature scaling would change.
_MIN_VARIANCE = 1e-4
_LENGTHSCALES = (0.05, 30.0)
_START_LENGTHSCALES = (1.0, 3.0)
_START_AMPLITUDES = (1.0, 4.0)
_SMALLEST_START = 0.3

_MAX_ITER = 200
_MAX_SEARCHES = 3


class OuterBound(Protocol[AnyPoint]):
    """A bound for given kernel parameters and inducing inputs."""

    def maximum(self, start: FloatArray, tolerance: float) -> AnyPoint:
        """The best point near a mean."""

    def outer_gradient(self, point: AnyPoint) -> FloatArray:
        """Derivative with respect to log variance, log lengthscale, log noise and the inducing inputs."""


@dataclass(frozen=True, eq=False)
class Evidence(Generic[AnyPoint]):
    """The largest bound found, and how the search ended."""

    inducing: InducingInputs
    point: AnyPoint
    converged: bool
    n_iter: int
    message: str
    is_at_limit: bool
    """Whether the variance of the kernel ended at its upper limit."""


def fit_evidence(
    outline: Outline,
    bound_of: Callable[[InducingInputs], OuterBound[AnyPoint]],
    *,
    n_inducing: int,
    starts: Sequence[InducingInputs] = (),
) -> Evidence[AnyPoint]:
    """Maximise a bound over kernel parameters and inducing inputs; ``starts`` compete with the usual ones."""
    profile = _Profile(outline, bound_of)
    candidates = [_packed(start) for start in (*starts, *_usual_starts(outline, n_inducing))]
    start = min(candidates, key=profile.fresh)
    found, n_iter = _search(profile, start, _limits(outline, n_inducing))
    inducing, point = profile.best
    is_at_limit = inducing.kernel.variance > 0.999 * outline.amplitude**2
    return Evidence(inducing, point, found.status == 0, n_iter, str(found.message), is_at_limit)


def _usual_starts(outline: Outline, n_inducing: int) -> list[InducingInputs]:
    needed = abs(outline.line - outline.rows.scale)
    amplitude = float(np.clip(needed, _SMALLEST_START, outline.amplitude / 10))
    inputs = outline.spread_inputs(n_inducing)
    shapes = product(_START_AMPLITUDES, _START_LENGTHSCALES)
    return [InducingInputs(Kernel((amplitude * a) ** 2, length, NOISE_FLOOR), inputs) for a, length in shapes]


def _limits(outline: Outline, n_inducing: int) -> Bounds:
    kernel = np.log([[_MIN_VARIANCE, outline.amplitude**2], _LENGTHSCALES, [NOISE_FLOOR, np.inf]])
    inputs = np.tile([outline.low, outline.high], (n_inducing, 1))
    return Bounds(*np.concatenate([kernel, inputs]).T)


def _packed(inducing: InducingInputs) -> FloatArray:
    return np.concatenate([np.log(inducing.kernel), inducing.inputs])


def _search(profile: _Profile[AnyPoint], start: FloatArray, limits: Bounds) -> tuple[OptimizeResult, int]:
    """L-BFGS-B, begun again where its line search gives up: the maximum over m may have jumped to another mode."""
    n_iter = 0
    for _ in range(_MAX_SEARCHES):
        profile.fresh(start)
        options: dict[str, Any] = {"maxiter": _MAX_ITER - n_iter, "ftol": TOLERANCE, "gtol": 0.0, "maxcor": 20}
        found = minimize(profile, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        n_iter += int(found.nit)
        start = found.x
        if found.status == 0 or n_iter >= _MAX_ITER:
            break
    return found, n_iter


class _Profile(Generic[AnyPoint]):
    """The negative bound per unit of weight, m and S maximised out, with its gradient.

    Each search for m starts from the latent function that the last one found (the first from the line that temperature
    scaling finds), not from its whitened mean, which is another function under other kernel parameters.
    """

    def __init__(self, outline: Outline, bound_of: Callable[[InducingInputs], OuterBound[AnyPoint]]) -> None:
        self.bound_of = bound_of
        self.total = outline.total
        self.slope = outline.line - outline.rows.scale
        self._last: tuple[InducingInputs, FloatArray] | None = None
        self._best: tuple[InducingInputs, AnyPoint] | None = None

    @property
    def best(self) -> tuple[InducingInputs, AnyPoint]:
        """The largest bound seen."""
        assert self._best is not None
        return self._best

    def __call__(self, packed: FloatArray) -> tuple[float, FloatArray]:
        bound, point = self._solve(packed)
        return -point.value / self.total, -bound.outer_gradient(point) / self.total

    def fresh(self, packed: FloatArray) -> float:
        """The value where nothing is known about m yet."""
        self._last = None
        return -self._solve(packed)[1].value

    def _solve(self, packed: FloatArray) -> tuple[OuterBound[AnyPoint], AnyPoint]:
        inducing = InducingInputs(Kernel(*np.exp(packed[:3]).tolist()), packed[3:].copy())
        bound = self.bound_of(inducing)
        point = bound.maximum(self._start(inducing), TOLERANCE * self.total)
        self._last = inducing, inducing.weights(point.mean)
        if self._best is None or point.value > self._best[1].value:
            self._best = inducing, point
        return bound, point

    def _start(self, inducing: InducingInputs) -> FloatArray:
        if self._last is None:
            return inducing.whitened(self.slope * inducing.inputs)
        old, weights = self._last
        return inducing.whitened(rbf(inducing.inputs, old.inputs, old.kernel) @ weights)
