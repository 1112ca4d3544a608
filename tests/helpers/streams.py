"""Labels and forecasts whose truth is known."""

from __future__ import annotations


def draw(proba, rng):
    """Labels that follow probabilities."""
    return (
        (proba.cumsum(axis=1) < rng.random((len(proba), 1)))
        .sum(axis=1)
        .clip(max=proba.shape[1] - 1)
    )


def sharpened(proba, beta):
    """Probabilities at another temperature."""
    power = proba**beta
    return power / power.sum(axis=1, keepdims=True)
