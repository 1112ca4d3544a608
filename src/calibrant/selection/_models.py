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

    This function does not fit any model. Use rows that none of the models was trained on.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    scores : dict of name -> array-like of shape (n, K)
        Predicted scores of each model. Gains in the table are relative to the first model.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores.
    metrics : list of names or functions, or dict of name -> either, optional
        As for `compare`.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    Comparison
        The models are the ``methods`` of the comparison. ``difference("a", "b")`` returns the
        reduction in log-loss by model a compared with model b, with its paired confidence interval.

    See Also
    --------
    compare : Compare calibrators by cross-validation.
    evaluate : All metrics of one model.

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
        raise ValueError(
            f"compare_models needs at least two models, got {len(scores)}. For one model, call "
            f"calibrant.evaluate(y_true, y_prob)."
        )
    table_metrics, n_rows = as_metrics(metrics), len(as_array(y_true))
    for name, n_scores in ((name, len(as_array(table))) for name, table in scores.items()):
        if n_scores != n_rows:
            raise ValueError(
                f"{name} has {n_scores} rows, but there are {n_rows} labels. Pass scores of the "
                f"same rows for all models."
            )
    samples = [
        as_sample(table, y_true, sample_weight, classes=classes, inputs=inputs)[0].rows("models")
        for table in scores.values()
    ]
    probas = [as_proba(np.asarray(sample.u), inputs) for sample in samples]
    y, weight = samples[0].y, samples[0].weight
    options = {} if (weight == 1).all() else {"sample_weight": weight}
    values = np.array(
        [[metric(y, p, **options) for metric in table_metrics.values()] for p in probas]
    )
    moments = {
        score: LossMoments.of_rows(np.array([rule.losses(p, y) for p in probas]), weight)
        for score, rule in SCORES.items()
    }
    result = Result(values, np.full(values.shape, np.nan), all_gains(moments, tuple(scores)), ())
    return collect({"data": result}, scores, table_metrics, is_ranked=False)
