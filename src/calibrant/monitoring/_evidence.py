r"""Evidence against calibration that is valid after every row, for any number of checks.

**E-processes and e-detectors.** Both are :math:`M_t = (M_{t-1} + w_t) f_t`, where the factor
:math:`f_t` of an alternative has a mean of at most 1 if the forecast is calibrated. A test starts
at 1 with :math:`w = 0`. By Ville's inequality, :math:`M_t` reaches :math:`1 / \alpha` at any time
with probability at most :math:`\alpha` if the stream is calibrated. A detector starts at 0 with
:math:`w = 1`, as if a new test started at every row (Shiryaev and Roberts). On a calibrated stream,
:math:`M_t - t` is a supermartingale. So :math:`M_t` reaches A within n rows with probability at
most n / A, and on average after A rows or more.

**Confidence sequences.** Let :math:`x_i = o_i - s_i` be the residuals of a claim, let
:math:`\hat x_i` be predictions of these residuals from earlier rows, and let
:math:`V_t = \sum_i (x_i - \hat x_i)^2`. The following bound holds for all t simultaneously with
probability :math:`1 - \alpha`. The distance between the mean true gap and the mean residual of the
first t rows is at most :math:`u(V_t) / t`. Here u solves :math:`\log m(u, V) = \log(2 / \alpha)`,
and m is the mixture of the exponential supermartingales over a gamma prior with parameter
:math:`\rho`.

References
----------
Ramdas et al. (2023), Game-theoretic statistics and safe anytime-valid inference, arXiv:2210.01948;
Shin, Ramdas & Rinaldo (2024), E-detectors, arXiv:2203.03532;
Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
sequences, theorem 4 and proposition 9, doi:10.1214/20-AOS1991.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln

from calibrant._typing import FloatArray, IntArray
from calibrant.monitoring._json import as_numbers, read_finite_numbers, read_numbers
from calibrant.notions import ClaimBlock

_SAFE_LOG = 300.0
"""Numbers whose logarithms are below this can be multiplied with each other and stay finite."""

_SAFE = float(np.exp(_SAFE_LOG))

_RUN_ROWS = 128
"""Number of rows whose factors are multiplied at once. Longer products overflow more often."""

_RHO = 50.0
"""Parameter of the gamma prior. With this value, the confidence sequence is tightest at a V of
about 400."""

_N_HALVINGS = 60
"""Bisection steps for the width of an interval. 60 halvings exceed the precision of a float."""


class Run(NamedTuple):
    """Logarithms of the evidence of a run of rows.

    ``path`` (T, S) is the mixture at every row, ``last`` (S, J) is ``M`` of each alternative after
    the last row, and ``log_product`` (S, J) is the product of all factors.
    """

    path: FloatArray
    last: FloatArray
    log_product: FloatArray


def run_log_factors(
    log_start: FloatArray, log_f: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    """Compute ``M_t`` at all rows for S parallel streams, in O(T S J).

    The arguments are logarithms of the starts (S, J) and of the factors (T, S, J), the entries w
    (T, S) and the weights of the alternatives (J,).
    """
    total = np.cumsum(log_f, axis=0)
    if not entry.any():
        log_m = total + log_start
    else:
        with np.errstate(divide="ignore"):
            added = np.log(entry)[:, :, None] - (total - log_f)
        added[0] = np.logaddexp(added[0], log_start)
        log_m = np.logaddexp.accumulate(added, axis=0) + total
    return Run(log_mixture(log_m, weight), log_m[-1], total[-1])


def run_factors(
    log_start: FloatArray, factors: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    """Compute the result of `run_log_factors` from factors, by a few multiplications per factor.

    Logarithms are taken only if a product would leave the range of floats.
    """
    paths, log_product = [], np.zeros_like(log_start)
    for start in range(0, len(factors), _RUN_ROWS):
        rows = slice(start, start + _RUN_ROWS)
        path, log_start, log_block = _run_block(log_start, factors[rows], entry[rows], weight)
        paths.append(path)
        log_product += log_block
    return Run(np.concatenate(paths), log_start, log_product)


def _run_block(
    log_start: FloatArray, factors: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    with np.errstate(over="ignore", under="ignore"):
        product = np.cumprod(factors, axis=0)
    is_test = not entry.any()
    fits = product.min() > 1.0 / _SAFE and product.max() < _SAFE
    if not fits or not (is_test or log_start.max() < _SAFE_LOG):
        return run_log_factors(log_start, np.log(factors), entry, weight)
    log_product = np.log(product[-1])
    if is_test:
        top = log_start.max(axis=1)
        product *= np.exp(log_start - top[:, None])
        return Run(np.log(product @ weight) + top, log_start + log_product, log_product)
    # M_t = P_t (M_0 + sum_s w_s / P_{s-1}) with the products P of factors.
    m = np.empty_like(product)
    m[0], m[1:] = 1.0, product[:-1]
    np.divide(entry[:, :, None], m, out=m)
    m[0] += np.exp(log_start)
    np.cumsum(m, axis=0, out=m)
    m *= product
    with np.errstate(divide="ignore"):  # the log e-value of a stream without rows is 0
        return Run(np.log(m @ weight), np.log(m[-1]), log_product)


def log_mixture(log_m: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the logarithm of the weighted mean over alternatives, (..., J) -> (...).

    The weights must sum to one.
    """
    top = log_m.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_m - top) @ weight) + top[..., 0]


def split_streams(rows: FloatArray, offset: int, n_streams: int, empty: float = 0.0) -> FloatArray:
    """Assign consecutive rows to streams in turn, (n, J) -> (T, S, J).

    Row i goes to stream ``(offset + i) % S``. Positions without a row contain ``empty``.
    """
    if n_streams == 1:
        return rows[:, None]
    first = offset % n_streams
    length = -(-(first + len(rows)) // n_streams)
    out = np.full((length * n_streams, *rows.shape[1:]), empty)
    out[first : first + len(rows)] = rows
    return out.reshape(length, n_streams, *rows.shape[1:])


class Layout(NamedTuple):
    """Positions and weights of the alternatives, by family.

    ``ends`` are the end positions of the families among the alternatives. ``weight`` (J,) sums to
    1. ``n_streams`` is the number of parallel streams. ``is_detector`` is False for a test.
    """

    ends: tuple[int, ...]
    weight: FloatArray
    n_streams: int
    is_detector: bool

    @property
    def n_members(self) -> int:
        return len(self.weight)

    def family(self, index: int) -> slice:
        """Positions of the alternatives of a family."""
        return slice(self.ends[index - 1] if index else 0, self.ends[index])


def make_layout(weights: list[FloatArray], n_streams: int, is_detector: bool) -> Layout:
    """Layout of families from the relative weights of their alternatives."""
    ends = np.cumsum([len(weight) for weight in weights])
    weight = np.concatenate(weights)
    return Layout(tuple(ends.tolist()), weight / weight.sum(), n_streams, is_detector)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of each alternative in each stream, as arrays of shape (S, J).

    ``log_e`` is the logarithm of the product of all factors since the first row. ``log_m`` is the
    logarithm of :math:`M_t`, whose mixture is compared with the threshold. In a test, ``log_m``
    equals ``log_e``. ``lowest`` is the minimum of ``log_e`` so far, and ``lowest_at`` is the number
    of rows at this minimum.
    """

    log_e: FloatArray
    log_m: FloatArray
    lowest: FloatArray
    lowest_at: FloatArray

    @classmethod
    def start(cls, layout: Layout) -> Evidence:
        shape = (layout.n_streams, layout.n_members)
        log_m = np.full(shape, -np.inf if layout.is_detector else 0.0)
        return cls(np.zeros(shape), log_m, np.zeros(shape), np.zeros(shape))

    def value(self, layout: Layout) -> float:
        """Log evidence of the mixture in the stream with the most evidence."""
        return float(log_mixture(self.log_m, layout.weight).max())

    def advance(
        self, factors: FloatArray, n_seen: int, layout: Layout
    ) -> tuple[Evidence, FloatArray]:
        """Multiply the evidence by factors (n, J), row by row.

        Return the new evidence and the path (T, S) of the logarithm of the mixture.
        """
        streams = split_streams(factors, n_seen, layout.n_streams, empty=1.0)
        entry = split_streams(
            np.full((len(factors), 1), float(layout.is_detector)), n_seen, layout.n_streams
        )[:, :, 0]
        run = run_factors(self.log_m, streams, entry, layout.weight)
        return self._multiply(run.log_product, run.last, n_seen), run.path

    def absorb(self, log_f: FloatArray, n_rows: int, n_seen: int, layout: Layout) -> Evidence:
        """Add a period of ``n_rows`` rows, with total log factors ``log_f`` (J,), as one time step.

        The new tests of a detector all start at the beginning of the period.
        """
        entry = np.log(n_rows) if layout.is_detector else -np.inf
        log_m = np.logaddexp(self.log_m, entry) + log_f
        return self._multiply(log_f[None], log_m, n_seen)

    def _multiply(self, log_product: FloatArray, log_m: FloatArray, n_seen: int) -> Evidence:
        is_lower = self.log_e < self.lowest
        lowest = np.where(is_lower, self.log_e, self.lowest)
        lowest_at = np.where(is_lower, float(n_seen), self.lowest_at)
        return Evidence(self.log_e + log_product, log_m, lowest, lowest_at)

    def onset(self, layout: Layout) -> int:
        """Estimated number of rows before the strongest evidence began to grow."""
        return int(self.lowest_at[self._strongest(layout)])

    def _strongest(self, layout: Layout) -> tuple[int, int]:
        """Return the stream and the alternative with the most evidence."""
        stream = int(log_mixture(self.log_m, layout.weight).argmax())
        return stream, int((self.log_m[stream] + np.log(layout.weight)).argmax())

    def saved(self, layout: Layout) -> float:
        """Return the log evidence of the mixture in a test.

        In a detector, return the log evidence of the strongest alternative since the onset.
        """
        if not layout.is_detector:
            return max(0.0, self.value(layout))
        stream, member = self._strongest(layout)
        return max(0.0, float(self.log_e[stream, member] - self.lowest[stream, member]))

    def to_state(self) -> dict[str, Any]:
        """Return the arrays as plain numbers for JSON."""
        return {name: as_numbers(values) for name, values in vars(self).items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], layout: Layout) -> Evidence:
        """Check and read the output of `to_state`."""
        shape = (layout.n_streams, layout.n_members)
        return cls(
            read_finite_numbers(state, "log_e", shape),
            read_numbers(state, "log_m", shape),
            read_finite_numbers(state, "lowest", shape),
            read_finite_numbers(state, "lowest_at", shape, low=0.0),
        )


@dataclass(frozen=True, eq=False)
class GapSums:
    """Sums over the residuals of claims, each of shape (C,), which add up over rows.

    ``count`` is the number of rows. ``residual`` is the sum of residuals. ``variance`` is the sum
    of squared differences from the predicted residuals.
    """

    count: FloatArray
    residual: FloatArray
    variance: FloatArray

    @classmethod
    def zeros(cls, n_claims: int) -> GapSums:
        return cls(*(np.zeros(n_claims) for _ in range(3)))

    @classmethod
    def concatenate(cls, sums: Sequence[GapSums]) -> GapSums:
        """Concatenate the claims of all sums."""
        columns = zip(*(part.arrays for part in sums), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.count, self.residual, self.variance

    @property
    def mean(self) -> FloatArray:
        """Observed frequency minus mean predicted probability of each claim."""
        return self.residual / np.maximum(self.count, 1.0)

    def __getitem__(self, claims: slice) -> GapSums:
        return GapSums(*(array[claims] for array in self.arrays))

    def __add__(self, other: GapSums) -> GapSums:
        return GapSums(*(a + b for a, b in zip(self.arrays, other.arrays, strict=True)))

    def to_state(self) -> dict[str, Any]:
        """Return the arrays as plain numbers for JSON."""
        return {name: as_numbers(values) for name, values in vars(self).items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], n_claims: int) -> GapSums:
        """Check and read the output of `to_state`."""
        return cls(
            read_finite_numbers(state, "count", (n_claims,), low=0.0),
            read_finite_numbers(state, "residual", (n_claims,)),
            read_finite_numbers(state, "variance", (n_claims,), low=0.0),
        )


def sum_gaps(
    block: ClaimBlock, expected: FloatArray, n_labels: int, weight: FloatArray | None = None
) -> GapSums:
    """Sum the gaps of a block of rows. ``expected`` (C,) are the mean residuals before the block.

    A predicted residual is clipped to the range of the residual, from -s to 1 - s. So no difference
    exceeds 1, as the confidence sequence requires. Weights are at most 1 for the same reason.
    """
    residual = block.residual()
    w = np.ones((len(residual), 1)) if weight is None else weight[:, None]
    index = block.labels() + np.arange(block.score.shape[1]) * n_labels if n_labels > 1 else None
    hat = np.clip(expected if index is None else expected[index], -block.score, 1.0 - block.score)
    if index is None:
        count = np.full(len(expected), float(w.sum()))
        off = residual - hat
        off *= w
        return GapSums(count, (w.T @ residual)[0], np.einsum("ij,ij->j", off, off))
    terms = (np.broadcast_to(w, residual.shape), w * residual, (w * (residual - hat)) ** 2)
    place, size = index.ravel(), len(expected)
    return GapSums(*(np.bincount(place, term.ravel(), minlength=size) for term in terms))


def half_width(sums: GapSums, alpha: float) -> FloatArray:
    """Return half-widths of the intervals of the mean gaps.

    The half-width is 1 for claims without rows.
    """
    low, high = np.zeros_like(sums.count), np.maximum(sums.count, 1.0)
    target = np.log(2.0 / alpha)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2.0
        is_low = _log_gamma_mixture(middle, sums.variance) < target
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.where(sums.count > 0, np.minimum(high / np.maximum(sums.count, 1.0), 1.0), 1.0)


def _log_gamma_mixture(s: FloatArray, v: FloatArray) -> FloatArray:
    a, b = v + _RHO, s + v + _RHO
    start = _RHO * np.log(_RHO) - gammaln(_RHO) - np.log(gammainc(_RHO, _RHO))
    return start + gammaln(a) + np.log(gammainc(a, b)) - a * np.log(b) + s + v


def discoveries(log_e: FloatArray, alpha: float) -> IntArray:
    r"""Select e-values by the e-BH procedure, which controls the false discovery rate.

    Parameters
    ----------
    log_e : array of shape (G,)
        Natural logarithms of the e-values.
    alpha : float
        Upper bound of the false discovery rate.

    Returns
    -------
    array of int
        Positions of the selected e-values, largest first.

    See Also
    --------
    CalibrationMonitor : Names the selected classes and groups.

    Notes
    -----
    The procedure selects the k largest of G e-values. The number k is the largest number for which
    each selected e-value is at least :math:`G / (\alpha k)`. The bound holds for any dependence
    between the e-values.

    References
    ----------
    Wang & Ramdas (2022), False discovery rate control with e-values, doi:10.1111/rssb.12489.

    Examples
    --------
    >>> discoveries(np.log([1.0, 90.0, 40.0, 2.0]), 0.05).tolist()
    [1, 2]
    """
    order = np.argsort(-log_e, kind="stable")
    needed = np.log(len(log_e) / alpha) - np.log(np.arange(1, len(log_e) + 1))
    enough = np.flatnonzero(log_e[order] >= needed)
    return order[: enough[-1] + 1] if enough.size else order[:0]
