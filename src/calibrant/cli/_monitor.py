"""``calibrant monitor start | update | show``, for scheduled jobs.

The exit code of an update is 3 if there is an alarm.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant._output.files import check_writable, write_text
from calibrant._output.numbers import format_number
from calibrant.cli import drop_output, flush_output, report_error
from calibrant.cli._existing import check_other_file, check_replaceable
from calibrant.cli._options import Printing, WeightedFileArguments
from calibrant.cli._register import register_command

if TYPE_CHECKING:  # --help does not need these classes, so commands import them later
    from calibrant.cli._output import Output
    from calibrant.monitoring import CalibrationMonitor, MonitorStep

ALARM, NOT_SHOWN = 3, 4
"""Exit codes of an update with an alarm, and of an update whose results cannot be written."""

monitor_app = typer.Typer(
    help="Raise an alarm when a deployed model loses its calibration.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

State = Annotated[
    Path, typer.Argument(metavar="STATE", help="State file from calibrant monitor start.")
]
StateToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="STATE", help="JSON file to write.")
]
Tolerance = Annotated[
    float,
    typer.Option(metavar="GAP", help="Largest tolerated error of a predicted probability."),
]
RelativeTolerance = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", help="Largest tolerated error as a share of the predicted probability."
    ),
]
FalseAlarm = Annotated[
    float,
    typer.Option(metavar="P", help="Largest probability of a false alarm within --horizon rows."),
]
Horizon = Annotated[
    int, typer.Option(metavar="ROWS", help="Number of rows to which --false-alarm refers.")
]
Metrics = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write Prometheus metrics to this file.")
]
When = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of this update (default: name of the file)."),
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Accept rows and names of updates that were added before."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace an existing output file, even a monitor with added rows."
    ),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column of groups to monitor separately, in addition to all rows.",
    ),
]
Page = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PAGE", help="HTML file to write.")
]

Title = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Title of the page (default: name of the state file)."),
]


_command = partial(register_command, monitor_app)


@_command("calibrant monitor start reference.parquet --tolerance 0.02 -o state.json")
def start(
    data: WeightedFileArguments,
    output_path: StateToWrite,
    printing: Printing,
    tolerance: Tolerance = 0.02,
    relative_tolerance: RelativeTolerance = None,
    false_alarm: FalseAlarm = 0.05,
    horizon: Horizon = 1_000_000,
    force: Force = False,
) -> None:
    """Start monitoring a model. The state file stores the classes, columns and options of the
    reference file, and updates reuse these settings. The command checks the calibration of the
    reference file, but does not add the rows of the reference file to the monitor.
    """
    from calibrant.cli._files import open_file
    from calibrant.cli._monitor_state import remember_options
    from calibrant.monitoring import CalibrationMonitor

    output = printing.output()
    check_other_file(output_path, data.file, data.labels)
    check_writable(output_path)
    if not force:
        check_replaceable(output_path, "state")
    file = open_file(data, output)
    rows = file.load()
    options: dict[str, Any] = {
        "false_alarm": false_alarm,
        "horizon": horizon,
        "tolerance": tolerance,
        "relative_tolerance": relative_tolerance,
        "classes": file.classes,
        "inputs": file.inputs,
    }
    reference = CalibrationMonitor(**options)
    with output.working("Checking the reference file"):
        reference.update(rows.labels, rows.scores, sample_weight=rows.weight, when=data.file.name)
    monitor = CalibrationMonitor(**options)
    remember_options(monitor, data, file)
    write_text(output_path, monitor.to_json())
    if reference.alarm:
        _note_alarm(reference, output)
    if relative_tolerance is None:
        _note_rare_classes(rows, file, tolerance, output)
    output.show(f"Wrote {output_path}. Next step: calibrant monitor update {output_path} FILE")
    output.result({"state": str(output_path), "reference": reference.to_dict()})


def _note_alarm(reference: CalibrationMonitor, output: Output) -> None:
    gap = reference.gaps()[0]
    output.say(
        f"note: The rows of the reference file raise an alarm (mean gap of {gap.claim}: "
        f"{format_number(gap.mean, signed=True)}). Calibrate the model first, or pass a larger "
        "--tolerance."
    )


def _note_rare_classes(rows: Any, file: Any, tolerance: float, output: Output) -> None:
    """Warn about rare classes, for which large relative errors may raise no alarm."""
    from calibrant._kernels.simplex import as_proba
    from calibrant._validation import shortened

    if file.has_top_scores or rows.scores.ndim == 1:
        return
    mean = as_proba(rows.scores, file.inputs).mean(axis=0)
    rare_classes = [str(file.classes[k]) for k in range(len(mean)) if mean[k] < 2 * tolerance]
    if rare_classes:
        output.say(
            f"note: The mean predicted probability of {shortened(rare_classes, 5)} is below twice "
            f"the tolerance {tolerance:g}, so large relative errors may raise no alarm. Add "
            "--relative-tolerance 0.5 to detect large relative errors."
        )


@_command("calibrant monitor update state.json week-45.parquet --metrics calibrant.prom")
def update(
    state: State,
    data: WeightedFileArguments,
    printing: Printing,
    metrics: Metrics = None,
    when: When = None,
    group: GroupColumn = None,
    again: Again = False,
) -> None:
    """Add labeled rows and check for an alarm. The exit code is 3 if there is an alarm, and 0 if
    not. If the input is invalid, the exit code is 2 and the state does not change. Exit code 4
    means that the rows were added, but the output or the metrics could not be written.
    """
    from calibrant.cli import _monitor_state as states
    from calibrant.cli._files import open_file, read_groups

    output = printing.output()
    if metrics is not None:
        _check_metrics(metrics, state, data.file, data.labels)
    with states.locked(state):
        monitor = states.read_monitor(state)
        arguments = states.recall_options(monitor, data)
        file = open_file(arguments, output, model=states.scores_of(monitor))
        groups = None if group is None else read_groups(file, group, "--group")
        rows, name = file.load(), when or data.file.stem
        states.note_file(monitor, name, states.digest_rows(rows, groups), again=again)
        with output.working("Updating the monitor"):
            step = monitor.update(
                rows.labels, rows.scores, sample_weight=rows.weight, group=groups, when=name
            )
        states.write_monitor(state, monitor)
    is_shown = _publish(output, monitor, step, metrics)
    if step.alarm or not is_shown:
        raise typer.Exit(ALARM if step.alarm else NOT_SHOWN)


def _check_metrics(metrics: Path, *inputs: Path | None) -> None:
    check_other_file(metrics, *inputs)
    check_writable(metrics)
    check_replaceable(metrics, "metrics")
    # A pipe without a reader would block the command after the rows were added.
    if metrics.is_fifo():
        raise ValueError(f"{metrics} is a pipe. Pass a regular file to --metrics.")


def _publish(
    output: Output, monitor: CalibrationMonitor, step: MonitorStep, metrics: Path | None
) -> bool:
    """Write the results of an update, and return whether this succeeded."""
    from calibrant.cli._tables import show_monitor

    try:
        if metrics is not None:
            write_text(metrics, prometheus_text(step))
        show_monitor(monitor, output)
        output.result(step.to_dict())
        flush_output()
    except BrokenPipeError:  # the reader has closed the pipe
        drop_output()
    except (OSError, ValueError) as error:
        drop_output()
        report_error(f"The rows were added, but the results could not be written ({error}).")
        return False
    return True


@_command('calibrant monitor show state.json -o monitor.html --title "credit model"')
def show(state: State, printing: Printing, output_path: Page = None, title: Title = None) -> None:
    """Describe a monitor, and optionally write an HTML page about it."""
    from calibrant.cli._monitor_state import read_monitor
    from calibrant.cli._tables import show_monitor

    output = printing.output()
    monitor = read_monitor(state)
    if output_path is not None:
        _write_page(monitor, title or state.stem, output_path, state)
    show_monitor(monitor, output)
    output.show(*([f"Wrote {output_path}"] if output_path else []))
    output.result(monitor.to_dict())


def _write_page(monitor: CalibrationMonitor, title: str, output_path: Path, state: Path) -> None:
    from calibrant.report import monitor_page

    check_other_file(output_path, state)
    check_replaceable(output_path, "page")
    if output_path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{output_path} must end in .html. Pass -o monitor.html.")
    write_text(output_path, monitor_page(monitor, title))


def prometheus_text(step: MonitorStep) -> str:
    """Return the state in the text format of Prometheus."""
    values = {
        "evidence_nats": ("Evidence against calibration (log e-value).", step.nats),
        "threshold_nats": ("Log e-value that raises an alarm.", step.threshold),
        "alarm": ("1 after an alarm, else 0.", int(step.alarm)),
        "rows_total": ("Number of labeled rows.", step.n_seen),
    }
    lines = []
    for name, (text, value) in values.items():
        lines += [*_metric_head(name, text), f"calibrant_monitor_{name} {value!r}"]
    lines += _metric_head("gap", "Mean predicted probability minus observed frequency.")
    for gap in step.gaps:
        lines.append(f'calibrant_monitor_gap{{claim="{_escaped(gap.claim)}"}} {gap.mean!r}')
    return "\n".join(lines) + "\n"


def _metric_head(name: str, text: str) -> list[str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    return [f"# HELP calibrant_monitor_{name} {text}", f"# TYPE calibrant_monitor_{name} {kind}"]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
