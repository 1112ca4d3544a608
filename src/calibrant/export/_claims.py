"""Programs of `MulticlassToBinary`.

A program computes the claims of a notion, calibrates them, and completes rows of probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from calibrant._kernels.simplex import normalized
from calibrant._typing import FloatArray
from calibrant.export._emit import as_proba, emit_inner, emits, transform_claim
from calibrant.export._values import Value, stack
from calibrant.notions import ClaimBlock, Notion, as_notion
from calibrant.notions._rows import BELOW, shrink_to_mean
from calibrant.reductions import MulticlassToBinary

_NO_LIMIT = 1e300


@emits(MulticlassToBinary)
def _reduction(model: MulticlassToBinary, scores: Value) -> Value:
    notion = as_notion(model.notion).bound(model.classes_)
    proba = as_proba(scores, model.inputs)
    has_labels = _check_columns(notion, model.n_classes_)
    if notion.claims_are_rows:
        return _class_wise_rows(model, proba)
    if notion.claims_are_running_sums:
        return _cumulative_rows(model, proba)
    calibrate = _calibrate_labels if has_labels else _calibrate_sets
    labels, claims = calibrate(model, notion, proba)
    rows = _complete_rows(proba, labels, claims)
    return _keep_top(rows, labels) if notion.keeps_top else rows


def _check_columns(notion: Notion, n_classes: int) -> bool:
    """Return whether each claim is about one label.

    Raise a ValueError if the notion does not define which columns its claims add up.
    """
    ramp = np.arange(1.0, 2.0 * n_classes + 1.0).reshape(2, n_classes) ** 2
    rows = normalized(np.vstack([ramp, ramp[:, ::-1]]))
    block = notion.select(rows)
    if type(notion).fill is not Notion.fill or not _adds_up(notion, rows, block):
        raise ValueError(
            f"The notion {notion.name!r} cannot be exported. The notion must define members() with "
            "each column in at most one claim, and must not override fill(). Change the notion, "
            "or fit with notion='class-wise'."
        )
    return block.label is not None


def _adds_up(notion: Notion, rows: FloatArray, block: ClaimBlock) -> bool:
    """Return whether the claims of these rows are sums of the columns that the notion defines."""
    if notion.claims_are_running_sums:
        return _is_close(block.score, np.cumsum(rows, axis=1)[:, :-1])
    sets = notion.member_sets(rows)
    if sets is None:
        return False
    sums = [np.take_along_axis(rows, columns, axis=1).sum(axis=1) for columns in sets]
    has_labels = block.label is None or np.array_equal(block.label, np.hstack(sets))
    return has_labels and _is_close(block.score, np.column_stack(sums))


def _is_close(score: FloatArray, sums: FloatArray) -> bool:
    return score.shape == sums.shape and np.allclose(score, sums)


def _class_wise_rows(model: MulticlassToBinary, proba: Value) -> Value:
    rows = stack([_calibrate(model, k, proba.column(k)) for k in range(model.n_classes_)])
    return rows.normalize() if model.normalize else rows


def _cumulative_rows(model: MulticlassToBinary, proba: Value) -> Value:
    """Calibrate running sums, make them increasing by a running maximum, and return differences."""
    score = proba.column(0)
    sums = [proba.fill(0.0), _calibrate(model, 0, score)]
    for k in range(1, model.n_classes_ - 1):
        score = score + proba.column(k)
        sums.append(stack([sums[-1], _calibrate(model, k, score)]).max())
    sums.append(proba.fill(1.0))
    return stack([high - low for low, high in pairwise(sums)])


def _calibrate_labels(
    model: MulticlassToBinary, notion: Notion, proba: Value
) -> tuple[Value, Value]:
    """Return the label and the calibrated score of each claim.

    The calibrator depends on the claim, and for some notions also on its label.
    """
    n_classes = model.n_classes_
    n_labels, quantities = notion.n_labels(n_classes), range(notion.n_quantities(n_classes))
    label = _claim_columns(notion, proba, quantities)
    scores, claims = proba.take(label), []
    for j in quantities:
        score = scores.column(j)
        by_label = [_calibrate(model, j * n_labels + code, score) for code in range(n_labels)]
        claims.append(by_label[0] if n_labels == 1 else stack(by_label).take(label.column(j)))
    return label, stack(claims)


def _calibrate_sets(model: MulticlassToBinary, notion: Notion, proba: Value) -> tuple[Value, Value]:
    """Return the columns that claims add up, and their entries rescaled to the calibrated sums."""
    labels, claims = [], []
    for quantity in range(notion.n_quantities(model.n_classes_)):
        labels.append(_claim_columns(notion, proba, (quantity,)))
        entries = proba.take(labels[-1])
        claims.append(entries.normalize() * _calibrate(model, quantity, entries.sum()))
    return stack(labels), stack(claims)


def _claim_columns(notion: Notion, proba: Value, quantities: Sequence[int]) -> Value:
    """Return the columns of some claims: constants, or the columns with the highest scores."""
    rank_sets = [notion.ranks_of(j, proba.width) for j in quantities]
    ranks = [rank for ranks in rank_sets if ranks is not None for rank in ranks]
    if not ranks:
        row = np.zeros((1, proba.width))
        sets = [notion.columns_of(j, row) for j in quantities]
        return proba.fill(*np.hstack([columns[0] for columns in sets if columns is not None]))
    top = proba.top(max(ranks))
    is_all = ranks == list(range(1, max(ranks) + 1))
    return top if is_all else top.columns([rank - 1 for rank in ranks])


def _calibrate(model: MulticlassToBinary, claim: int, score: Value) -> Value:
    """Return the calibrated score of a claim."""
    calibrator = model.calibrators_[claim]
    # Clip the score, because a sum of probabilities may exceed 1 by rounding.
    return emit_inner(calibrator, transform_claim(calibrator, score.clip(0.0, 1.0)))


def _complete_rows(proba: Value, label: Value, claims: Value) -> Value:
    """Fill rows with the claims, as `calibrant.notions.complete_rows` does.

    The other columns share the remaining mass in the proportions of ``proba``.
    """
    n_free = proba.width - label.width
    if n_free == 0:
        return proba.put(label, claims.normalize())
    total = claims.sum()
    shares = proba.put(label, proba.fill(0.0)).normalize(1.0 / n_free)
    rest = shares * (1.0 - total).clip(0.0, 1.0)
    return rest.put(label, claims / total.clip(1.0, _NO_LIMIT))


def _keep_top(rows: Value, label: Value) -> Value:
    """Keep the first label on top in each row, as `calibrant.notions._rows.keep_top` does."""
    n_free = rows.width - label.width
    if n_free == 0:
        return rows
    limit = rows.take(label.column(0)) * BELOW
    zero = rows.fill(0.0)
    rest = rows.put(label, zero)
    is_free = rows.fill(*np.ones(rows.width)).put(label, zero)
    out = shrink_to_mean(rest, is_free, rest.max(), rest.sum() / n_free, limit)
    return out.put(label, rows.take(label))
