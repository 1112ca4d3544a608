"""``calibrant monitor start | update | show``: made for cron. An update ends with exit code 0 where
all is quiet and 3 where there is an alarm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant._output.files import check_writable, write_text
from calibrant.cli._options import Printing, WeightedFileArguments, register_command

if TYPE_CHECKING:  # imported where they are needed: help needs none
    from calibrant.cli._output import Output
    from calibrant.io import ScoreFile
    from calibrant.monitoring import CalibrationMonitor, MonitorStep

ALARM = 3
"""Exit code of an update with an alarm."""

monitor_app = typer.Typer(
    help="Watch a deployed model: an alarm where its probabilities stop being honest.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

State = Annotated[Path, typer.Argument(metavar="STATE", help="What calibrant monitor start wrote.")]
StateToWrite = Annotated[
    Path, typer.Option("--output", "-o", metavar="STATE", help="The state to write, JSON.")
]
Tolerance = Annotated[
    float, typer.Option(metavar="GAP", help="Gaps up to this are no reason for an alarm.")
]
FalseAlarm = Annotated[
    float, typer.Option(metavar="P", help="Probability of a false alarm within the horizon.")
]
Horizon = Annotated[int, typer.Option(metavar="ROWS", help="Rows for which that holds.")]
Metrics = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write Prometheus text to this file, too.")
]
When = Annotated[
    str | None, typer.Option(metavar="NAME", help="What to call this update; else the file.")
]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="Groups of rows: which are not honest?"),
]
Page = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PAGE", help="An .html page to write.")
]

Title = Annotated[
    str | None, typer.Option(metavar="NAME", help="What the page is about; else the state's name.")
]


_command = partial(register_command, monitor_app)


@_command("calibrant monitor start reference.parquet --tolerance 0.02 -o state.json")
def start(
    data: WeightedFileArguments,
    output_path: StateToWrite,
    printing: Printing,
    tolerance: Tolerance = 0.02,
    false_alarm: FalseAlarm = 0.05,
    horizon: Horizon = 1_000_000,
) -> None:
    """Begin to watch: classes and columns are those of a reference file, whose rows are judged but
    not counted.
    """
    from calibrant.cli._files import open_file
    from calibrant.monitoring import CalibrationMonitor

    output = printing.output()
    check_writable(output_path)
    file = open_file(data, output)
    rows = file.load()
    options: dict[str, Any] = {
        "false_alarm": false_alarm,
        "horizon": horizon,
        "tolerance": tolerance,
        "classes": file.classes,
        "inputs": file.inputs,
    }
    judged = CalibrationMonitor(**options)
    judged.update(rows.labels, rows.scores, sample_weight=rows.weight, when=data.file.name)
    write_text(output_path, CalibrationMonitor(**options).to_json())
    if judged.alarm:
        output.say(
            "note: the reference itself would be an alarm: calibrate the model first, or allow "
            f"more by --tolerance. {judged.gaps()[0].claim}: {judged.gaps()[0].mean:+.4f}"
        )
    output.show(f"Wrote {output_path}; next: calibrant monitor update {output_path} FILE")
    output.result({"state": str(output_path), "reference": judged.to_dict()})


@_command("calibrant monitor update state.json week-45.parquet --metrics calibrant.prom")
def update(
    state: State,
    data: WeightedFileArguments,
    printing: Printing,
    metrics: Metrics = None,
    when: When = None,
    group: GroupColumn = None,
) -> None:
    """Add the rows of a file whose labels have arrived. Exit code 0: quiet, 3: alarm, 2: bad input,
    and the state stays as it was.
    """
    output = printing.output()
    if metrics is not None:
        check_writable(metrics)
    with locked(state):
        monitor = read_monitor(state)
        file = open_for(monitor, data, output)
        groups = None if group is None else read_groups(file, group)
        rows = file.load()
        step = monitor.update(
            rows.labels,
            rows.scores,
            sample_weight=rows.weight,
            group=groups,
            when=when or data.file.stem,
        )
        write_text(state, monitor.to_json())
    if metrics is not None:
        write_text(metrics, prometheus_text(step))
    output.show(str(monitor))
    output.result(step.to_dict())
    if step.alarm:
        raise typer.Exit(ALARM)


@_command('calibrant monitor show state.json -o monitor.html --title "credit model"')
def show(state: State, printing: Printing, output_path: Page = None, title: Title = None) -> None:
    """What is known now, in sentences, or as a page for those who decide."""
    from calibrant.report import monitor_page

    output = printing.output()
    monitor = read_monitor(state)
    if output_path is not None:
        if output_path.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"{output_path}: the page is written as .html")
        write_text(output_path, monitor_page(monitor, title or state.stem))
    output.show(str(monitor), *([f"Wrote {output_path}"] if output_path else []))
    output.result(monitor.to_dict())


def read_monitor(path: Path) -> CalibrationMonitor:
    """The monitor of a file; a ``ValueError`` that names it where it is damaged."""
    from calibrant.monitoring import CalibrationMonitor

    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: begin with calibrant monitor start")
    try:
        return CalibrationMonitor.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def open_for(monitor: CalibrationMonitor, data: WeightedFileArguments, output: Output) -> ScoreFile:
    """A file with the classes and the kind of scores of a monitor."""
    from calibrant.cli._files import open_file
    from calibrant.io import ModelScores

    classes: Any = monitor.classes
    model = ModelScores(classes, monitor.to_dict()["rule"]["inputs"])
    return open_file(replace(data, classes=None), output, model=model)


def read_groups(file: ScoreFile, name: str) -> list[str]:
    """The group of every row, from a column of the file."""
    from calibrant._validation import shortened

    columns = list(file.reader.kinds)
    if name not in columns:
        has = (
            f"has columns {shortened(columns)}" if columns else "holds arrays without such columns"
        )
        raise ValueError(f"--group names the column {name!r}: {file.path} {has}")
    try:
        groups = file.reader.text_column(name)
    except ValueError:
        raise ValueError(
            f"--group {name}: groups are names or whole numbers, which the column does not hold"
        ) from None
    for row, group in enumerate(groups):
        if not group:
            raise ValueError(f"row {row} has no group in column {name!r}")
    return [str(group) for group in groups]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A file that no other update touches meanwhile."""
    lock = path.with_name(path.name + ".lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise ValueError(
            f"{path} is locked by another update; if none is running, remove {lock}"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def prometheus_text(step: MonitorStep) -> str:
    """The state as text that Prometheus reads."""
    values = {
        "evidence_nats": ("natural logarithm of the evidence", step.nats),
        "threshold_nats": ("where it is an alarm", step.threshold),
        "alarm": ("1 after an alarm", int(step.alarm)),
        "rows_total": ("rows with labels", step.n_seen),
    }
    lines = []
    for name, (text, value) in values.items():
        full = f"calibrant_monitor_{name}"
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {value!r}"]
    full = "calibrant_monitor_gap"
    lines += [f"# HELP {full} came true minus said", f"# TYPE {full} gauge"]
    lines += [f'{full}{{claim="{_escaped(gap.claim)}"}} {gap.mean!r}' for gap in step.gaps]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
