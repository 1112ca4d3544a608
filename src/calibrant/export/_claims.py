"""Programs of `MulticlassToBinary`: the claims of a notion, and rows that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from calibrant._simplex import TINY, normalized
from calibrant._typing import FloatArray, IntArray
from calibrant.export._emit import as_proba, emit_claim, lifted_claim, register
from calibrant.export._program import Builder
from calibrant.notions import (
    ClassNotion,
    CumulativeNotion,
    Notion,
    RankNotion,
    WithinTopNotion,
    as_notion,
)
from calibrant.notions._rows import BELOW
from calibrant.reductions import MulticlassToBinary

_NO_LIMIT = 1e300
_UNIT = {"low": 0.0, "high": 1.0}
_IS_POSITIVE = {"edges": np.zeros(1), "values": np.array([0.0, 1.0]), "side": "left"}


@register(MulticlassToBinary)
def _reduction(build: Builder, model: MulticlassToBinary, scores: int) -> int:
    notion = as_notion(model.notion).bound(model.classes_)
    proba = as_proba(build, scores, model.inputs)
    if type(notion) is ClassNotion:
        if notion.column is None:
            return _class_wise(build, model, proba)
        return _class(build, model, notion.column, proba)
    if type(notion) is RankNotion:
        return _ranks(build, model, notion, proba)
    if type(notion) is CumulativeNotion and notion.column is None:
        return _cumulative(build, model, proba)
    return _sets(build, model, notion, proba)


def _class_wise(build: Builder, model: MulticlassToBinary, proba: int) -> int:
    claims = [_claim(build, model, k, _column(build, proba, k)) for k in range(model.n_classes_)]
    rows = build.append("stack", claims)
    return _normalised(build, rows) if model.normalize else rows


def _class(build: Builder, model: MulticlassToBinary, column: int, proba: int) -> int:
    label = _constant(build, proba, np.array([float(column)]))
    claimed = _claim(build, model, 0, build.append("take", (proba, label)))
    return _complete(build, proba, label, claimed)


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


def _ranks(build: Builder, model: MulticlassToBinary, notion: RankNotion, proba: int) -> int:
    """Claims about the classes of some ranks, each by the calibrator of the rank, or of the rank
    and the class.
    """
    first, last = notion.ranks[0], max(notion.ranks)
    top = build.append("top", (proba,), {"count": last})
    label = build.append("columns", (top,), {"columns": np.arange(first - 1, last)})
    score = build.append("take", (proba, label))
    n_labels, claims = notion.n_labels(model.n_classes_), []
    for j in range(len(notion.ranks)):
        own = _column(build, score, j)
        each = [_claim(build, model, j * n_labels + code, own) for code in range(n_labels)]
        claims.append(each[0] if n_labels == 1 else _of_label(build, each, label, j))
    rows = _complete(build, proba, label, build.append("stack", claims))
    return _keep_top(build, rows, top, label) if first == 1 else rows


def _of_label(build: Builder, each: list[int], label: int, quantity: int) -> int:
    return build.append("take", (build.append("stack", each), _column(build, label, quantity)))


def _sets(build: Builder, model: MulticlassToBinary, notion: Notion, proba: int) -> int:
    """Claims about sums of columns: the highest ones, or sets that the notion names."""
    claimed, labels = [], []
    for quantity, label in enumerate(_set_labels(build, notion, proba, model.n_classes_)):
        entries = build.append("take", (proba, label))
        claim = _claim(build, model, quantity, build.append("sum", (entries,)))
        claimed.append(build.append("multiply", (_normalised(build, entries), claim)))
        labels.append(label)
    whole = build.append("stack", labels)
    rows = _complete(build, proba, whole, build.append("stack", claimed))
    is_top = type(notion) is WithinTopNotion
    return _keep_top(build, rows, whole, whole) if is_top else rows


def _set_labels(build: Builder, notion: Notion, proba: int, n_classes: int) -> list[int]:
    if type(notion) is WithinTopNotion:
        return [build.append("top", (proba,), {"count": notion.rank})]
    sets = [notion.members(j, n_classes) for j in range(notion.n_quantities(n_classes))]
    known = [np.asarray(columns, dtype=np.intp) for columns in sets if columns is not None]
    taken = np.concatenate(known) if known else np.empty(0)
    is_told = len(known) == len(sets) and np.unique(taken).size == taken.size
    if not is_told or notion.splits_by_label or not _adds_up(notion, known, n_classes):
        raise ValueError(
            f"notion {notion.name!r} does not say which columns its claims add up, each in one "
            f"claim at most, or has a way of its own to fill rows: they have no program. Write its "
            f"members(), without a fill() of its own, or fit with a notion such as 'class-wise'"
        )
    return [_constant(build, proba, columns.astype(np.float64)) for columns in known]


def _adds_up(notion: Notion, sets: Sequence[IntArray], n_classes: int) -> bool:
    """Whether the claims of a notion are the sums of these columns, and fill rows as such."""
    if type(notion) is CumulativeNotion:
        return True
    rows = normalized(np.arange(1.0, 2.0 * n_classes + 1.0).reshape(2, n_classes) ** 2)
    block = notion.select(rows)
    sums = np.column_stack([rows[:, columns].sum(axis=1) for columns in sets])
    is_plain = type(notion).fill is Notion.fill and block.label is None
    return is_plain and block.score.shape == sums.shape and np.allclose(block.score, sums)


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
    shares = build.append("normalise", (others,), {"empty": 1.0 / n_free})
    minus = {"factor": np.array([-1.0]), "offset": np.array([1.0])}
    left = build.append("scale", (total,), minus)
    left = build.append("clip", (left,), {"low": 0.0, "high": 1.0})
    return build.append("put", (build.append("multiply", (shares, left)), label, kept))


def _keep_top(build: Builder, rows: int, top: int, label: int) -> int:
    """The rows of `calibrant.notions._rows.keep_top`, step by step."""
    n_free = build.widths[rows] - build.widths[label]
    if n_free == 0:
        return rows
    limit = _scaled(build, build.append("take", (rows, _column(build, top, 0))), BELOW)
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


def _column(build: Builder, value: int, column: int) -> int:
    return build.append("columns", (value,), {"columns": np.array([column])})


def _constant(build: Builder, value: int, values: FloatArray) -> int:
    return build.append("constant", (value,), {"values": values})


def _normalised(build: Builder, value: int) -> int:
    return build.append("normalise", (value,), {"empty": 1.0 / build.widths[value]})
