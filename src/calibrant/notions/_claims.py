"""Binary problems (claims) of a data set, accessed by blocks of rows or one claim at a time."""

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
"""Up to this many columns, a table of all outcomes of a block is faster than indices of positive
outcomes."""


class ClaimBlock(NamedTuple):
    """The claims of a block of rows.

    Attributes
    ----------
    score : array of shape (m, J), float64
        Score (predicted probability) of each claim.
    label : array of shape (m, J) or None
        Class to which each score belongs, or None if scores belong to sets of classes.
    hit : array of int
        Flat indices into (m, J) of the claims with outcome 1. Empty if there are no labels.

    See Also
    --------
    Notion.select : Select the claims of a block of rows.
    """

    score: FloatArray
    label: IntArray | None
    hit: IntArray

    def labels(self) -> IntArray:
        """Return the class of each score, or raise TypeError if scores have no classes."""
        if self.label is None:
            raise TypeError(
                "A notion that splits or reports by label must return a label with every score. "
                "Return ClaimBlock(score, label, hit) from select()."
            )
        return self.label

    def residual(self) -> FloatArray:
        """Return ``outcome - score`` of every claim, (m, J)."""
        residual = np.negative(self.score, order="C")  # `hit` contains flat indices in this order
        residual.reshape(-1)[self.hit] += 1.0
        return residual


@dataclass(frozen=True, eq=False)
class Claim:
    """One binary problem, with its index, rows, scores, outcomes and weights.

    See Also
    --------
    Claims : All binary problems of some data.
    """

    index: int
    rows: IntArray | slice
    score: FloatArray
    outcome: AnyArray
    weight: FloatArray
    ends: FloatArray | None = None
    """Upper end of the cell of each entry, if rows were counted in cells of scores."""
    is_counted_weighted: bool = False
    """Whether any row had a weight other than 0 and 1, if rows were counted in cells."""
    cell_rows: FloatArray | None = None
    """Number of rows in the cell of each entry, if weighted rows were counted in cells."""
    squares: FloatArray | None = None
    """Sum of the squared weights of each entry, if rows were counted in cells."""

    @property
    def hits(self) -> FloatArray:
        """Outcomes as floats."""
        return self.outcome.astype(np.float64, copy=False)

    @property
    def is_weighted(self) -> bool:
        """Whether any row has a weight other than 0 and 1."""
        if self.ends is not None:
            return self.is_counted_weighted
        return not is_unit(self.weight) and bool((self.weight[self.weight > 0] != 1).any())

    def rescored(self, function: Callable[[FloatArray], FloatArray]) -> Claim:
        """Return the same binary problem with ``function`` applied to its scores."""
        return replace(self, score=function(self.score))


def share_rows(claims: Sequence[Claim]) -> bool:
    """Return whether all claims have the same rows, so they can be fitted together."""
    return all(claim.weight is claims[0].weight for claim in claims)


def stack_claims(claims: Sequence[Claim]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return stacked scores and outcomes (J, n) of claims with the same rows, and the weights."""
    if len(claims) == 1:
        return claims[0].score[None], claims[0].hits[None], claims[0].weight
    score, hits = (np.stack([getattr(c, name) for c in claims]) for name in ("score", "hits"))
    return score, hits, claims[0].weight


@dataclass(frozen=True)
class Claims:
    """All binary problems of a data set for a type of calibration.

    ``select(rows)`` returns the claims of a block of rows. Iteration yields each claim with all
    rows (`Claim`), in the order of the index. Only a few columns of scores are in memory at a time.
    """

    n_rows: int
    n_quantities: int
    n_labels: int
    weight: FloatArray
    """Weights of all rows. For chunked rows, an array with the same sum."""
    select: Callable[[slice], ClaimBlock]
    n_columns: int
    """Number of columns of the data, which determines the cost of a block."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without data, from which another process can sum over a chunk."""
        return {**vars(self), "select": None, "weight": np.empty(0)}

    @property
    def total(self) -> float:
        """Sum of the weights of all rows."""
        return float(self.weight.sum())

    @property
    def n_present(self) -> int:
        """Number of rows with positive weight."""
        return int(np.count_nonzero(self.weight))

    def check_distinct(self, reason: str) -> None:
        """Raise TypeError if claims do not contain the distinct scores of all rows.

        ``reason`` is the subject of the message.
        """

    @property
    def n_claims(self) -> int:
        return self.n_quantities * self.n_labels

    def index(self, block: ClaimBlock) -> IntArray:
        """Return the index of the claim of every score in a block, (m, J) or (J,)."""
        quantity = np.arange(self.n_quantities) * self.n_labels
        return quantity if self.n_labels == 1 else block.labels() + quantity

    def share(self, claim: Claim) -> float:
        """Return v_c, the share of the rows in a claim divided by the number of quantities."""
        return float(claim.weight.sum() / (self.weight.sum() * self.n_quantities))

    def mean(self, function: Callable[[Claim], float]) -> float:
        """Return the mean of ``function(claim)`` over claims with rows, weighted by `share`."""
        # The claims of a quantity contain every row once, so the v_c sum to one.
        total = sum(claim.weight.sum() * function(claim) for claim in self if claim.weight.any())
        return float(total / (self.weight.sum() * self.n_quantities))

    def effective(self) -> Claims:
        """Return the claims with weights that sum to the effective number of rows (Kish)."""
        return replace(self, weight=effective_weights(self.weight))

    def sum_over(
        self, function: Callable[[ClaimBlock, FloatArray], Any], *, at_least: int = 0
    ) -> Any:
        """Sum ``function(block, weight)`` over blocks of rows.

        Blocks have more rows if only a few scores are selected from many columns. ``at_least`` is
        the minimum number of elements of the data per block.
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
        """Yield lists of claims that are fitted together.

        With one claim per label, a list contains the claims of one quantity. Otherwise, a list
        contains as many claims as have ``elements`` scores in total.
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
        """Yield ranges of quantities that fit in memory, with their scores, labels and outcomes."""
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
            # With many columns, only the positions of positive outcomes are written.
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
        # A single stable sort groups the rows by label, and keeps the order of the data in each
        # group.
        order = np.argsort(label, kind="stable")
        ends = np.searchsorted(label[order], np.arange(self.n_labels + 1))
        for label_code in range(self.n_labels):
            rows = order[ends[label_code] : ends[label_code + 1]]
            index = quantity * self.n_labels + label_code
            yield Claim(index, rows, score[rows], outcome[rows], self.weight[rows])


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
    """Check user input, and return the claims of a notion and the class labels.

    ``inputs`` is the type of the scores in ``y_prob``. Rows of probabilities must sum to one unless
    `Notion.sums_to_one` is false. With ``y_pred``, ``y_prob`` contains the probabilities of the
    reported labels.
    """
    if y_pred is not None:
        _check_reported_inputs(inputs)
        return _reported_claims(notion, y_true, y_prob, sample_weight, classes, y_pred)
    sample, names = sample_for(notion, y_true, y_prob, sample_weight, classes, inputs=inputs)
    return sample.claims(notion.bound(names)), names


def sample_for(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    inputs: str = "proba",
) -> tuple[Sample, AnyArray]:
    """Check user input for a notion, and return a sample and the class labels.

    The sample contains probabilities.
    """
    sample, names = as_sample(
        y_prob,
        y_true,
        sample_weight,
        classes=classes,
        inputs=inputs,
        sum_to_one=notion.sums_to_one,
        hint=SOFTMAX_HINT,
        multilabel=notion.claims_are_labels,
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
    """Check user input for a notion, and return probabilities, labels and weights.

    Rows must sum to one unless `Notion.sums_to_one` is false.
    """
    checked = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs, sum_to_one=notion.sums_to_one
    )
    if inputs == "proba":
        return checked
    return checked._replace(scores=as_proba(checked.scores, inputs))


def _check_reported_inputs(inputs: str) -> None:
    if inputs != "proba":
        raise ValueError(
            f"If y_pred is passed, y_prob must be the probabilities of the reported labels, but "
            f"inputs is {inputs!r}. Pass inputs='proba'."
        )


def _reported_claims(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    y_pred: LabelsLike,
) -> tuple[Claims, AnyArray]:
    """Return claims of reported labels. By default, the classes are all labels in the data."""
    true_labels, reported_labels = as_array(y_true), as_array(y_pred)
    score = as_array(y_prob).astype(np.float64)
    if score.shape != reported_labels.shape or score.ndim not in (1, 2):
        raise ValueError(
            "If y_pred is passed, y_prob must be the probability of each reported label, but "
            f"y_prob has shape {score.shape} and y_pred has shape {reported_labels.shape}. Pass "
            "both outputs of predict_top: y_pred, y_prob = calibrator.predict_top(X)."
        )
    check_same_length(y_true=true_labels, y_pred=reported_labels)
    if not ((score >= 0) & (score <= 1)).all():
        raise ValueError(
            f"If y_pred is passed, y_prob must be probabilities in [0, 1], got values from "
            f"{score.min():g} to {score.max():g}. Pass both outputs of predict_top: "
            f"y_pred, y_prob = calibrator.predict_top(X)."
        )
    if classes is None:
        names = np.unique(np.concatenate([true_labels, reported_labels.ravel()]))
    else:
        names = as_array(classes)
    y, _ = encode_labels(true_labels, len(names), names)
    label, _ = encode_labels(reported_labels.ravel(), len(names), names)
    shape, weight = (len(y), -1), check_weight(sample_weight, len(y))
    claims = notion.reported(score.reshape(shape), label.reshape(shape), y, weight, len(names))
    return claims, names
