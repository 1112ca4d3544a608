"""The commands: their options and what they print. What they do is in `calibrant.cli._commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import calibrant
from calibrant.cli._columns import Request
from calibrant.cli._commands import (
    apply_file,
    demo_report,
    evaluate_file,
    file_report,
    fit_file,
    read_all,
)
from calibrant.cli._output import Output, before_after, report_table

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

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CSV, Parquet, .npz or .npy file.", show_default=False),
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of labels.")]
Proba = Annotated[
    str | None, typer.Option(metavar="COLUMNS", help="Columns of probabilities: 'p_*', or a,b,c.")
]
Logits = Annotated[
    str | None, typer.Option(metavar="COLUMNS", help="Columns of logits: 'z_*', or a,b,c.")
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of sample weights.")]
Classes = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Classes in the order of the columns: a,b,c.")
]
Labels = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Labels that go with an .npy file, another one.")
]
Split = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of an .npz file: arrays NAME_logits and NAME_labels."),
]
Renormalize = Annotated[
    bool, typer.Option("--renormalize", help="Divide rows of rounded probabilities by their sum.")
]
Method = Annotated[
    str,
    typer.Option(
        "--method", "-m", metavar="METHOD", help="How to calibrate; calibrant fit -h lists them."
    ),
]
NotionName = Annotated[
    str | None,
    typer.Option("--notion", metavar="NOTION", help="Of binary methods: what they calibrate."),
]
Folds = Annotated[int, typer.Option("--cv", min=2, metavar="N", help="Folds of cross-fitting.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Decides everything random.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No remarks and no progress bar.")]

METHOD_HELP = (
    "Methods: auto (the default: stacks several, does no harm), identity, temperature, "
    "ensemble-temperature, vector, matrix, "
    "dirichlet, structured-vector, structured-matrix, gp, canonical; binary ones, by class unless "
    "--notion says otherwise: "
    "platt, beta, isotonic, histogram, bbq, spline, venn-abers."
)


def _output(context: typer.Context) -> Output:
    return Output(as_json=context.params["as_json"], quiet=context.params["quiet"])


def _request(context: typer.Context) -> Request:
    """The options of a command that are about its file."""
    said = {
        name: context.params[name]
        for name in Request.__dataclass_fields__
        if name in context.params
    }
    if said.get("classes") is not None:
        said["classes"] = tuple(name.strip() for name in said["classes"].split(","))
    return Request(context.params["file"], **said)


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


@app.command(epilog="\b\nExample:\n  calibrant evaluate predictions.csv --label y --proba 'p_*'")
def evaluate(
    context: typer.Context,
    file: File,
    label: Label = None,
    proba: Proba = None,
    logits: Logits = None,
    weight: Weight = None,
    classes: Classes = None,
    labels: Labels = None,
    split: Split = None,
    renormalize: Renormalize = False,
    bins: Annotated[
        int, typer.Option(min=1, metavar="N", help="Bins of the calibration errors.")
    ] = 15,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """How good and how honest the predictions of a file are. Files larger than memory are read in
    blocks.
    """
    output = _output(context)
    result = evaluate_file(_request(context), bins, output.say, output.watch)
    output.show(str(result))
    output.result(result.to_dict())


@app.command(
    epilog=(
        f"{METHOD_HELP}\n\n\b\nExample:\n  calibrant fit predictions.csv --label y --proba 'p_*' "
        f"-m auto -o model.json"
    )
)
def fit(
    context: typer.Context,
    file: File,
    output_path: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="The model to write, JSON.")
    ],
    method: Method = "auto",
    notion: NotionName = None,
    label: Label = None,
    proba: Proba = None,
    logits: Logits = None,
    weight: Weight = None,
    classes: Classes = None,
    labels: Labels = None,
    split: Split = None,
    renormalize: Renormalize = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a calibrator to scores and labels, and save it. Fit it to rows that the classifier was
    not trained on.
    """
    output = _output(context)
    data = read_all(_request(context), output.say, output.watch)
    with output.working(f"Fitting {method}"):
        made = fit_file(data, method, notion, seed, output_path)
    output.show(before_after(made.before, made.after), made.remark, f"Saved {output_path}")
    output.result(made.to_dict(output_path))


@app.command(epilog="\b\nExample:\n  calibrant apply model.json new.csv -o calibrated.csv")
def apply(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="What calibrant fit saved.", show_default=False)
    ],
    file: File,
    output_path: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="CSV, Parquet, .npz or .npy to write."),
    ],
    proba: Proba = None,
    logits: Logits = None,
    split: Split = None,
    renormalize: Renormalize = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add calibrated probabilities p_<class> to the columns of a file. Files larger than memory are
    read in blocks.
    """
    output = _output(context)
    n_rows = apply_file(
        calibrant.load(model), _request(context), output_path, output.say, output.watch
    )
    output.show(f"Wrote {n_rows:,} rows to {output_path}")
    output.result({"n_rows": n_rows, "output": str(output_path)})


@app.command(
    epilog=(
        "\b\nExample:\n  calibrant compare predictions.parquet -m temperature -m dirichlet -m auto"
    )
)
def compare(
    context: typer.Context,
    file: File,
    methods: Annotated[
        list[str] | None, typer.Option("--method", "-m", metavar="METHOD", help="Repeat for each.")
    ] = None,
    cv: Folds = 5,
    label: Label = None,
    proba: Proba = None,
    logits: Logits = None,
    weight: Weight = None,
    classes: Classes = None,
    labels: Labels = None,
    split: Split = None,
    renormalize: Renormalize = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare calibration methods by cross-validation, with intervals of what each gains."""
    output = _output(context)
    data = read_all(_request(context), output.say, output.watch)
    result = calibrant.compare(
        data.labels,
        data.scores,
        inputs=data.inputs,
        methods=methods or None,
        cv=cv,
        sample_weight=data.weight,
        classes=data.classes,
        random_state=seed,
        progress=output.progress,
    )
    output.show(str(result))
    output.result(result.to_dict())


@app.command(
    epilog="\b\nExample:\n  calibrant report predictions.csv --label y --proba 'p_*' -o report.html"
)
def report(
    context: typer.Context,
    file: File,
    output_path: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="An .html, .md or .json file to write."),
    ],
    method: Method = "auto",
    notion: NotionName = None,
    cv: Folds = 5,
    label: Label = None,
    proba: Proba = None,
    logits: Logits = None,
    classes: Classes = None,
    labels: Labels = None,
    split: Split = None,
    renormalize: Renormalize = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Before and after calibration on one page: errors with intervals, charts, tests, a guarantee,
    the code to repeat it.
    """
    output = _output(context)
    data = read_all(_request(context), output.say, output.watch)
    with output.working("Calibrating, testing and drawing"):
        made = file_report(data, method, notion, cv, seed, file.name, output_path)
    output.show(made.verdict, f"Wrote {output_path}")
    output.result(made.to_dict())


@app.command(epilog="\b\nExample:\n  calibrant demo")
def demo(
    context: typer.Context,
    output_path: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The report to write.")
    ] = Path("calibrant-report.html"),
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier on bundled data, show how honest it is, calibrate it, and write a report.
    Needs no input.
    """
    output = _output(context)
    with output.working("Training and calibrating"):
        made = demo_report(seed, output_path)
    output.show(*_demo_lines(made), f"The full report, with charts: {output_path.resolve()}")
    output.result(made.to_dict())


def _demo_lines(made: Any) -> list[Any]:
    return [
        "A naive Bayes classifier was trained on 597 images of handwritten digits, and calibrated "
        "on 600 others.",
        "On 600 more that neither has seen, with 95 % intervals:",
        "",
        f"  {made.verdict}",
        "",
        report_table(made),
        "",
        "What is guaranteed for new images of this kind, by top-label histogram binning, whatever "
        "the model:",
        f"  {made.guarantee.text}" if made.guarantee else "  nothing",
        "",
    ]
