"""Which columns of a table are scores, labels and weights: as the user says, or as their names and
types say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "class", "truth")
"""Names of a column that is taken for the label where none is said."""

PREFIXES = {"proba": "p_", "logits": "z_"}


@dataclass(frozen=True)
class Request:
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
        kind = "probabilities" if self.inputs == "proba" else "logits"
        label = f", {self.label!r} as the label" if self.label else ""
        return (
            f"reading {_some(self.scores)} as {kind} of {max(2, len(self.scores))} classes{label}"
        )


def choose_columns(
    kinds: Mapping[str, str],
    request: Request,
    *,
    needs_label: bool,
    expected: Columns | None = None,
) -> Columns:
    """The columns of a table whose columns are of ``kinds`` "float", "int", "text" or "other".

    ``expected`` are classes and inputs of a model that is to be applied.
    """
    label = _named(kinds, request.label, "--label") or (
        _guessed_label(kinds) if needs_label else None
    )
    weight = _named(kinds, request.weight, "--weight")
    free = [name for name in kinds if name not in (label, weight)]
    if request.inputs:
        scores, names = _matched(free, request.proba or request.logits or "")
        inputs = request.inputs
    elif expected is not None:
        scores, names = _of_model(free, kinds, expected)
        inputs = expected.inputs
    else:
        scores, names, inputs = _guessed_scores(free, kinds)
    _check_numeric(scores, kinds)
    was_guessed = request.inputs is None or (request.label is None and label is not None)
    return Columns(tuple(scores), tuple(names), inputs, label, weight, was_guessed)


def _named(kinds: Mapping[str, str], name: str | None, option: str) -> str | None:
    if name is not None and name not in kinds:
        raise ValueError(
            f"there is no column {name!r} ({option}); the file has {_some(list(kinds))}"
        )
    return name


def _guessed_label(kinds: Mapping[str, str]) -> str:
    by_name = [name for name in kinds if name.lower() in LABEL_NAMES]
    by_kind = [name for name, kind in kinds.items() if kind != "float"]
    for found in (by_name, by_kind):
        if len(found) == 1:
            return found[0]
    raise ValueError(
        f"which column is the label? Say so by --label; the file has {_some(list(kinds))}"
    )


def _matched(free: Sequence[str], pattern: str) -> tuple[list[str], list[str]]:
    """Columns that a pattern or a list names, and the classes that they are called after."""
    if "*" not in pattern:
        wanted = [part.strip() for part in pattern.split(",")]
        missing = [name for name in wanted if name not in free]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r}; the file has {_some(free)}")
        return wanted, wanted
    found = [name for name in free if fnmatchcase(name, pattern)]
    if not found:
        raise ValueError(f"no column matches {pattern!r}; the file has {_some(free)}")
    before, _, after = pattern.partition("*")
    return found, [
        name[len(before) : len(name) - len(after)] if "*" not in after else name for name in found
    ]


def _guessed_scores(
    free: Sequence[str], kinds: Mapping[str, str]
) -> tuple[list[str], list[str], str]:
    prefixed = {
        inputs: [n for n in free if n.startswith(start)] for inputs, start in PREFIXES.items()
    }
    several = [inputs for inputs, found in prefixed.items() if len(found) > 1]
    if len(several) == 2:
        raise ValueError(
            "the file has columns p_* and z_*: say which by --proba 'p_*' or --logits 'z_*'"
        )
    if several:
        found = prefixed[several[0]]
        return found, [name[2:] for name in found], several[0]
    floats = [name for name in free if kinds[name] == "float"]
    if len(floats) > 1 and len(floats) == len(free):
        return floats, floats, "proba"
    raise ValueError(
        f"which columns are the scores? Say so by --proba or --logits, as in --proba 'p_*'; there "
        f"are {_some(free)}"
    )


def _of_model(
    free: Sequence[str], kinds: Mapping[str, str], expected: Columns
) -> tuple[list[str], list[str]]:
    """Columns called after the classes of the model, in its order; else as many as it has classes,
    in their own order.
    """
    for prefix in (PREFIXES[expected.inputs], ""):
        own = [prefix + name for name in expected.names]
        if all(name in free for name in own):
            return own, list(expected.names)
    prefixed = [name for name in free if name.startswith(PREFIXES[expected.inputs])]
    floats = [name for name in free if kinds[name] == "float"]
    for found in (prefixed, floats):
        if len(found) == len(expected.names):
            return found, list(expected.names)
    option = "--proba" if expected.inputs == "proba" else "--logits"
    raise ValueError(
        f"the model has {len(expected.names)} classes ({_some(expected.names)}) and takes "
        f"{'probabilities' if expected.inputs == 'proba' else 'logits'}: say which columns hold "
        f"them by {option}; "
        f"the file has {_some(free)}"
    )


def _check_numeric(scores: Sequence[str], kinds: Mapping[str, str]) -> None:
    text = [name for name in scores if kinds[name] not in ("float", "int")]
    if text:
        raise ValueError(
            f"column {text[0]!r} should hold scores, but holds {kinds[text[0]]}, not numbers"
        )


def _some(names: Sequence[str], limit: int = 6) -> str:
    if len(names) <= limit:
        return ", ".join(map(str, names))
    return f"{', '.join(map(str, names[: limit - 3]))}, ..., {names[-1]}"
