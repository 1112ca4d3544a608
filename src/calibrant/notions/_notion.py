"""Base class of the types of calibration, which select and describe claims.

To define your own type, subclass `Notion` and write ``name``, ``n_quantities`` and ``select``. If
each claim states that the true class is in a set, and ``members`` returns this set, the defaults of
all other methods apply. A notion also defines the names of claims, their text in guarantees, and
how `MulticlassToBinary.predict_proba` fills a row.
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
from calibrant._validation import shortened, warn_data_once
from calibrant.notions._cells import chunked_claims
from calibrant.notions._claims import ClaimBlock, Claims
from calibrant.notions._rows import complete_rows, keep_top, rows_of_sums, scale_sets
from calibrant.notions._top_scores import top_claims

# The labels of the columns, in their order.
Labels: TypeAlias = Sequence[Any] | AnyArray

COMPARES = "The figure compares"
COMPARES_FREQUENCY = f"{COMPARES} the predicted probability and the observed frequency of"
"""The beginnings of captions."""


class Notion(ABC):
    """Base class of the types of calibration, which select claims of a prediction.

    A claim is a binary event with a predicted probability. A notion selects J scores per row. The
    j-th scores of all rows form *quantity* j. Each quantity has L claims, with L = K if the notion
    splits by label, and L = 1 otherwise. Claim ``j * L + l`` belongs to quantity j and label l.

    See Also
    --------
    as_notion : Return the notion with the given name.

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
        """Name of the notion. `as_notion` accepts the names of the notions of this package."""

    @abstractmethod
    def n_quantities(self, n_classes: int) -> int:
        """Return the number of scores per row (J), or raise ValueError for too few classes."""

    @abstractmethod
    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        """Select the claims of a block of rows. Without ``y``, the claims have no outcomes."""

    @property
    def title(self) -> str:
        """Description of the notion for readers who do not know its name."""
        return self.name

    @property
    def splits_by_label(self) -> bool:
        """Whether each quantity has one claim per label."""
        return False

    @property
    def sums_to_one(self) -> bool:
        """Whether rows of probabilities must sum to one."""
        return True

    @property
    def is_binary(self) -> bool:
        """Whether the notion has binary claims. The calibration of whole vectors has none."""
        return True

    @property
    def claims_are_rows(self) -> bool:
        """Whether there is one claim per class, so the scores are a row of probabilities."""
        return False

    @property
    def claims_are_labels(self) -> bool:
        """Whether each claim refers to a single label, so several labels of a row may be true."""
        return False

    @property
    def claims_are_running_sums(self) -> bool:
        """Whether the score of claim k is the sum of columns up to k, for each class but the last.

        In this case, the differences between consecutive scores are a row of probabilities.
        """
        return False

    @property
    def keeps_top(self) -> bool:
        """Whether `fill` keeps the predicted class, to which the first claim refers."""
        return False

    @property
    def reports_labels(self) -> bool:
        """Whether ``predict_top`` can return the claims, as labels with their probabilities."""
        return False

    def bound(self, classes: Labels) -> Notion:
        """Return the notion for these classes.

        The result differs only for notions that refer to a class by name.
        """
        return self

    @property
    def axis_labels(self) -> tuple[str, str]:
        """Labels of the score and of the observed frequency on the axes of a diagram."""
        return "predicted probability", "observed frequency"

    def n_labels(self, n_classes: int) -> int:
        """Return the number of claims per quantity (L)."""
        return n_classes if self.splits_by_label else 1

    def members(self, quantity: int, n_classes: int) -> Sequence[int] | None:
        """Return the columns whose sum is a quantity, or None if the columns differ by row."""
        return None

    def ranks_of(self, quantity: int, n_classes: int) -> range | None:
        """Return the ranks (from 1) whose scores add up to a quantity, or None without ranks."""
        return None

    def column_of(self, claim: int, n_classes: int) -> int | None:
        """Return the column to which a claim refers, or None if the column differs between rows."""
        return claim % n_classes if self.splits_by_label else None

    def claim_name(self, claim: int, classes: Labels) -> str:
        """Return a short name of a claim for titles and tables."""
        column, members = self._subject(claim, len(classes))
        if column is not None:
            return self._numbered(f"class {classes[column]}", claim, len(classes))
        if members is not None:
            return one_of([str(classes[k]) for k in members])
        return self._numbered(self.name, claim, len(classes))

    def claim_text(self, claim: int, classes: Labels) -> str:
        """Return the name of a claim for the sentences of a guarantee."""
        column, members = self._subject(claim, len(classes))
        if column is not None:
            return self._numbered(class_text(classes[column]), claim, len(classes))
        if members is not None:
            return one_of([class_text(classes[k]) for k in members])
        return self._numbered(f"'{self.name}'", claim, len(classes))

    def caption(self, claim: int, classes: Labels) -> str:
        """Return the caption of the reliability diagram of a claim."""
        return f"{COMPARES_FREQUENCY} {self.claim_name(claim, classes)}."

    def claim_names(self, classes: Labels) -> tuple[str, ...]:
        """Return the short names of all claims, in the order of their index."""
        n_claims = self.n_quantities(len(classes)) * self.n_labels(len(classes))
        return tuple(self.claim_name(claim, classes) for claim in range(n_claims))

    def fill(self, proba: FloatArray, claims: ClaimBlock) -> FloatArray:
        """Insert calibrated ``claims`` into the rows ``proba``, and return the new rows (m, K).

        The score of a claim for a label becomes the entry of the label's column. The score of a
        claim for a set scales the members of the set. The other entries of a row are rescaled, so
        the row sums to one. If the notion defines neither labels nor sets, or if sets overlap, rows
        stay unchanged. If the claims are rows, or running sums of rows, they determine the whole
        row.
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
            self._warn_unchanged()
            return np.array(proba)
        return keep_top(rows, label[:, 0], label) if self.keeps_top else rows

    def _warn_unchanged(self) -> None:
        warn_data_once(
            f"predict_proba returns the scores unchanged, because the events of notion "
            f"{self.name!r} overlap or do not define their columns. Use predict_claims for the "
            f"calibrated probabilities of the events, or define ranks_of or members of a custom "
            f"notion.",
            f"fill {self.name}",
        )

    def columns_of(self, quantity: int, proba: FloatArray) -> IntArray | None:
        """Return the columns (m, r) whose sum is a quantity in a block, or None if undefined."""
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
        """Return the columns of every quantity in a block, or None if undefined or not disjoint."""
        quantities = range(self.n_quantities(proba.shape[1]))
        sets = [columns for j in quantities if (columns := self.columns_of(j, proba)) is not None]
        by_rank = {self.ranks_of(j, proba.shape[1]) is not None for j in quantities}
        if len(sets) < len(quantities) or len(by_rank) > 1:
            return None
        # If the columns are disjoint in one row, they are disjoint in all rows.
        first = np.hstack([columns[:1] for columns in sets])
        return sets if np.unique(first).size == first.size else None

    def claims(self, proba: Rows, y: IntArray, weight: FloatArray) -> Claims:
        """Return the claims (binary problems) of all rows. Blocks are selected on demand."""
        n_rows, n_classes = proba.shape
        size = (n_rows, self.n_quantities(n_classes), self.n_labels(n_classes))
        return Claims(*size, weight, lambda rows: self.select(proba[rows], y[rows]), n_classes)

    def chunked_claims(self, sample: Sample, cuts: FloatArray | None = None) -> Claims:
        """Return the claims of chunked rows of probabilities. ``cuts`` are ends of cells."""
        return chunked_claims(self, sample, cuts)

    def top_claims(self, sample: TopSample) -> Claims:
        """Return the claims of rows of top scores. The notion must select scores by rank."""
        return top_claims(self, sample)

    def reported(
        self, score: FloatArray, label: IntArray, y: IntArray, weight: FloatArray, n_classes: int
    ) -> Claims:
        """Return the claims that reported labels are correct, with their probabilities."""
        if not self.reports_labels or self.n_quantities(n_classes) != score.shape[1]:
            raise ValueError(
                f"y_pred needs the notion 'confidence', 'top-label', 'top-<k>-confidence' or "
                f"'top-<k>-label' with as many ranks as y_pred has columns ({score.shape[1]}), got "
                f"{self.name!r}. Pass the notion of the calibrator that predicted y_pred."
            )

        def select(rows: slice) -> ClaimBlock:
            return ClaimBlock(
                score[rows], label[rows], np.flatnonzero(label[rows] == y[rows, None])
            )

        return Claims(len(y), score.shape[1], self.n_labels(n_classes), weight, select, n_classes)

    def _subject(self, claim: int, n_classes: int) -> tuple[int | None, Sequence[int] | None]:
        """Return the column or the set of columns to which a claim refers."""
        quantity = claim // self.n_labels(n_classes)
        return self.column_of(claim, n_classes), self.members(quantity, n_classes)

    def _numbered(self, text: str, claim: int, n_classes: int) -> str:
        """Append the number of the quantity if several quantities would have the same text."""
        n_labels = self.n_labels(n_classes)
        is_unique = self.n_quantities(n_classes) == 1 or (
            n_labels == 1 and self.column_of(claim, n_classes) is not None
        )
        return text if is_unique else f"{text} ({claim // n_labels + 1})"


def class_text(label: Any) -> str:
    """Format a class label for use in a sentence."""
    return f"'{label}'" if isinstance(label, str) else f"class {label}"


def one_of(names: Sequence[str]) -> str:
    """Format a set of classes for use in a sentence."""
    return names[0] if len(names) == 1 else f"one of {shortened(names, 5)}"
