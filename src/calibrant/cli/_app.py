"""The commands: what each is told and what it prints. Options are stated in
`calibrant.cli._options`, what the commands do is in `calibrant.cli._commands`.

Commands import what they need when they run: whoever asks for help does not wait for scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

import calibrant
from calibrant.cli._monitor import monitor_app
from calibrant.cli._options import (
    Bins,
    ClassifierOutput,
    Compose,
    ExportToWrite,
    Folds,
    MethodName,
    MethodNames,
    ModelToRead,
    ModelToWrite,
    NotionName,
    Printing,
    ReportToWrite,
    ScoreFile,
    Seed,
    SqlColumns,
    SqlDialect,
    SqlKeep,
    SqlTable,
    TableToWrite,
    Target,
    WeightedFile,
    flattened,
)

if TYPE_CHECKING:
    from calibrant.cli._commands import LabelledScores
    from calibrant.evaluation import Evaluation, TopEvaluation

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


def method_help() -> str:
    """The methods, a line each."""
    from calibrant.selection._methods import METHODS

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
        own = self.epilog
        self.epilog = f"{method_help()}\n\n{own}"
        super().format_epilog(ctx, formatter)
        self.epilog = own


def _command(
    example: str, cls: type[typer.core.TyperCommand] = typer.core.TyperCommand
) -> Callable[[Callable[..., None]], Any]:
    """A command of the app, with an example at the end of its help."""

    def register(command: Callable[..., None]) -> Any:
        return app.command(cls=cls, epilog=f"\b\nExample:\n  {example}")(flattened(command))

    return register


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
def evaluate(data: WeightedFile, printing: Printing, bins: Bins = 15) -> None:
    """How good and how honest the predictions of a file are. Files larger than memory are read in
    blocks.
    """
    from calibrant.cli._commands import evaluate_file
    from calibrant.cli._top import evaluate_top_file, is_top_file

    output = printing.output()
    options = data.options()
    result: Evaluation | TopEvaluation
    if is_top_file(options):
        result = evaluate_top_file(options, bins)
    else:
        result = evaluate_file(options, bins, output.say, output.watch)
    output.show(str(result))
    output.result(result.to_dict())


@_command(
    "calibrant fit predictions.csv --label y --proba 'p_*' -m auto -o model.json", _ListsMethods
)
def fit(
    data: WeightedFile,
    output_path: ModelToWrite,
    printing: Printing,
    method: MethodName = "auto",
    notion: NotionName = None,
    seed: Seed = 0,
) -> None:
    """Fit a calibrator to scores and labels, and save it. Fit it to rows that the classifier was
    not trained on. Of scores of more than 256 MB blocks are read, once for each pass; gp and
    canonical need all rows, and keep them in a temporary file.
    """
    from calibrant.cli._commands import check_other_file, fit_file, read_all
    from calibrant.cli._output import before_after
    from calibrant.cli._passes import fit_passes, is_passed, open_passes
    from calibrant.cli._top import fit_top_file, is_top_file

    output = printing.output()
    check_other_file(output_path, data.file, data.labels)
    options = data.options()
    if is_top_file(options):
        with output.working(f"Fitting {method}"):
            fitted = fit_top_file(options, method, output_path)
    elif is_passed(options, method, notion):
        file = open_passes(options, output.say, progress=not output.quiet)
        with output.working(f"Fitting {method}", spins=False):  # each pass has a bar
            fitted = fit_passes(file, method, notion, seed, output_path)
    else:
        rows = read_all(options, output.say, output.watch)
        with output.working(f"Fitting {method}"):
            fitted = fit_file(rows, method, notion, seed, output_path)
    output.show(before_after(fitted.before, fitted.after), fitted.remark, f"Saved {output_path}")
    output.result(fitted.to_dict(output_path))


@_command("calibrant apply model.json new.csv -o calibrated.csv")
def apply(
    model: ModelToRead, data: ScoreFile, output_path: TableToWrite, printing: Printing
) -> None:
    """Add calibrated probabilities p_<class> to the columns of a file. Files larger than memory are
    read in blocks.
    """
    from calibrant.cli._commands import apply_file, check_other_file

    output = printing.output()
    check_other_file(output_path, model)
    calibrator = calibrant.load(model)
    n_rows = apply_file(calibrator, data.options(), output_path, output.say, output.watch)
    output.show(f"Wrote {n_rows:,} rows to {output_path}")
    output.result({"n_rows": n_rows, "output": str(output_path)})


@_command("calibrant export model.json --to onnx -o calibrator.onnx")
def export(
    model: ModelToRead,
    output_path: ExportToWrite,
    printing: Printing,
    to: Target = "onnx",
    dialect: SqlDialect = "duckdb",
    table: SqlTable = "scores",
    columns: SqlColumns = None,
    keep: SqlKeep = None,
    compose: Compose = None,
    output: ClassifierOutput = None,
) -> None:
    """Write a saved calibrator for other programs: ONNX, PyTorch, SQL, Python or JavaScript."""
    from calibrant.cli._commands import ExportOptions, check_other_file, export_file

    shown = printing.output()
    check_other_file(output_path, model, compose)
    wanted = ExportOptions(to, dialect, table, columns, keep, compose, output)
    export_file(calibrant.load(model), wanted, output_path)
    shown.show(f"Wrote {output_path}")
    shown.result({"to": to, "output": str(output_path)})


@_command("calibrant compare predictions.parquet -m temperature -m dirichlet -m auto")
def compare(
    data: WeightedFile,
    printing: Printing,
    methods: MethodNames = None,
    cv: Folds = 5,
    seed: Seed = 0,
) -> None:
    """Compare calibration methods by cross-validation, with intervals of what each gains. Scores of
    more than 256 MB are read block by block, once for each pass, unless gp or canonical are asked
    for.
    """
    from calibrant.cli._commands import read_all
    from calibrant.cli._passes import is_compared_by_passes, open_passes
    from calibrant.selection._methods import default_methods

    output, options = printing.output(), data.options()
    rows: LabelledScores
    if is_compared_by_passes(options, methods or default_methods()):
        rows = open_passes(options, output.say, progress=not output.quiet)
    else:
        rows = read_all(options, output.say, output.watch)
    result = calibrant.compare(
        rows.labels,
        rows.scores,
        inputs=rows.inputs,
        methods=methods or None,
        cv=cv,
        sample_weight=rows.weight,
        classes=rows.classes,
        random_state=seed,
        progress=not output.quiet,
    )
    output.show(str(result))
    output.result(result.to_dict())


@_command("calibrant report predictions.csv --label y --proba 'p_*' -o report.html")
def report(
    data: WeightedFile,
    output_path: ReportToWrite,
    printing: Printing,
    method: MethodName = "auto",
    notion: NotionName = None,
    cv: Folds = 5,
    seed: Seed = 0,
) -> None:
    """Before and after calibration on one page: errors with intervals, charts, tests, a guarantee,
    the code to repeat it. Scores of more than 256 MB are read block by block, once for each pass,
    where there are no weights and the method is neither gp nor canonical.
    """
    from calibrant.cli._commands import check_other_file, file_report, read_all
    from calibrant.cli._passes import is_reported_by_passes, open_passes

    output = printing.output()
    check_other_file(output_path, data.file, data.labels)
    options = data.options()
    passes = is_reported_by_passes(options, method, notion)
    rows: LabelledScores
    if passes:
        rows = open_passes(options, output.say, progress=not output.quiet)
    else:
        rows = read_all(options, output.say, output.watch)
    with output.working("Calibrating, testing and drawing", spins=not passes):
        content = file_report(rows, method, notion, cv, seed, options, output_path)
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
    from calibrant.cli._commands import demo_report

    output = printing.output()
    with output.working("Training and calibrating"):
        content = demo_report(seed, output_path)
    output.show(*_demo_lines(content), f"The full report, with charts: {output_path.resolve()}")
    output.result(content.to_dict())


def _demo_lines(content: calibrant.report.Report) -> list[Any]:
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
