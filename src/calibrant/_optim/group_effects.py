r"""Effects of groups on logits, shrunk toward zero, by Newton's method.

Row i with logits u and groups G(i) gets the logits

.. math:: z_i = \Bigl(1 + \sum_{g \in G(i)} a_g\Bigr) u_i + \sum_{g \in G(i)} b_g ,

and the effects minimize :math:`-\sum_i w_i \log p_{i y_i} + \frac12 \sum_g s_g (a_g^2 + |b_g|^2)`.

Rows with the same groups form a cell. Gradient and Hessian of the log-loss are sums over the rows
of each cell, so a Newton step costs one pass over the data. The equations of a step are solved by
conjugate gradients on the cells, without another pass. The preconditioner is exact if groups do
not overlap.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import READ_BLOCK, one_blas_thread, row_blocks
from calibrant._kernels.simplex import softmax_in_place, true_class
from calibrant._typing import FloatArray, IntArray

MOST_CURVATURE = 2**25
"""Maximum number of entries of the Hessian blocks of all cells (256 MB). With more cells or
classes, groups have slopes, but no offsets."""

TOLERANCE = 1e-9
"""A fit ends when a Newton step reduces the mean log-loss by less. The remaining error is of the
order of the square of this tolerance."""

_MAX_STEPS = 50
_SHORTEST_STEP = 2.0**-20

_CG_ACCURACY = 1e-8
"""Relative accuracy of the equations of a step. Conjugate gradients cost no pass over the data."""

_MAX_CG = 500


class Cells(NamedTuple):
    """The groups of each cell, as a sparse matrix (cells, groups) of zeros and ones.

    The effects of a group are a slope and offsets, or only a slope if ``slopes_only`` is True.
    """

    groups: sparse.csr_matrix
    slopes_only: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and of groups."""
        n_cells, n_groups = self.groups.shape
        return int(n_cells), int(n_groups)

    def n_effects(self, n_classes: int) -> int:
        """Number of effects of a group: a slope, and an offset per class if memory allows."""
        has_offsets = self.shape[0] * (n_classes + 1) ** 2 <= MOST_CURVATURE
        return n_classes + 1 if has_offsets and not self.slopes_only else 1

    def sums(self, effects: FloatArray) -> FloatArray:
        """Sum the effects of the groups of each cell."""
        return np.asarray(self.groups @ effects)

    def spread(self, values: FloatArray) -> FloatArray:
        """Sum over the cells of each group."""
        return np.asarray(self.groups.T @ values)


def effect_logits(u: FloatArray, effects: FloatArray) -> FloatArray:
    """Return a new array of logits for rows with the given effects, (n, 1) or (n, K + 1)."""
    logits = u * (1.0 + effects[:, :1])
    if effects.shape[1] > 1:
        logits += effects[:, 1:]
    return logits


def fit_effects(
    sample: Sample,
    cells: Cells,
    strength: FloatArray,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> FloatArray:
    """Return the effects of all groups, (groups, effects).

    The scores of the sample are logits, and its first column contains the cell of each row. Rows of
    each chunk must be sorted by cell. ``strength`` (groups,) is the penalty of each group. The fit
    starts at the effects ``start``, and ends when a step reduces the mean log-loss by less than
    ``tolerance``.
    """
    shape = cells.shape[1], cells.n_effects(sample.n_columns)
    effects = np.zeros(shape) if start is None else start
    sums = _derivatives(sample, cells, effects)
    for _ in range(_MAX_STEPS):
        value = sums.loss + _penalty(strength, effects)
        gradient = cells.spread(sums.gradient) + strength[:, None] * effects
        step = _newton_step(sums, cells, strength, gradient)
        reduction = -0.5 * float((gradient * step).sum())
        if reduction <= tolerance * sums.weight:
            return effects + step
        length = 1.0
        while length > _SHORTEST_STEP:
            trial = effects + length * step
            trial_sums = _derivatives(sample, cells, trial)
            if trial_sums.loss + _penalty(strength, trial) < value:
                break
            length *= 0.5
        else:  # rounding hides any further decrease
            return effects
        effects, sums = trial, trial_sums
    return effects


def _penalty(strength: FloatArray, effects: FloatArray) -> float:
    return 0.5 * float(strength @ (effects**2).sum(axis=1))


class _Derivatives(NamedTuple):
    """Log-loss and weight of all rows, and the gradient and Hessian of the loss of each cell."""

    loss: float
    weight: float
    gradient: FloatArray
    hessian: FloatArray


def _derivatives(sample: Sample, cells: Cells, effects: FloatArray) -> _Derivatives:
    rule = partial(_chunk_derivatives, cells.sums(effects))
    return _Derivatives(*sample.sum_chunks(rule))


def group_derivatives(rows: Sample, effects: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradients (groups, effects) and Hessians of the log-loss, if each group is a cell."""
    _, _, gradient, hessian = rows.sum_chunks(partial(_chunk_derivatives, effects))
    return gradient, hessian


def _chunk_derivatives(effects: FloatArray, chunk: ArraySample) -> tuple[object, ...]:
    n_cells, size = effects.shape
    sums = [0.0, 0.0, np.zeros((n_cells, size)), np.zeros((n_cells, size, size))]
    with one_blas_thread(chunk.shape[0] * chunk.shape[1]):
        for rows in row_blocks(*chunk.shape, elements=READ_BLOCK):
            _add_block(sums, effects, chunk, rows)
    return tuple(sums)


def _add_block(sums: list[Any], effects: FloatArray, chunk: ArraySample, rows: slice) -> None:
    """Add the rows of a block to the loss, the weight, the gradients and the Hessians.

    The Hessian of a row with probabilities p with respect to its logits is diag(p) - p p'. The
    derivative of the logits is u with respect to the slope, and 1 with respect to an offset.
    """
    u, y, weight, cell = chunk.u[rows], chunk.y[rows], chunk.weight[rows], chunk.columns[0][rows]
    proba = softmax_in_place(effect_logits(u, effects[cell]))
    sums[0] -= float(weight @ np.log(np.maximum(true_class(proba, y), np.finfo(float).tiny)))
    sums[1] += float(weight.sum())
    gradient, hessian = sums[2:]
    runs = _Runs.of(cell)
    at = runs.cells
    weighted_proba = proba * weight[:, None]
    mean = np.einsum("ij,ij->i", proba, u)
    # The weighted derivative of the probabilities with respect to the slope.
    slope_change = weighted_proba * (u - mean[:, None])
    residual = weighted_proba.copy()
    residual[np.arange(len(y)), y] -= weight
    gradient[at, 0] += runs.add(np.einsum("ij,ij->i", residual, u))
    hessian[at, 0, 0] += runs.add(np.einsum("ij,ij->i", slope_change, u))
    if effects.shape[1] > 1:
        gradient[at, 1:] += runs.add(residual)
        cross = runs.add(slope_change)
        hessian[at, 0, 1:] += cross
        hessian[at, 1:, 0] += cross
        hessian[at, 1:, 1:] += _offset_curvature(runs, proba, weighted_proba)


def _offset_curvature(runs: _Runs, proba: FloatArray, weighted_proba: FloatArray) -> FloatArray:
    """Sums of diag(p) - p p' over the rows of each run, (runs, K, K)."""
    n_classes = proba.shape[1]
    curvature = np.empty((len(runs.cells), n_classes, n_classes))
    for number, (start, stop) in enumerate(pairwise(runs.edges.tolist())):
        np.matmul(weighted_proba[start:stop].T, proba[start:stop], out=curvature[number])
    np.negative(curvature, out=curvature)
    classes = np.arange(n_classes)
    curvature[:, classes, classes] += runs.add(weighted_proba)
    return curvature


class _Runs(NamedTuple):
    """Runs of consecutive rows of the same cell.

    Rows are sorted by cell, so a block has one run per cell. ``edges`` contains the first row of
    each run, and then the number of rows.
    """

    cells: IntArray
    edges: IntArray
    indicator: sparse.csr_matrix
    """Matrix (runs, rows) of zeros and ones."""

    @classmethod
    def of(cls, cell: IntArray) -> _Runs:
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        edges = np.append(starts, len(cell))
        entries = np.ones(len(cell)), np.arange(len(cell)), edges
        return cls(cell[starts], edges, sparse.csr_matrix(entries, shape=(len(starts), len(cell))))

    def add(self, values: FloatArray) -> FloatArray:
        """Sum the rows of each run. A sparse product is several times as fast as reduceat."""
        return np.asarray(self.indicator @ values)


def _newton_step(
    sums: _Derivatives, cells: Cells, strength: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Solve the equations of a Newton step by preconditioned conjugate gradients."""
    size = gradient.shape[1]
    blocks = cells.spread(sums.hessian.reshape(len(sums.hessian), -1)).reshape(-1, size, size)
    blocks[:, np.arange(size), np.arange(size)] += strength[:, None]
    inverse = np.linalg.inv(blocks)

    def product(v: FloatArray) -> FloatArray:
        of_cells = np.einsum("cij,cj->ci", sums.hessian, cells.sums(v))
        return cells.spread(of_cells) + strength[:, None] * v

    step = np.zeros_like(gradient)
    residual = -gradient
    z = np.einsum("gij,gj->gi", inverse, residual)
    direction, rho = z, float((residual * z).sum())
    first = rho
    for _ in range(_MAX_CG):
        if rho <= _CG_ACCURACY**2 * first:
            break
        image = product(direction)
        alpha = rho / float((direction * image).sum())
        step += alpha * direction
        residual = residual - alpha * image
        z = np.einsum("gij,gj->gi", inverse, residual)
        rho, previous_rho = float((residual * z).sum()), rho
        direction = z + (rho / previous_rho) * direction
    return step
