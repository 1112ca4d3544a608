"""A report about runs as one self-contained HTML page. This module escapes all names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import calibrant
from calibrant._output.numbers import format_fixed, format_number, format_percent
from calibrant._validation import printable
from calibrant.llm._diagram import draw_diagram
from calibrant.llm._evaluate import TaskEvaluation
from calibrant.report._markup import read_page, style

if TYPE_CHECKING:
    from calibrant.llm._report import RunsReport
    from calibrant.llm._threshold import AnswerThreshold

_COLUMNS = {
    "Task": "Name of the run.",
    "Rows": "Number of answers with a confidence.",
    "Missing": "Number of answers without a confidence, which are not evaluated.",
    "Accuracy": "Share of correct answers.",
    "Confidence": "Mean confidence of the answers.",
    "Gap": "Mean confidence minus accuracy. Positive values indicate overconfidence.",
    "Gain": "Reduction in log-loss by calibration on held-out rows, with a 95% confidence "
    "interval. Higher is better.",
    "Threshold": "Lowest confidence above which the maximum error rate of the answers is "
    "guaranteed.",
    "Answered": "Share of questions with a confidence above the threshold.",
    "Error": "Debiased L2 calibration error with a 95% confidence interval. Lower is better.",
    "AUROC": "Probability that a correct answer has a higher confidence than a wrong answer.",
    "Log-loss": "Mean log-loss in nats. Lower is better.",
}
"""Columns of the table, with their tooltips."""


_TEXTS = ("Name", "Note")
"""Columns of text, other than the first column."""


def to_html(report: RunsReport) -> str:
    """Return a report as a self-contained HTML page."""
    parts = {
        "name": _text(report.name),
        "facts": _text(_facts(report)),
        "status": "bad" if _miscalibrated(report) else "good",
        "verdict": _text(_verdict(report)),
        "gains": _text(_gains(report)),
        "risk": _risk(report),
        "note": _text(report.evaluation.note()),
        "table": _task_table(report),
        "diagrams": "".join(_figures(report)),
        "others": _other_figures(report),
        "skipped": _skipped(report),
        "version": _text(calibrant.__version__),
        "css": style(),
        "js": read_page("static", "report.js"),
    }
    page = files("calibrant.llm").joinpath("templates", "llm.html").read_text(encoding="utf-8")
    # Substitute the names only once, because a second substitution would change a task that is
    # called "$table".
    return Template(page).substitute(parts)


def _text(value: str) -> str:
    return escape(printable(value))


def _facts(report: RunsReport) -> str:
    tasks = report.evaluation.tasks
    rows, missing = sum(t.n_samples for t in tasks), sum(t.n_missing for t in tasks)
    sources = ", ".join(sorted({task.source for task in tasks}))
    plural = "" if len(tasks) == 1 else "s"
    return (
        f"{len(tasks):,} task{plural}, {rows:,} answers with a confidence, {missing:,} answers "
        f"without a confidence. Source of confidences: {sources}"
    )


def _miscalibrated(report: RunsReport) -> list[TaskEvaluation]:
    return [task for task in report.evaluation if task.finding != "no gap detected"]


def _verdict(report: RunsReport) -> str:
    tasks, n_tasks = _miscalibrated(report), len(report.evaluation)
    total = "1 task" if n_tasks == 1 else f"{n_tasks:,} tasks"
    if not tasks:
        return f"No gap between confidence and accuracy was detected in {total}."
    over = sum(task.finding == "overconfident" for task in tasks)
    return (
        f"Miscalibration was detected in {len(tasks):,} of {total} ({over:,} overconfident, "
        f"{len(tasks) - over:,} underconfident)."
    )


def _gains(report: RunsReport) -> str:
    tasks = [task for task in report.evaluation if task.gain_low > 0]
    if not tasks:
        return "No significant reduction in log-loss by calibration was detected."
    best = max(tasks, key=lambda task: task.gain)
    total = "1 task" if len(tasks) == 1 else f"{len(tasks):,} tasks"
    return (
        f"Calibration significantly reduces the log-loss of {total}. The largest reduction is "
        f"{format_number(best.gain)} nats ({best.task})."
    )


def _risk(report: RunsReport) -> str:
    if not report.thresholds:
        return ""
    first = next(iter(report.thresholds.values()))
    n_proved = sum(value.threshold is not None for value in report.thresholds.values())
    text = (
        f"A threshold was proved for {n_proved:,} of {len(report.thresholds):,} tasks. With "
        f"{format_percent(1 - first.delta)} confidence for each task, at most "
        f"{format_percent(first.risk)} of the answers above the threshold are wrong. The "
        "guarantee holds for new questions of the same kind. The thresholds apply to the "
        "confidences in the logs, which are not calibrated."
    )
    return f'<section id="risk"><h2>Thresholds</h2><p>{_text(text)}</p></section>'


def _task_table(report: RunsReport) -> str:
    rows = [_cells(task, report.thresholds.get(task.task)) for task in report.evaluation]
    # Columns without content are left out, because a page has space for about ten columns.
    is_proved = any(value.threshold is not None for value in report.thresholds.values())
    unused = set() if is_proved else {"Threshold", "Answered"}
    if not any(task.n_missing for task in report.evaluation):
        unused.add("Missing")
    titles = [title for title in _COLUMNS if title not in unused]
    return _table(
        "Calibration of each task", titles, ["".join(row[t] for t in titles) for row in rows]
    )


def _cells(task: TaskEvaluation, threshold: AnswerThreshold | None) -> dict[str, str]:
    """Return the cells of a task by column."""
    kind = "" if task.finding == "no gap detected" else "worse"
    helps = "better" if task.gain_low > 0 else ""
    value, share = _threshold_cells(threshold)
    return {
        "Task": _head(task.task, f"{task.finding}; source: {task.source}"),
        "Rows": _number(task.n_samples, f"{task.n_samples:,}"),
        "Missing": _number(task.n_missing, f"{task.n_missing:,}"),
        "Accuracy": _number(task.accuracy, f"{task.accuracy:.3f}"),
        "Confidence": _number(task.mean_confidence, f"{task.mean_confidence:.3f}"),
        "Gap": _estimate(task.gap, task.gap_low, task.gap_high, kind, signed=True),
        "Gain": _estimate(task.gain, task.gain_low, task.gain_high, helps, signed=True),
        "Threshold": value,
        "Answered": share,
        "Error": _estimate(task.error, task.error_low, task.error_high),
        "AUROC": _number(task.auroc, f"{task.auroc:.3f}"),
        "Log-loss": _number(task.log_loss, f"{task.log_loss:.3f}"),
    }


def _threshold_cells(threshold: AnswerThreshold | None) -> tuple[str, str]:
    if threshold is None or threshold.threshold is None:
        return _number(float("nan"), "-"), _number(0.0, "0%")
    value, share = max(threshold.threshold, 0.0), threshold.coverage
    return _number(value, f"{value:.3f}"), _number(share, f"{share:.0%}")


def _table(caption: str, titles: Sequence[str], rows: Iterable[str]) -> str:
    heads = "".join(
        f'<th scope="col" class="{"text" if place == 0 or title in _TEXTS else "number"}"'
        f' title="{_text(_COLUMNS.get(title, ""))}"><button type="button">{_text(title)}</button>'
        "</th>"
        for place, title in enumerate(titles)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    hidden = f'<caption class="hidden">{_text(caption)}</caption>'
    return f"<table>{hidden}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _head(name: str, tooltip: str = "") -> str:
    title = f' title="{_text(tooltip)}"' if tooltip else ""
    return f'<th scope="row"{title}>{_breakable(name)}</th>'


def _breakable(name: str) -> str:
    """Return the name of a task, which browsers may wrap after underscores."""
    return _text(name).replace("_", "_<wbr>")


def _number(value: float, shown: str) -> str:
    is_missing = value != value
    key = "" if is_missing else repr(value)
    return f'<td class="number" data-value="{key}">{"-" if is_missing else shown}</td>'


def _estimate(
    value: float, low: float, high: float, kind: str = "", *, signed: bool = False
) -> str:
    if value != value:
        return _number(value, "-")
    # A fixed number of decimals keeps the columns narrow and aligned.
    number, *ends = (format_fixed(end, signed=signed) for end in (value, low, high))
    return (
        f'<td class="number" data-value="{value!r}"><span class="{kind}">{number}</span>'
        f'<span class="interval">{" to ".join(ends)}</span></td>'
    )


def _figures(report: RunsReport) -> Iterable[str]:
    """Yield diagrams of all tasks in order of decreasing gap."""
    ordered = sorted(report.diagrams, key=lambda d: -abs(report.evaluation[d.task].gap))
    for diagram in ordered:
        task = report.evaluation[diagram.task]
        caption = f"{task.n_samples:,} rows, gap {format_number(task.gap, signed=True)}"
        name = f"<strong>{_breakable(diagram.task)}</strong>"
        yield (
            f"<figure>{draw_diagram(diagram)}<figcaption>{name} {_text(caption)}</figcaption>"
            "</figure>"
        )


def _other_figures(report: RunsReport) -> str:
    rows = [
        _head(task.task) + f"<td>{_text(name)}</td>" + _number(value, format_number(value))
        for task in report.evaluation
        for name, value in task.figures.items()
    ]
    if not rows:
        return ""
    table = _table("Metrics in the logs", ["Task", "Metric", "Value"], rows)
    hint = (
        "The tools that wrote the logs define these metrics. Calibration errors in this table are "
        "not comparable with the error above. Sampling noise biases these errors upward, and some "
        "metrics leave out rows."
    )
    return _table_section("others", "Metrics in the logs", hint, table)


def _skipped(report: RunsReport) -> str:
    rows = [
        _head(task) + f"<td>{_text(reason)}</td>" + _number(count, f"{count:,}")
        for task, reasons in report.skipped.items()
        for reason, count in reasons.items()
    ]
    if not rows:
        return ""
    table = _table("Lines with a note", ["Task", "Note", "Lines"], rows)
    hint = 'Lines were left out unless the note ends in "(used)" or "(bounded)".'
    return _table_section("skipped", "Lines with a note", hint, table)


def _table_section(name: str, title: str, hint: str, table: str) -> str:
    return (
        f'<section id="{name}"><h2>{title}</h2><p class="hint">{hint}</p>'
        f'<div class="scroll tall">{table}</div></section>'
    )
