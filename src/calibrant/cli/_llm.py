"""Evaluate the logs of language-model evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant import llm
from calibrant._output.numbers import format_percent
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
        _check_no_log(output_path, path)
    with output.working("Reading the logs"):
        runs = llm.read(path, reading=reading, percent=percent)
    with output.working("Computing the report"):
        report = llm.summarize(runs, risk=risk, name=path.name or str(path))
    if output_path is not None:
        llm.write_report(report, output_path)
    return report


def _check_no_log(output: Path, logs: Path) -> None:
    """Raise if the report could replace a log in the folder that is read."""
    is_json = output.suffix.lower() == ".json"
    if is_json and output.is_file() and output.resolve().is_relative_to(logs.resolve()):
        raise ValueError(
            f"{output} is in the folder of logs and would be overwritten. Pass a file outside of "
            f"{logs} to --output."
        )


def show_runs(report: llm.RunsReport, output: Output) -> None:
    """Print the table of tasks, the thresholds and the notes."""
    show_rows(report.evaluation, output)
    for line in _threshold_lines(report.thresholds):
        output.show(line)
    for task, reasons in report.skipped.items():
        counts = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
        output.say(f"note: {task}: {counts}")


def _threshold_lines(thresholds: Mapping[str, llm.AnswerThreshold]) -> list[str]:
    """A line per task with a threshold, and one line for all tasks without a threshold."""
    unproved = [task for task, value in thresholds.items() if value.threshold is None]
    lines = [f"{task}: {value}" for task, value in thresholds.items() if task not in unproved]
    if len(unproved) == 1:
        lines.append(f"{unproved[0]}: {thresholds[unproved[0]]}")
    elif unproved:
        risk = format_percent(thresholds[unproved[0]].risk)
        names = f" ({', '.join(unproved)})" if lines else ""
        lines.append(
            f"No threshold could be proved for {len(unproved):,} of {len(thresholds):,} "
            f"tasks{names}. The rows do not suffice to prove an error rate of at most {risk} at "
            "any threshold."
        )
    return lines
