"""Roles of the columns of a table (scores, labels, weights), from options, names and types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from calibrant._typing import AnyArray
from calibrant._validation import ParameterError, match_columns, shortened

LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "class", "truth")
"""Default names of the label column."""

NEVER_LABELS = frozenset(
    {"id", "index", "idx", "row", "key", "uuid", "fold", "split", "group", "batch", "weight"}
    | {"pred", "preds", "prediction", "predictions", "predicted", "y_pred", "yhat", "y_hat"}
)
"""Names of columns that are not the label, even if no other column lacks numbers."""

PREFIXES = {
    "proba": ("p_", "prob_", "proba_"),
    "logits": ("z_", "logit_", "logits_"),
    "log_proba": ("lp_", "logprob_"),
}
"""Beginnings of the names of score columns, before the name of the class."""
KINDS = {"proba": "probabilities", "logits": "logits", "log_proba": "log-probabilities"}

TAIL_COLUMN = "rest_logprob"
"""The column of the tail mass of top scores."""

_TOP_LABEL = re.compile(r"top(\d+)_label")
_TOP_COLUMN = re.compile(rf"top\d+_(label|logprob)|{TAIL_COLUMN}")

Kinds = Mapping[str, str]
"""The columns of a table with their types: "float", "int", "text", "time" or "other"."""


@dataclass(frozen=True)
class FileOptions:
    """The user's description of a file.

    ``proba``, ``logits`` and ``log_proba`` are patterns (``p_*``) or lists of columns (``a,b,c``).
    """

    path: Path
    label: str | None = None
    proba: str | None = None
    logits: str | None = None
    log_proba: str | None = None
    weight: str | None = None
    classes: tuple[str, ...] | None = None
    labels: Path | None = None
    split: str | None = None
    renormalize: bool = False
    n_classes: int | None = None
    sep: str | None = None
    decimal: str | None = None
    percent: bool = False

    def arguments(self) -> Iterator[str]:
        """Return the equivalent command-line arguments, with file names instead of full paths."""
        yield self.path.name
        for name in ("label", *KINDS, "weight", "split", "sep", "decimal"):
            value = getattr(self, name)
            yield from [f"--{name.replace('_', '-')}", value] if value is not None else []
        yield from ["--classes", ",".join(self.classes)] if self.classes else []
        yield from ["--labels", self.labels.name] if self.labels else []
        yield from ["--n-classes", str(self.n_classes)] if self.n_classes else []
        yield from ["--renormalize"] if self.renormalize else []
        yield from ["--percent"] if self.percent else []

    @property
    def inputs(self) -> str | None:
        """The type of scores, if the user declares it."""
        declared = [kind for kind in KINDS if getattr(self, kind)]
        if len(declared) > 1:
            raise ParameterError(
                f"Scores are either {KINDS[declared[0]]} or {KINDS[declared[1]]}. Pass "
                f"{{{declared[0]}}} or {{{declared[1]}}}, not both."
            )
        return declared[0] if declared else None


class ModelScores(NamedTuple):
    """The scores that a fitted model accepts.

    The fields are the labels of the columns, the type of scores, and the column names in `fit` (if
    known).
    """

    classes: AnyArray
    inputs: str
    columns: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The classes as text."""
        return tuple(str(label) for label in self.classes.tolist())


@dataclass(frozen=True)
class Columns:
    """The columns to read. ``names`` are the classes in the names of the score columns."""

    scores: tuple[str, ...]
    names: tuple[str, ...]
    inputs: str
    label: str | None
    weight: str | None
    was_guessed: bool
    top_labels: tuple[str, ...] = ()
    """Columns of the labels of top scores, best first. Empty if the file has the scores of all
    classes."""

    def all_names(self) -> list[str]:
        """Every column that is read."""
        others = (name for name in (self.label, self.weight) if name)
        return [*self.scores, *self.top_labels, *others]

    def summary(self) -> str:
        """A sentence about the roles of the columns."""
        label = f", and {self.label!r} as the label" if self.label else ""
        return (
            f"Reading {shortened(self.scores)} as {KINDS[self.inputs]} of "
            f"{max(2, len(self.scores))} classes{label}."
        )


_ScoreColumns = tuple[list[str], list[str]]
"""Names of the score columns, and the classes of these columns."""


def choose_columns(
    kinds: Kinds, options: FileOptions, *, needs_label: bool, model: ModelScores | None = None
) -> Columns:
    """Choose the columns to read, by the classes of a fitted model if it is passed."""
    label = _find_column(kinds, options.label, "label")
    if label is None and needs_label:
        label = _guess_label(kinds)
    weight = _find_column(kinds, options.weight, "weight")
    _check_numeric([weight] if weight else [], kinds, "")
    others = [name for name in kinds if name not in (label, weight)]
    if options.inputs is None and has_top_scores(others):
        _reject_top_output(others if model is not None else ())
        return _top_columns(others, label, weight)
    scores, names, inputs = _choose_scores(others, kinds, options, model)
    # A column of scores with percent signs has the type string.
    other = "," if options.decimal in (None, ".") else "."
    hint = (
        f" Pass {{percent:True}} for percentages such as 95%, or {{decimal:{other!r}}} for numbers "
        f"such as 0{other}95."
    )
    _check_numeric([] if options.percent else scores, kinds, hint)
    _check_different(scores, names)
    was_guessed = options.inputs is None or (options.label is None and label is not None)
    return Columns(tuple(scores), tuple(names), inputs, label, weight, was_guessed)


def has_top_scores(columns: Iterable[str]) -> bool:
    """Return whether a table has columns of the top classes of each row."""
    return {"top1_label", "top1_logprob"} <= set(columns)


def _top_columns(columns: Sequence[str], label: str | None, weight: str | None) -> Columns:
    """The columns ``top1_label``, ``top1_logprob``, ... of all ranks.

    ``rest_logprob`` is added if the file contains the tail mass.
    """
    ranks = sorted(int(match[1]) for name in columns if (match := _TOP_LABEL.fullmatch(name)))
    scores = [f"top{rank}_logprob" for rank in ranks]
    if ranks != list(range(1, len(ranks) + 1)) or not set(scores) <= set(columns):
        raise ValueError(
            "The file needs columns top1_label, top1_logprob, top2_label, ... for every rank, but "
            f"has the columns {shortened(columns)}. Add the missing columns."
        )
    tail = [TAIL_COLUMN] if TAIL_COLUMN in columns else []
    labels = tuple(f"top{rank}_label" for rank in ranks)
    return Columns((*scores, *tail), (), "log_proba", label, weight, False, labels)


def _choose_scores(
    columns: Sequence[str], kinds: Kinds, options: FileOptions, model: ModelScores | None
) -> tuple[list[str], list[str], str]:
    inputs = options.inputs
    if inputs is not None:
        pattern = getattr(options, inputs)
        scores, names = _match_pattern(columns, pattern, inputs)
        if model is not None:
            scores, names = _order_for_model(scores, names, model, is_list="*" not in pattern)
        return scores, names, inputs
    if model is not None:
        return *_find_for_model(columns, model), model.inputs
    return _guess_scores(columns, kinds)


def _find_column(kinds: Kinds, name: str | None, parameter: str) -> str | None:
    """Return the column with a name, ignoring surrounding blanks if the column is then unique."""
    if name is None or name in kinds:
        return name
    matches = [column for column in kinds if column.strip() == name.strip()]
    if len(matches) != 1:
        raise ParameterError(
            f"The file has no column {{name!r}} ({{{parameter}}}). The columns of the file are "
            f"{{columns}}.",
            {"name": name, "columns": shortened(list(kinds))},
        )
    return matches[0]


def _guess_label(kinds: Kinds) -> str:
    others = {name: kind for name, kind in kinds.items() if not _TOP_COLUMN.fullmatch(name)}
    by_name = [name for name in others if name.strip().lower() in LABEL_NAMES]
    by_kind = [name for name, kind in others.items() if kind != "float"]
    for matches in (by_name, by_kind):
        if len(matches) == 1 and matches[0].strip().lower() not in NEVER_LABELS:
            return matches[0]
    header = " Add a header line if the file has none." if any(map(_is_fraction, kinds)) else ""
    raise ParameterError(
        f"The label column is ambiguous. Pass {{label:'NAME'}} with one of {{columns}}.{header}",
        {"columns": shortened(list(kinds))},
    )


def _is_fraction(name: str) -> bool:
    """Return whether a column name is a number with a decimal point, such as 0.25."""
    whole, point, fraction = name.strip().removeprefix("-").partition(".")
    return bool(point) and whole.isdigit() and fraction.isdigit()


def _match_pattern(columns: Sequence[str], pattern: str, inputs: str) -> _ScoreColumns:
    """The columns that match a pattern or list, and the classes in their names."""
    if "*" not in pattern:
        return _find_listed(columns, pattern, inputs)
    matches = [name for name in columns if fnmatchcase(name.strip(), pattern)]
    if not matches:
        raise ParameterError(
            f"No column matches {{pattern!r}} ({{{inputs}}}). The columns are {{columns}}.",
            {"pattern": pattern, "columns": shortened(columns)},
        )
    before, _, after = pattern.partition("*")
    return matches, [
        name[len(before) : len(name) - len(after)] if "*" not in after else name
        for name in (match.strip() for match in matches)
    ]


def _find_listed(columns: Sequence[str], names: str, inputs: str) -> _ScoreColumns:
    kinds = dict.fromkeys(columns, "")
    listed = [str(_find_column(kinds, name.strip(), inputs)) for name in names.split(",")]
    return listed, [name.strip() for name in listed]


def _guess_scores(columns: Sequence[str], kinds: Kinds) -> tuple[list[str], list[str], str]:
    by_prefix = {inputs: _with_prefix(columns, inputs) for inputs in PREFIXES}
    several = [inputs for inputs, (scores, _) in by_prefix.items() if len(scores) > 1]
    if len(several) > 1:
        raise _several_kinds(several)
    if several:
        return *by_prefix[several[0]], several[0]
    floats = [name for name in columns if kinds[name] == "float"]
    if len(floats) > 1 and len(floats) == len(columns):
        return floats, [name.strip() for name in floats], "proba"
    if len(floats) == 1:
        raise ParameterError(
            "Only column {name!r} contains fractions. Pass {proba:{name!r}} if these are "
            "probabilities of the positive class, or {logits:{name!r}} if these are logits.",
            {"name": floats[0]},
        )
    raise ParameterError(
        "The score columns are ambiguous. Pass a pattern or a list, for example {proba:'p_*'} or "
        "{logits:'z_*'}. The columns are {columns}.",
        {"columns": shortened(columns)},
    )


def _several_kinds(kinds: Sequence[str]) -> ParameterError:
    patterns = [f"{PREFIXES[inputs][0]}*" for inputs in kinds]
    choices = [f"{{{inputs}:{name!r}}}" for inputs, name in zip(kinds, patterns, strict=True)]
    return ParameterError(
        f"The file has columns {' and '.join(patterns)}. Pass {' or '.join(choices)}."
    )


def _with_prefix(columns: Sequence[str], inputs: str) -> _ScoreColumns:
    """The columns with the usual prefix of such scores, and the classes in their names.

    If there are several prefixes, the prefix with the most columns is used.
    """
    prefix = max(PREFIXES[inputs], key=lambda start: len(_beginning_with(start, columns)))
    scores = _beginning_with(prefix, columns)
    return scores, [name.strip().removeprefix(prefix) for name in scores]


def _beginning_with(prefix: str, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name.strip().startswith(prefix)]


def _find_for_model(columns: Sequence[str], model: ModelScores) -> _ScoreColumns:
    """Return the score columns for a model, and its classes.

    The score columns have the column names of `fit`, are named after the classes of the model, or
    are numbered from 0.
    """
    names = list(model.names)
    if model.columns and set(model.columns) <= set(columns):
        _reject_output(columns, model, model.columns[0])
        return list(model.columns), names
    _reject_output(columns, model, f"p_{names[0]}")
    candidates = [_named_after(prefix, columns) for prefix in ("", *PREFIXES[model.inputs])]
    matches = [column_of for column_of in candidates if set(names) <= set(column_of)]
    if len(matches) > 1:
        first, second = (column_of[names[0]] for column_of in matches[:2])
        raise ParameterError(
            "The file has several columns for class {name!r}, {first!r} and {second!r}. Pass "
            f"{{{model.inputs}:'a,b,...'}} with the names of the score columns.",
            {"name": names[0], "first": first, "second": second},
        )
    if matches:
        return [matches[0][name] for name in names], names
    prefixed = dict(zip(*reversed(_with_prefix(columns, model.inputs)), strict=True))
    if list(prefixed) == _numbered(names):
        return list(prefixed.values()), names
    raise ParameterError(
        "The model needs {kind} of {n} classes ({names}), but no columns are named after these "
        f"classes. Pass {{{model.inputs}:'a,b,...'}} with the columns in this order. The file has "
        "{columns}.",
        {
            "n": len(names),
            "names": shortened(names),
            "kind": KINDS[model.inputs],
            "columns": shortened(columns),
        },
    )


def _named_after(prefix: str, columns: Sequence[str]) -> dict[str, str]:
    """Columns with a prefix, by the class in their name."""
    return {name.strip().removeprefix(prefix): name for name in _beginning_with(prefix, columns)}


def _reject_output(columns: Sequence[str], model: ModelScores, first: str) -> None:
    """Raise if the probabilities in a file are already calibrated."""
    if model.inputs == "proba" and {first, f"raw_{first}"} <= set(columns):
        raise ParameterError(
            "The file has columns {first!r} and 'raw_{first}', so calibrant apply wrote it, and "
            "its scores are already calibrated. Pass {proba:'raw_p_*'} to calibrate the original "
            "scores again.",
            {"first": first},
        )


def _reject_top_output(columns: Sequence[str]) -> None:
    if "raw_top1_logprob" in columns:
        raise ValueError(
            "The file has a column raw_top1_logprob, so calibrant apply wrote it, and its scores "
            "are already calibrated. Apply the model to the original file."
        )


def _order_for_model(
    scores: list[str], names: list[str], model: ModelScores, *, is_list: bool
) -> _ScoreColumns:
    """Return columns in the order of the classes of a model.

    Columns are matched by name. Other lists of names, and patterns that match numbered columns,
    keep their order.
    """
    wanted = list(model.names)
    order = match_columns(names, wanted)
    if order is not None:
        return [scores[place] for place in order], wanted
    if len(scores) == 1 and len(wanted) == 2:
        return scores, names
    values = {"n": len(wanted), "wanted": shortened(wanted), "names": shortened(names)}
    if len(scores) != len(wanted):
        values |= {"n_columns": len(scores), "columns": shortened(scores)}
        raise ParameterError(
            "The model has {n} classes ({wanted}), but {n_columns} score columns were passed "
            "({columns}). Pass one column per class.",
            values,
        )
    if not set(names) & set(wanted) and (is_list or names == _numbered(wanted)):
        return scores, wanted
    raise ParameterError(
        "The columns are named after the classes {names}, but the model has the classes {wanted}. "
        f"Pass {{{model.inputs}:'a,b,...'}} with the columns in the order of the model.",
        values,
    )


def _numbered(names: Sequence[str]) -> list[str]:
    return [str(place) for place in range(len(names))]


def _check_different(scores: Sequence[str], names: Sequence[str]) -> None:
    for listed in (scores, names):
        repeated = [name for name, times in Counter(listed).items() if times > 1]
        if repeated:
            raise ValueError(
                f"{repeated[0]!r} occurs twice among the score columns. Pass one column per class."
            )


def _check_numeric(columns: Sequence[str], kinds: Kinds, hint: str) -> None:
    """Raise for columns that do not contain numbers. ``hint`` is added for columns of text."""
    text = [name for name in columns if kinds[name] not in ("float", "int")]
    if text:
        content = {"other": "neither numbers nor text"}.get(kinds[text[0]], kinds[text[0]])
        template = "Column {name!r} must contain numbers, but contains {content}."
        raise ParameterError(
            template + (hint if kinds[text[0]] == "text" else ""),
            {"name": text[0], "content": content},
        )
