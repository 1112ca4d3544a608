"""The content of a report about runs: evaluation, diagrams, thresholds and omitted lines."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant._output.files import write_text
from calibrant.llm._diagram import TaskDiagram, task_diagram
from calibrant.llm._evaluate import RunsEvaluation, evaluate
from calibrant.llm._page import to_html
from calibrant.llm._run import Runs, as_runs
from calibrant.llm._threshold import AnswerThreshold, find_answer_threshold


@dataclass(frozen=True)
class RunsReport:
    """Content of a report, returned by `summarize`.

    Attributes
    ----------
    name : str
        Title of the report.
    evaluation : RunsEvaluation
        Metrics of each task.
    diagrams : tuple of TaskDiagram
        Bins of the reliability diagram of each task.
    thresholds : dict of task -> AnswerThreshold
        Answer thresholds for the requested risk. The dictionary is empty if no risk was passed.
    skipped : dict of task -> dict of reason -> int
        Numbers of lines that were not used, and of rows that were used with a note, by reason.

    See Also
    --------
    summarize : Compute the content.
    """

    name: str
    evaluation: RunsEvaluation
    diagrams: tuple[TaskDiagram, ...]
    thresholds: dict[str, AnswerThreshold] = field(default_factory=dict)
    skipped: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the content as plain values, for example for JSON. Missing numbers are None."""
        content = {
            "name": self.name,
            **self.evaluation.to_dict(),
            "diagrams": [diagram.to_dict() for diagram in self.diagrams],
            "thresholds": {name: value.to_dict() for name, value in self.thresholds.items()},
            "skipped": self.skipped,
        }
        return _without_nan(content)


def summarize(
    runs: Runs, *, risk: float | None = None, level: float = 0.95, name: str = "runs"
) -> RunsReport:
    """Compute the content of a report about runs.

    Parameters
    ----------
    runs : Runs
        Runs that `read` returned.
    risk : float, optional
        Maximum accepted share of wrong answers among the given answers. If you pass a risk, each
        task gets the lowest confidence threshold that keeps this risk, with 90% confidence.
    level : float, default 0.95
        Joint level of the intervals of all tasks.
    name : str
        Title of the report.

    Returns
    -------
    RunsReport

    See Also
    --------
    evaluate : Compute the table without diagrams.
    write_report : Write the report.
    """
    runs = as_runs(runs)
    evaluation = evaluate(runs, level=level)
    run_of = runs.evaluated
    thresholds = {}
    if risk is not None:
        thresholds = {key: find_answer_threshold(run, risk) for key, run in run_of.items()}
    return RunsReport(
        name=name,
        evaluation=evaluation,
        diagrams=tuple(task_diagram(key, run) for key, run in run_of.items()),
        thresholds=thresholds,
        skipped={key: dict(run.skipped) for key, run in runs.items() if run.skipped},
    )


def write_report(report: RunsReport, path: str | os.PathLike[str]) -> None:
    """Write a report as HTML or JSON.

    Parameters
    ----------
    report : RunsReport
    path : path
        File to write, which ends in .html or .json.

    See Also
    --------
    summarize : Compute a report.
    """
    check_ending(path)
    is_json = Path(path).suffix.lower() == ".json"
    text = json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n" if is_json else ""
    write_text(path, text or to_html(report))


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raise if a report cannot be written to a file with this extension."""
    if Path(path).suffix.lower() not in (".html", ".htm", ".json"):
        raise ValueError(
            f"{os.fspath(path)} must end in .html or .json. Pass a path such as report.html."
        )


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and value != value else value
