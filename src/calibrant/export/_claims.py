"""Programs of `MulticlassToBinary`: the claims of a notion, and rows that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from calibrant._simplex import TINY, normalized
from calibrant._typing import FloatArray
from calibrant.export._emit import as_proba, emit_claim, lifted_claim, register
from calibrant.export._program import Builder
from calibrant.notions import ClaimBlock, Notion, as_notion
from calibrant.notions._rows import BELOW
from calibrant.reductions import MulticlassToBinary

_NO_LIMIT = 1e300
_UNIT = {"low": 0.0, "high": 1.0}
_IS_POSITIVE = {"edges": np.zeros(1), "values": np.array([0.0, 1.0]), "side": "left"}


@register(MulticlassToBinary)
def _reduction(build: Builder, model: MulticlassToBinary, scores: int) -> int:
    notion = as_notion(model.notion).bound(model.classes_)
    proba = as_proba(build, scores, model.inputs)
    has_labels = _check_told(notion, model.n_classes_)
    if notion.claims_are_rows:
        return _class_wise(build, model, proba)
    if notion.claims_are_running_sums:
        return _cumulative(build, model, proba)
    labels, claimed = (_labelled if has_labels else _sets)(build, model, notion, proba)
    rows = _complete(build, proba, labels, claimed)
    return _keep_top(build, rows, labels) if notion.keeps_top else rows


def _check_told(notion: Notion, n_classes: int) -> bool:
    """Whether each claim is about a label, of a notion that tells which columns its claims add
    up; raise on another.
    """
    ramp = np.arange(1.0, 2.0 * n_classes + 1.0).reshape(2, n_classes) ** 2
    rows = normalized(np.vstack([ramp, ramp[:, ::-1]]))
    block = notion.select(rows)
    if type(notion).fill is not Notion.fill or not _adds_up(notion, rows, block):
        raise ValueError(
            f"notion {notion.name!r} does not say which columns its claims add up, each in one "
            f"claim at most, or has a way of its own to fill rows: they have no program. Write its "
            f"members(), without a fill() of its own, or fit with a notion such as 'class-wise'"
        )
    return block.label is not None


def _adds_up(notion: Notion, rows: FloatArray, block: ClaimBlock) -> bool:
    """Whether the claims of these rows are the sums of the columns that the notion tells."""
    if notion.claims_are_running_sums:
        return _is_close(block.score, np.cumsum(rows, axis=1)[:, :-1])
    sets = notion.member_sets(rows)
    if sets is None:
        return False
    sums = [np.take_along_axis(rows, columns, axis=1).sum(axis=1) for columns in sets]
    has_labels = block.label is None or np.array_equal(block.label, np.hstack(sets))
    return has_labels and _is_close(block.score, np.column_stack(sums))


def _is_close(score: FloatArray, told: FloatArray) -> bool:
    return score.shape == told.shape and np.allclose(score, told)


def _class_wise(build: Builder, model: MulticlassToBinary, proba: int) -> int:
    claims = [_claim(build, model, k, _column(build, proba, k)) for k in range(model.n_classes_)]
    rows = build.append("stack", claims)
    return _normalised(build, rows) if model.normalize else rows


def _cumulative(build: Builder, model: MulticlassToBinary, proba: int) -> int:
    """Differences of the calibrated running sums, made to rise where they do not."""
    score = _column(build, proba, 0)
    rising = [_constant(build, proba, np.zeros(1)), _claim(build, model, 0, score)]
    for k in range(1, model.n_classes_ - 1):
        score = build.append("add", (score, _column(build, proba, k)))
        rising.append(_larger(build, rising[-1], _claim(build, model, k, score)))
    rising.append(_constant(build, proba, np.ones(1)))
    return build.append("stack", [_minus(build, b, a) for a, b in pairwise(rising)])


def _larger(build: Builder, value: int, other: int) -> int:
    both = build.append("stack", (value, other))
    return build.append("take", (both, build.append("top", (both,), {"count": 1})))


def _labelled(
    build: Builder, model: MulticlassToBinary, notion: Notion, proba: int
) -> tuple[int, int]:
    """The labels that claims speak of, one each, and the claims, each by its calibrator or by that
    of its label.
    """
    n_classes = model.n_classes_
    n_labels, quantities = notion.n_labels(n_classes), range(notion.n_quantities(n_classes))
    label = _all_labels(build, notion, proba, quantities)
    score, claims = build.append("take", (proba, label)), []
    for j in quantities:
        own = _column(build, score, j)
        each = [_claim(build, model, j * n_labels + code, own) for code in range(n_labels)]
        claims.append(each[0] if n_labels == 1 else _of_label(build, each, label, j))
    return label, _stacked(build, claims)


def _of_label(build: Builder, each: list[int], label: int, quantity: int) -> int:
    return build.append("take", (build.append("stack", each), _column(build, label, quantity)))


def _sets(build: Builder, model: MulticlassToBinary, notion: Notion, proba: int) -> tuple[int, int]:
    """The columns that claims add up, and these scaled to the claims."""
    labels, claimed = [], []
    for quantity in range(notion.n_quantities(model.n_classes_)):
        labels.append(_all_labels(build, notion, proba, (quantity,)))
        entries = build.append("take", (proba, labels[-1]))
        claim = _claim(build, model, quantity, build.append("sum", (entries,)))
        claimed.append(build.append("multiply", (_normalised(build, entries), claim)))
    return _stacked(build, labels), _stacked(build, claimed)


def _all_labels(build: Builder, notion: Notion, proba: int, quantities: Sequence[int]) -> int:
    """The columns of some quantities, side by side: the same in all rows, or those of ranks."""
    n_classes = build.widths[proba]
    told = [notion.ranks_of(j, n_classes) for j in quantities]
    ranks = [rank for own in told if own is not None for rank in own]
    if not ranks:
        one_row = np.zeros((1, n_classes))
        known = [notion.columns_of(j, one_row) for j in quantities]
        columns = np.hstack([own[0] for own in known if own is not None])
        return _constant(build, proba, columns.astype(np.float64))
    top = build.append("top", (proba,), {"count": max(ranks)})
    if ranks == list(range(1, max(ranks) + 1)):
        return top
    return build.append("columns", (top,), {"columns": np.array(ranks) - 1})


def _claim(build: Builder, model: MulticlassToBinary, claim: int, score: int) -> int:
    """The calibrated score of a claim; rows may exceed one by rounding."""
    fitted = model.calibrators_[claim]
    kept = build.append("clip", (score,), {"low": 0.0, "high": 1.0})
    return emit_claim(build, fitted, lifted_claim(build, fitted, kept))


def _complete(build: Builder, proba: int, label: int, claimed: int) -> int:
    """Rows that hold what is claimed, and what is left in the proportions of ``proba``."""
    n_free = build.widths[proba] - build.widths[label]
    total = build.append("sum", (claimed,))
    if n_free == 0:
        return build.append("put", (proba, label, _normalised(build, claimed)))
    limit = build.append("clip", (total,), {"low": 1.0, "high": _NO_LIMIT})
    kept = build.append("quotient", (claimed, limit))
    zero = _constant(build, proba, np.zeros(1))
    others = build.append("put", (proba, label, zero))
    shares = build.append("normalize", (others,), {"empty": 1.0 / n_free})
    minus = {"factor": np.array([-1.0]), "offset": np.array([1.0])}
    left = build.append("scale", (total,), minus)
    left = build.append("clip", (left,), {"low": 0.0, "high": 1.0})
    return build.append("put", (build.append("multiply", (shares, left)), label, kept))


def _keep_top(build: Builder, rows: int, label: int) -> int:
    """The rows of `calibrant.notions._rows.keep_top`, step by step; the first label is the top."""
    n_free = build.widths[rows] - build.widths[label]
    if n_free == 0:
        return rows
    limit = _scaled(build, build.append("take", (rows, _column(build, label, 0))), BELOW)
    zero = _constant(build, rows, np.zeros(1))
    rest = build.append("put", (rows, label, zero))
    largest = build.append("take", (rest, build.append("top", (rest,), {"count": 1})))
    mean = build.append("divide", (build.append("sum", (rest,)),), {"by": float(n_free)})
    above = _minus(build, largest, limit)
    spread = build.append("clip", (_minus(build, largest, mean),), {"low": TINY, "high": _NO_LIMIT})
    needed = build.append("clip", (build.append("quotient", (above, spread)),), _UNIT)
    has_room = build.append("step", (_minus(build, limit, mean),), _IS_POSITIVE)
    share = build.append("multiply", (needed, has_room))
    ones = _constant(build, rows, np.ones(build.widths[rows]))
    is_free = build.append("put", (ones, label, zero))
    minus = {"factor": np.array([-1.0]), "offset": np.array([1.0])}
    kept = build.append("multiply", (rest, build.append("scale", (share,), minus)))
    given = build.append("multiply", (is_free, build.append("multiply", (mean, share))))
    out = build.append("add", (kept, given))
    return build.append("put", (out, label, build.append("take", (rows, label))))


def _minus(build: Builder, value: int, other: int) -> int:
    return build.append("add", (value, _scaled(build, other, -1.0)))


def _scaled(build: Builder, value: int, factor: float) -> int:
    return build.append("scale", (value,), {"factor": np.array([factor]), "offset": np.zeros(1)})


def _stacked(build: Builder, values: Sequence[int]) -> int:
    return values[0] if len(values) == 1 else build.append("stack", values)


def _column(build: Builder, value: int, column: int) -> int:
    if build.widths[value] == 1:
        return value
    return build.append("columns", (value,), {"columns": np.array([column])})


def _constant(build: Builder, value: int, values: FloatArray) -> int:
    return build.append("constant", (value,), {"values": values})


def _normalised(build: Builder, value: int) -> int:
    return build.append("normalize", (value,), {"empty": 1.0 / build.widths[value]})
