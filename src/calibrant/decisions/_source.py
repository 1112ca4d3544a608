"""Probabilities of the held-out rows on which a decision is proved."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from calibrant._data.folds import check_groups
from calibrant._data.read import as_sample
from calibrant._data.row_sketch import contains_rows, repeated_share, row_hashes
from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import is_unit, softmax
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import as_array, as_seed, check_weight, encode_labels, warn_data
from calibrant.base import Calibrator
from calibrant.base.new_scores import check_new_scores
from calibrant.base.training import TrainingSummary, summarize_training
from calibrant.classifier._responses import Response, check_classifier
from calibrant.classifier._rows import check_targets, params_of_rows, take_rows
from calibrant.multiclass import Identity

_MANY_REPEATED = 0.01
"""Share of repeated rows above which a warning is issued, because repeated rows are not
independent."""

_MOST_REPEATED = 0.2
"""At or above this share of repeated rows, scores have few distinct values, so equal rows do not
indicate duplicates."""


_ROUNDING = 1e-9
"""Relative difference of the log-losses of the same rows in another order."""


class ProofRows(NamedTuple):
    """A fitted estimator with probabilities and labels of held-out rows."""

    estimator: Any
    proba: FloatArray
    y: IntArray
    classes: AnyArray


def proof_rows(owner: Any, X: Any, y: Any, params: dict[str, Any]) -> ProofRows:
    """Fit the estimator of ``owner`` if necessary, and predict held-out rows.

    ``owner`` has the parameters ``estimator``, ``cv``, ``inputs``, ``classes`` and
    ``random_state``. ``params`` are the keyword arguments of the ``fit`` of ``owner``.
    """
    rng = np.random.default_rng([as_seed(owner.random_state) or 0, 0])
    labels = check_targets(y)
    groups = check_groups(params.get("groups"), len(labels))
    if _is_fitted(owner.estimator):
        _check_params(params, len(labels))
        estimator, rows = _fitted(owner, X, y), np.arange(len(labels))
    else:
        check_share(owner.cv)
        X, labels = indexable(X, labels)
        fitted_rows, rows = _split(owner.cv, len(labels), groups, rng)
        estimator = _fit(owner, X, labels, fitted_rows, params)
    if groups is not None:
        rows = _one_per_group(rows, groups, rng)
    X, labels = (X, labels) if len(rows) == len(labels) else (take_rows(X, rows), labels[rows])
    proba, codes, classes = _predict(estimator, X, labels)
    _warn_repeated(proba)
    return ProofRows(estimator, proba, codes, classes)


def _is_fitted(estimator: Any) -> bool:
    """Return whether the proof can use all rows, because no estimator has to be fitted."""
    if isinstance(estimator, Calibrator):
        return hasattr(estimator, "classes_")
    return estimator is None or isinstance(estimator, FrozenEstimator)


def _fitted(owner: Any, X: Any, y: Any) -> Any:
    if owner.estimator is None:
        # The identity has no fitted parameters, so these rows can support a guarantee.
        return Identity(inputs=owner.inputs, classes=owner.classes).fit(X, y)
    inner = getattr(owner.estimator, "estimator", owner.estimator)
    if isinstance(inner, Calibrator):
        _raise_if_same_rows(inner, X, y)
    return owner.estimator


def _raise_if_same_rows(calibrator: Calibrator, X: Any, y: Any) -> None:
    """Raise if a calibrator was fitted on the rows of the proof."""
    training = vars(calibrator).get("training_")
    if training is None or isinstance(calibrator, Identity):
        return
    scores = check_new_scores(calibrator, X)
    is_same = contains_rows(training.row_sketch, row_hashes(scores))
    if is_same or _has_summary(calibrator, training, scores, y):
        raise ValueError(
            f"{type(calibrator).__name__} was fitted on rows that are also in X. The estimator "
            f"makes fewer errors on these rows than on new rows, so these rows cannot support a "
            f"guarantee. Pass other rows, or an unfitted calibrator: sklearn.base.clone(estimator)."
        )


def _has_summary(
    calibrator: Calibrator, training: TrainingSummary, scores: FloatArray, y: Any
) -> bool:
    """Return whether rows match the rows of a fit in number, class frequencies and log-loss.

    If rows have few distinct values, equal rows also occur in independent data, so equal hashes are
    no evidence of shared rows.
    """
    codes, _ = encode_labels(as_array(y), calibrator.n_classes_, calibrator.classes_)
    sample = ArraySample(scores, codes, check_weight(None, len(codes)))
    other = summarize_training(sample, calibrator.inputs, calibrator._log_true_of)
    return (
        other is not None
        and other.class_weights == training.class_weights
        and math.isclose(other.log_loss_before, training.log_loss_before, rel_tol=_ROUNDING)
    )


def check_share(cv: Any) -> float:
    """Return the share of rows held out from the fit, or raise if it is invalid."""
    if isinstance(cv, bool) or not isinstance(cv, float | np.floating) or not 0 < cv < 1:
        raise ValueError(
            "cv must be the fraction of rows that are held out for the guarantee, between 0 and "
            f"1, got {cv!r}. Folds would give a guarantee about several estimators instead of one. "
            "For example, pass cv=0.5."
        )
    return float(cv)


def _check_params(params: dict[str, Any], n_samples: int) -> None:
    """Raise if parameters of ``fit`` have no effect, because no estimator is fitted."""
    unknown = sorted(set(params) - {"groups", "sample_weight"})
    if unknown:
        raise TypeError(
            f"fit got the unexpected argument {unknown[0]!r}, but no estimator is fitted. Pass "
            "only groups=, with the group of each row."
        )
    weight = params.get("sample_weight")
    if weight is not None and not is_unit(check_weight(weight, n_samples)):
        raise ValueError(
            "sample_weight must be 1 for all rows, because the guarantee assumes that rows are "
            "independent draws from the distribution of new rows. Pass the rows without "
            "sample_weight."
        )


def _split(
    share: float, n_samples: int, groups: IntArray | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return rows to fit the estimator on, and rows to prove the guarantee.

    Rows are not stratified by label, because the rows of a proof must be independent.
    """
    units = np.arange(n_samples) if groups is None else groups
    n_units = int(units.max()) + 1
    n_held = min(max(1, round(share * n_units)), n_units - 1)
    if n_held < 1:
        raise ValueError(
            "The estimator and its guarantee need different rows, so at least two rows (or two "
            f"groups) are needed, got n_samples={n_samples} in one group or row. Pass more rows."
        )
    is_held = np.zeros(n_units, dtype=bool)
    is_held[rng.permutation(n_units)[:n_held]] = True
    return np.flatnonzero(~is_held[units]), np.flatnonzero(is_held[units])


def _one_per_group(rows: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Return one random row per group, because rows of a group are not independent."""
    shuffled = rng.permutation(rows)
    _, first = np.unique(groups[shuffled], return_index=True)
    return np.sort(shuffled[first])


def _fit(owner: Any, X: Any, y: AnyArray, rows: IntArray, params: dict[str, Any]) -> Any:
    """Fit a clone of the estimator to some rows."""
    estimator = clone(owner.estimator)
    check_classifier(estimator)
    if isinstance(estimator, Calibrator):
        # The rows of the fit may lack a class that other rows contain.
        _, classes = as_sample(X, y, classes=estimator.classes, inputs=estimator.inputs)
        estimator.set_params(classes=classes)
    routed = {name: value for name, value in params.items() if name != "groups"}
    if get_config()["enable_metadata_routing"]:
        routed = process_routing(owner, "fit", **params).estimator.fit
    routed = {name: value for name, value in routed.items() if value is not None}
    return estimator.fit(take_rows(X, rows), y[rows], **params_of_rows(routed, len(y), rows))


def _predict(estimator: Any, X: Any, labels: AnyArray) -> tuple[FloatArray, IntArray, AnyArray]:
    """Return probabilities, column codes and column labels of rows with labels."""
    classes = np.asarray(estimator.classes_)
    unseen = np.setdiff1d(labels, classes) if classes.dtype.kind == labels.dtype.kind else ()
    if len(unseen) and not isinstance(estimator, Calibrator | FrozenEstimator):
        # The estimator never predicts a label without training rows, so such rows are errors.
        classes = np.concatenate([classes, unseen])
    codes, classes = encode_labels(labels, len(classes), classes)
    return probabilities(estimator, X, classes), codes, classes


def probabilities(estimator: Any, X: Any, classes: AnyArray) -> FloatArray:
    """Return the probabilities of a fitted estimator, (n, K).

    Classes that the estimator lacks have probability zero.
    """
    if hasattr(estimator, "predict_proba"):
        proba = as_array(estimator.predict_proba(X))
    else:
        proba = softmax(Response(estimator, np.asarray(estimator.classes_), 0.0).scores(X))
    proba = proba.astype(np.float64, copy=False)
    if proba.shape[1] == len(classes):
        return proba
    padding = np.zeros((len(proba), len(classes) - proba.shape[1]))
    return np.column_stack([proba, padding])


def _warn_repeated(proba: FloatArray) -> None:
    """Warn if rows seem to be duplicates, which are not independent."""
    # Rows with confidence 1 may be equal because of rounding.
    uncertain = proba[proba.max(axis=1) < 1]
    share = repeated_share(row_hashes(uncertain)) * len(uncertain) / max(len(proba), 1)
    if not _MANY_REPEATED < share < _MOST_REPEATED:
        return
    values_and_maxima = uncertain, uncertain.max(axis=1)
    rows, confidences = (len(np.unique(values, axis=0)) for values in values_and_maxima)
    # Scores such as votes have only a few distinct values.
    if confidences < (1 - _MANY_REPEATED) * rows:
        return
    warn_data(
        f"{share:.1%} of the rows of the proof repeat an earlier row. A guarantee holds for "
        f"independent rows. Drop duplicates, or pass groups= with the origin of each row."
    )


def fit_router(owner: Any) -> MetadataRouter:
    """Route the parameters of ``fit`` to the estimator."""
    router = MetadataRouter(owner=owner).add_self_request(owner)
    if owner.estimator is None:
        return router
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    return router.add(estimator=owner.estimator, method_mapping=to_fit)


def copy_feature_names(owner: Any) -> None:
    """Set the number and the names of features to those of the fitted estimator."""
    for name in ("n_features_in_", "feature_names_in_"):
        value = getattr(owner.estimator_, name, None)
        if value is not None:
            setattr(owner, name, value)


def copy_tags(tags: Any, estimator: Any) -> Any:
    """Return the tags of a meta-estimator that accepts the input of its estimator."""
    if estimator is not None:
        inner = get_tags(estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
    return tags
