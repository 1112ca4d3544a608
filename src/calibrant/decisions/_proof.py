"""Find how many of the most confident rows can be answered with few errors.

A rank m is proved if the error rate of the m most confident rows is shown to be at most the risk.
`_boundary` tests ranks one by one. This module also proves ranks above the boundary by closed
testing, see the Notes of `count_proved`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.decisions._boundary import Boundary, boundary_of


def rows_without_error(risk: float, delta: float) -> int:
    """Return the least number of rows that prove a risk if all rows are correct.

    >>> rows_without_error(0.05, 0.1), rows_without_error(0.01, 0.1)
    (45, 230)
    """
    return math.ceil(math.log(delta) / math.log1p(-risk))


def count_proved(errors: BoolArray, is_end: BoolArray, risk: float, delta: float) -> int:
    r"""Count the most confident rows that can be answered at this risk.

    Parameters
    ----------
    errors : array of bool, shape (n,)
        Whether each row is wrong, in order of decreasing confidence. Rows with equal scores are in
        random order.
    is_end : array of bool, shape (n,)
        Whether a row is the last row with its score. A threshold cannot separate equal scores.
    risk, delta : float
        Largest error rate, and the largest probability that the true error rate exceeds ``risk``.

    Notes
    -----
    Let :math:`E_m` be the number of errors among the first m rows. Let B be the set of ranks at
    which the error rate of the answers is above ``risk``. Jointly over these ranks, the :math:`E_m`
    are stochastically no smaller than a walk of Bernoulli(``risk``) steps. With probability 1 -
    ``delta``, no rank in B is therefore below the boundary, and all ranks below the boundary are
    proved.

    Closed testing extends the result. Suppose that the ranks from i to m - 1 are proved and that
    rank i is below the boundary. Then rank m is proved if
    :math:`P(\text{Bin}(m, \text{risk}) \le E_m)` is at most the probability that the walk crosses
    the boundary between i and m - 1 and nowhere else. These crossing events are disjoint for
    different gaps, so their probabilities add up to at most ``delta``.
    """
    boundary = boundary_of(len(errors), float(risk), float(delta))
    n_errors = np.cumsum(errors, dtype=np.intp)
    is_proved = n_errors <= boundary.allowed
    if is_proved.any():
        _carry_on(boundary, n_errors, is_proved, delta)
    ends = np.flatnonzero(is_proved & is_end)
    return int(ends[-1]) + 1 if ends.size else 0


def _carry_on(boundary: Boundary, n_errors: IntArray, is_proved: BoolArray, delta: float) -> None:
    """Mark the ranks that follow proved ranks and are proved by closed testing."""
    starts, unproved = np.flatnonzero(is_proved), np.flatnonzero(~is_proved)
    chances = np.zeros(len(is_proved))
    chances[unproved] = bdtr(n_errors[unproved], unproved + 1, boundary.risk)
    # The level of a gap is at most delta, so a rank with a larger chance ends every chain of proved
    # ranks.
    is_lost = chances > delta
    cells = np.repeat(
        np.arange(len(boundary.ranks)), np.diff(boundary.ranks, append=len(is_proved) + 1)
    )
    stop = 0
    while (place := int(np.searchsorted(starts, stop))) < len(starts):
        start = int(starts[place])
        lost = np.flatnonzero(is_lost[start:])
        stop = start + int(lost[0]) if lost.size else len(is_proved)
        open_rows = start + np.flatnonzero(~is_proved[start:stop])
        n_more = _length_of_chain(boundary, cells, start, open_rows, chances[open_rows])
        is_proved[open_rows[:n_more]] = True
        if n_more < len(open_rows):
            stop = int(open_rows[n_more])
        stop += 1


def _length_of_chain(
    boundary: Boundary, cells: IntArray, start: int, rows: IntArray, chances: FloatArray
) -> int:
    """Count the ``rows`` that are proved one after the other, from a start below the boundary."""
    if not rows.size:
        return 0
    # The limit of errors is constant within a cell, and the number of errors never decreases. So a
    # walk that is below the limit inside a cell was also below the limit at the first rank of the
    # cell. A gap therefore begins with a whole cell.
    is_first = boundary.ranks[cells[start]] == start + 1
    gap = _Gap(boundary, int(cells[start]) + (not is_first))
    groups, first = np.unique(cells[rows], return_index=True)
    for cell, low, high in zip(groups, first, [*first[1:], len(rows)], strict=True):
        failed = np.flatnonzero(chances[low:high] > gap.level(int(cell)))
        if failed.size:
            return int(low + failed[0])
    return len(rows)


class _Gap:
    """Walks that are free to cross the boundary from a cell on, and did not cross it before."""

    def __init__(self, boundary: Boundary, cell: int) -> None:
        self.boundary, self.cell = boundary, cell
        self._counts, self._rank = boundary.start(cell)

    def level(self, cell: int) -> float:
        """Probability of crossing in the gap before ``cell`` and nowhere else."""
        if cell <= self.cell:
            return 0.0
        rank = int(self.boundary.ranks[cell])
        moved = self._counts.advance(rank - self._rank, self.boundary.risk)
        self._counts, self._rank = moved.between(0, self.boundary.highest(rank)), rank
        return self.boundary.unspent(self._counts, cell)
