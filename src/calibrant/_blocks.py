"""Row blocks: apply a function to them and add up.

Everything that is a sum over rows is written as one function of a row slice. The same function then
serves blocks that fit the cache, threads, and memory maps larger than memory. Partial results are
added in row order whatever the number of threads, so that a result does not depend on it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from calibrant._typing import FloatArray

BLOCK_ELEMENTS = 2**15
"""Elements of a block: 256 kB in float64, which stays in the second-level cache."""

READ_ELEMENTS = 4 * BLOCK_ELEMENTS
"""Elements of a block that is only read, to make a few numbers a row: fewer calls, and nothing of
its size is written."""

THREAD_ELEMENTS = 2**22
"""Below this many elements starting threads costs more than it saves."""

BLAS_ELEMENTS = 2**13
"""Below this many elements BLAS starts no threads."""

KEEP_ELEMENTS = 2**22
"""Up to this many elements (32 MB) a lifted copy is kept between passes; above it is made anew,
block by block."""

MIXTURE_ELEMENTS = 2**18
"""From so many likelihoods on (2 MB) the weights of a mixture are sought by sums over blocks; where
that does not converge, from all rows at once, which finds shares that are smaller."""

PREDICT_ELEMENTS = 2**20
"""Elements of a block of predictions by many maps, each of which costs a call: 8 MB, so that calls
are few."""

FEATURE_ELEMENTS = 2**17
"""Elements of the kernel features of a block: several arrays of this size (1 MB) are alive at
once."""

KEEP_FEATURES = 2**24
"""Up to this many kernel features (128 MB) are kept between passes, which need a hundred of
them."""

CALL_ELEMENTS = 2**16
"""Elements of a block for a classifier that is not ours, at least: calling it has fixed costs."""

ALL_MAPS_ELEMENTS = 8 * BLOCK_ELEMENTS
"""Elements that the maps of all folds predict at a time, 2 MB a map: long blocks, because a
prediction has fixed costs."""

GATHER_ELEMENTS = 2**23
"""Elements of the columns that are gathered at a time where a claim must be seen whole: 64 MB."""

TOGETHER_ELEMENTS = 2**17
"""Scores of claims that are fitted at a time: a few arrays of this size (1 MB) are alive at
once."""

COLUMN_ELEMENTS = 2**19
"""Elements of a block whose bins are assigned column by column: large, because that is a call each
(4 MB)."""

RESAMPLE_ELEMENTS = 2**21
"""Rows times resamples (times classes for whole vectors) of the kernel test that are held at a
time: 16 MB."""

BYTE_DRAWS = 2**23
"""Random bytes that are held at a time: 8 MB, and the cells that they mean."""

DRAW_ELEMENTS = 2**22
"""Random numbers, or counts made of them, that are held at a time: 32 MB."""

TABLE_SLOTS = 2**20
"""Slots of alias tables that are built at a time: about 60 bytes each while being built, 12
afterwards."""

KEEP_SLOTS = 10 * TABLE_SLOTS
"""Up to this many slots of alias tables (120 MB) are kept for the next draw."""

FILE_ELEMENTS = 2**21
"""Scores of a file that are read at a time: 16 MB in float64."""

BOOTSTRAP_ELEMENTS = 2**25
"""Scores that the bootstrap of a metric resamples in all: large data take fewer resamples."""

ROUND_OFF = 1e-12
"""What rounding may take from a sum of shares: cumulated weights that differ by less are equal."""

Sum = TypeVar("Sum")
Item = TypeVar("Item")


def row_blocks(n_rows: int, n_columns: int, *, elements: int | None = None) -> Iterator[slice]:
    """Consecutive row slices of about ``elements`` elements each."""
    step = max(1, (elements or BLOCK_ELEMENTS) // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def n_threads(*, are_hasty: bool = False) -> int:
    """Threads to use: ``CALIBRANT_NUM_THREADS``, or the cores that this process may use. Those that
    ``are_hasty`` need a core each: then as many as there are cores that nothing else uses.

    Beside two busy processes on two cores passes of matrix products, dozens a fit that each end
    when the last thread does, took up to 1.5 times as long with two threads as with one; one long
    pass takes 0.7 to 0.9 of the time.
    """
    wanted = os.environ.get("CALIBRANT_NUM_THREADS")
    if wanted is not None:
        return max(1, int(wanted))
    n_cores = os.cpu_count() or 1
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_cores
    if ours == 1 or not are_hasty:
        return ours
    # Where this process may use some cores only, others run on the rest of them as well.
    return max(1, min(ours, n_cores - _n_others()))


def _n_others() -> int:
    """Threads that run or wait for a core beside the caller, where the kernel tells; else none."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            running = file.read().split()[3].partition("/")[0]
        return max(0, int(running) - 1)
    except (OSError, IndexError, ValueError):
        return 0


class _OneBlasThread:
    """While any of our loops runs, BLAS has one thread: on small blocks more of them wait for each
    other, and on a busy machine a fit took eighteen times as long. Threads of rows take their
    place where there is enough to do.
    """

    def __init__(self) -> None:
        self._lock, self._depth = Lock(), 0
        self._libraries: list[Any] | None = None
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            if self._libraries is None:
                from threadpoolctl import ThreadpoolController

                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            counts = [(library, library.get_num_threads()) for library in self._libraries]
            self._before = [(library, count) for library, count in counts if count != 1]
            for library, _ in self._before:
                library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                for library, count in self._before:
                    library.set_num_threads(count)


_limited, _unlimited = _OneBlasThread(), nullcontext()


def one_blas_thread(n_elements: int) -> AbstractContextManager[None]:
    """A context in which BLAS has one thread, for loops over so many elements; few need none."""
    return _limited if n_elements >= BLAS_ELEMENTS else _unlimited


def map_blocks(
    function: Callable[[slice], Sum],
    n_rows: int,
    n_columns: int,
    *,
    elements: int | None = None,
    work: int = 1,
) -> Iterator[Sum]:
    """``function`` of every row block, in row order; by threads where there is enough to do: an
    element costs ``work`` times as much as usual.
    """
    blocks = row_blocks(n_rows, n_columns, elements=elements)
    size = n_rows * n_columns
    workers = 1 if size * work < THREAD_ELEMENTS else n_threads(are_hasty=work > 1)
    with one_blas_thread(size):
        if workers == 1:
            yield from map(function, blocks)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from in_order(pool, function, blocks, ahead=4 * workers)


def in_order(
    pool: ThreadPoolExecutor, function: Callable[[Item], Sum], items: Iterator[Item], ahead: int
) -> Iterator[Sum]:
    """Results in submission order with at most ``ahead`` of them in flight, so that memory stays
    bounded.
    """
    waiting: deque[Any] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def sum_blocks(
    function: Callable[[slice], Any],
    n_rows: int,
    n_columns: int,
    *,
    elements: int | None = None,
    work: int = 1,
) -> Any:
    """Sum over row blocks of what ``function`` returns: a number, an array, a table, or a tuple of
    these.
    """
    if n_rows * n_columns <= min(elements or BLOCK_ELEMENTS, THREAD_ELEMENTS // work):
        with one_blas_thread(n_rows * n_columns):
            return function(slice(0, n_rows))
    parts = map_blocks(function, n_rows, n_columns, elements=elements, work=work)
    total = next(parts)
    for part in parts:
        total = added(total, part)
    return total


def by_blocks(
    function: Callable[[FloatArray], tuple[FloatArray, ...]], x: FloatArray, n_results: int
) -> list[FloatArray]:
    """Arrays that an elementwise function makes of a large one: what it needs on its way stays in
    the cache.
    """
    if x.size <= READ_ELEMENTS or not x.flags.c_contiguous:
        return list(function(x))
    made = [np.empty(x.shape) for _ in range(n_results)]
    flat = x.reshape(-1)
    for part in row_blocks(x.size, 1):
        for out, found in zip(made, function(flat[part]), strict=True):
            out.reshape(-1)[part] = found
    return made


def added(a: Any, b: Any) -> Any:
    """The sum of two partial results: numbers, arrays, tables, or tuples of these."""
    if isinstance(a, tuple):
        return tuple(x + y for x, y in zip(a, b, strict=True))
    return a + b


def sum_in_pairs(parts: Iterable[Any], add: Callable[[Any, Any], Any] = added) -> Any:
    """The sum of partial results in their order, added in pairs: rounding errors grow with the
    logarithm of their number, and so many of them are held at a time.
    """
    waiting: list[tuple[int, Any]] = []
    for part in parts:
        level, total = 0, part
        while waiting and waiting[-1][0] == level:
            level, total = level + 1, add(waiting.pop()[1], total)
        waiting.append((level, total))
    if not waiting:
        raise ValueError("there are no rows: at least one is needed")
    total = waiting.pop()[1]
    while waiting:
        total = add(waiting.pop()[1], total)
    return total
