"""Types of calibration for named sets of classes, such as the inner nodes of a hierarchy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import quote, unquote

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant._validation import shortened, unknown_name
from calibrant.notions._claims import ClaimBlock
from calibrant.notions._notion import COMPARES_FREQUENCY, Labels, Notion

PREFIX = "group-"


@dataclass(frozen=True)
class SetNotion(Notion):
    """Claims that the true class is in a set of classes, with one claim per named set.

    The score is the sum of the columns of the set. Sets may contain other sets by name, so a
    hierarchy is a dict of its inner nodes.

    Parameters
    ----------
    sets : dict of name -> list of class names or names of other sets
        Names of the sets and their members, such as ``{"animal": ["cat", "dog"], "vehicle": ["car",
        "bus"]}``. Class labels are compared as strings.

    See Also
    --------
    calibrant.notions.as_notion : Convert a dict, or the name of a notion, to a notion.
    ClassNotion : Claims about single classes.

    Notes
    -----
    The probability of a set is the sum of the probabilities of its classes. So the probability of a
    parent is the sum of the probabilities of its children, up to rounding. The name of the notion
    contains all sets, so a calibrator with this notion can be saved. If sets are disjoint,
    `MulticlassToBinary.predict_proba` scales the members of each set to the calibrated sum. If sets
    overlap, as in a hierarchy with several levels, rows stay unchanged. In this case, use
    ``predict_claims``, or one notion per level.

    Examples
    --------
    >>> from calibrant.metrics import expected_calibration_error
    >>> tree = SetNotion({"pet": ["cat", "dog"]})
    >>> tree.name
    'group-pet=cat+dog'
    >>> p, y = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], ["cat", "car"]
    >>> error = expected_calibration_error(y, p, notion=tree, classes=["cat", "dog", "car"])
    >>> round(error, 3)
    0.2
    """

    sets: Any

    def __post_init__(self) -> None:
        sets = self.sets
        if isinstance(sets, Mapping):
            sets = tuple((str(name), _member_names(name, part)) for name, part in sets.items())
        if not sets or not all(members for _, members in sets):
            raise ValueError(
                "Sets of classes must have names and members. For example, pass "
                'SetNotion({"animal": ["cat", "dog"]}).'
            )
        object.__setattr__(self, "sets", sets)

    @classmethod
    def parse(cls, name: str) -> SetNotion:
        """Return the notion with a name of the form "group-<set>=<class>+<class>,...".

        Characters other than letters, digits and "_.-~" in names are percent-encoded, as in a URL.
        """
        parts = [part.partition("=") for part in name.removeprefix(PREFIX).split(",")]
        if not all(group and members for group, _, members in parts):
            raise ValueError(
                f"Invalid notion {name!r}. Pass a dict, as in "
                'notion={"animal": ["cat", "dog"]}, or \'group-animal=cat+dog\'.'
            )
        sets = [(unquote(group), map(unquote, m.split("+"))) for group, _, m in parts]
        repeated = [
            group for group, times in Counter(group for group, _ in sets).items() if times > 1
        ]
        if repeated:
            raise ValueError(
                f"The notion {name!r} defines the set {repeated[0]!r} twice. Pass each set once."
            )
        return cls(dict(sets))

    @property
    def name(self) -> str:
        parts = (f"{_quoted(name)}={'+'.join(map(_quoted, m))}" for name, m in self.sets)
        return PREFIX + ",".join(parts)

    @property
    def title(self) -> str:
        return f"{PREFIX}{shortened([name for name, _ in self.sets])}"

    def bound(self, classes: Labels) -> Notion:
        columns = {str(label): (k,) for k, label in enumerate(classes)}
        sets = dict(self.sets)
        set_columns = tuple(tuple(_columns(name, sets, columns)) for name in sets)
        return ColumnSetNotion(tuple(sets), set_columns)

    def n_quantities(self, n_classes: int) -> int:
        return len(self.sets)

    def select(self, proba: FloatArray, y: IntArray | None = None) -> NoReturn:
        raise ValueError(
            f"notion {self.name!r} needs the names of the classes. Pass classes=[...]."
        )


def _member_names(name: Any, members: Any) -> tuple[str, ...]:
    """Return the members of a set as text. The letters of a string are not members."""
    if isinstance(members, str | Mapping) or not isinstance(members, Iterable):
        raise TypeError(
            f"The members of set {str(name)!r} must be a list of classes or names of sets, "
            f"got {members!r}. For example, pass {{'pet': ['cat', 'dog']}}."
        )
    return tuple(map(str, members))


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _columns(
    name: str,
    sets: Mapping[str, Sequence[str]],
    columns: Mapping[str, tuple[int, ...]],
    above: tuple[str, ...] = (),
) -> list[int]:
    """Return the columns of a set, which may contain other sets."""
    if name in above:
        raise ValueError(
            f"The set {name!r} contains itself. Pass sets that only contain classes and smaller "
            "sets."
        )
    set_columns: list[int] = []
    for member in sets[name]:
        # A set may have the name of a class that it contains.
        if member in columns and (member == name or member not in sets):
            set_columns += columns[member]
        elif member in sets:
            set_columns += _columns(member, sets, columns, (*above, name))
        else:
            names = [*columns, *sets]
            raise ValueError(f"Invalid set {name!r}. {unknown_name('class', member, names)}")
    if len(set(set_columns)) < len(set_columns):
        raise ValueError(
            f"The set {name!r} contains a class twice. Pass sets whose members are disjoint."
        )
    return set_columns


@dataclass(frozen=True)
class ColumnSetNotion(Notion):
    """Notion for named sets of columns, returned by `SetNotion.bound`.

    Parameters
    ----------
    names : tuple of str
        Names of the sets.
    columns : tuple of tuple of int
        Columns of each set.

    See Also
    --------
    SetNotion : Notion for named sets of classes.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    axis_labels = ("predicted probability of the set", "frequency of the set")

    @property
    def name(self) -> str:
        return f"{PREFIX}{','.join(self.names)}"

    def n_quantities(self, n_classes: int) -> int:
        if max(map(max, self.columns)) >= n_classes:
            raise ValueError(
                f"The sets {shortened(self.names)} contain column {max(map(max, self.columns))}, "
                f"but the scores have {n_classes} columns. Pass classes=[...] with one name per "
                "score column."
            )
        return len(self.names)

    def members(self, quantity: int, n_classes: int) -> Sequence[int]:
        return self.columns[quantity]

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        n_classes = proba.shape[1]
        contains = np.zeros((n_classes, self.n_quantities(n_classes)), dtype=bool)
        for j, columns in enumerate(self.columns):
            contains[list(columns), j] = True
        score = np.asarray(proba, dtype=np.float64) @ contains.astype(np.float64)
        np.minimum(score, 1.0, out=score)  # row sums may exceed one by rounding
        hit = np.empty(0, np.intp) if y is None else np.flatnonzero(contains[y])
        return ClaimBlock(score, None, hit)

    def claim_name(self, claim: int, classes: Labels) -> str:
        return self.names[claim]

    def claim_text(self, claim: int, classes: Labels) -> str:
        return f"'{self.names[claim]}'"

    def caption(self, claim: int, classes: Labels) -> str:
        return f"{COMPARES_FREQUENCY} {self.names[claim]} in all rows."
