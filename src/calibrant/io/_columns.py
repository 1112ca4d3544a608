"""Which columns of a table are scores, labels and weights: as the user says, or as their names and
types say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from calibrant._validation import shortened

LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "class", "truth")
"""Names of a column that is taken for the label where none is said."""

NEVER_LABELS = frozenset(
    {"id", "index", "idx", "row", "key", "uuid", "fold", "split", "group", "batch", "weight"}
    | {"pred", "preds", "prediction", "predictions", "predicted", "y_pred", "yhat", "y_hat"}
)
"""Names of a column that is not taken for the label only because it is the one without numbers."""

PREFIXES = {
    "proba": ("p_", "prob_", "proba_"),
    "logits": ("z_", "logit_", "logits_"),
    "log_proba": ("lp_", "logprob_"),
}
"""What columns of scores are called by, before the name of their class."""
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
    n_classes: int | None = None

    def arguments(self) -> Iterator[str]:
        """The same for a command line; folders are left out."""
        yield self.path.name
        for name in ("label", "proba", "logits", "weight", "split"):
            value = getattr(self, name)
            yield from [f"--{name}", value] if value is not None else []
        yield from ["--classes", ",".join(self.classes)] if self.classes else []
        yield from ["--labels", self.labels.name] if self.labels else []
        yield from ["--n-classes", str(self.n_classes)] if self.n_classes else []
        yield from ["--renormalize"] if self.renormalize else []

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
    named = _find_named(kinds, options.label, "--label")
    label = choose_label(kinds, options) if needs_label else named
    weight = _find_named(kinds, options.weight, "--weight")
    _check_numeric([weight] if weight else [], kinds)
    free = [name for name in kinds if name not in (label, weight)]
    scores, names, inputs = _choose_scores(free, kinds, options, expected)
    _check_numeric(scores, kinds)
    _check_different(scores, names)
    was_guessed = options.inputs is None or (options.label is None and label is not None)
    return Columns(tuple(scores), tuple(names), inputs, label, weight, was_guessed)


def choose_label(kinds: Mapping[str, str], options: FileOptions) -> str:
    """The column of labels, as said or as its name says."""
    return _find_named(kinds, options.label, "--label") or _guess_label(kinds)


def _choose_scores(
    free: Sequence[str], kinds: Mapping[str, str], options: FileOptions, expected: Columns | None
) -> tuple[list[str], list[str], str]:
    if options.inputs:
        pattern = options.proba or options.logits or ""
        found = _match(free, pattern)
        if expected is not None:
            found = _in_order_of_model(*found, expected, is_listed="*" not in pattern)
        return *found, options.inputs
    if expected is not None:
        return *_find_of_model(free, expected), expected.inputs
    return _guess_scores(free, kinds)


def _find_named(kinds: Mapping[str, str], name: str | None, option: str) -> str | None:
    """The column of a name; blanks around it do not matter where no other column is called so."""
    if name is None or name in kinds:
        return name
    found = [own for own in kinds if own.strip() == name.strip()]
    if len(found) != 1:
        raise ValueError(
            f"there is no column {name!r} ({option}); the file has {shortened(list(kinds))}"
        )
    return found[0]


def _guess_label(kinds: Mapping[str, str]) -> str:
    by_name = [name for name in kinds if name.strip().lower() in LABEL_NAMES]
    by_kind = [name for name, kind in kinds.items() if kind != "float"]
    for found in (by_name, by_kind):
        if len(found) == 1 and found[0].strip().lower() not in NEVER_LABELS:
            return found[0]
    raise ValueError(
        f"which column is the label? Say so by --label; the file has {shortened(list(kinds))}"
    )


def _match(free: Sequence[str], pattern: str) -> tuple[list[str], list[str]]:
    """Columns that a pattern or a list names, and the classes that they are called after."""
    if "*" not in pattern:
        kinds = dict.fromkeys(free, "")
        wanted = [str(_find_named(kinds, part.strip(), "a score")) for part in pattern.split(",")]
        return wanted, [name.strip() for name in wanted]
    found = [name for name in free if fnmatchcase(name.strip(), pattern)]
    if not found:
        raise ValueError(f"no column matches {pattern!r}; the file has {shortened(free)}")
    before, _, after = pattern.partition("*")
    return found, [
        name[len(before) : len(name) - len(after)] if "*" not in after else name
        for name in (own.strip() for own in found)
    ]


def _guess_scores(
    free: Sequence[str], kinds: Mapping[str, str]
) -> tuple[list[str], list[str], str]:
    prefixed = {inputs: _with_prefix(free, inputs) for inputs in PREFIXES}
    several = [inputs for inputs, (found, _) in prefixed.items() if len(found) > 1]
    if len(several) > 1:
        there = " and ".join(f"{PREFIXES[inputs][0]}*" for inputs in several)
        raise ValueError(
            f"the file has columns {there}: say which by --proba 'p_*' or --logits 'z_*'"
        )
    if several:
        return *prefixed[several[0]], several[0]
    floats = [name for name in free if kinds[name] == "float"]
    if len(floats) > 1 and len(floats) == len(free):
        return floats, [name.strip() for name in floats], "proba"
    raise ValueError(
        "which columns are the scores? Say so by --proba or --logits, as in --proba 'p_*'; there "
        f"are {shortened(free)}"
    )


def _with_prefix(free: Sequence[str], inputs: str) -> tuple[list[str], list[str]]:
    """Columns that begin as columns of such scores do, and the classes that they are called
    after; of several beginnings the one of most columns.
    """
    found = [
        [name for name in free if name.strip().startswith(start)] for start in PREFIXES[inputs]
    ]
    most = max(range(len(found)), key=lambda place: len(found[place]))
    start = PREFIXES[inputs][most]
    return found[most], [name.strip().removeprefix(start) for name in found[most]]


def _find_of_model(free: Sequence[str], expected: Columns) -> tuple[list[str], list[str]]:
    """Columns called after the classes of the model, in its order, or numbered from 0 on."""
    names = list(expected.names)
    _refuse_output(free, expected)
    bare = {name.strip(): name for name in free}
    prefixed = dict(zip(*reversed(_with_prefix(free, expected.inputs)), strict=True))
    for own in (prefixed, bare):
        if set(names) <= set(own):
            return [own[name] for name in names], names
    if list(prefixed) == _numbered(names):
        return list(prefixed.values()), names
    raise ValueError(
        f"the model has {len(names)} classes ({shortened(names)}) and takes "
        f"{KINDS[expected.inputs]}: say which columns hold them, in this order, by "
        f"--{expected.inputs} a,b,...; the file has {shortened(free)}"
    )


def _refuse_output(free: Sequence[str], expected: Columns) -> None:
    """Probabilities that were calibrated must not be calibrated again."""
    first = f"p_{expected.names[0]}"
    if expected.inputs == "proba" and {first, f"raw_{first}"} <= set(free):
        raise ValueError(
            f"the file holds {first!r} and 'raw_{first}': it was written by calibrant apply, and "
            f"is calibrated already; to do it again from what it was, say --proba 'raw_p_*'"
        )


def _in_order_of_model(
    scores: list[str], names: list[str], expected: Columns, *, is_listed: bool
) -> tuple[list[str], list[str]]:
    """Columns in the order of the classes of a model: their names decide, and where a list names
    others, or numbers, its order does.
    """
    wanted = list(expected.names)
    for own in (names, [_without_prefix(name, expected.inputs) for name in names]):
        if sorted(own) == sorted(wanted):
            return [scores[own.index(name)] for name in wanted], wanted
    if len(scores) == 1 and len(wanted) == 2:
        return scores, names
    if len(scores) != len(wanted):
        raise ValueError(
            f"the model has {len(wanted)} classes ({shortened(wanted)}) and "
            f"{len(scores)} columns were named: {shortened(scores)}"
        )
    if not set(names) & set(wanted) and (is_listed or names == _numbered(wanted)):
        return scores, wanted
    raise ValueError(
        f"the columns are called after the classes {shortened(names)} and the model has "
        f"{shortened(wanted)}: list the columns in this order by --{expected.inputs} a,b,..."
    )


def _without_prefix(name: str, inputs: str) -> str:
    start = next((start for start in PREFIXES[inputs] if name.startswith(start)), "")
    return name.removeprefix(start)


def _numbered(names: Sequence[str]) -> list[str]:
    return [str(place) for place in range(len(names))]


def _check_different(scores: Sequence[str], names: Sequence[str]) -> None:
    for listed in (scores, names):
        repeated = [name for place, name in enumerate(listed) if name in listed[:place]]
        if repeated:
            raise ValueError(f"the scores name {repeated[0]!r} twice: a class has one column")


def _check_numeric(scores: Sequence[str], kinds: Mapping[str, str]) -> None:
    text = [name for name in scores if kinds[name] not in ("float", "int")]
    if text:
        raise ValueError(f"column {text[0]!r} should hold numbers, but holds {kinds[text[0]]}")
