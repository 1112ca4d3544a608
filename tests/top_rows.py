"""The best few classes of whole rows."""

from __future__ import annotations

import numpy as np

from calibrant import TopScores
from calibrant._kernels import top_labels


def best(log_proba, m=20, **options):
    labels = top_labels(log_proba, m)
    known = np.take_along_axis(log_proba, labels, axis=1)
    return TopScores(labels, known, log_proba.shape[1], **options)


def log_rest(log_proba, m=20):
    """The mass of the others as a service would give it, without cancellation."""
    return np.logaddexp.reduce(np.sort(log_proba, axis=1)[:, :-m], axis=1)
