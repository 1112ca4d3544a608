"""The commands: what each is told and what it prints. Options are stated in
`calibrant.cli._options`, what the commands do is in `calibrant.cli._commands`.

Commands import what they need when they run: whoever asks for help does not wait for scikit-learn.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

import calibrant
from calibrant.cli._monitor import monitor_app
from calibrant.cli._options import (
    Bins,
    By,
    Chunked,
    ConfidenceColumn,
    CorrectColumn,
    ExportArguments,
    ExportToWrite,
    FileArguments,
    Folds,
    Intervals,
    MethodName,
    MethodNames,
    ModelToEvaluate,
    ModelToRead,
    ModelToWrite,
    NotionName,
    Printing,
    ReportArguments,
    ReportToWrite,
    Seed,
    TableToWrite,
    TopFileArguments,
    WeightedFileArguments,
    register_command,
)

app = typer.Typer(
    help=(
        "Probabilities of multiclass classifiers that can be acted on: calibrate, measure, "
        "guarantee."
    ),
    epilog="\b\nExample, without any file:\n  calibrant demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(monitor_app, name="monitor")
_command = partial(register_command, app)


def method_help() -> str:
    """The methods, a line each."""
    from calibrant.selection.methods import METHODS

    width = max(map(len, METHODS))
    lines = [
        f"  {entry.name:<{width}}  {entry.help}{' *' if entry.is_binary else ''}"
        for entry in METHODS.values()
    ]
    note = "  * of one claim: class by class, or as --notion says"
    # The first line tells click to leave the others as they are.
    return "\n".join(["\b", "Methods, auto unless said otherwise:", *lines, note])


class _ListsMethods(typer.core.TyperCommand):
    """A command whose help ends with the methods, which are looked up when it is asked for."""

    epilog: str | None

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        epilog = self.epilog
        self.epilog = f"{method_help()}\n\n{epilog}"
        super().format_epilog(ctx, formatter)
        self.epilog = epilog


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"calibrant {calibrant.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Probabilities of multiclass classifiers that can be acted on: calibrate, measure,
    guarantee.
    """


@_command("calibrant evaluate predictions.csv --label y --proba 'p_*'")
def evaluate(
    data: TopFileArguments,
    printing: Printing,
    bins: Bins = 15,
    model: ModelToEvaluate = None,
    by: By = None,
    intervals: Intervals = False,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
) -> None:
    """Evaluate accuracy, proper scores and calibration of a prediction file. Files larger than
    memory are read in blocks.
    """
    from calibrant.cli import _commands as commands
    from calibrant.cli import _confidences as confidences
    from calibrant.cli._files import open_file, read_columns

    output = printing.output()
    if confidence is not None or correct is not None:
        if model is not None or intervals:
            raise ValueError("--confidence cannot be combined with --model or --intervals.")
        pairs = confidences.evaluate_pairs(data, confidence, correct, bins, by, output)
        output.show(str(pairs))
        output.result(pairs.to_dict())
        return
    if model is not None:
        if by or intervals:
            raise ValueError(
                "--model cannot be combined with --by or --intervals. Write the calibrated "
                "probabilities first: calibrant apply MODEL FILE -o OUT"
            )
        commands.evaluate_model(calibrant.load(model), data, bins, output)
        return
    file = open_file(data, output, takes_top_scores=True)
    confidences.note_pair(file, output)
    result = commands.evaluate_file(file, bins, read_columns(file, by))
    estimates = commands.estimate_intervals(file) if intervals else {}
    output.show(str(result), *commands.interval_lines(estimates))
    extra = {name: estimate.to_dict() for name, estimate in estimates.items()}
    output.result(result.to_dict() | ({"intervals": extra} if extra else {}))


@_command(
    "calibrant fit predictions.csv --label y --proba 'p_*' -m auto -o model.json", _ListsMethods
)
def fit(
    data: TopFileArguments,
    output_path: ModelToWrite,
    printing: Printing,
    method: MethodName = "auto",
    notion: NotionName = None,
    seed: Seed = 0,
    chunked: Chunked = None,
) -> None:
    """Fit a calibrator to scores and labels, and save it. Fit it to rows that the classifier was
    not trained on. Of scores of more than 256 MB blocks are read, once for each pass; gp and
    canonical need all rows, and keep them in a temporary file.
    """
    from calibrant.cli._commands import fit_file, make_calibrator
    from calibrant.cli._existing import check_output
    from calibrant.cli._files import open_file, rows_for
    from calibrant.cli._output import before_after

    output = printing.output()
    check_output(output_path, "model", data.file, data.labels)
    file = open_file(data, output, takes_top_scores=True)
    calibrator = make_calibrator(method, notion, file, seed)
    rows = rows_for([calibrator], file, chunked)
    with output.working(f"Fitting {method}", spins=rows is not file):  # a pass has a bar
        result = fit_file(rows, file, calibrator, method, output_path)
    output.show(before_after(result.before, result.after), result.remarks, f"Saved {output_path}")
    output.result(result.to_dict(output_path))


@_command("calibrant apply model.json new.csv -o calibrated.csv")
def apply(
    model: ModelToRead, data: FileArguments, output_path: TableToWrite, printing: Printing
) -> None:
    """Add calibrated probabilities p_<class> to the columns of a file. Files larger than memory are
    read in blocks.
    """
    from calibrant.cli._commands import apply_file
    from calibrant.cli._existing import check_output

    output = printing.output()
    check_output(output_path, "table", model)
    calibrator = calibrant.load(model)
    n_rows = apply_file(calibrator, data, output_path, output)
    output.show(f"Wrote {n_rows:,} rows to {output_path}")
    output.result({"n_rows": n_rows, "output": str(output_path)})


@_command("calibrant export model.json --to onnx -o calibrator.onnx")
def export(
    model: ModelToRead,
    output_path: ExportToWrite,
    printing: Printing,
    options: ExportArguments,
) -> None:
    """Write a saved calibrator for other programs: ONNX, PyTorch, SQL, Python or JavaScript."""
    from calibrant.cli._existing import check_output
    from calibrant.cli._exports import export_file

    output = printing.output()
    check_output(output_path, "program", model, options.compose)
    export_file(calibrant.load(model), options, output_path)
    output.show(f"Wrote {output_path}")
    output.result({"to": options.to, "output": str(output_path)})


@_command("calibrant compare predictions.parquet -m temperature -m dirichlet -m auto")
def compare(
    data: WeightedFileArguments,
    printing: Printing,
    methods: MethodNames = None,
    cv: Folds = 5,
    seed: Seed = 0,
    chunked: Chunked = None,
    by: By = None,
) -> None:
    """Compare calibration methods by cross-validation, with intervals of what each gains. Scores of
    more than 256 MB are read block by block, once for each pass, unless gp or canonical are asked
    for.
    """
    from calibrant.cli._files import open_file, read_columns, rows_for
    from calibrant.selection import method
    from calibrant.selection.methods import default_methods

    output = printing.output()
    file = open_file(data, output)
    calibrators = [method(name) for name in methods or default_methods()]
    rows = rows_for(calibrators, file, chunked)
    result = calibrant.compare(
        rows.labels,
        rows.scores,
        inputs=file.inputs,
        methods=methods or None,
        cv=cv,
        sample_weight=rows.weight,
        classes=file.classes,
        random_state=seed,
        progress=not output.quiet,
        by=read_columns(file, by),
    )
    output.show(str(result))
    output.result(result.to_dict())


@_command("calibrant report predictions.csv --label y --proba 'p_*' -o report.html")
def report(
    data: WeightedFileArguments,
    output_path: ReportToWrite,
    printing: Printing,
    options: ReportArguments,
) -> None:
    """Before and after calibration on one page: errors with intervals, charts, tests, a guarantee,
    the code to repeat it. Scores of more than 256 MB are read block by block, once for each pass,
    where there are no weights and the method is neither gp nor canonical.
    """
    from calibrant.cli import _reports as reports
    from calibrant.cli._commands import make_calibrator, scores_of
    from calibrant.cli._files import open_file, rows_for

    output = printing.output()
    inputs = (data.file, data.labels, options.fit_on, options.model)
    reports.check_report_path(output_path, *inputs)
    model = reports.load_model(options)
    file = open_file(data, output, model=None if model is None else scores_of(model))
    calibrator = model
    if model is None:
        calibrator = make_calibrator(options.method, options.notion, file, options.seed)
    # Weights need the rows in memory unless the user decides otherwise.
    is_chunked = False if data.weight and options.chunked is None else options.chunked
    rows = rows_for([calibrator], file, is_chunked)
    training = reports.training_rows(data, options, file, output)
    with output.working("Calibrating, testing and drawing", spins=rows is not file):
        content = reports.report_file(rows, file, calibrator, training, options, output_path)
    output.show(content.action, content.verdict, f"Wrote {output_path}")
    output.result(content.to_dict())


@_command("calibrant demo")
def demo(
    printing: Printing,
    output_path: ReportToWrite = Path("calibrant-report.html"),
    seed: Seed = 0,
) -> None:
    """Train a classifier on bundled data, show how honest it is, calibrate it, and write a report.
    Needs no input.
    """
    from calibrant.cli._reports import demo_report

    output = printing.output()
    with output.working("Training and calibrating"):
        content = demo_report(seed, output_path)
    output.show(*_demo_lines(content), f"The full report, with charts: {output_path.resolve()}")
    output.result(content.to_dict())


def _demo_lines(content: Any) -> list[Any]:
    from calibrant.cli._output import report_table

    return [
        "A naive Bayes classifier was trained on 597 images of handwritten digits, and calibrated "
        "on 600 others.",
        "On 600 more that neither has seen, with 95 % intervals:",
        "",
        f"  {content.action} {content.verdict}",
        "",
        report_table(content),
        "",
        "What is guaranteed for new images of this kind, by top-label histogram binning, whatever "
        "the model:",
        f"  {content.guarantee.text}" if content.guarantee else "  nothing",
        "",
    ]
