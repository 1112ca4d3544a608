"""Rows of a file that are needed all at once: in memory while they are few, else in a temporary
file that is mapped, so that files larger than memory can be fitted.
"""

from __future__ import annotations

import tempfile
from typing import IO

import numpy as np

from calibrant._typing import FloatArray

KEEP_BYTES = 2**28
"""Of scores that are kept in memory: 256 MB."""


class Spool:
    """Blocks of rows that are added one after the other, and read as one array.

    Beyond ``keep`` bytes they go to a file in the folder of temporary files (``TMPDIR``), in the
    type of the first of them, which has no name and is gone with the array. A map outlives the
    ``with`` block.
    """

    def __init__(self, keep: int = KEEP_BYTES) -> None:
        self.keep = keep
        self.n_rows = 0
        self._parts: list[FloatArray] = []
        self._n_bytes = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, block: FloatArray) -> None:
        """Append rows."""
        self.n_rows += len(block)
        self._n_bytes += block.nbytes
        if self._file is None:
            self._parts.append(block)
            if self._n_bytes > self.keep:
                self._move()
        else:
            self._write(block)

    def rows(self) -> FloatArray:
        """All rows, ``(n, K)``: an array, or a map of the file that is only read."""
        if self._file is None:
            return np.concatenate(self._parts)
        self._file.flush()
        shape = (self.n_rows, *self._parts[0].shape[1:])
        return np.memmap(self._file, dtype=self._parts[0].dtype, mode="r", shape=shape)

    def _move(self) -> None:
        """What is in memory goes to a file; an empty block stays to say what rows are."""
        self._file = tempfile.TemporaryFile(prefix="calibrant-")  # noqa: SIM115  # lives as long as its map
        parts, self._parts = self._parts, [self._parts[0][:0]]
        for part in parts:
            self._write(part)

    def _write(self, block: FloatArray) -> None:
        assert self._file is not None
        self._file.write(np.ascontiguousarray(block, dtype=self._parts[0].dtype).data)
