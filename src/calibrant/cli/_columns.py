"""Which columns of a table are scores, labels and weights: as the user says, or as their names and
types say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from calibrant._validation import shortened

LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "class", "truth")
"""Names of a column that is taken for the label where none is said."""

PREFIXES = {"proba": "p_", "logits": "z_", "log_proba": "lp_"}
KINDS = {"proba": "probabilities", "logits": "logits", "log_proba": "log-probabilities"}


@dataclass(frozen=True)
class FileOptions:
    """What the user said about a file. ``proba`` and ``logits`` are patterns (``p_*``) or lists of
    columns (``a,b,c``).
    """

    path: Path
    label: str | None = None
    proba: str | None = None
    logits: str | None = None
    weight: str | None = None
    classes: tuple[str, ...] | None = None
    labels: Path | None = None
    split: str | None = None
    renormalize: bool = False

    @property
    def inputs(self) -> str | None:
        """The kind of scores, where it was said."""
        if self.proba and self.logits:
            raise ValueError(
                "--proba and --logits exclude each other: scores are probabilities or logits"
            )
        return "proba" if self.proba else "logits" if self.logits else None


@dataclass(frozen=True)
class Columns:
    """The columns that are read. ``names`` are the classes that the columns of scores are called
    after.
    """

    scores: tuple[str, ...]
    names: tuple[str, ...]
    inputs: str
    label: str | None
    weight: str | None
    was_guessed: bool

    def said(self) -> str:
        """What is read as what, in a sentence."""
        label = f", {self.label!r} as the label" if self.label else ""
        return (
            f"reading {shortened(self.scores)} as {KINDS[self.inputs]} of "
            f"{max(2, len(self.scores))} classes{label}"
        )


def choose_columns(
    kinds: Mapping[str, str],
    options: FileOptions,
    *,
    needs_label: bool,
    expected: Columns | None = None,
) -> Columns:
    """The columns of a table whose columns are of ``kinds`` "float", "int", "text" or "other".

    ``expected`` are classes and inputs of a model that is to be applied.
    """
    label = _check_named(kinds, options.label, "--label") or (
        _guess_label(kinds) if needs_label else None
    )
    weight = _check_named(kinds, options.weight, "--weight")
    free = [name for name in kinds if name not in (label, weight)]
    if options.inputs:
        scores, names = _match(free, options.proba or options.logits or "")
        inputs = options.inputs
    elif expected is not None:
        scores, names = _find_of_model(free, kinds, expected)
        inputs = expected.inputs
    else:
        scores, names, inputs = _guess_scores(free, kinds)
    _check_numeric(scores, kinds)
    was_guessed = options.inputs is None or (options.label is None and label is not None)
    return Columns(tuple(scores), tuple(names), inputs, label, weight, was_guessed)


def _check_named(kinds: Mapping[str, str], name: str | None, option: str) -> str | None:
    if name is not None and name not in kinds:
        raise ValueError(
            f"there is no column {name!r} ({option}); the file has {shortened(list(kinds))}"
        )
    return name


def _guess_label(kinds: Mapping[str, str]) -> str:
    by_name = [name for name in kinds if name.lower() in LABEL_NAMES]
    by_kind = [name for name, kind in kinds.items() if kind != "float"]
    for found in (by_name, by_kind):
        if len(found) == 1:
            return found[0]
    raise ValueError(
        f"which column is the label? Say so by --label; the file has {shortened(list(kinds))}"
    )


def _match(free: Sequence[str], pattern: str) -> tuple[list[str], list[str]]:
    """Columns that a pattern or a list names, and the classes that they are called after."""
    if "*" not in pattern:
        wanted = [part.strip() for part in pattern.split(",")]
        missing = [name for name in wanted if name not in free]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r}; the file has {shortened(free)}")
        return wanted, wanted
    found = [name for name in free if fnmatchcase(name, pattern)]
    if not found:
        raise ValueError(f"no column matches {pattern!r}; the file has {shortened(free)}")
    before, _, after = pattern.partition("*")
    return found, [
        name[len(before) : len(name) - len(after)] if "*" not in after else name for name in found
    ]


def _guess_scores(
    free: Sequence[str], kinds: Mapping[str, str]
) -> tuple[list[str], list[str], str]:
    prefixed = {inputs: _with_prefix(free, start) for inputs, start in PREFIXES.items()}
    several = [inputs for inputs, found in prefixed.items() if len(found) > 1]
    if len(several) > 1:
        there = " and ".join(f"{PREFIXES[inputs]}*" for inputs in several)
        raise ValueError(
            f"the file has columns {there}: say which by --proba 'p_*' or --logits 'z_*'"
        )
    if several:
        found = prefixed[several[0]]
        start = PREFIXES[several[0]]
        return found, [name.removeprefix(start) for name in found], several[0]
    floats = _floats(free, kinds)
    if len(floats) > 1 and len(floats) == len(free):
        return floats, floats, "proba"
    raise ValueError(
        "which columns are the scores? Say so by --proba or --logits, as in --proba 'p_*'; there "
        f"are {shortened(free)}"
    )


def _with_prefix(free: Sequence[str], prefix: str) -> list[str]:
    return [name for name in free if name.startswith(prefix)]


def _floats(free: Sequence[str], kinds: Mapping[str, str]) -> list[str]:
    return [name for name in free if kinds[name] == "float"]


def _find_of_model(
    free: Sequence[str], kinds: Mapping[str, str], expected: Columns
) -> tuple[list[str], list[str]]:
    """Columns called after the classes of the model, in its order; else as many as it has classes,
    in their own order.
    """
    prefix, names = PREFIXES[expected.inputs], list(expected.names)
    for own in ([prefix + name for name in names], names):
        if set(own) <= set(free):
            return own, names
    for found in (_with_prefix(free, prefix), _floats(free, kinds)):
        if len(found) == len(names):
            return found, names
    raise ValueError(
        f"the model has {len(names)} classes ({shortened(names)}) and takes "
        f"{KINDS[expected.inputs]}: say which columns hold them by --{expected.inputs}; "
        f"the file has {shortened(free)}"
    )


def _check_numeric(scores: Sequence[str], kinds: Mapping[str, str]) -> None:
    text = [name for name in scores if kinds[name] not in ("float", "int")]
    if text:
        raise ValueError(
            f"column {text[0]!r} should hold scores, but holds {kinds[text[0]]}, not numbers"
        )
