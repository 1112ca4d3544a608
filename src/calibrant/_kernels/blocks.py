"""Apply a function to each row block and add up the results.

Every sum over rows is written as a function of a row slice. The same function works for blocks that
fit the cache, for threads, and for memory maps larger than memory. Partial results are added in row
order, so the result does not depend on the number of threads.
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

# Budgets of memory and work. Memory is counted in elements of 8 bytes. The sizes of blocks were
# measured on processors with 0.5 to 2 MB of second-level cache. Blocks of half or twice this size
# are about as fast.

CACHE_BLOCK = 2**15
"""Number of elements of a block whose intermediate arrays (256 kB each) stay in the second-level
cache."""

READ_BLOCK = 4 * CACHE_BLOCK
"""Number of elements of a block that needs few intermediate arrays at a time (1 MB each). Larger
blocks mean fewer calls."""

CALL_BLOCK = 2**20
"""Number of elements of a block (8 MB) if each call has a fixed cost, as in composite
calibrators."""

WORK_MEMORY = 2**22
"""Number of elements (32 MB) of the arrays that a computation needs in addition to its data.
Examples are a transformed copy of the data, gathered columns and random numbers."""

KEPT_MEMORY = 2**24
"""Number of elements (128 MB) of intermediate results that are kept because about a hundred passes
use them."""

THREAD_WORK = 2**22
"""Number of elements of a pass from which threads save more time than starting them takes."""

_BLAS_THREADS_FROM = 2**13
"""Number of elements of a matrix below which BLAS starts no threads."""

ROUND_OFF = 1e-12
"""Rounding error of a sum of shares. Cumulative weights that differ by less count as equal."""

Sum = TypeVar("Sum")
Item = TypeVar("Item")


def row_blocks(n_rows: int, n_columns: int, *, elements: int | None = None) -> Iterator[slice]:
    """Yield consecutive row slices of about ``elements`` elements each."""
    step = max(1, (elements or CACHE_BLOCK) // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def n_threads() -> int:
    """Return ``CALIBRANT_NUM_THREADS`` if it is set, otherwise the number of available cores."""
    setting = os.environ.get("CALIBRANT_NUM_THREADS")
    if setting is not None:
        return max(1, int(setting))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _OneBlasThread:
    """A context that limits BLAS to one thread while any loop of the package runs.

    On small blocks, several BLAS threads wait for each other. On a busy machine, a fit without this
    limit took eighteen times as long. Large data are divided among threads by rows instead. The
    limit is global, so nested and concurrent uses are counted. The end of the last use restores the
    old limit.
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
    """Return a context in which BLAS has one thread, for loops over ``n_elements`` elements.

    Loops over few elements need no limit, because BLAS starts no threads for few elements.
    """
    return _limited if n_elements >= _BLAS_THREADS_FROM else _unlimited


def map_blocks(
    function: Callable[[slice], Sum],
    n_rows: int,
    n_columns: int,
    *,
    elements: int | None = None,
    work: int = 1,
) -> Iterator[Sum]:
    """Apply ``function`` to every row block, in row order.

    Threads are used if there is enough work. ``work`` is the cost of an element relative to an
    exponential.
    """
    blocks = row_blocks(n_rows, n_columns, elements=elements)
    size = n_rows * n_columns
    workers = 1 if size * work < THREAD_WORK else n_threads()
    with one_blas_thread(size):
        if workers == 1:
            yield from map(function, blocks)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from map_in_order(pool, function, blocks, ahead=4 * workers)


def map_in_order(
    pool: ThreadPoolExecutor, function: Callable[[Item], Sum], items: Iterator[Item], ahead: int
) -> Iterator[Sum]:
    """Yield results in the order of the items.

    At most ``ahead`` results are stored before they are yielded, which bounds the memory.
    """
    queue: deque[Any] = deque()
    for item in items:
        queue.append(pool.submit(function, item))
        if len(queue) >= ahead:
            yield queue.popleft().result()
    while queue:
        yield queue.popleft().result()


def sum_blocks(
    function: Callable[[slice], Any],
    n_rows: int,
    n_columns: int,
    *,
    elements: int | None = None,
    work: int = 1,
) -> Any:
    """Sum ``function`` over row blocks. Results are numbers, arrays, tables, or tuples of these."""
    if n_rows * n_columns <= min(elements or CACHE_BLOCK, THREAD_WORK // work):
        with one_blas_thread(n_rows * n_columns):
            return function(slice(0, n_rows))
    parts = map_blocks(function, n_rows, n_columns, elements=elements, work=work)
    total = next(parts)
    for part in parts:
        total = add_results(total, part)
    return total


def map_elements(
    function: Callable[[FloatArray], tuple[FloatArray, ...]], x: FloatArray, n_results: int
) -> list[FloatArray]:
    """Apply an elementwise function to a large array, block by block.

    The intermediate arrays of a block stay in the cache.
    """
    if x.size <= READ_BLOCK or not x.flags.c_contiguous:
        return list(function(x))
    arrays = [np.empty(x.shape) for _ in range(n_results)]
    flat = x.reshape(-1)
    for block in row_blocks(x.size, 1):
        for array, values in zip(arrays, function(flat[block]), strict=True):
            array.reshape(-1)[block] = values
    return arrays


def add_results(a: Any, b: Any) -> Any:
    """Add two partial results: numbers, arrays, tables, or tuples of these."""
    if isinstance(a, tuple):
        return tuple(x + y for x, y in zip(a, b, strict=True))
    return a + b


def sum_in_pairs(parts: Iterable[Any], add: Callable[[Any, Any], Any] = add_results) -> Any:
    """Sum partial results in their order by adding pairs.

    The rounding error, and the number of results in memory, grow with the logarithm of the number
    of results.
    """
    queue: list[tuple[int, Any]] = []
    for part in parts:
        level, total = 0, part
        while queue and queue[-1][0] == level:
            level, total = level + 1, add(queue.pop()[1], total)
        queue.append((level, total))
    if not queue:
        raise ValueError("There are no rows. Pass at least one row.")
    total = queue.pop()[1]
    while queue:
        total = add(queue.pop()[1], total)
    return total
