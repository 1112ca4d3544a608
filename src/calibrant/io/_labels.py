"""Encoding of the labels of a file as column codes, by name or as column indices.

Ambiguous labels raise an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant._typing import AnyArray, IntArray
from calibrant._validation import ParameterError, match_labels, readings, shortened
from calibrant.io._readers import FileReader, as_text
from calibrant.io._roles import FileOptions, ModelScores


@dataclass(frozen=True)
class LabelRule:
    """Encoding of labels. ``keys[k]`` is the text of column k, and ``classes[k]`` is its label."""

    keys: tuple[str, ...]
    classes: AnyArray
    note: str | None = None
    has_one_column: bool = False
    """Whether the file has one score column, which contains the scores of the second class."""

    def codes(self, labels: Any, start: int) -> IntArray:
        """Column codes of a block of labels that starts at row ``start`` of the file."""
        text = as_text(labels)
        places = self._places_of(text)
        if places.null_count:
            places = self._places_by_meaning(text)
        if places.null_count:
            row = int(np.flatnonzero(places.is_null().to_numpy(zero_copy_only=False))[0])
            raise _unknown_label(text[row].as_py(), start + row, self)
        return places.to_numpy(zero_copy_only=False).astype(np.intp)

    def _places_of(self, text: Any) -> Any:
        return pc.index_in(text, value_set=pa.array(self.keys, pa.string()))

    def _places_by_meaning(self, text: Any) -> Any:
        """Return the codes of labels with another spelling, if their meaning is unique."""
        meanings = [meaning(key) for key in self.keys]
        if len(set(meanings)) != len(meanings):
            return self._places_of(text)
        encoded = text.dictionary_encode()
        labels = [label and meaning(label) for label in encoded.dictionary.to_pylist()]
        values = pa.array(meanings, pa.string())
        return pc.index_in(pa.array(labels, pa.string()), value_set=values).take(encoded.indices)


def meaning(label: str) -> str:
    """Normalize blanks and spelling of a label, such as "01", "1.0" or "true" for 1.

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


_COLUMN_ORDER = "Pass {classes} with the label of each column, in the order of the columns."
_BINARY_ORDER = (
    "The file has one score column, so pass {classes} with the negative label and then the "
    "positive label."
)


def _unknown_label(label: str | None, row: int, rule: LabelRule) -> ValueError:
    if label is None or not label.strip():
        return ValueError(
            f"The label of row {row} is missing. Remove such rows, or add their labels."
        )
    return ParameterError(
        "Label {label!r} in row {row} is not among the classes {keys}. "
        + (_BINARY_ORDER if rule.has_one_column else _COLUMN_ORDER),
        {"label": label, "row": row, "keys": shortened(rule.keys)},
    )


def label_rule(
    reader: FileReader, options: FileOptions, model: ModelScores | None = None
) -> LabelRule:
    """Return the rule that matches labels to the columns of a file or to the classes of a model."""
    names = options.classes if model is None else model.names
    rule = _match_names(reader, names or reader.names, is_given=names is not None)
    rule = replace(rule, has_one_column=reader.n_features == 1)
    return rule if model is None else replace(rule, classes=model.classes)


def top_label_rule(options: FileOptions, model: ModelScores | None = None) -> LabelRule:
    """Return the rule for the labels of a file of top scores."""
    if model is not None:
        return LabelRule(model.names, model.classes)
    if options.classes is not None:
        return LabelRule(options.classes, class_values(options.classes))
    if options.n_classes is None:
        raise ParameterError(
            "The file contains only the top classes of each row, so the number of classes is "
            "unknown. Pass {n_classes} if the labels are integers from 0, or {classes} with all "
            "labels."
        )
    return LabelRule(tuple(map(str, range(options.n_classes))), np.arange(options.n_classes))


def _match_names(reader: FileReader, names: Sequence[str], *, is_given: bool) -> LabelRule:
    _check_names(names, reader.n_classes)
    if reader.has_text_labels:
        return _text_rule(reader, names, is_given=is_given)
    if not is_given and (keys := _numbers_of(reader, names)) is not None:
        return LabelRule(tuple(str(int(key)) for key in keys), class_values(keys))
    if _are_whole(names) or _are_named(reader, names):
        return LabelRule(tuple(names), class_values(names))
    return _number_rule(reader, names)


def _check_names(names: Sequence[str], n_classes: int) -> None:
    if len(names) != n_classes:
        raise ParameterError(
            "{classes} has {n} labels, but the file has {n_columns} score columns. Pass one label "
            "per column.",
            {"n": len(names), "n_columns": n_classes},
        )
    if len(set(names)) != n_classes:
        raise ValueError(f"Classes must not contain duplicates, got {shortened(names)}.")


def _number_rule(reader: FileReader, names: Sequence[str]) -> LabelRule:
    """Treat integers that are not column names as column indices.

    Booleans, fractions and padded numbers are rejected, because such labels may not be column
    indices.
    """
    labels = reader.distinct_labels()
    if reader.label_kind != "int" or not _are_whole(labels):
        raise _unmatched(reader, labels, names)
    note = f"The labels are assumed to be column indices: 0 is {names[0]!r}."
    return LabelRule(tuple(map(str, range(len(names)))), class_values(names), note)


def _are_named(reader: FileReader, names: Sequence[str]) -> bool:
    """Return whether every label is the name of a column, or matches exactly one column."""
    labels = reader.distinct_labels()
    if reader.keeps_spelling and labels <= set(names):
        return True
    meanings = [meaning(name) for name in names]
    is_unique = len(set(meanings)) == len(meanings)
    are_meant = {meaning(label) for label in labels} <= set(meanings)
    if are_meant and not is_unique:
        raise ParameterError(
            "The labels {labels} are ambiguous, because several of the columns {names} match the "
            "same label. Pass {classes} with the label of each column, in the order of the "
            "columns.",
            _values_of(labels, names),
        )
    return are_meant


def _unmatched(reader: FileReader, labels: Iterable[str], names: Sequence[str]) -> ValueError:
    if reader.n_features == 1:
        return ParameterError(
            f"The labels are {{labels}}. {_BINARY_ORDER}", _values_of(labels, names)
        )
    template = f"The labels are {{labels}}, but the score columns are {{names}}. {_COLUMN_ORDER}"
    return ParameterError(template, _values_of(labels, names))


def _values_of(labels: Iterable[str], names: Sequence[str]) -> dict[str, object]:
    return {"labels": shortened(sorted(labels)), "names": shortened(names)}


def _numbers_of(reader: FileReader, names: Sequence[str]) -> list[str] | None:
    """The integers in the names of columns such as p0, p1, if the labels are among them."""
    # Use the names if possible, because reading the labels takes a pass over the file.
    if _are_whole(names) or not any(_are_whole(keys) for keys in readings(names)):
        return None
    keys = match_labels(names, reader.distinct_labels())
    return keys if keys is not None and _are_whole(keys) else None


def _text_rule(reader: FileReader, names: Sequence[str], *, is_given: bool) -> LabelRule:
    """Match string labels only by name, because columns need not be in alphabetical order."""
    if is_given:
        return LabelRule(tuple(names), class_values(names))
    labels = {label.strip() for label in reader.distinct_labels()}
    keys = match_labels(names, labels)
    if keys is None and not labels & set(names) and len(labels) == len(names):
        raise _unmatched(reader, labels, names)
    return LabelRule(tuple(keys or names), class_values(keys or names))


def class_values(names: Sequence[str]) -> AnyArray:
    """Labels of classes from their names.

    Labels are integers if all names are integers, else strings.
    """
    return np.array([int(n) for n in names]) if _are_whole(names) else np.array(names, dtype=str)


def _are_whole(names: Iterable[str]) -> bool:
    return all(
        name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name
        for name in names
    )
