"""Types of calibration from the literature. `as_notion` finds a type by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from calibrant._kernels import entries, top_labels
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import unknown_name
from calibrant.notions._claims import ClaimBlock
from calibrant.notions._notion import COMPARES, COMPARES_FREQUENCY, Labels, Notion, class_text


@dataclass(frozen=True)
class RankNotion(Notion):
    """Claims about the classes with the highest scores.

    The names are "confidence", "top-label", "rank-<r>", "top-<k>-confidence" and "top-<k>-label".

    Parameters
    ----------
    ranks : tuple of int, default (1,)
        The ranks: a single rank, or the ranks 1 to k.
    by_label : bool, default False
        Whether there is one claim per label.

    See Also
    --------
    calibrant.notions.as_notion : Return the notion with the given name.
    WithinTopNotion : Claim that the true class has one of several ranks.
    """

    ranks: tuple[int, ...] = (1,)
    by_label: bool = False
    reports_labels = True

    def __post_init__(self) -> None:
        ranks = tuple(self.ranks)
        if not ranks or min(ranks) < 1:
            raise ValueError(f"Ranks start at 1, got {ranks}. Pass RankNotion((1,)).")
        if len(ranks) > 1 and ranks != tuple(range(1, len(ranks) + 1)):
            raise ValueError(
                f"ranks must be a single rank or the ranks 1 to k without a gap, got {ranks}. Pass "
                f"RankNotion(({ranks[-1]},)) for a single rank, or "
                f"as_notion('top-{max(ranks)}-confidence') for all ranks."
            )
        object.__setattr__(self, "ranks", ranks)

    @property
    def name(self) -> str:
        count = len(self.ranks)
        if count > 1:
            return f"top-{count}-{'label' if self.by_label else 'confidence'}"
        if self.ranks == (1,):
            return "top-label" if self.by_label else "confidence"
        return f"rank-{self.ranks[0]}{'-label' if self.by_label else ''}"

    @property
    def title(self) -> str:
        if self.ranks != (1,):
            return self.name
        return "by predicted class (top-label)" if self.by_label else "predicted class (confidence)"

    @property
    def splits_by_label(self) -> bool:
        return self.by_label

    @property
    def axis_labels(self) -> tuple[str, str]:
        if self.ranks == (1,):
            return "confidence (highest probability)", "accuracy"
        return "predicted probability at the rank", "share of rows with that true class"

    def n_quantities(self, n_classes: int) -> int:
        _check_rank(self.name, max(self.ranks), n_classes)
        return len(self.ranks)

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        label = top_labels(proba, max(self.ranks))[:, self.ranks[0] - 1 :]
        hit = _no_hits() if y is None else np.flatnonzero(label == y[:, None])
        return ClaimBlock(entries(proba, label), label, hit)

    def claim_name(self, claim: int, classes: Labels) -> str:
        rank, column = self._rank_of(claim, len(classes)), self.column_of(claim, len(classes))
        if column is None:
            return "predicted class" if rank == 1 else f"rank {rank}"
        where = "" if rank == 1 else f"rank {rank}, "
        return f"{where}predicted {classes[column]}"

    def claim_text(self, claim: int, classes: Labels) -> str:
        rank, column = self._rank_of(claim, len(classes)), self.column_of(claim, len(classes))
        if column is None:
            return "the predicted class" if rank == 1 else f"the class of rank {rank}"
        where = "" if rank == 1 else f" at rank {rank}"
        return f"{class_text(classes[column])}{where}"

    def caption(self, claim: int, classes: Labels) -> str:
        rank, column = self._rank_of(claim, len(classes)), self.column_of(claim, len(classes))
        if rank > 1:
            subject = "the class" if column is None else f"class {classes[column]}"
            return f"{COMPARES_FREQUENCY} {subject} at rank {rank}."
        rows = "all rows" if column is None else f"rows predicted as class {classes[column]}"
        return f"{COMPARES} the confidence and the accuracy of {rows}."

    @property
    def keeps_top(self) -> bool:
        return self.ranks[0] == 1

    def ranks_of(self, quantity: int, n_classes: int) -> range:
        return range(self.ranks[quantity], self.ranks[quantity] + 1)

    def _rank_of(self, claim: int, n_classes: int) -> int:
        return self.ranks[claim // self.n_labels(n_classes)]


@dataclass(frozen=True)
class ClassNotion(Notion):
    """Claims about all classes ("class-wise"), or about one class ("class-<k>").

    Parameters
    ----------
    column : int, optional
        Column of the class. If None, there is one claim per class.

    See Also
    --------
    NamedClassNotion : Claim about the class with the given name.
    CumulativeNotion : Claims about ordered classes.
    """

    column: int | None = None
    sums_to_one = False
    claims_are_labels = True
    axis_labels = ("predicted probability of the class", "frequency of the class")

    @property
    def name(self) -> str:
        return "class-wise" if self.column is None else f"class-{self.column}"

    @property
    def title(self) -> str:
        return "by class (class-wise)" if self.column is None else self.name

    @property
    def claims_are_rows(self) -> bool:
        return self.column is None

    def n_quantities(self, n_classes: int) -> int:
        if self.column is None:
            return n_classes
        if self.column >= n_classes:
            raise ValueError(
                f"notion {self.name!r} does not exist, because the scores have {n_classes} "
                f"columns. Pass 'class-0' to 'class-{n_classes - 1}'."
            )
        return 1

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        n_rows, n_classes = proba.shape
        if self.column is None:
            label = np.broadcast_to(np.arange(n_classes), proba.shape)
            hit = _no_hits() if y is None else _hits(y, n_rows, n_classes)
            return ClaimBlock(np.asarray(proba, dtype=np.float64), label, hit)
        label = np.broadcast_to(self.column, (n_rows, 1))
        hit = _no_hits() if y is None else _hits_of(y, self.column)
        score = np.asarray(proba[:, self.column : self.column + 1], dtype=np.float64)
        return ClaimBlock(score, label, hit)

    def caption(self, claim: int, classes: Labels) -> str:
        column = claim if self.column is None else self.column
        return f"{COMPARES_FREQUENCY} class {classes[column]} in all rows."

    def column_of(self, claim: int, n_classes: int) -> int | None:
        return claim if self.column is None else self.column


@dataclass(frozen=True)
class NamedClassNotion(Notion):
    """Claim about the class with the given name. `bound` finds the column of the class.

    Parameters
    ----------
    label : str
        Name of the class.

    See Also
    --------
    ClassNotion : Claims about all classes, or about the class of one column.
    """

    label: str
    sums_to_one = False
    claims_are_labels = True

    @property
    def name(self) -> str:
        return f"class-{self.label}"

    def bound(self, classes: Labels) -> Notion:
        names = [str(label) for label in classes]
        if self.label not in names:
            raise ValueError(
                f"Invalid notion {self.name!r}. {unknown_name('class', self.label, names)} Notions "
                f"are {VALID}."
            )
        return ClassNotion(names.index(self.label))

    def n_quantities(self, n_classes: int) -> int:
        return 1

    def select(self, proba: FloatArray, y: IntArray | None = None) -> NoReturn:
        raise ValueError(
            f"notion {self.name!r} needs the names of the classes. Pass classes=[...], or the "
            f"number of the column as in notion='class-3'."
        )


@dataclass(frozen=True)
class WithinTopNotion(Notion):
    """Claim that the true class is among the r classes with the highest scores.

    Parameters
    ----------
    rank : int
        The number r of classes.

    See Also
    --------
    RankNotion : Claims about single ranks.
    """

    rank: int
    keeps_top = True

    @property
    def name(self) -> str:
        return f"within-top-{self.rank}"

    @property
    def axis_labels(self) -> tuple[str, str]:
        return (
            f"sum of the {self.rank} highest probabilities",
            f"share of rows whose true class is among the {self.rank}",
        )

    def n_quantities(self, n_classes: int) -> int:
        _check_rank(self.name, self.rank, n_classes)
        return 1

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        label = top_labels(proba, self.rank)
        score = entries(proba, label).sum(axis=1, keepdims=True)
        np.minimum(score, 1.0, out=score)  # row sums may exceed one by rounding
        hit = _no_hits() if y is None else np.flatnonzero((label == y[:, None]).any(axis=1))
        return ClaimBlock(score, None, hit)

    def claim_text(self, claim: int, classes: Labels) -> str:
        return f"one of its top {self.rank} classes"

    def caption(self, claim: int, classes: Labels) -> str:
        return (
            f"{COMPARES} the sum of the {self.rank} highest probabilities with the share of rows "
            "whose true class is among these classes."
        )

    def ranks_of(self, quantity: int, n_classes: int) -> range:
        return range(1, self.rank + 1)


@dataclass(frozen=True)
class CanonicalNotion(Notion):
    """Calibration of the whole vector, which is not a binary problem.

    Only some functions accept this notion.

    See Also
    --------
    calibrant.inference.kernel_test : Test of canonical calibration.
    calibrant.inference.validity_curve : Validity curve of whole vectors.
    """

    name = "canonical"
    is_binary = False

    def n_quantities(self, n_classes: int) -> NoReturn:
        raise no_claims(self)

    def select(self, proba: FloatArray, y: IntArray | None = None) -> NoReturn:
        raise no_claims(self)


def no_claims(notion: Notion) -> ValueError:
    """Return the exception for functions that need binary claims."""
    return ValueError(
        f"notion {notion.name!r} is about whole vectors and has no binary claims. Pass one of "
        f"{VALID}."
    )


VALID = (
    "'confidence', 'top-label', 'class-wise', 'class-<k or name>', 'rank-<r>', 'within-top-<r>', "
    "'top-<k>-confidence', 'top-<k>-label', 'cumulative', 'at-most-<k>', "
    "'group-<name>=<class>+<class>'"
)


def _check_rank(name: str, rank: int, n_classes: int) -> None:
    if rank > n_classes:
        raise ValueError(
            f"notion {name!r} needs at least {rank} classes, but the scores have {n_classes}. Pass "
            f"a rank of at most {n_classes}."
        )


def _no_hits() -> IntArray:
    return np.empty(0, dtype=np.intp)


def _hits(y: IntArray, n_rows: int, n_classes: int) -> IntArray:
    """Return flat indices of true labels.

    ``y`` contains column numbers, or a matrix of zeros and ones with a column per label.
    """
    return np.arange(n_rows) * n_classes + y if y.ndim == 1 else np.flatnonzero(y)


def _hits_of(y: IntArray, column: int) -> IntArray:
    """Return the rows in which the label of a column is true."""
    return np.flatnonzero(y == column if y.ndim == 1 else y[:, column])
