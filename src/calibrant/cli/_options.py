"""The options of the commands, each stated once; those that go together are a dataclass."""

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

if TYPE_CHECKING:  # imported where they are made: help needs neither
    from calibrant.cli._output import Output
    from calibrant.io import FileOptions

Bins = Annotated[int, typer.Option(min=1, metavar="N", help="Bins of the calibration errors.")]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="COLUMN", help="Evaluate each group of this column. Repeat for several."
    ),
]
Intervals = Annotated[
    bool, typer.Option("--intervals", help="Add 95% confidence intervals; loads all rows.")
]
ConfidenceColumn = Annotated[
    str | None,
    typer.Option(
        "--confidence",
        metavar="COLUMN",
        help="The column of confidences of answers that were correct or not; with --correct.",
    ),
]
CorrectColumn = Annotated[
    str | None,
    typer.Option(
        "--correct", metavar="COLUMN", help="The column that tells whether an answer was correct."
    ),
]
ModelToEvaluate = Annotated[
    Path | None,
    typer.Option("--model", metavar="MODEL", help="Compare before and after this calibrator."),
]
FitFile = Annotated[
    Path | None,
    typer.Option(
        "--fit-on",
        metavar="FILE",
        help="Fit the calibrator on the rows of this file, with the same columns, and evaluate it "
        "on FILE. Without it the calibrator is cross-fitted.",
    ),
]
ReportModel = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Evaluate this saved calibrator on FILE, which it was not fitted on, and fit none.",
    ),
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method", "-m", metavar="METHOD", help="How to calibrate; calibrant fit -h lists them."
    ),
]
MethodNames = Annotated[
    list[str] | None, typer.Option("--method", "-m", metavar="METHOD", help="Repeat for each.")
]
NotionName = Annotated[
    str | None,
    typer.Option("--notion", metavar="NOTION", help="Of binary methods: what they calibrate."),
]
Folds = Annotated[int, typer.Option("--cv", min=2, metavar="N", help="Folds of cross-fitting.")]
Chunked = Annotated[
    bool | None,
    typer.Option(
        "--chunked/--in-memory",
        help="Read the file in blocks, or load it (default: load up to 256 MB of scores).",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Decides everything random.")]
ModelToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="MODEL", help="The model to write, JSON.")
]
ModelToRead = Annotated[
    Path, typer.Argument(metavar="MODEL", help="What calibrant fit saved.", show_default=False)
]
TableToWrite = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="CSV, Parquet, .npz or .npy to write."),
]
ReportToWrite = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="An .html, .md or .json file to write."),
]
ExportToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
]


@dataclass(frozen=True)
class FileArguments:
    """Arguments about a file of scores."""

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
        typer.Option(metavar="NAME", help="Of an .npz file: arrays NAME_logits and NAME_labels."),
    ] = None
    renormalize: Annotated[
        bool,
        typer.Option("--renormalize", help="Divide rows of rounded probabilities by their sum."),
    ] = False

    sep: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR", help="Separator of a text file (default: a comma; .tsv: tab)."
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="Decimal point of a text file (default: a period)."),
    ] = None
    percent: Annotated[
        bool, typer.Option("--percent", help="Probabilities are percentages: divide by 100.")
    ] = False

    def options(self) -> FileOptions:
        """The same without the command line."""
        from calibrant.io import FileOptions

        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        if values.get("classes") is not None:
            values["classes"] = tuple(name.strip() for name in values["classes"].split(","))
        return FileOptions(values.pop("file"), **values)


@dataclass(frozen=True)
class WeightedFileArguments(FileArguments):
    """Arguments about a file of scores and labels, perhaps with weights."""

    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of labels."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Classes in the order of the columns: a,b,c."),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels that go with an .npy file, another one."),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of sample weights.")
    ] = None


@dataclass(frozen=True)
class TopFileArguments(WeightedFileArguments):
    """The same about a file that may hold top scores."""

    n_classes: Annotated[
        int | None,
        typer.Option(
            "--n-classes", min=2, metavar="N", help="With columns top1_label ...: classes in all."
        ),
    ] = None


@dataclass(frozen=True)
class ReportArguments:
    """How the calibrator of a report is fitted."""

    method: MethodName = "auto"
    notion: NotionName = None
    cv: Folds = 5
    seed: Seed = 0
    chunked: Chunked = None
    fit_on: FitFile = None
    by: By = None
    model: ReportModel = None

    def words(self) -> Iterator[str]:
        """The same for a command line."""
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
    """The target of an export, and what it has to know; names are lists with commas."""

    to: Annotated[
        str,
        typer.Option("--to", metavar="TARGET", help="onnx, torch, sql, python or javascript."),
    ] = "onnx"
    dialect: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="duckdb, sqlite, postgres, bigquery, snowflake or spark."
        ),
    ] = "duckdb"
    table: Annotated[
        str,
        typer.Option(metavar="NAME", help="Of SQL: the table of scores."),
    ] = "scores"
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Of SQL: its columns of scores, a,b,c; else p_, z_ or lp_<class>."
        ),
    ] = None
    keep: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Of SQL: other columns to carry over: a,b.")
    ] = None
    compose: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of ONNX: a classifier to put before the calibrator."),
    ] = None
    score_output: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Output of the --compose classifier that holds scores."),
    ] = None


@dataclass(frozen=True)
class Printing:
    """What is printed."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No remarks and no progress bar.")
    ] = False

    def output(self) -> Output:
        """Where it goes."""
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
    """A command for typer, of one whose parameters may be dataclasses: it has an option for each of
    their fields.
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

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _options(parameter: inspect.Parameter, hint: Any) -> Iterator[inspect.Parameter]:
    """The parameter, or one for each field of its dataclass; all by keyword."""
    if not is_dataclass(hint):
        yield parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)
        return
    hints = get_type_hints(hint, include_extras=True)
    for entry in fields(hint):
        default = parameter.empty if entry.default is MISSING else entry.default
        yield inspect.Parameter(
            entry.name, parameter.KEYWORD_ONLY, default=default, annotation=hints[entry.name]
        )
