"""The lowest threshold of a score that can be proved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.decisions._proof import count_proved, rows_without_error


class Threshold(NamedTuple):
    """Rows with a score above ``value`` are answered.

    The proof has ``n_rows`` rows, of which ``n_answered`` are answered. ``n_errors`` counts the
    errors among the answered rows, including random errors that replace losses between 0 and 1.
    """

    value: float
    n_answered: int
    n_rows: int
    n_errors: int


def find_threshold(
    scores: FloatArray, losses: FloatArray, risk: float, delta: float, rng: np.random.Generator
) -> Threshold:
    """Find the lowest threshold whose answers have a proved mean loss of at most ``risk``.

    Losses are from 0 to 1. A loss between 0 and 1 is replaced by an error with this probability,
    which does not change the expected loss of the answers. Ties are broken at random.
    """
    shuffled = rng.permutation(len(scores))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    ordered, chances = scores[order], losses[order]
    is_drawn = (chances > 0) & (chances < 1)
    errors = chances >= 1
    if is_drawn.any():
        errors = np.where(is_drawn, rng.random(len(chances)) < chances, errors)
    is_end = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]
    count = count_proved(errors, is_end, risk, delta)
    return Threshold(_between(ordered, count), count, len(scores), int(errors[:count].sum()))


def _between(ordered: FloatArray, count: int) -> float:
    """Return a number below the score of the last answered row, and not below the next score."""
    if count == 0:
        return np.inf
    if count == len(ordered):
        return -np.inf
    last, following = float(ordered[count - 1]), float(ordered[count])
    middle = following + (last - following) / 2
    # Between neighboring floating-point numbers, the mean is rounded to one of them.
    return middle if middle < last else following


def find_thresholds(
    predicted: IntArray,
    scores: FloatArray,
    losses: FloatArray,
    risk: float,
    delta: float,
    n_classes: int,
    rng: np.random.Generator,
) -> list[Threshold]:
    """Find a threshold for each predicted class. All thresholds hold jointly."""
    counts = np.bincount(predicted, minlength=n_classes)
    is_tested = counts >= rows_without_error(risk, delta)
    # Row counts do not depend on the labels, so row counts may decide which classes share delta.
    while is_tested.any():
        share = delta / int(is_tested.sum())
        is_enough = is_tested & (counts >= rows_without_error(risk, share))
        if (is_enough == is_tested).all():
            break
        is_tested = is_enough
    thresholds = [Threshold(np.inf, 0, int(count), 0) for count in counts]
    for k in np.flatnonzero(is_tested):
        rows = predicted == k
        thresholds[k] = find_threshold(scores[rows], losses[rows], risk, share, rng)
    return thresholds
