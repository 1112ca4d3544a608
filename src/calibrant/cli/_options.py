"""The options of the commands. Options that belong together are fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from calibrant.cli._deferred import import_sklearn

if TYPE_CHECKING:  # --help does not need these classes, so commands import them later
    from calibrant.cli._output import Output
    from calibrant.io import FileOptions

Bins = Annotated[int, typer.Option(min=1, metavar="N", help="Number of bins of ECE and MCE.")]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="COLUMN", help="Also evaluate each group of this column (repeatable)."
    ),
]
Intervals = Annotated[
    bool, typer.Option("--intervals", help="Add 95% confidence intervals (loads all rows).")
]
ConfidenceColumn = Annotated[
    str | None,
    typer.Option(
        "--confidence",
        metavar="COLUMN",
        help="Column with the confidence of each answer. Requires --correct.",
    ),
]
CorrectColumn = Annotated[
    str | None,
    typer.Option(
        "--correct",
        metavar="COLUMN",
        help="Column with 1, true, yes or correct for correct answers, and 0, false, no or wrong "
        "for the others.",
    ),
]
ModelToEvaluate = Annotated[
    Path | None,
    typer.Option("--model", metavar="MODEL", help="Evaluate before and after this calibrator."),
]
FitFile = Annotated[
    Path | None,
    typer.Option(
        "--fit-on",
        metavar="FIT_FILE",
        help="Fit the calibrator on FIT_FILE and evaluate it on FILE. Both files must have the "
        "same columns. Without this option, the calibrator is cross-fitted on folds of FILE.",
    ),
]
ReportModel = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Evaluate this saved calibrator. The calibrator must not have been fitted on the rows "
        "of FILE.",
    ),
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="METHOD",
        help="Calibration method. Run calibrant fit -h for a list.",
    ),
]
MethodNames = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", metavar="METHOD", help="Method to compare (repeatable)."),
]
NotionName = Annotated[
    str | None,
    typer.Option(
        "--notion", metavar="NOTION", help="What a binary method calibrates (default: each class)."
    ),
]
Folds = Annotated[int, typer.Option("--cv", min=2, metavar="N", help="Number of folds.")]
Chunked = Annotated[
    bool | None,
    typer.Option(
        "--chunked/--in-memory",
        help="Read the file in blocks, or load it (default: load scores up to 256 MB).",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")]
ModelToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="MODEL", help="JSON file to write.")
]
ModelToRead = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File that calibrant fit saved.", show_default=False)
]
TableToWrite = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="CSV, Parquet, .npz or .npy file to write."),
]
ReportToWrite = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT", help="HTML, Markdown (.md) or JSON file to write."
    ),
]
ExportToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
]


@dataclass(frozen=True)
class FileArguments:
    """Options of a file of scores."""

    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV, Parquet, .npz or .npy file.", show_default=False),
    ]
    proba: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns of probabilities: 'p_*', or a,b,c."),
    ] = None
    logits: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Columns of logits: 'z_*', or a,b,c.")
    ] = None
    log_proba: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns of log-probabilities: 'lp_*', or a,b,c."),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Read the arrays NAME_logits and NAME_labels of an .npz file."
        ),
    ] = None
    renormalize: Annotated[
        bool,
        typer.Option("--renormalize", help="Divide each row of probabilities by its sum."),
    ] = False

    sep: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="Separator of a text file (default: comma; .tsv: tab)."),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="Decimal separator of a text file (default: period)."),
    ] = None
    percent: Annotated[bool, typer.Option("--percent", help="Probabilities are percentages.")] = (
        False
    )

    def options(self) -> FileOptions:
        """The options as `calibrant.io` expects them."""
        from calibrant.io import FileOptions

        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        if values.get("classes") is not None:
            values["classes"] = tuple(name.strip() for name in values["classes"].split(","))
        return FileOptions(values.pop("file"), **values)


@dataclass(frozen=True)
class WeightedFileArguments(FileArguments):
    """Options of a file of scores and labels, with or without weights."""

    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of labels."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Classes in the order of the score columns: a,b,c."),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An .npy file of labels for an .npy file of scores."),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of sample weights.")
    ] = None


@dataclass(frozen=True)
class TopFileArguments(WeightedFileArguments):
    """Options of a file that may hold only the top scores of each row."""

    n_classes: Annotated[
        int | None,
        typer.Option(
            "--n-classes", min=2, metavar="N", help="Number of classes, for files of top scores."
        ),
    ] = None


@dataclass(frozen=True)
class ReportArguments:
    """Options of a report."""

    method: MethodName = "auto"
    notion: NotionName = None
    cv: Folds = 5
    seed: Seed = 0
    chunked: Chunked = None
    fit_on: FitFile = None
    by: By = None
    model: ReportModel = None

    def arguments(self) -> Iterator[str]:
        """The options as arguments of a command line."""
        if self.model:
            yield from ("--model", self.model.name)
        else:
            yield from ("-m", self.method)
            yield from ("--notion", self.notion) if self.notion else ()
            yield from ("--cv", str(self.cv))
        yield from ("--seed", str(self.seed))
        if self.chunked is not None:
            yield "--chunked" if self.chunked else "--in-memory"
        yield from ("--fit-on", self.fit_on.name) if self.fit_on else ()
        for column in self.by or ():
            yield from ("--by", column)


@dataclass(frozen=True)
class ExportArguments:
    """Options of an export. Lists of names are separated by commas."""

    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            help="Target of the export: onnx, torch, sql, python or javascript.",
        ),
    ] = "onnx"
    dialect: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="SQL: duckdb, sqlite, postgres, bigquery, snowflake or spark."
        ),
    ] = "duckdb"
    table: Annotated[
        str,
        typer.Option(metavar="NAME", help="SQL: table of scores."),
    ] = "scores"
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="SQL: score columns, a,b,c (default: p_<class>, z_<class> or lp_<class>).",
        ),
    ] = None
    keep: Annotated[
        str | None, typer.Option(metavar="NAMES", help="SQL: other columns to keep: a,b.")
    ] = None
    compose: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="ONNX: classifier whose scores are calibrated."),
    ] = None
    score_output: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="ONNX: output of the classifier that holds the scores."),
    ] = None


@dataclass(frozen=True)
class Printing:
    """Options of printed output."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no notes and no progress bar.")
    ] = False

    def output(self) -> Output:
        """The output with these options."""
        from calibrant.cli._output import Output

        return Output(as_json=self.as_json, quiet=self.quiet)


def register_command(
    app: typer.Typer, example: str, cls: type[TyperCommand] | None = None
) -> Callable[[Callable[..., None]], Any]:
    """Add a command to an app, with an example at the end of its help."""

    def register(command: Callable[..., None]) -> Any:
        return app.command(cls=cls, epilog=f"\b\nExample:\n  {example}")(flatten(command))

    return register


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a command whose parameters are dataclasses into one for typer, with an option per
    field.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options = [option for p in parameters for option in _options(p, hints[p.name])]

    @wraps(command)
    def run(**values: Any) -> None:
        import_sklearn()
        for name, group in groups.items():
            members = {entry.name: values.pop(entry.name) for entry in fields(group)}
            values[name] = group(**members)
        command(**values)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # typer reads the options from here
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _options(parameter: inspect.Parameter, hint: Any) -> Iterator[inspect.Parameter]:
    """The parameter, or a keyword parameter for each field of its dataclass."""
    if not is_dataclass(hint):
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for entry in fields(hint):
        default = parameter.empty if entry.default is MISSING else entry.default
        yield inspect.Parameter(
            entry.name, parameter.KEYWORD_ONLY, default=default, annotation=hints[entry.name]
        )
