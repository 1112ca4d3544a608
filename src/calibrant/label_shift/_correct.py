"""Correct probabilities for known class frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike
from calibrant._validation import (
    arrange_as_fitted,
    check_classes,
    check_scores,
    column_names,
    shortened,
)
from calibrant.label_shift._frequencies import check_frequencies, frequency_ratio, reweight


def correct(
    proba: ScoresLike,
    *,
    source: Any = None,
    target: Any = None,
    sampling: Any = None,
    classes: LabelsLike | None = None,
) -> FloatArray:
    r"""Correct probabilities for known class frequencies.

    Use this function if a model was trained on under-sampled, over-sampled or class-weighted
    rows, or if class frequencies differ in production. Pass either ``source`` and ``target``, or
    ``sampling``.

    Parameters
    ----------
    proba : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    source : array-like of shape (K,), dict or pandas.Series, optional
        Class frequencies of the training rows of the model, after sampling. With
        ``class_weight="balanced"``, all frequencies are equal, so pass ``np.full(K, 1 / K)``.
    target : array-like of shape (K,), dict or pandas.Series, optional
        Class frequencies of the population for which the probabilities are used.
    sampling : array-like of shape (K,), dict or pandas.Series, optional
        Factor by which sampling or class weights changed the weight of each class in training. The
        factor is 0.2 if one row in five was kept. The factor is 3 if rows were used three times or
        had a class weight of 3. Classes that are missing in a dict have the factor 1. The target
        frequencies are the frequencies before sampling.
    classes : array-like of labels, optional
        Labels of the columns. A dict or a Series, such as ``y.value_counts(normalize=True)``, must
        have these labels as keys or index. The default is the column names of a data frame, or 0 to
        K - 1 for an array.

    Returns
    -------
    array of shape (n, K)
        Probabilities under the target frequencies, with the columns in the order of ``classes``.

    Raises
    ------
    ValueError
        If all classes with positive probability in a row have target frequency zero.

    See Also
    --------
    adapt : Estimate the target frequencies from rows without labels.
    calibrant.AutoCalibration : Calibrate on labeled rows with the class frequencies of the target.

    Notes
    -----
    .. math:: p'_k \propto p_k \frac{q_k}{\pi_k}

    with :math:`\pi` = ``source`` and q = ``target``. With ``sampling`` factors :math:`s_k`, the
    ratio is :math:`1 / s_k` up to a constant, because sampling multiplies the frequency of class k
    by :math:`s_k`.

    The correction is exact under two conditions. First, the probabilities are calibrated under the
    source frequencies. Second, the rows of each class have the same distribution in source and
    target. In a binary problem, the correction keeps the order of the rows. The correction does not
    remove miscalibration of the model, so calibrate the result if you have labels. The cost is O(n
    K).

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), doi:10.1162/089976602753284446; Elkan (2001), The
    foundations of cost-sensitive learning, Theorem 2; Dal Pozzolo et al. (2015), Calibrating
    probability with undersampling for unbalanced classification, doi:10.1109/SSCI.2015.33.

    Examples
    --------
    >>> proba = [[0.5, 0.5]]  # from a model that was trained on one in ten rows of class 0
    >>> correct(proba, sampling={0: 0.1}).round(3).tolist()
    [[0.909, 0.091]]
    >>> correct(proba, source=[0.5, 0.5], target=[0.9, 0.1]).tolist()
    [[0.9, 0.1]]
    """
    labels = column_names(proba) if classes is None else list(classes)
    names = None if labels is None else np.array(labels, dtype=object)
    table = proba if names is None else arrange_as_fitted(proba, None, names)
    checked = check_scores(table)
    columns = check_classes(names, checked.shape[1])
    ratio = _ratio(source, target, sampling, columns)
    _check_possible(checked, ratio)
    return reweight(checked, ratio)


def _ratio(source: Any, target: Any, sampling: Any, columns: AnyArray) -> FloatArray:
    """Return the factor of the probability of each class."""
    if sampling is None and source is not None and target is not None:
        target_prior, source_prior = (
            check_frequencies(_in_order(values, name, columns), name, len(columns))
            for name, values in (("target", target), ("source", source))
        )
        return frequency_ratio(target_prior, source_prior)
    if sampling is None or source is not None or target is not None:
        arguments = {"source": source, "target": target, "sampling": sampling}
        names = [name for name, value in arguments.items() if value is not None]
        raise TypeError(
            f"correct needs either source and target, or sampling alone, got "
            f"{' and '.join(names) or 'none of them'}. For example, pass source=[0.5, 0.5], "
            f"target=[0.9, 0.1]."
        )
    return 1.0 / _check_factors(_in_order(sampling, "sampling", columns, missing=1.0), len(columns))


def _label_problem(values: Mapping[Any, Any], labels: list[Any], *, can_lack: bool) -> str:
    """Describe unknown or missing keys, or return an empty string."""
    unknown_labels = [key for key in values if key not in labels]
    missing_labels = [label for label in labels if label not in values]
    if unknown_labels:
        return f"has the unknown labels {shortened(unknown_labels, show=repr)}"
    if missing_labels and not can_lack:
        return f"lacks the labels {shortened(missing_labels, show=repr)}"
    return ""


def _in_order(values: Any, name: str, columns: AnyArray, missing: float | None = None) -> Any:
    """Return values in the order of the columns.

    The keys of a dict and the index of a pandas Series are matched with labels.
    """
    if hasattr(values, "index") and hasattr(values, "to_dict"):
        index = list(values.index)
        # pandas numbers the entries of a Series that was created without an index.
        if index != list(range(len(index))):
            values = values.to_dict()
    if not isinstance(values, Mapping):
        return values
    labels = columns.tolist()
    problem = _label_problem(values, labels, can_lack=missing is not None)
    if problem:
        raise ValueError(
            f"{name} {problem}, but the columns have the labels {shortened(labels, show=repr)}. "
            f"Pass classes=[...] with the labels of the columns, and {name} with these keys."
        )
    return [values.get(label, missing) for label in labels]


def _check_factors(values: Any, n_classes: int) -> FloatArray:
    array = np.asarray(values)
    factors = array.astype(np.float64) if array.dtype.kind in "iuf" else np.array(np.nan)
    if factors.shape != (n_classes,) or not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(
            f"sampling must be one positive number per class, shape ({n_classes},), got "
            f"{values!r:.80}. For example, pass sampling={{0: 0.2}} if one in five rows of class 0 "
            f"was kept."
        )
    return factors


def _check_possible(proba: FloatArray, ratio: FloatArray) -> None:
    """Raise ValueError if all possible classes of a row have target frequency zero."""
    impossible = np.flatnonzero(~(proba[:, ratio > 0] > 0).any(axis=1))
    if impossible.size:
        raise ValueError(
            f"Row {int(impossible[0])} has positive probabilities only in classes with target "
            "frequency 0. Pass positive target frequencies for these classes."
        )
