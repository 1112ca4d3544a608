"""Notions of calibration: which claims of a forecast are checked.

A multiclass forecast makes claims ("class l with 0.8"); every claim is a binary problem, a score in
[0, 1] and an outcome in {0, 1}. A notion says which claims are checked (Gupta & Ramdas 2022, Table
1 and Algorithm 5), and selects the data for metrics, calibrators, tests, guarantees and plots
alike.

====================== ======================================================= =====================
notion                 claims                                                  source
====================== ======================================================= =====================
``"confidence"``       one: the top score, is the top class right?             Guo 2017; Kull, eq. 3
``"top-label"``        one per predicted class: the top score, among its rows  Gupta & Ramdas, eq. 2
``"class-wise"``       one per class: the score of class l, is it l?           Kull, eq. 2
``"class-3"``          the one claim of column 3                               as above
``"rank-2"``           the second highest score, is that class right?          Gupta, eq. 3, 4
``"within-top-2"``     the sum of the 2 highest, is the truth among them?      Gupta, eq. 5
``"top-3-confidence"`` ranks 1 to 3, one claim each                            Gupta & Ramdas, eq. 6
``"top-3-label"``      ranks 1 to 3, each split by predicted class             Gupta & Ramdas, eq. 7
``"canonical"``        the whole vector: no binary notion                      Kull, eq. 1
====================== ======================================================= =====================

Inside, a notion makes ``J`` *quantities* per row (columns of scores). Where it splits by label,
each quantity is ``K`` claims, one per label; else it is one. Claim ``j * L + l`` is quantity ``j``
with label ``l`` (``L`` is K or 1).

References
----------
Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR,
arXiv:2107.08353. Gupta et al. (2021), Calibration of neural networks using splines, ICLR,
arXiv:2006.12800. Kull et al. (2019), Beyond temperature scaling, NeurIPS, arXiv:1910.12656.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._blocks import BLOCK_ELEMENTS, READ_ELEMENTS, LiftedRows, row_blocks, sum_blocks
from calibrant._kernels import entries, top_labels
from calibrant._typing import BoolArray, FloatArray, IntArray

__all__ = [
    "Claim",
    "ClaimBlock",
    "Claims",
    "ClassNotion",
    "Notion",
    "RankNotion",
    "WithinTopNotion",
    "as_notion",
]

VALID = (
    "'confidence', 'top-label', 'class-wise', 'class-<k>', 'rank-<r>', 'within-top-<r>', "
    "'top-<k>-confidence', 'top-<k>-label'"
)

# Elements of the columns of scores that are gathered at a time where a claim must be seen whole.
_GATHER_ELEMENTS = 2**23


class ClaimBlock(NamedTuple):
    """The claims of a block of rows.

    ``score`` (m, J), float64; ``label`` (m, J), the class that each score speaks of, or None where
    it speaks of a set; ``hit``, flat indices into (m, J) where the outcome is 1 (empty where the
    truth is not known).
    """

    score: FloatArray
    label: IntArray | None
    hit: IntArray


@dataclass(frozen=True, eq=False)
class Claim:
    """One binary problem: its index, its rows in the data, scores, outcomes and weights."""

    index: int
    rows: IntArray | slice
    score: FloatArray
    outcome: BoolArray
    weight: FloatArray


@dataclass(frozen=True)
class Notion(ABC):
    """What is checked. Concrete notions say which scores they select; see `as_notion`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The string that makes this notion."""

    @property
    @abstractmethod
    def splits_by_label(self) -> bool:
        """Whether each quantity is one claim per label."""

    @abstractmethod
    def n_quantities(self, n_classes: int) -> int:
        """Scores per row (J); raises where the notion does not exist for so few classes."""

    @abstractmethod
    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        """The claims of a block of rows."""

    def n_labels(self, n_classes: int) -> int:
        """Claims per quantity (L)."""
        return n_classes if self.splits_by_label else 1

    def claims(self, proba: FloatArray | LiftedRows, y: IntArray, weight: FloatArray) -> Claims:
        """All claims about the data, selected block by block when they are asked for."""
        n_rows, n_classes = proba.shape
        size = (n_rows, self.n_quantities(n_classes), self.n_labels(n_classes))
        return Claims(*size, weight, lambda rows: self.select(proba[rows], y[rows]), n_classes)

    def reported(
        self, score: FloatArray, label: IntArray, y: IntArray, weight: FloatArray, n_classes: int
    ) -> Claims:
        """Claims that were reported as labels with their probabilities, instead of taken from whole
        rows.
        """
        if not isinstance(self, RankNotion) or self.n_quantities(n_classes) != score.shape[1]:
            raise ValueError(
                f"y_pred goes with the notions 'confidence', 'top-label', 'top-<k>-confidence' and "
                f"'top-<k>-label' "
                f"of as many ranks as it has columns ({score.shape[1]}); got notion {self.name!r}"
            )

        def select(rows: slice) -> ClaimBlock:
            return ClaimBlock(
                score[rows], label[rows], np.flatnonzero(label[rows] == y[rows, None])
            )

        return Claims(len(y), score.shape[1], self.n_labels(n_classes), weight, select, n_classes)


@dataclass(frozen=True)
class RankNotion(Notion):
    """The scores of some ranks: confidence, top-label, rank-r, top-k-confidence, top-k-label."""

    ranks: tuple[int, ...] = (1,)
    by_label: bool = False

    @property
    def name(self) -> str:
        count = len(self.ranks)
        if count > 1:
            return f"top-{count}-{'label' if self.by_label else 'confidence'}"
        if self.by_label:
            return "top-label"
        return "confidence" if self.ranks == (1,) else f"rank-{self.ranks[0]}"

    @property
    def splits_by_label(self) -> bool:
        return self.by_label

    def n_quantities(self, n_classes: int) -> int:
        _check_rank(self.name, max(self.ranks), n_classes)
        return len(self.ranks)

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        label = top_labels(proba, max(self.ranks))[:, self.ranks[0] - 1 :]
        return ClaimBlock(
            entries(proba, label),
            label,
            _no_hits() if y is None else np.flatnonzero(label == y[:, None]),
        )


@dataclass(frozen=True)
class ClassNotion(Notion):
    """The scores of all classes (class-wise), or of one (class-k)."""

    column: int | None = None

    @property
    def name(self) -> str:
        return "class-wise" if self.column is None else f"class-{self.column}"

    @property
    def splits_by_label(self) -> bool:
        return False

    def n_quantities(self, n_classes: int) -> int:
        if self.column is None:
            return n_classes
        if self.column >= n_classes:
            raise ValueError(f"notion {self.name!r}: columns are 0..{n_classes - 1}")
        return 1

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        n_rows, n_classes = proba.shape
        if self.column is None:
            label = np.broadcast_to(np.arange(n_classes), proba.shape)
            return ClaimBlock(
                _in_float64(proba),
                label,
                _no_hits() if y is None else np.arange(n_rows) * n_classes + y,
            )
        label = np.broadcast_to(self.column, (n_rows, 1))
        hit = _no_hits() if y is None else np.flatnonzero(y == self.column)
        return ClaimBlock(_in_float64(proba[:, self.column : self.column + 1]), label, hit)


@dataclass(frozen=True)
class WithinTopNotion(Notion):
    """The sum of the r highest scores: is the truth among them?"""

    rank: int

    @property
    def name(self) -> str:
        return f"within-top-{self.rank}"

    @property
    def splits_by_label(self) -> bool:
        return False

    def n_quantities(self, n_classes: int) -> int:
        _check_rank(self.name, self.rank, n_classes)
        return 1

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        label = top_labels(proba, self.rank)
        score = entries(proba, label).sum(axis=1, keepdims=True)
        np.minimum(score, 1.0, out=score)  # rows may exceed one by rounding
        hit = _no_hits() if y is None else np.flatnonzero((label == y[:, None]).any(axis=1))
        return ClaimBlock(score, None, hit)


@dataclass(frozen=True)
class Claims:
    """All claims that a notion makes about some data.

    ``select(rows)`` gives those of a row block; iterating gives each claim whole, as a `Claim`, in
    the order of their index. Whole claims need memory for a few columns of scores at a time.
    """

    n_rows: int
    n_quantities: int
    n_labels: int
    weight: FloatArray
    select: Callable[[slice], ClaimBlock]
    n_columns: int
    """Columns of the data behind a block: what a block costs."""

    @property
    def n_claims(self) -> int:
        return self.n_quantities * self.n_labels

    def index(self, block: ClaimBlock) -> IntArray:
        """Claim index of every score of a block, (m, J), or (J,) where it is the same in every
        row.
        """
        quantity = np.arange(self.n_quantities) * self.n_labels
        if self.n_labels == 1 or block.label is None:
            return quantity
        return np.asarray(block.label + quantity)

    def sum_over(
        self, function: Callable[[ClaimBlock, FloatArray], Any], *, at_least: int = 0
    ) -> Any:
        """Sum of ``function(block, weight)`` over row blocks of the claims and their weights.

        Where few scores are made of many columns, blocks are longer; ``at_least`` asks for so many
        elements of the data.
        """
        elements = min(READ_ELEMENTS, BLOCK_ELEMENTS * self.n_columns // self.n_quantities)
        return sum_blocks(
            lambda rows: function(self.select(rows), self.weight[rows]),
            self.n_rows,
            self.n_columns,
            elements=max(elements, at_least),
        )

    def __iter__(self) -> Iterator[Claim]:
        step = max(1, _GATHER_ELEMENTS // self.n_rows)
        for start in range(0, self.n_quantities, step):
            yield from self._gathered(range(start, min(start + step, self.n_quantities)))

    def _gathered(self, quantities: range) -> Iterator[Claim]:
        columns = slice(quantities.start, quantities.stop)
        score = np.empty((len(quantities), self.n_rows))
        label = np.zeros((len(quantities), self.n_rows), dtype=np.intp)
        outcome = np.zeros((len(quantities), self.n_rows), dtype=bool)
        for rows in row_blocks(self.n_rows, self.n_columns):
            block = self.select(rows)
            score[:, rows] = block.score[:, columns].T
            if self.n_labels > 1 and block.label is not None:
                label[:, rows] = block.label[:, columns].T
            row, column = np.divmod(block.hit, self.n_quantities)
            inside = (column >= columns.start) & (column < columns.stop)
            outcome[column[inside] - columns.start, row[inside] + rows.start] = True
        for j, quantity in enumerate(quantities):
            yield from self._split(quantity, score[j], label[j], outcome[j])

    def _split(
        self, quantity: int, score: FloatArray, label: IntArray, outcome: BoolArray
    ) -> Iterator[Claim]:
        if self.n_labels == 1:
            yield Claim(quantity, slice(None), score, outcome, self.weight)
            return
        order = np.argsort(label, kind="stable")
        ends = np.searchsorted(label[order], np.arange(self.n_labels + 1))
        for name in range(self.n_labels):
            rows = order[ends[name] : ends[name + 1]]
            yield Claim(
                quantity * self.n_labels + name, rows, score[rows], outcome[rows], self.weight[rows]
            )


_PATTERNS: tuple[tuple[str, Callable[[int], Notion]], ...] = (
    (r"class-(\d+)", lambda k: ClassNotion(k)),
    (r"rank-(\d+)", lambda r: RankNotion((r,))),
    (r"within-top-(\d+)", lambda r: WithinTopNotion(r)),
    (r"top-(\d+)-confidence", lambda k: RankNotion(tuple(range(1, k + 1)))),
    (r"top-(\d+)-label", lambda k: RankNotion(tuple(range(1, k + 1)), by_label=True)),
)
_NAMES: dict[str, Notion] = {
    "confidence": RankNotion(),
    "top-label": RankNotion(by_label=True),
    "class-wise": ClassNotion(),
}


def as_notion(notion: Any) -> Notion:
    """The notion that a string names; a `Notion` is returned as it is.

    >>> as_notion("top-3-label").n_quantities(10)
    3
    """
    if isinstance(notion, Notion):
        return notion
    if notion == "canonical":
        raise ValueError(
            f"notion 'canonical' is about whole vectors and makes no binary claims; use one of "
            f"{VALID}"
        )
    if notion in _NAMES:
        return _NAMES[notion]
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, notion) if isinstance(notion, str) else None
        if match:
            number = int(match[1])
            if number < 1 and not pattern.startswith("class"):
                raise ValueError(f"notion {notion!r}: ranks are counted from 1")
            return make(number)
    raise ValueError(f"unknown notion {notion!r}; valid are {VALID}")


def _check_rank(name: str, rank: int, n_classes: int) -> None:
    if rank > n_classes:
        raise ValueError(
            f"notion {name!r} needs at least {rank} classes; the scores have {n_classes}"
        )


def _in_float64(block: FloatArray) -> FloatArray:
    return np.asarray(block, dtype=np.float64)


def _no_hits() -> IntArray:
    return np.empty(0, dtype=np.intp)
