"""Concatenation of blocks of rows, in memory or in a memory-mapped temporary file.

Because of the temporary file, calibrators can be fitted to data sets that are larger than memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np

from calibrant._typing import FloatArray

LOADED_BYTES = 2**28
"""Number of bytes of scores that are kept in memory (256 MB)."""


def load_blocks(blocks: Iterator[FloatArray], limit: int = LOADED_BYTES) -> FloatArray:
    """Concatenate blocks of rows.

    Beyond ``limit`` bytes, the result is a read-only memory map of a temporary file (in
    ``TMPDIR``). The file has the dtype of the first block. The file has no name, so the operating
    system removes the file together with the memory map.
    """
    first: list[FloatArray] = []
    n_bytes = 0
    for block in blocks:
        first.append(block)
        n_bytes += block.nbytes
        if n_bytes > limit:
            return _map_blocks(first, blocks)
    return np.concatenate(first)


def _map_blocks(first: list[FloatArray], others: Iterator[FloatArray]) -> FloatArray:
    dtype, shape, n_rows = first[0].dtype, first[0].shape[1:], 0
    with tempfile.TemporaryFile(prefix="calibrant-") as file:
        while first:  # pop each block, so its memory is freed after it is written
            n_rows += len(first[0])
            file.write(np.ascontiguousarray(first.pop(0)).data)
        for block in others:
            n_rows += len(block)
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n_rows, *shape))
