"""Types of calibration: which scores are claims, and how they are described.

A notion of one's own subclasses `Notion` and writes ``name``, ``n_quantities`` and ``select``.
Everything else has a default, which is right for claims about a set of classes; ``members`` tells
which. The names of claims, what a guarantee says and how `MulticlassToBinary.predict_proba` fills a
row are asked of the notion and of nobody else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from calibrant._data.sample import Rows, Sample
from calibrant._data.top_scores import TopSample
from calibrant._kernels import top_labels
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import shortened
from calibrant.notions._cells import chunked_claims
from calibrant.notions._claims import ClaimBlock, Claims
from calibrant.notions._rows import complete_rows, keep_top, rows_of_sums, scale_sets
from calibrant.notions._top_scores import top_claims

# The labels of the columns, in their order.
Labels: TypeAlias = Sequence[Any] | AnyArray


class Notion(ABC):
    """What is checked: the claims that a forecast makes.

    A notion makes J *quantities* a row (columns of scores). Where it splits by label each quantity
    is K claims, one per label, else it is one: claim ``j * L + l`` is quantity j with label l (L is
    K or 1).

    Examples
    --------
    >>> class Even(Notion):
    ...     name = "even"
    ...     def n_quantities(self, n_classes):
    ...         return 1
    ...     def select(self, proba, y=None):
    ...         hit = [] if y is None else np.flatnonzero(y % 2 == 0)
    ...         return ClaimBlock(proba[:, ::2].sum(axis=1, keepdims=True), None, hit)
    >>> Even().claims(np.array([[0.5, 0.2, 0.3]]), np.array([1]), np.ones(1)).n_claims
    1
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """How it is called: of those that `as_notion` knows, the string that makes it."""

    @abstractmethod
    def n_quantities(self, n_classes: int) -> int:
        """Scores per row (J); raises where the notion does not exist for so few classes."""

    @abstractmethod
    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        """The claims of a block of rows; without ``y`` their outcomes are not known."""

    @property
    def title(self) -> str:
        """What it is about, for a reader who does not know its name."""
        return self.name

    @property
    def splits_by_label(self) -> bool:
        """Whether each quantity is one claim per label."""
        return False

    @property
    def sums_to_one(self) -> bool:
        """Whether the rows that it selects from must sum to one."""
        return True

    @property
    def is_binary(self) -> bool:
        """Whether it makes binary claims; not so the calibration of whole vectors."""
        return True

    @property
    def claims_are_rows(self) -> bool:
        """Whether there is one claim for each class, so that the claims are a row themselves."""
        return False

    @property
    def claims_are_running_sums(self) -> bool:
        """Whether claim k is the sum of the columns up to k, for each class but the last, so that
        a row is the differences of the claims.
        """
        return False

    @property
    def keeps_top(self) -> bool:
        """Whether rows are filled so that their highest entry stays where it was: its first claim
        begins with the top class.
        """
        return False

    @property
    def reports_labels(self) -> bool:
        """Whether its claims are labels with their probabilities, the output of ``predict_top``."""
        return False

    def bound(self, classes: Labels) -> Notion:
        """The notion for these classes: itself, unless it speaks of a class by its name."""
        return self

    @property
    def axis_labels(self) -> tuple[str, str]:
        """What the score and the frequency of the outcome are, on the axes of a diagram."""
        return "predicted probability", "observed frequency"

    def n_labels(self, n_classes: int) -> int:
        """Claims per quantity (L)."""
        return n_classes if self.splits_by_label else 1

    def members(self, quantity: int, n_classes: int) -> Sequence[int] | None:
        """The columns that a quantity adds up; None where it is no such sum, or another in every
        row.
        """
        return None

    def ranks_of(self, quantity: int, n_classes: int) -> range | None:
        """The ranks, counted from 1, whose scores a quantity adds up; None where it is no such
        sum.
        """
        return None

    def column_of(self, claim: int, n_classes: int) -> int | None:
        """The column that a claim speaks of, where it is one and the same in all rows."""
        return claim % n_classes if self.splits_by_label else None

    def claim_name(self, claim: int, classes: Labels) -> str:
        """A short name of a claim, for titles and tables."""
        column, members = self._subject(claim, len(classes))
        if column is not None:
            return self._numbered(f"class {classes[column]}", claim, len(classes))
        if members is not None:
            return one_of([str(classes[k]) for k in members])
        return self._numbered(self.name, claim, len(classes))

    def claim_text(self, claim: int, classes: Labels) -> str:
        """What the model says where it makes a claim: "when the model says ... with 0.8"."""
        column, members = self._subject(claim, len(classes))
        if column is not None:
            return self._numbered(class_text(classes[column]), claim, len(classes))
        if members is not None:
            return one_of([class_text(classes[k]) for k in members])
        return self._numbered(f"'{self.name}'", claim, len(classes))

    def question(self, claim: int, classes: Labels) -> str:
        """The caption of a diagram: the scores of a claim."""
        return f"Predicted probability and observed frequency of {self.claim_name(claim, classes)}."

    def claim_names(self, classes: Labels) -> tuple[str, ...]:
        """The short names of all claims, in the order of their index."""
        n_claims = self.n_quantities(len(classes)) * self.n_labels(len(classes))
        return tuple(self.claim_name(claim, classes) for claim in range(n_claims))

    def fill(self, proba: FloatArray, claims: ClaimBlock) -> FloatArray:
        """Rows (m, K) that carry the calibrated ``claims`` selected from the rows ``proba``.

        Claims about a label stand in its column, claims about a set scale its members; the rest of
        a row is rescaled to the rest. Where the notion names neither, or its sets overlap, rows
        stay as they are. Claims that are rows, or running sums of rows, say all of a row.
        """
        if self.claims_are_rows:
            return claims.score
        if self.claims_are_running_sums:
            return rows_of_sums(claims.score)
        if claims.label is not None:
            label, rows = claims.label, complete_rows(proba, claims.label, claims.score)
        elif (sets := self.member_sets(proba)) is not None:
            label, rows = np.hstack(sets), scale_sets(proba, sets, claims.score)
        else:
            return np.array(proba)
        return keep_top(rows, label[:, 0], label) if self.keeps_top else rows

    def columns_of(self, quantity: int, proba: FloatArray) -> IntArray | None:
        """The columns (m, r) of a block of rows that a quantity adds up, where the notion tells
        their ranks or themselves.
        """
        n_rows, n_classes = proba.shape
        ranks = self.ranks_of(quantity, n_classes)
        if ranks is not None:
            return top_labels(proba, ranks[-1])[:, ranks[0] - 1 :]
        column = None if self.splits_by_label else self.column_of(quantity, n_classes)
        columns = self.members(quantity, n_classes) if column is None else [column]
        if columns is None:
            return None
        return np.broadcast_to(np.asarray(columns, dtype=np.intp), (n_rows, len(columns)))

    def member_sets(self, proba: FloatArray) -> list[IntArray] | None:
        """The columns of every quantity in a block of rows, `columns_of` each; None where one is
        not told, or where two have a column in common.
        """
        quantities = range(self.n_quantities(proba.shape[1]))
        known = [columns for j in quantities if (columns := self.columns_of(j, proba)) is not None]
        by_rank = {self.ranks_of(j, proba.shape[1]) is not None for j in quantities}
        if len(known) < len(quantities) or len(by_rank) > 1:
            return None
        first = np.hstack([columns[:1] for columns in known])  # as apart as in every row
        return known if np.unique(first).size == first.size else None

    def claims(self, proba: Rows, y: IntArray, weight: FloatArray) -> Claims:
        """All claims about the data, selected block by block when they are asked for."""
        n_rows, n_classes = proba.shape
        size = (n_rows, self.n_quantities(n_classes), self.n_labels(n_classes))
        return Claims(*size, weight, lambda rows: self.select(proba[rows], y[rows]), n_classes)

    def chunked_claims(self, sample: Sample, cuts: FloatArray | None = None) -> Claims:
        """All claims about chunked probabilities; no cell of scores lies across ``cuts``."""
        return chunked_claims(self, sample, cuts)

    def top_claims(self, sample: TopSample) -> Claims:
        """All claims about top scores, of a notion of ranks."""
        return top_claims(self, sample)

    def reported(
        self, score: FloatArray, label: IntArray, y: IntArray, weight: FloatArray, n_classes: int
    ) -> Claims:
        """Claims that were reported as labels with their probabilities, instead of taken from whole
        rows.
        """
        if not self.reports_labels or self.n_quantities(n_classes) != score.shape[1]:
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

    def _subject(self, claim: int, n_classes: int) -> tuple[int | None, Sequence[int] | None]:
        """The column, or the set of columns, that a claim speaks of."""
        quantity = claim // self.n_labels(n_classes)
        return self.column_of(claim, n_classes), self.members(quantity, n_classes)

    def _numbered(self, text: str, claim: int, n_classes: int) -> str:
        """The text, with the number of the quantity where it does not tell which one is meant."""
        n_labels = self.n_labels(n_classes)
        is_told = self.n_quantities(n_classes) == 1 or (
            n_labels == 1 and self.column_of(claim, n_classes) is not None
        )
        return text if is_told else f"{text} ({claim // n_labels + 1})"


def class_text(label: Any) -> str:
    """A class in a sentence."""
    return f"'{label}'" if isinstance(label, str) else f"class {label}"


def one_of(names: Sequence[str]) -> str:
    """A set of classes in words."""
    return names[0] if len(names) == 1 else f"one of {shortened(names, 5)}"
