"""Top scores of complete rows."""

from __future__ import annotations

import numpy as np

from calibrant import TopScores
from calibrant._kernels import top_labels
from calibrant._kernels.simplex import log_softmax

REAL = ("cifar100_resnet50_gupta", "imagenet1k_effnetlite0_sample1000")


def best(log_proba, m=20, **options):
    labels = top_labels(log_proba, m)
    known = np.take_along_axis(log_proba, labels, axis=1)
    return TopScores(labels, known, log_proba.shape[1], **options)


def log_rest(log_proba, m=20):
    """The tail mass as a service would return it, without cancellation."""
    return np.logaddexp.reduce(np.sort(log_proba, axis=1)[:, :-m], axis=1)


def real_rows(data):
    """Log-probabilities and labels of the first thousand rows of a file of logits."""
    start = "val_" if "val_logits" in data else ""
    return log_softmax(data[f"{start}logits"][:1000]), data[f"{start}labels"][:1000]


def drawn_rows(rng):
    """Log-probabilities of six classes, and labels drawn from them."""
    log_proba = log_softmax(2 * rng.normal(size=(400, 6)))
    return log_proba, (log_proba + rng.gumbel(size=log_proba.shape)).argmax(axis=1)
