"""The options of the commands. Options that belong together are fields of a dataclass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # --help does not need these classes, so commands import them later
    from calibrant.cli._output import Output
    from calibrant.io import FileOptions

Bins = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Number of bins of the calibration errors ECE and MCE."),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="COLUMN", help="Also evaluate each group of this column (repeatable)."
    ),
]
MinRows = Annotated[
    int,
    typer.Option(
        "--min-rows", min=0, metavar="N", help="Hide groups of --by with fewer than N rows."
    ),
]
FitBy = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Also fit a correction for each group of this column, shrunk toward the fit on all "
        "rows (repeatable).",
    ),
]
ApplyBy = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Group column in FILE, if the column had another name in calibrant fit --by "
        "(repeatable).",
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
        "for wrong answers.",
    ),
]
ModelToEvaluate = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Evaluate the predictions before and after calibration by this saved calibrator.",
    ),
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
        "--notion",
        metavar="NOTION",
        help="Type of calibration of a binary method, such as top-label (default: class-wise).",
    ),
]
Folds = Annotated[int, typer.Option("--cv", min=2, metavar="N", help="Number of folds.")]
Chunked = Annotated[
    bool | None,
    typer.Option(
        "--chunked/--in-memory",
        help="Read scores in blocks, or load all scores (default: blocks above 256 MB).",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")]
ModelToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="MODEL", help="JSON file to write.")
]
ModelToRead = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Calibrator file from calibrant fit.", show_default=False),
]
ModelToDecide = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="File from calibrant fit or calibrant decide --save.",
        show_default=False,
    ),
]
TableToWrite = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="CSV, Parquet, .npz or .npy file to write."),
]
DecisionsToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="CSV or Parquet file to write.")
]
ReportToWrite = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT", help="HTML, Markdown (.md) or JSON file to write."
    ),
]
PageToWrite = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT", help="HTML or JSON file to write."),
]
LogsToRead = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", help="Log file, or folder to search for log files.", show_default=False
    ),
]
Risk = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="For each task, find the confidence threshold above which at most this share of the "
        "answers is wrong (with 90% confidence).",
    ),
]
OptionReading = Annotated[
    str,
    typer.Option(
        metavar="READING",
        help="Scores of the answer options in lm_eval logs: sum (acc), char (acc_norm), byte "
        "(acc_bytes) or mutual (acc_mutual_info).",
    ),
]
PercentConfidences = Annotated[
    bool,
    typer.Option(
        "--percent", help="Read numbers without % in the column confidence as percentages."
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
        typer.Option(metavar="COLUMNS", help="Columns of probabilities, such as 'p_*' or a,b,c."),
    ] = None
    logits: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns of logits, such as 'z_*' or a,b,c."),
    ] = None
    log_proba: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS", help="Columns of log-probabilities, such as 'lp_*' or a,b,c."
        ),
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
        typer.Option(
            metavar="CHAR",
            help="Column separator of a text file (default: comma, or tab for .tsv).",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="Decimal separator of a text file (default: period)."),
    ] = None
    percent: Annotated[
        bool, typer.Option("--percent", help="Read probabilities as percentages.")
    ] = False

    def options(self) -> FileOptions:
        """Return the options as arguments of `calibrant.io`."""
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
        typer.Option(metavar="COLUMN", help="Column of true labels."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Classes in the order of the score columns, such as a,b,c."
        ),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File of true labels (.npy), if the scores are in an .npy file."
        ),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of sample weights.")
    ] = None


@dataclass(frozen=True)
class TopFileArguments(WeightedFileArguments):
    """Options of a file that may contain only the top scores of each row."""

    n_classes: Annotated[
        int | None,
        typer.Option(
            "--n-classes",
            min=2,
            metavar="N",
            help="Number of classes, if FILE has only the top scores of each row.",
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
    min_rows: MinRows = 0
    model: ReportModel = None

    def arguments(self) -> Iterator[str]:
        """Return the options as command-line arguments."""
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
        yield from ("--min-rows", str(self.min_rows)) if self.min_rows else ()


@dataclass(frozen=True)
class DecideArguments:
    """Options of decisions."""

    risk: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Maximum share of wrong answers, such as 0.05. Rows with a low score are not "
            "answered.",
        ),
    ] = None
    delta: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Largest probability that the error rate of the answers exceeds --risk.",
        ),
    ] = 0.1
    score: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Score that ranks the answers: confidence, margin or log-margin."
        ),
    ] = "confidence"
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Limit only the mean error rate over files like FILE to --risk. --delta is not "
            "used.",
        ),
    ] = False
    sets: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Predict sets of labels that contain the true label with this probability, "
            "such as 0.9.",
        ),
    ] = None
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of labeled rows for the guarantee. MODEL must not have been fitted on these "
            "rows.",
        ),
    ] = None
    cost: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file with the cost of each action (column) for each true class (row).",
        ),
    ] = None
    abstain: Annotated[
        float | None, typer.Option(metavar="COST", help="Cost of an abstention (requires --cost).")
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="RULE",
            help="JSON file to write with the decision rule, which later commands accept as MODEL.",
        ),
    ] = None


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
            metavar="NAME",
            help="SQL dialect: duckdb, sqlite, postgres, bigquery, snowflake or spark.",
        ),
    ] = "duckdb"
    table: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of the table of scores (SQL only)."),
    ] = "scores"
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Score columns of the table (SQL only, default: p_<class>, z_<class> or "
            "lp_<class>).",
        ),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Columns of the table to copy to the result (SQL only)."
        ),
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Export the calibrator of this group of a model from fit --by (repeatable).",
        ),
    ] = None
    compose: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="ONNX file of the classifier to combine with the calibrator (ONNX only).",
        ),
    ] = None
    score_output: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the classifier output that contains the scores (ONNX only).",
        ),
    ] = None


@dataclass(frozen=True)
class Printing:
    """Options of printed output."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not print notes or a progress bar.")
    ] = False

    def output(self) -> Output:
        """Return the output with these options."""
        from calibrant.cli._output import Output

        return Output(as_json=self.as_json, quiet=self.quiet)
