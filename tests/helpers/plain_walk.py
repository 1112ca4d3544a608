"""A plain implementation of the boundary and its carried level, one rank at a time."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import bdtr


def path(n, risk, level):
    """Largest number of errors with a lower tail of at most ``level``, at the ranks 0 to n."""
    limits, k = np.full(n + 1, -1), -1
    for m in range(1, n + 1):
        while k + 1 <= m and bdtr(k + 1, m, risk) <= level:
            k += 1
        limits[m] = k
    return limits


def crossing(limits, risk):
    """Probability that a walk is at or below the limits at some rank."""
    f, crossed = np.r_[1.0, np.zeros(len(limits))], 0.0
    for limit in limits[1:]:
        f = f * (1 - risk) + np.r_[0.0, f[:-1]] * risk
        crossed += f[: limit + 1].sum()
        f[: limit + 1] = 0.0
    return crossed


@lru_cache(maxsize=64)
def boundary(n, risk, delta):
    low, high = math.log(delta) - 8, math.log(delta)
    for _ in range(14):
        middle = (low + high) / 2
        if crossing(path(n, risk, math.exp(middle)), risk) <= delta:
            low = middle
        else:
            high = middle
    return path(n, risk, math.exp(low))


@lru_cache(maxsize=64)
def quiet(n, risk, delta):
    """Probability of never crossing after rank m, by m and the number of errors there."""
    limits = boundary(n, risk, delta)
    chances = np.ones((n + 1, n + 2))
    for m in range(n - 1, -1, -1):
        later = chances[m + 1].copy()
        later[: limits[m + 1] + 1] = 0.0
        chances[m] = (1 - risk) * later + risk * np.r_[later[1:], 1.0]
    return chances


def count_proved(errors, is_end, risk, delta):
    n, total = len(errors), np.r_[0, np.cumsum(errors)]
    limits, chances = boundary(n, risk, delta), quiet(n, risk, delta)
    step = lambda f: f * (1 - risk) + np.r_[0.0, f[:-1]] * risk  # noqa: E731
    f, free, best = np.r_[1.0, np.zeros(n + 1)], None, 0
    for m in range(1, n + 1):
        is_proved = total[m] <= limits[m]
        if not is_proved and free is not None:
            level = free @ chances[m - 1] - chances[0, 0]
            is_proved = bdtr(total[m], m, risk) <= level
        if is_proved:
            best = m if is_end[m - 1] else best
            free = f if free is None else free
        else:
            free = None
        f = step(f)
        f[: limits[m] + 1] = 0.0
        free = None if free is None else step(free)
    return best
