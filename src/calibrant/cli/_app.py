"""The commands of the command line.

`calibrant.cli._options` defines the options, and `calibrant.cli._commands` does the work. Commands
import modules when they run, so help does not wait for scikit-learn.
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
    ApplyBy,
    Bins,
    By,
    Chunked,
    ConfidenceColumn,
    CorrectColumn,
    DecideArguments,
    DecisionsToWrite,
    ExportArguments,
    ExportToWrite,
    FileArguments,
    FitBy,
    Folds,
    Intervals,
    LogsToRead,
    MethodName,
    MethodNames,
    MinRows,
    ModelToDecide,
    ModelToEvaluate,
    ModelToRead,
    ModelToWrite,
    NotionName,
    OptionReading,
    PageToWrite,
    PercentConfidences,
    Printing,
    ReportArguments,
    ReportToWrite,
    Risk,
    Seed,
    TableToWrite,
    TopFileArguments,
    WeightedFileArguments,
)
from calibrant.cli._register import register_command

app = typer.Typer(
    help=(
        "Calibrate predicted probabilities of classifiers, measure their calibration, and monitor "
        "it in production."
    ),
    epilog="\b\nExample that needs no file:\n  calibrant demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(monitor_app, name="monitor")
_command = partial(register_command, app)


def method_help() -> str:
    """List the methods with one line each."""
    from calibrant.selection.methods import METHODS

    width = max(map(len, METHODS))
    lines = [
        f"  {entry.name:<{width}}  {entry.help}{' *' if entry.is_binary else ''}"
        for entry in METHODS.values()
    ]
    note = "  * binary method: applied to each class, or as set by --notion"
    # "\b" tells click not to rewrap the lines that follow.
    return "\n".join(["\b", "Methods (default: auto):", *lines, note])


class _ListsMethods(typer.core.TyperCommand):
    """A command whose help lists the methods, which are imported only for this help."""

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
    """Calibrate predicted probabilities of classifiers, measure their calibration, and monitor it
    in production.
    """


@_command("calibrant evaluate predictions.csv --label y --proba 'p_*'")
def evaluate(
    data: TopFileArguments,
    printing: Printing,
    bins: Bins = 15,
    model: ModelToEvaluate = None,
    by: By = None,
    min_rows: MinRows = 0,
    intervals: Intervals = False,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
) -> None:
    """Evaluate accuracy, proper scores and calibration of predictions. Files larger than memory are
    read in blocks.
    """
    from calibrant.cli import _commands as commands
    from calibrant.cli import _confidences as confidences
    from calibrant.cli._files import open_file, read_columns
    from calibrant.cli._tables import show_evaluation

    output = printing.output()
    if confidence is not None or correct is not None:
        if model is not None or intervals:
            raise ValueError(
                "--confidence and --correct cannot be combined with --model or --intervals. Remove "
                "--confidence and --correct, or remove --model and --intervals."
            )
        pairs = confidences.evaluate_pairs(data, confidence, correct, bins, by, output)
        show_evaluation(pairs, output)
        output.result(pairs.to_dict())
        return
    if model is not None:
        if by or intervals:
            raise ValueError(
                "--model cannot be combined with --by or --intervals. Run calibrant apply MODEL "
                "FILE -o OUT first, and evaluate OUT."
            )
        commands.evaluate_model(commands.load_calibrator(model), data, bins, output)
        return
    file = open_file(data, output, takes_top_scores=True)
    confidences.note_pair(file, output)
    result = commands.evaluate_file(file, bins, read_columns(file, by), min_rows)
    estimates = {}
    if intervals:
        estimates = commands.estimate_intervals(file, progress=not output.quiet)
    show_evaluation(result, output, estimates)
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
    by: FitBy = None,
) -> None:
    """Fit a calibrator to scores and labels, and save it. Use rows that the classifier was not
    trained on. Scores larger than 256 MB are read in blocks, several times. All rows are
    loaded if the method is gp or canonical. Large scores are then copied to a temporary file.
    """
    from calibrant.cli._commands import fit_file, make_calibrator
    from calibrant.cli._existing import check_output
    from calibrant.cli._files import open_file, read_columns, rows_for
    from calibrant.cli._tables import before_after

    output = printing.output()
    check_output(output_path, "model", data.file, data.labels)
    file = open_file(data, output, takes_top_scores=True)
    groups = read_columns(file, by)
    calibrator = make_calibrator(method, notion, file, seed, has_groups=bool(groups))
    rows = rows_for([calibrator], file, chunked)
    # Passes over a file and stacked ensembles show their own progress bars.
    has_bar = rows is not file and "progress" in calibrator.get_params(deep=False)
    with output.working(f"Fitting {method}", spins=rows is not file and not has_bar):
        is_shown = has_bar and not output.quiet
        result = fit_file(rows, file, calibrator, method, output_path, groups, progress=is_shown)
    output.show(before_after(result.before, result.after), result.notes, f"Saved {output_path}")
    output.result(result.to_dict(output_path))


@_command("calibrant apply model.json new.csv -o calibrated.csv")
def apply(
    model: ModelToRead,
    data: FileArguments,
    output_path: TableToWrite,
    printing: Printing,
    by: ApplyBy = None,
) -> None:
    """Add calibrated probabilities p_<class> to the columns of a file. Files larger than memory are
    read in blocks.
    """
    from calibrant.cli._commands import apply_file, load_calibrator
    from calibrant.cli._existing import check_output

    output = printing.output()
    check_output(output_path, "table", model)
    n_rows = apply_file(load_calibrator(model), data, output_path, output, by)
    output.show(f"Wrote {n_rows:,} rows to {output_path}")
    output.result({"n_rows": n_rows, "output": str(output_path)})


@_command("calibrant decide model.json new.csv --risk 0.05 --calibration labeled.csv -o out.csv")
def decide(
    model: ModelToDecide,
    data: WeightedFileArguments,
    options: DecideArguments,
    output_path: DecisionsToWrite,
    printing: Printing,
) -> None:
    """Add decisions to the columns of a file. Decisions are answers with a guaranteed maximum error
    rate (--risk), actions with the lowest expected cost (--cost), or sets of labels (--sets). The
    command prints the guarantee of answers or sets on standard error.
    """
    from calibrant.cli._decisions import decide_file
    from calibrant.cli._existing import check_output

    output = printing.output()
    inputs = (model, data.file, options.calibration, options.cost)
    check_output(output_path, "table", *inputs)
    if options.save is not None:
        check_output(options.save, "model", *inputs)
    result = decide_file(model, data, options, output_path, output)
    output.show(f"Wrote {result['n_rows']:,} rows to {output_path}")
    output.result(result)


@_command("calibrant export model.json --to onnx -o calibrator.onnx")
def export(
    model: ModelToDecide,
    output_path: ExportToWrite,
    printing: Printing,
    options: ExportArguments,
) -> None:
    """Export a calibrator to ONNX, PyTorch, SQL, Python or JavaScript. The code in Python or
    JavaScript has no dependencies.
    """
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
    """Compare calibration methods by cross-validation. The command prints a table of metrics on
    held-out rows. The table includes the reduction in log-loss by each method, with a confidence
    interval. Scores larger than 256 MB are read in blocks, several times. All rows are loaded if
    the methods include gp or canonical.
    """
    from calibrant.cli._files import open_file, read_columns, rows_for
    from calibrant.cli._tables import show_comparison
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
    show_comparison(result, output)
    output.result(result.to_dict())


@_command("calibrant report predictions.csv --label y --proba 'p_*' -o report.html")
def report(
    data: WeightedFileArguments,
    output_path: ReportToWrite,
    printing: Printing,
    options: ReportArguments,
) -> None:
    """Write a report about the effect of calibration. The report contains measures with confidence
    intervals, charts, tests, a guarantee, a glossary, and code that reproduces the figures. Scores
    larger than 256 MB are read in blocks, several times. All rows are loaded if they have weights,
    or if the method is gp or canonical.
    """
    from calibrant.cli import _reports as reports
    from calibrant.cli._commands import make_calibrator, scores_of
    from calibrant.cli._files import open_file, rows_for
    from calibrant.cli._tables import report_table
    from calibrant.report import count_steps

    output = printing.output()
    inputs = (data.file, data.labels, options.fit_on, options.model)
    reports.check_report_path(output_path, *inputs)
    model = reports.load_model(options)
    file = open_file(data, output, model=None if model is None else scores_of(model))
    calibrator = model
    if model is None:
        calibrator = make_calibrator(options.method, options.notion, file, options.seed)
    # By default, weighted rows are loaded. --chunked overrides this default.
    is_chunked = False if data.weight and options.chunked is None else options.chunked
    rows = rows_for([calibrator], file, is_chunked)
    training = reports.training_rows(data, options, file, output)
    n_steps = count_steps(0 if training or model is not None else options.cv)
    # If a file is read in blocks, each pass over the file shows its own progress bar.
    with output.working("Computing the report", spins=rows is not file, n_steps=n_steps):
        content = reports.report_file(rows, file, calibrator, training, options, output_path)
    output.headline(content.action, content.advice)
    output.show(content.verdict)
    if output.is_terminal:
        output.show("", report_table(content), "")
    output.show(f"Wrote {output_path}")
    output.result(content.to_dict())


@_command("calibrant llm results/ --risk 0.05 -o report.html")
def llm(
    path: LogsToRead,
    printing: Printing,
    risk: Risk = None,
    reading: OptionReading = "sum",
    percent: PercentConfidences = False,
    output_path: PageToWrite = None,
) -> None:
    """Evaluate language models from evaluation logs. The command reads logs of lm_eval, Inspect,
    HELM and batch services. The command also reads tables with the columns confidence and correct.
    The command prints a table of tasks with confidence intervals that hold jointly for all tasks.
    """
    from calibrant.cli._llm import report_runs, show_runs

    output = printing.output()
    content = report_runs(path, output_path, risk, reading, output, percent=percent)
    show_runs(content, output)
    if output_path is not None:
        output.show(f"Wrote {output_path}")
    output.result(content.to_dict())


_DEMO_TEXT = (
    "A naive Bayes classifier was trained on 597 images of handwritten digits and calibrated on "
    "600 other images. Results for 600 held-out images:"
)


@_command("calibrant demo")
def demo(
    printing: Printing,
    output_path: ReportToWrite = Path("calibrant-report.html"),
    seed: Seed = 0,
) -> None:
    """Calibrate a classifier on bundled data and write a report.

    This command needs no input file.
    """
    from calibrant.cli._reports import demo_report
    from calibrant.cli._tables import report_table
    from calibrant.report import count_steps

    output = printing.output()
    with output.working("Training and calibrating", n_steps=count_steps(0)):
        content = demo_report(seed, output_path)
    output.show(_DEMO_TEXT, "")
    output.headline(content.action, content.advice)
    output.show(content.verdict, "", report_table(content), "")
    if content.guarantee is not None:
        output.show("Guarantee:", f"  {content.guarantee.text}", "")
    output.show(f"Full report with charts: {output_path.resolve()}")
    output.result(content.to_dict())
