"""A small case like the figure in the paper on reductions: six rows and four classes."""

from __future__ import annotations

import numpy as np

SIX = np.array(
    [
        [0.4, 0.3, 0.2, 0.1],
        [0.1, 0.5, 0.1, 0.3],
        [0.6, 0.1, 0.2, 0.1],
        [0.2, 0.1, 0.4, 0.3],
        [0.1, 0.7, 0.2, 0.0],
        [0.3, 0.2, 0.1, 0.4],
    ]
)
TRUTH = np.array([0, 3, 1, 2, 1, 0])
