"""Which columns of a table are scores, labels and weights: by the options, names and types."""

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
"""Names of a column that is the label if the user names none."""

NEVER_LABELS = frozenset(
    {"id", "index", "idx", "row", "key", "uuid", "fold", "split", "group", "batch", "weight"}
    | {"pred", "preds", "prediction", "predictions", "predicted", "y_pred", "yhat", "y_hat"}
)
"""Names of a column that is not the label, even if it is the only one without numbers."""

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
    """What the user says about a file. ``proba``, ``logits`` and ``log_proba`` are patterns
    (``p_*``) or lists of columns (``a,b,c``).
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
        """The same for a command line; folders are left out."""
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
        """The kind of scores, if the user says it."""
        given = [kind for kind in KINDS if getattr(self, kind)]
        if len(given) > 1:
            raise ParameterError(
                f"{{{given[0]}}} and {{{given[1]}}} exclude each other: scores are "
                f"{KINDS[given[0]]} or {KINDS[given[1]]}"
            )
        return given[0] if given else None


class ModelScores(NamedTuple):
    """The scores that a fitted model takes: labels of the columns, the kind of scores, and the
    names of the columns of the fit, if they are known.
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
    """The columns that are read. ``names`` are the classes that the score columns are named
    after.
    """

    scores: tuple[str, ...]
    names: tuple[str, ...]
    inputs: str
    label: str | None
    weight: str | None
    was_guessed: bool
    top_labels: tuple[str, ...] = ()
    """Columns of the labels of top scores, best first; none if the scores are those of all
    classes."""

    def all_names(self) -> list[str]:
        """Every column that is read."""
        others = (name for name in (self.label, self.weight) if name)
        return [*self.scores, *self.top_labels, *others]

    def summary(self) -> str:
        """What is read as what, in a sentence."""
        label = f", {self.label!r} as the label" if self.label else ""
        return (
            f"reading {shortened(self.scores)} as {KINDS[self.inputs]} of "
            f"{max(2, len(self.scores))} classes{label}"
        )


def choose_columns(
    kinds: Kinds, options: FileOptions, *, needs_label: bool, model: ModelScores | None = None
) -> Columns:
    """The columns of a table that are read, for a model if there is one."""
    label = _find_column(kinds, options.label, "label")
    if label is None and needs_label:
        label = _guess_label(kinds)
    weight = _find_column(kinds, options.weight, "weight")
    _check_numeric([weight] if weight else [], kinds)
    others = [name for name in kinds if name not in (label, weight)]
    if options.inputs is None and has_top_scores(others):
        _reject_top_output(others if model is not None else ())
        return _top_columns(others, label, weight)
    scores, names, inputs = _choose_scores(others, kinds, options, model)
    _check_numeric(scores, kinds)
    _check_different(scores, names)
    was_guessed = options.inputs is None or (options.label is None and label is not None)
    return Columns(tuple(scores), tuple(names), inputs, label, weight, was_guessed)


def has_top_scores(columns: Iterable[str]) -> bool:
    """Whether a table has columns of the best few classes of each row."""
    return {"top1_label", "top1_logprob"} <= set(columns)


def _top_columns(columns: Sequence[str], label: str | None, weight: str | None) -> Columns:
    """The columns ``top1_label``, ``top1_logprob``, ... for every rank without a gap, and
    ``rest_logprob`` if the tail mass was written.
    """
    ranks = sorted(int(match[1]) for name in columns if (match := _TOP_LABEL.fullmatch(name)))
    scores = [f"top{rank}_logprob" for rank in ranks]
    if ranks != list(range(1, len(ranks) + 1)) or not set(scores) <= set(columns):
        raise ValueError(
            "columns top1_label, top1_logprob, top2_label, ... must be there for every rank; the "
            f"file has {shortened(columns)}"
        )
    rest = [TAIL_COLUMN] if TAIL_COLUMN in columns else []
    labels = tuple(f"top{rank}_label" for rank in ranks)
    return Columns((*scores, *rest), (), "log_proba", label, weight, False, labels)


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
    """The column of a name; blanks around it do not matter if one column is named so."""
    if name is None or name in kinds:
        return name
    matches = [column for column in kinds if column.strip() == name.strip()]
    if len(matches) != 1:
        raise ParameterError(
            f"there is no column {{name!r}} ({{{parameter}}}); the file has {{columns}}",
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
    raise ParameterError(
        "which column is the label? Say so by {label}; the file has {columns}",
        {"columns": shortened(list(kinds))},
    )


def _match_pattern(
    columns: Sequence[str], pattern: str, inputs: str
) -> tuple[list[str], list[str]]:
    """Columns that a pattern or a list names, and the classes that they are named after."""
    if "*" not in pattern:
        kinds = dict.fromkeys(columns, "")
        listed = [str(_find_column(kinds, name.strip(), inputs)) for name in pattern.split(",")]
        return listed, [name.strip() for name in listed]
    matches = [name for name in columns if fnmatchcase(name.strip(), pattern)]
    if not matches:
        raise ParameterError(
            f"no column matches {{pattern!r}} ({{{inputs}}}); the file has {{columns}}",
            {"pattern": pattern, "columns": shortened(columns)},
        )
    before, _, after = pattern.partition("*")
    return matches, [
        name[len(before) : len(name) - len(after)] if "*" not in after else name
        for name in (match.strip() for match in matches)
    ]


def _guess_scores(columns: Sequence[str], kinds: Kinds) -> tuple[list[str], list[str], str]:
    by_prefix = {inputs: _with_prefix(columns, inputs) for inputs in PREFIXES}
    several = [inputs for inputs, (scores, _) in by_prefix.items() if len(scores) > 1]
    if len(several) > 1:
        patterns = [f"{PREFIXES[inputs][0]}*" for inputs in several]
        choices = [f"{{{kind}:{name!r}}}" for kind, name in zip(several, patterns, strict=True)]
        raise ParameterError(
            f"the file has columns {' and '.join(patterns)}: say which by {' or '.join(choices)}"
        )
    if several:
        return *by_prefix[several[0]], several[0]
    floats = [name for name in columns if kinds[name] == "float"]
    if len(floats) > 1 and len(floats) == len(columns):
        return floats, [name.strip() for name in floats], "proba"
    raise ParameterError(
        "which columns are the scores? Say so by {proba} or {logits}, as in {proba:'p_*'}; there "
        "are {columns}",
        {"columns": shortened(columns)},
    )


def _with_prefix(columns: Sequence[str], inputs: str) -> tuple[list[str], list[str]]:
    """Columns that begin as columns of such scores do, and the classes that they are named after;
    of several beginnings the one of most columns.
    """
    prefix = max(PREFIXES[inputs], key=lambda start: len(_beginning_with(start, columns)))
    scores = _beginning_with(prefix, columns)
    return scores, [name.strip().removeprefix(prefix) for name in scores]


def _beginning_with(prefix: str, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name.strip().startswith(prefix)]


def _find_for_model(columns: Sequence[str], model: ModelScores) -> tuple[list[str], list[str]]:
    """The columns of the fit, or those that are named after the classes of the model, in its order,
    or numbered from 0 on.
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
            "the file has several columns for class {name!r}, {first!r} and {second!r}: say which "
            f"are the scores by {{{model.inputs}:'a,b,...'}}",
            {"name": names[0], "first": first, "second": second},
        )
    if matches:
        return [matches[0][name] for name in names], names
    prefixed = dict(zip(*reversed(_with_prefix(columns, model.inputs)), strict=True))
    if list(prefixed) == _numbered(names):
        return list(prefixed.values()), names
    raise ParameterError(
        "the model has {n} classes ({names}) and takes {kind}: say which columns hold them, in "
        f"this order, by {{{model.inputs}:'a,b,...'}}; the file has {{columns}}",
        {
            "n": len(names),
            "names": shortened(names),
            "kind": KINDS[model.inputs],
            "columns": shortened(columns),
        },
    )


def _named_after(prefix: str, columns: Sequence[str]) -> dict[str, str]:
    """Columns with a prefix, by the classes that they are named after."""
    return {name.strip().removeprefix(prefix): name for name in _beginning_with(prefix, columns)}


def _reject_output(columns: Sequence[str], model: ModelScores, first: str) -> None:
    """Probabilities that were calibrated must not be calibrated again."""
    if model.inputs == "proba" and {first, f"raw_{first}"} <= set(columns):
        raise ParameterError(
            "the file holds {first!r} and 'raw_{first}': it was written by calibrant apply, and is "
            "calibrated already; to do it again from what it was, say {proba:'raw_p_*'}",
            {"first": first},
        )


def _reject_top_output(columns: Sequence[str]) -> None:
    if "raw_top1_logprob" in columns:
        raise ValueError(
            "The file holds raw_top1_logprob, so it was written by calibrant apply, and is "
            "calibrated already. Apply the model to the original file."
        )


def _order_for_model(
    scores: list[str], names: list[str], model: ModelScores, *, is_list: bool
) -> tuple[list[str], list[str]]:
    """Columns in the order of the classes of a model: by their names, or, if a list names other
    columns, or a pattern numbers, as they are.
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
            "the model has {n} classes ({wanted}) and {n_columns} columns were named: {columns}",
            values,
        )
    if not set(names) & set(wanted) and (is_list or names == _numbered(wanted)):
        return scores, wanted
    raise ParameterError(
        "the columns are called after the classes {names} and the model has {wanted}: list the "
        f"columns in this order by {{{model.inputs}:'a,b,...'}}",
        values,
    )


def _numbered(names: Sequence[str]) -> list[str]:
    return [str(place) for place in range(len(names))]


def _check_different(scores: Sequence[str], names: Sequence[str]) -> None:
    for listed in (scores, names):
        repeated = [name for name, times in Counter(listed).items() if times > 1]
        if repeated:
            raise ValueError(f"the scores name {repeated[0]!r} twice: a class has one column")


def _check_numeric(columns: Sequence[str], kinds: Kinds) -> None:
    text = [name for name in columns if kinds[name] not in ("float", "int")]
    if text:
        content = {"other": "neither numbers nor text"}.get(kinds[text[0]], kinds[text[0]])
        raise ValueError(f"column {text[0]!r} should hold numbers, but holds {content}")
