"""Claims: binary problems about data, as a block of rows sees them and each as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant._data.read import as_sample
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import (
    CACHE_BLOCK,
    READ_BLOCK,
    WORK_MEMORY,
    row_blocks,
    sum_blocks,
)
from calibrant._kernels.simplex import as_proba, effective_weights, is_unit
from calibrant._typing import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import (
    SOFTMAX_HINT,
    Predictions,
    as_array,
    check_predictions,
    check_same_length,
    check_weight,
    encode_labels,
)

if TYPE_CHECKING:
    from calibrant.notions._notion import Notion


_FEW_COLUMNS = 16
"""Up to so many a table of all outcomes of a block is sooner made than the places of hits."""


class ClaimBlock(NamedTuple):
    """The claims of a block of rows.

    ``score`` (m, J), float64; ``label`` (m, J), the class that each score speaks of, or None where
    it speaks of a set; ``hit``, flat indices into (m, J) where the outcome is 1 (empty where the
    truth is not known).
    """

    score: FloatArray
    label: IntArray | None
    hit: IntArray

    def labels(self) -> IntArray:
        """The class of each score, of a notion that is known to have them."""
        if self.label is None:
            raise TypeError(
                "a notion that splits or reports by label must select a label with every score"
            )
        return self.label

    def residual(self) -> FloatArray:
        """``outcome - score`` of every claim, (m, J)."""
        residual = np.negative(self.score, order="C")  # hits are places in this order
        residual.reshape(-1)[self.hit] += 1.0
        return residual


@dataclass(frozen=True, eq=False)
class Claim:
    """One binary problem: its index, its rows in the data, scores, outcomes and weights."""

    index: int
    rows: IntArray | slice
    score: FloatArray
    outcome: AnyArray
    weight: FloatArray
    ends: FloatArray | None = None
    """If rows were counted in cells of scores, the upper end of the cell of each."""
    is_counted_weighted: bool = False
    """If rows were counted, whether any of them had a weight other than 0 and 1."""
    cell_rows: FloatArray | None = None
    """If weighted rows were counted, the number of rows in the cell of each."""
    squares: FloatArray | None = None
    """If rows were counted, the sum of their squared weights behind each entry."""

    @property
    def hits(self) -> FloatArray:
        """The outcomes as floats."""
        return self.outcome.astype(np.float64, copy=False)

    @property
    def is_weighted(self) -> bool:
        """Whether any row has a weight other than 0 and 1."""
        if self.ends is not None:
            return self.is_counted_weighted
        return not is_unit(self.weight) and bool((self.weight[self.weight > 0] != 1).any())

    def rescored(self, function: Callable[[FloatArray], FloatArray]) -> Claim:
        """The same binary problem with ``function`` of its scores."""
        return replace(self, score=function(self.score))


def share_rows(claims: Sequence[Claim]) -> bool:
    """Whether claims are about the same rows, so that they can be fitted at once."""
    return all(claim.weight is claims[0].weight for claim in claims)


def stack_claims(claims: Sequence[Claim]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores and outcomes (J, n) of claims about the same rows, and the weights of the rows."""
    if len(claims) == 1:
        return claims[0].score[None], claims[0].hits[None], claims[0].weight
    score, hits = (np.stack([getattr(c, name) for c in claims]) for name in ("score", "hits"))
    return score, hits, claims[0].weight


@dataclass(frozen=True)
class Claims:
    """All binary problems that a type of calibration makes of some data.

    ``select(rows)`` gives those of a row block; iterating gives each one whole, as a `Claim`, in
    the order of their index. Whole claims need memory for a few columns of scores at a time.
    """

    n_rows: int
    n_quantities: int
    n_labels: int
    weight: FloatArray
    """The weights of all rows, or of chunked rows an array of the same sum."""
    select: Callable[[slice], ClaimBlock]
    n_columns: int
    """Columns of the data behind a block: what a block costs."""

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to add up a chunk: not the data."""
        return {**vars(self), "select": None, "weight": np.empty(0)}

    @property
    def total(self) -> float:
        """Sum of the weights of all rows."""
        return float(self.weight.sum())

    @property
    def n_present(self) -> int:
        """Rows of positive weight."""
        return int(np.count_nonzero(self.weight))

    def check_distinct(self, reason: str) -> None:
        """Raise with the ``reason`` if whole claims do not hold the distinct scores of rows."""

    @property
    def n_claims(self) -> int:
        return self.n_quantities * self.n_labels

    def index(self, block: ClaimBlock) -> IntArray:
        """Claim index of every score of a block, (m, J), or (J,) where it is the same in every
        row.
        """
        quantity = np.arange(self.n_quantities) * self.n_labels
        return quantity if self.n_labels == 1 else block.labels() + quantity

    def share(self, claim: Claim) -> float:
        """The weight v_c: its rows among those of its quantity, all quantities alike."""
        return float(claim.weight.sum() / (self.weight.sum() * self.n_quantities))

    def mean(self, function: Callable[[Claim], float]) -> float:
        """Mean of ``function(claim)`` over the claims that have rows, with the weights v_c."""
        # The rows of a quantity add up to all rows, so that the v_c sum to one.
        total = sum(claim.weight.sum() * function(claim) for claim in self if claim.weight.any())
        return float(total / (self.weight.sum() * self.n_quantities))

    def effective(self) -> Claims:
        """The claims with weights that sum to the effective number of rows (Kish)."""
        return replace(self, weight=effective_weights(self.weight))

    def sum_over(
        self, function: Callable[[ClaimBlock, FloatArray], Any], *, at_least: int = 0
    ) -> Any:
        """Sum of ``function(block, weight)`` over row blocks of the claims and their weights.

        Where few scores are made of many columns, blocks are longer; ``at_least`` asks for so many
        elements of the data.
        """
        elements = min(READ_BLOCK, CACHE_BLOCK * self.n_columns // self.n_quantities)
        return sum_blocks(
            lambda rows: function(self.select(rows), self.weight[rows]),
            self.n_rows,
            self.n_columns,
            elements=max(elements, at_least),
        )

    def __iter__(self) -> Iterator[Claim]:
        for quantities, score, label, outcome in self._gathered():
            for j, quantity in enumerate(quantities):
                yield from self._split(quantity, score[j], label[j], outcome[j])

    def batches(self, elements: int) -> Iterator[list[Claim]]:
        """Claims that are fitted together: those of one quantity if there is one per label, else
        as many as have ``elements`` scores.
        """
        if self.n_labels > 1:
            for _, claims in groupby(self, key=lambda claim: claim.index // self.n_labels):
                yield list(claims)
            return
        size = max(1, elements // self.n_rows)
        for quantities, score, _, outcome in self._gathered():
            for first in range(0, len(quantities), size):
                yield [
                    Claim(quantities[j], slice(None), score[j], outcome[j], self.weight)
                    for j in range(first, min(first + size, len(quantities)))
                ]

    def _gathered(self) -> Iterator[tuple[range, FloatArray, IntArray, BoolArray]]:
        """Quantities, as many as may be held at a time, with scores, labels and outcomes."""
        step = max(1, WORK_MEMORY // self.n_rows)
        for start in range(0, self.n_quantities, step):
            quantities = range(start, min(start + step, self.n_quantities))
            yield quantities, *self._gather(quantities)

    def _gather(self, quantities: range) -> tuple[FloatArray, IntArray, BoolArray]:
        columns = slice(quantities.start, quantities.stop)
        score = np.empty((len(quantities), self.n_rows))
        label = np.empty((len(quantities), self.n_rows if self.n_labels > 1 else 0), dtype=np.intp)
        outcome = np.zeros((len(quantities), self.n_rows), dtype=bool)
        for rows in row_blocks(self.n_rows, self.n_columns, elements=READ_BLOCK):
            block = self.select(rows)
            score[:, rows] = block.score[:, columns].T
            if self.n_labels > 1:
                label[:, rows] = block.labels()[:, columns].T
            if self.n_quantities <= _FEW_COLUMNS:
                hits = np.zeros(block.score.shape, dtype=bool)
                hits.reshape(-1)[block.hit] = True
                outcome[:, rows] = hits[:, columns].T
                continue
            row, column = np.divmod(block.hit, self.n_quantities)
            inside = (column >= columns.start) & (column < columns.stop)
            outcome[column[inside] - columns.start, row[inside] + rows.start] = True
        return score, label, outcome

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


def claims_of(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    y_pred: LabelsLike | None = None,
    inputs: str = "proba",
) -> tuple[Claims, AnyArray]:
    """The claims of a notion about what a user passed, checked, and the labels of the classes.

    ``inputs`` says what kind of scores ``y_prob`` holds. Rows of probabilities must sum to one
    unless the notion says that its claims need not (`Notion.sums_to_one`).
    With ``y_pred``, ``y_prob`` holds the probabilities of these reported labels.
    """
    if y_pred is not None:
        if inputs != "proba":
            raise ValueError(
                f"with y_pred, y_prob holds the probabilities of the reported labels, and inputs "
                f"must be 'proba'; got {inputs!r}"
            )
        return _reported_claims(notion, y_true, y_prob, sample_weight, classes, y_pred)
    sample, names = sample_for(notion, y_true, y_prob, sample_weight, classes, inputs=inputs)
    claims: Claims = sample.claims(notion.bound(names))
    return claims, names


def sample_for(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    inputs: str = "proba",
) -> tuple[Sample, AnyArray]:
    """What a user passed, checked as the notion requires, as a sample of probabilities; and the
    labels of the classes.
    """
    sample, names = as_sample(
        y_prob,
        y_true,
        sample_weight,
        classes=classes,
        inputs=inputs,
        sum_to_one=notion.sums_to_one,
        hint=SOFTMAX_HINT,
    )
    return (sample if inputs == "proba" else sample.rescored(partial(_as_proba, inputs))), names


def _as_proba(inputs: str, chunk: ArraySample) -> ArraySample:
    return chunk.with_scores(as_proba(chunk.u[:], inputs))


def predictions_for(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    inputs: str = "proba",
) -> Predictions:
    """What a user passed, checked as the notion asks, as probabilities: rows sum to one unless its
    claims need not.
    """
    checked = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs, sum_to_one=notion.sums_to_one
    )
    if inputs == "proba":
        return checked
    return checked._replace(scores=as_proba(checked.scores, inputs))


def _reported_claims(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    y_pred: LabelsLike,
) -> tuple[Claims, AnyArray]:
    """Claims of reported labels; without ``classes`` the labels that occur are the classes."""
    truth, reported, score = as_array(y_true), as_array(y_pred), as_array(y_prob).astype(np.float64)
    if score.shape != reported.shape or score.ndim not in (1, 2):
        raise ValueError(
            f"with y_pred, y_prob holds the probability of each reported label and has its shape; "
            f"got y_prob {score.shape} and y_pred {reported.shape}"
        )
    check_same_length(y_true=truth, y_pred=reported)
    if not ((score >= 0) & (score <= 1)).all():
        raise ValueError("with y_pred, y_prob must hold probabilities in [0, 1]")
    names = (
        np.unique(np.concatenate([truth, reported.ravel()]))
        if classes is None
        else as_array(classes)
    )
    y, _ = encode_labels(truth, len(names), names)
    label, _ = encode_labels(reported.ravel(), len(names), names)
    shape, weight = (len(y), -1), check_weight(sample_weight, len(y))
    claims = notion.reported(score.reshape(shape), label.reshape(shape), y, weight, len(names))
    return claims, names
