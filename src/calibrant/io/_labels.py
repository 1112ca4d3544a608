"""Labels of a file to column codes: by name, or as column indices; never by what a value happens to
look like twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant._typing import AnyArray, IntArray
from calibrant._validation import shortened
from calibrant.io._columns import FileOptions
from calibrant.io._sources import Source, as_text


@dataclass(frozen=True)
class LabelRule:
    """``keys[k]`` is how a label of column k reads, ``classes[k]`` what the class is called."""

    keys: tuple[str, ...]
    classes: AnyArray
    said: str | None = None

    def codes(self, labels: Any, start: int) -> IntArray:
        """Column codes of a block of labels that begins with row ``start`` of the file."""
        text = as_text(labels)
        found = pc.index_in(text, value_set=pa.array(self.keys, pa.string()))
        if found.null_count:
            found = self._found_by_meaning(text)
        if found.null_count:
            row = int(np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(_unknown(text[row].as_py(), start + row, self.keys))
        return found.to_numpy(zero_copy_only=False).astype(np.intp)

    def _found_by_meaning(self, text: Any) -> Any:
        """Places of labels of another spelling, where no two classes mean the same."""
        meant = [meaning(key) for key in self.keys]
        if len(set(meant)) != len(meant):
            return pc.index_in(text, value_set=pa.array(self.keys, pa.string()))
        own = text.dictionary_encode()
        spelt = [None if one is None else meaning(one) for one in own.dictionary.to_pylist()]
        places = pc.index_in(pa.array(spelt, pa.string()), value_set=pa.array(meant, pa.string()))
        return places.take(own.indices)


def meaning(label: str) -> str:
    """A label without what is only spelling: blanks around it, "01", "1.0" and "true" for 1.

    Examples
    --------
    >>> [meaning(label) for label in (" cat", "01", "2.0", "True", "1.5", "1e5x")]
    ['cat', '1', '2', '1', '1.5', '1e5x']
    """
    text = label.strip()
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    whole, _, fraction = text.partition(".")
    digits = whole.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or fraction.strip("0"):
        return text
    return str(int(whole)) if len(whole) < 19 else text


def _unknown(label: str | None, row: int, keys: Sequence[str]) -> str:
    if label is None:
        return f"the label of row {row} is missing: remove such rows"
    return (
        f"label {label!r} in row {row} is not among the classes {shortened(keys)}: "
        "name the classes in the order of the columns by --classes"
    )


def label_rule(source: Source, options: FileOptions) -> LabelRule:
    """How the labels of a file are matched to its columns of scores."""
    names = options.classes or source.names
    n_classes = source.n_classes
    if len(names) != n_classes:
        raise ValueError(
            f"--classes names {len(names)} classes and the file has {n_classes} columns of scores"
        )
    if len(set(names)) != n_classes:
        raise ValueError(f"the classes must be different from each other, got {shortened(names)}")
    if source.has_text_labels:
        return _text_rule(source, names, is_given=options.classes is not None)
    if options.classes is not None and not _mean_places(source, names):
        return LabelRule(tuple(names), class_values(names))
    if _are_whole(names):
        return LabelRule(tuple(str(int(n)) for n in names), class_values(names))
    said = f"the labels are taken for the numbers of the columns: 0 is {names[0]!r}"
    return LabelRule(tuple(map(str, range(n_classes))), class_values(names), said)


def _mean_places(source: Source, names: Sequence[str]) -> bool:
    """Whether numbers as labels are places among named classes, and not names of them."""
    meant = {meaning(name) for name in names}
    return not {meaning(label) for label in source.distinct_labels()} <= meant


def _text_rule(source: Source, names: Sequence[str], *, is_given: bool) -> LabelRule:
    """Names of columns decide: the order of the alphabet may be another."""
    seen = {label.strip() for label in source.distinct_labels()}
    bare = _without_common_ends(names)
    chosen = names if is_given or seen & set(names) or not seen <= set(bare) else bare
    if not (is_given or seen & set(chosen)) and len(seen) == len(names):
        raise ValueError(
            f"the labels are {shortened(sorted(seen))} and the columns of scores "
            f"{shortened(names)}: say which column is which by --classes, in the order of the "
            f"columns"
        )
    return LabelRule(tuple(chosen), class_values(chosen))


def _without_common_ends(names: Sequence[str]) -> list[str]:
    """Names without what all of them begin and end with, up to a letter that is no part of words:
    "score of cat", "score of dog" are cat and dog.
    """
    start = re.sub(r"[^\W_]*$", "", _common_start(names))
    rest = [name[len(start) :] for name in names]
    end = re.sub(r"[^\W_]*$", "", _common_start([name[::-1] for name in rest]))
    return [name[: len(name) - len(end)] for name in rest]


def _common_start(names: Sequence[str]) -> str:
    letters = takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    return "".join(column[0] for column in letters)


def class_values(names: Sequence[str]) -> AnyArray:
    """Names of classes as the library has them: whole numbers as such."""
    return np.array([int(n) for n in names]) if _are_whole(names) else np.array(names, dtype=str)


def _are_whole(names: Sequence[str]) -> bool:
    return all(
        name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name
        for name in names
    )
