"""Labels of a file to column codes: by name, or as column indices; never by what a value happens to
look like twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant._typing import AnyArray, IntArray
from calibrant._validation import shortened
from calibrant.cli._columns import FileOptions
from calibrant.cli._sources import Source, as_text


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
            row = int(np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(_unknown(text[row].as_py(), start + row, self.keys))
        return found.to_numpy(zero_copy_only=False).astype(np.intp)


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
    if _are_whole(names):
        return LabelRule(tuple(str(int(n)) for n in names), class_values(names))
    return LabelRule(tuple(map(str, range(n_classes))), class_values(names))


def _text_rule(source: Source, names: Sequence[str], *, is_given: bool) -> LabelRule:
    seen = source.distinct_labels()
    if is_given or seen & set(names) or len(seen) != len(names):
        return LabelRule(tuple(names), class_values(names))
    ordered = sorted(seen)
    said = (
        f"the columns are taken to be the classes {shortened(ordered)}, in this order (else give "
        f"--classes)"
    )
    return LabelRule(tuple(ordered), class_values(ordered), said)


def class_values(names: Sequence[str]) -> AnyArray:
    """Names of classes as the library has them: whole numbers as such."""
    return np.array([int(n) for n in names]) if _are_whole(names) else np.array(names, dtype=str)


def _are_whole(names: Sequence[str]) -> bool:
    return all(
        name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name
        for name in names
    )
