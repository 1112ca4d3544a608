"""Evaluate the logs of language-model evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant import llm
from calibrant.cli._existing import check_output
from calibrant.cli._output import Output
from calibrant.cli._tables import show_rows
from calibrant.llm._report import check_ending


def report_runs(
    path: Path,
    output_path: Path | None,
    risk: float | None,
    reading: Any,
    output: Output,
    *,
    percent: bool,
) -> llm.RunsReport:
    """Read logs, and write a report if a file was requested."""
    if output_path is not None:
        check_ending(output_path)
        check_output(output_path, "report", path if path.is_file() else None)
    with output.working("Reading the logs"):
        runs = llm.read(path, reading=reading, percent=percent)
    with output.working("Computing the report"):
        report = llm.summarize(runs, risk=risk, name=path.name or str(path))
    if output_path is not None:
        llm.write_report(report, output_path)
    return report


def show_runs(report: llm.RunsReport, output: Output) -> None:
    """Print the table of tasks, the thresholds and the notes."""
    show_rows(report.evaluation, output)
    for task, threshold in report.thresholds.items():
        output.show(f"{task}: {threshold}")
    for task, reasons in report.skipped.items():
        counts = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
        output.say(f"note: {task}: {counts}")
