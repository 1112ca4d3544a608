"""Compare the probabilities of several models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibrant._crossfit.scores import SCORES
from calibrant._data.read import as_sample
from calibrant._kernels.simplex import as_proba
from calibrant._typing import LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import as_array
from calibrant.inference import LossMoments
from calibrant.metrics.registry import MetricLike
from calibrant.selection._compare import Result, all_gains, as_metrics, collect
from calibrant.selection._comparison import Comparison


def compare_models(
    y_true: LabelsLike,
    scores: Mapping[str, ScoresLike],
    *,
    inputs: str = "proba",
    metrics: Sequence[MetricLike] | Mapping[str, MetricLike] | None = None,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> Comparison:
    """Compare the probabilities of several models on the same rows.

    Nothing is fitted. Use rows that none of the models was trained on.

    Parameters
    ----------
    y_true : labels of shape (n,)
    scores : dict of name -> scores of shape (n, K)
        The first model is the reference of the table.
    inputs : {"proba", "logits", "log_proba"}
    metrics : names or functions, or dict of name -> either, optional
        As for `compare`.
    sample_weight : weights of shape (n,), optional
    classes : labels of the columns, optional

    Returns
    -------
    Comparison
        ``methods`` are the models. ``difference("a", "b")`` is the reduction in log-loss by a
        compared with b, with its paired interval.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> softer = data.test_proba ** 0.5 / (data.test_proba ** 0.5).sum(axis=1, keepdims=True)
    >>> models = {"naive Bayes": data.test_proba, "softer": softer}
    >>> compare_models(data.test_labels, models).difference("softer", "naive Bayes").low > 0
    True
    """
    if len(scores) < 2:
        raise ValueError(f"compare_models needs at least two models, got {len(scores)}")
    judges, n_rows = as_metrics(metrics), len(as_array(y_true))
    for name, n_own in ((name, len(as_array(table))) for name, table in scores.items()):
        if n_own != n_rows:
            raise ValueError(
                f"{name} has {n_own} rows and there are {n_rows} labels. All models must predict "
                "the same rows."
            )
    samples = [
        as_sample(table, y_true, sample_weight, classes=classes, inputs=inputs)[0].rows("models")
        for table in scores.values()
    ]
    probas = [as_proba(np.asarray(sample.u), inputs) for sample in samples]
    y, weight = samples[0].y, samples[0].weight
    options = {} if (weight == 1).all() else {"sample_weight": weight}
    values = np.array([[metric(y, p, **options) for metric in judges.values()] for p in probas])
    moments = {
        score: LossMoments.of_rows(np.array([rule.losses(p, y) for p in probas]), weight)
        for score, rule in SCORES.items()
    }
    result = Result(values, np.full(values.shape, np.nan), all_gains(moments, tuple(scores)), ())
    return collect({"data": result}, scores, judges, is_ranked=False)
