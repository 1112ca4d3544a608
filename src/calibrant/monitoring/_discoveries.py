"""Which of many e-values are worth a look: the e-BH procedure."""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray, IntArray


def discoveries(log_e: FloatArray, alpha: float) -> IntArray:
    r"""The largest k e-values such that each is at least :math:`G / (\alpha k)`, of G, in order.

    The share of those listed that are honest is at most :math:`\alpha` on average, whatever the
    dependence between them.

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
