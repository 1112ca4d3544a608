"""Draws of outcomes under the hypothesis that the predictions are calibrated.

Rows are independent. If a type of calibration has one claim per row, the outcome counts of
different cells are independent Poisson-binomial variables. These counts are drawn from their exact
distribution. If a row has several claims, its single label determines all of them, and columns are
drawn with alias tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import byteorder
from typing import Any, Protocol

import numpy as np
from scipy import fft

from calibrant._kernels import kernel
from calibrant._kernels._numpy import ByteDraws, alias_draws
from calibrant._kernels.blocks import CALL_BLOCK, KEPT_MEMORY, row_blocks
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant.binning import BinRule, cell_index
from calibrant.inference._alias import N_BYTES, alias_tables, byte_tables, byte_values
from calibrant.notions import Claims

_SLOT_BYTES = 12
"""Bytes per slot of an alias table, for a 32-bit threshold and two 32-bit columns."""


class CountDraws(Protocol):
    """Draws of the outcome counts of all cells."""

    reusable: bool
    """Whether draws in small portions are as fast as draws in large portions."""

    def counts(self, generator: np.random.Generator, size: int) -> AnyArray:
        """Counts of ``size`` draws, (size, n_cells)."""


def count_draws(claims: Claims, bins: BinRule) -> CountDraws:
    """Return draws of the outcome counts per (claim, bin) if the scores are calibrated."""
    if claims.n_quantities == 1:
        return CellLaws(claims, bins)
    return CellDraws(claims, bins)


class CellLaws:
    """Independent Poisson-binomial counts for one claim per row, drawn by inversion.

    The preparation takes O(n log^2 n) time, and each draw takes O(cells log n).
    """

    reusable = True

    def __init__(self, claims: Claims, bins: BinRule) -> None:
        score, cell = np.empty(claims.n_rows), np.empty(claims.n_rows, dtype=np.intp)
        for rows in row_blocks(claims.n_rows, claims.n_columns):
            block = claims.select(rows)
            score[rows], cell[rows] = block.score[:, 0], cell_index(claims, block, bins)[:, 0]
        order = np.argsort(cell, kind="stable")
        self.n_cells = claims.n_claims * bins.n_bins
        starts = np.searchsorted(cell[order], np.arange(1, self.n_cells))
        parts = enumerate(np.split(score[order], starts))
        self._laws = [
            (index, np.cumsum(poisson_binomial(part))) for index, part in parts if part.size
        ]

    def counts(self, generator: np.random.Generator, size: int) -> AnyArray:
        """Counts of ``size`` draws, (size, n_cells)."""
        drawn = np.zeros((size, self.n_cells))
        uniform = generator.random((len(self._laws), size))
        for u, (index, law) in zip(uniform, self._laws, strict=True):
            # Omit the last value, which is 1 only up to round-off, so no count exceeds the number
            # of rows.
            drawn[:, index] = np.searchsorted(law[:-1], u, side="right")
        return drawn


class CellDraws:
    """Counts for several claims per row, from one column that is drawn for each row.

    A draw takes about 6 to 11 ns per row, or 2 to 4 ns with compiled loops.
    """

    def __init__(self, claims: Claims, bins: BinRule) -> None:
        self.claims, self.bins = claims, bins
        self.n_cells = claims.n_claims * bins.n_bins
        # Use the smallest integer type to keep the tables small, because they have 256 cells per
        # row.
        self._dtype = np.min_scalar_type(self.n_cells + 1)
        n_slots = slots_of(claims.n_quantities) + N_BYTES * self._dtype.itemsize // _SLOT_BYTES
        self._tables = AliasRows(claims.n_rows, n_slots, self._make)
        self.reusable = self._tables.is_stored

    def counts(self, generator: np.random.Generator, size: int) -> AnyArray:
        """Counts of ``size`` draws, (size, n_cells)."""
        count = kernel("byte_counts", size * self.claims.n_rows)
        counts: AnyArray = count(self._numbers(generator, size), size, self.n_cells + 1)
        return counts[:, :-1]

    def _numbers(self, generator: np.random.Generator, size: int) -> Iterator[ByteDraws]:
        """Yield the tables of blocks of rows, and random numbers for these rows."""
        for _, *tables in self._tables:
            # A random number takes one byte, which is an eighth of an element.
            for rows in row_blocks(len(tables[0]), size, elements=8 * CALL_BLOCK):
                cells, threshold, others = (table[rows] for table in tables)
                first = random_bytes(generator, len(cells), size)
                # One byte does not decide all draws. Each undecided draw needs a second random
                # number, which is a hash of the key and the position of the draw. So only the
                # undecided draws take more time.
                key = int(generator.integers(2**64, dtype=np.uint64))
                yield (cells, threshold, others), first, key

    def _make(self, rows: slice) -> tuple[AnyArray, ...]:
        """Build the tables of some rows, with the cell of each column.

        Two extra cells count the rows without a positive outcome, and the draws of an open byte.
        """
        block = self.claims.select(rows)
        whole, threshold, columns = byte_tables(with_rest(block.score, self.claims.n_columns))
        cell = np.full(threshold.shape, self.n_cells, dtype=self._dtype)
        cell[:, : self.claims.n_quantities] = cell_index(self.claims, block, self.bins)
        return (
            byte_values(whole, cell[:, : whole.shape[1]], self.n_cells + 1),
            threshold,
            cell[np.arange(len(cell))[:, None, None], columns],
        )


class LabelDraws:
    """Labels of all rows, drawn from probabilities ``(n, J)``."""

    def __init__(self, proba: FloatArray) -> None:
        self.n_rows = len(proba)
        self._tables = AliasRows(
            len(proba), slots_of(proba.shape[1]), lambda rows: alias_tables(proba[rows])
        )

    def labels(self, generator: np.random.Generator, size: int) -> IntArray:
        """Draw all labels ``size`` times, (size, n)."""
        drawn = np.empty((size, self.n_rows), dtype=np.intp)
        for rows, threshold, columns in self._tables:
            drawn[:, rows] = alias_draws(
                threshold, columns, random_bits(generator, size, len(threshold))
            )
        return drawn


class AliasRows:
    """Alias tables of row blocks.

    Small tables are stored, and large tables are rebuilt at each pass over the rows.
    """

    def __init__(
        self, n_rows: int, n_slots: int, make: Callable[[slice], tuple[AnyArray, ...]]
    ) -> None:
        self._blocks = list(row_blocks(n_rows, n_slots, elements=CALL_BLOCK))
        self._make = make
        # A slot takes 12 bytes, which are one and a half elements of 8 bytes.
        self.is_stored = n_rows * n_slots <= 2 * KEPT_MEMORY // 3
        self._parts = [(rows, *make(rows)) for rows in self._blocks] if self.is_stored else None

    def __iter__(self) -> Iterator[Any]:
        if self._parts is not None:
            return iter(self._parts)
        return ((rows, *self._make(rows)) for rows in self._blocks)


def slots_of(n_columns: int) -> int:
    """Return the number of slots of an alias table, with a column for "none of the columns"."""
    return 1 << n_columns.bit_length()


def label_hypothesis(claims: Claims | None) -> str:
    """Describe the null hypothesis of draws from the claims, or from whole vectors if None."""
    if claims is not None and claims.n_quantities == 1:
        return "each event occurs with its predicted probability"
    return "labels are drawn from the predicted probabilities (canonical calibration)"


def random_bytes(generator: np.random.Generator, n_rows: int, size: int) -> AnyArray:
    """Draw random bytes, (n_rows, size), eight from each 64-bit number."""
    n_bytes = n_rows * size
    numbers = generator.integers(2**64, size=-(-n_bytes // 8), dtype=np.uint64)
    return numbers.astype("<u8", copy=False).view(np.uint8)[:n_bytes].reshape(n_rows, size)


def random_bits(generator: np.random.Generator, size: int, n_rows: int) -> AnyArray:
    """Draw random 32-bit numbers, (size, n_rows).

    If the generator splits 64-bit numbers into halves, as most do, 64-bit numbers are drawn
    instead. The random numbers are the same, but drawing takes half the time.
    """
    if size * n_rows % 2 or not _halves_numbers(generator.bit_generator):
        return generator.integers(0, 2**32, (size, n_rows), dtype=np.uint32)
    n_pairs = size * n_rows // 2
    pairs = generator.integers(0, 2**64 - 1, n_pairs, dtype=np.uint64, endpoint=True)
    return pairs.view(np.uint32).reshape(size, n_rows)


def _halves_numbers(source: np.random.BitGenerator) -> bool:
    """Return whether 32-bit numbers are halves of 64-bit numbers, and no half is pending."""
    is_split = isinstance(source, np.random.PCG64) and byteorder == "little"
    return is_split and not source.state["has_uint32"]


def with_rest(score: FloatArray, n_columns: int) -> FloatArray:
    """Append the remaining probability as a column, unless the scores cover all classes."""
    if score.shape[1] == n_columns:
        return score
    return np.column_stack([score, np.maximum(1 - score.sum(axis=1), 0)])


def poisson_binomial(prob: FloatArray) -> FloatArray:
    """Return the distribution ``P(N = 0), ..., P(N = n)`` of the number of successes.

    The trials are independent with probabilities ``prob``. The polynomials ``1 - p_i + p_i x`` are
    multiplied in pairs by fast Fourier transforms, which takes O(n log^2 n) time. Each probability
    is accurate to about 1e-15.
    """
    size = 1 << (len(prob) - 1).bit_length()
    laws = np.zeros((size, 2))
    laws[: len(prob), 1] = prob
    laws[:, 0] = 1 - laws[:, 1]
    while len(laws) > 1:
        length = 2 * laws.shape[1] - 1
        padded = fft.next_fast_len(length, real=True)
        product = fft.rfft(laws[0::2], padded) * fft.rfft(laws[1::2], padded)
        laws = fft.irfft(product, padded)[:, :length]
    # Round-off of the transforms can make tiny probabilities negative.
    law = np.maximum(laws[0, : len(prob) + 1], 0)
    return law / law.sum()
