"""Evaluate the calibration of each task, with intervals that hold jointly for all tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata

from calibrant._output.numbers import format_gap, format_number
from calibrant._output.results import as_frame, html_table
from calibrant._typing import BoolArray, FloatArray
from calibrant.binary import BetaCalibration
from calibrant.guarantees import clopper_pearson
from calibrant.inference import Gain, calibration_gain, debiased_interval
from calibrant.llm._run import Run, Runs, as_runs
from calibrant.metrics import evaluate_answers
from calibrant.metrics.groups import check_level
from calibrant.multiclass import StructuredScaling

_FEWEST_ROWS = 20
"""With fewer rows, the debiased error and the gain are not estimated, because folds of about four
rows may lack a class."""


@dataclass(frozen=True)
class TaskEvaluation:
    """Calibration of one task.

    Attributes
    ----------
    task, source : str
        Name of the run, and source of its confidences.
    n_samples, n_missing : int
        Numbers of answers with and without a confidence.
    accuracy, mean_confidence : float
        Share of correct answers, and mean of the confidences.
    gap, gap_low, gap_high : float
        Mean confidence minus accuracy, with its interval. The intervals of all tasks hold jointly.
    error, error_low, error_high : float
        Debiased L2 calibration error with its interval. The value is NaN for fewer than 20 rows.
    auroc : float
        Probability that a correct answer has a higher confidence than a wrong answer. The value is
        NaN if all answers are correct or all answers are wrong.
    log_loss : float
        Mean negative log-likelihood in nats, of the correct option or of correct and wrong answers.
    gain, gain_low, gain_high : float
        Reduction of the log-loss by calibration on held-out rows. The value is NaN for fewer than
        20 rows.
    figures : dict of name -> float
        Metrics as the tool that wrote the log computes them, under the names of the tool. These
        metrics are not comparable with the other attributes.

    See Also
    --------
    evaluate : Compute the evaluation.
    """

    task: str
    source: str
    n_samples: int
    n_missing: int
    accuracy: float
    mean_confidence: float
    gap: float
    gap_low: float
    gap_high: float
    error: float
    error_low: float
    error_high: float
    auroc: float
    log_loss: float
    gain: float
    gain_low: float
    gain_high: float
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def finding(self) -> str:
        """Conclusion from the interval of the gap."""
        if self.gap_low > 0:
            return "overconfident"
        return "underconfident" if self.gap_high < 0 else "no gap detected"

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, for example for JSON."""
        return {**asdict(self), "finding": self.finding}


@dataclass(frozen=True, repr=False)
class RunsEvaluation:
    """Evaluations of all tasks, returned by `evaluate`. ``str()`` returns a table.

    Attributes
    ----------
    tasks : tuple of TaskEvaluation
        The tasks with confidences.
    level : float
        Probability that the intervals of all gaps hold jointly.
    without_confidence : dict of name -> int
        Number of answers of each task that has no confidences.

    See Also
    --------
    evaluate : Compute the evaluation.
    """

    tasks: tuple[TaskEvaluation, ...]
    level: float
    without_confidence: dict[str, int]

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[TaskEvaluation]:
        return iter(self.tasks)

    def __getitem__(self, name: str) -> TaskEvaluation:
        """Return the evaluation of a task by its name."""
        for task in self.tasks:
            if task.task == name:
                return task
        raise KeyError(f"No task with the name {name!r} has confidences.")

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, for example for JSON."""
        tasks = [task.to_dict() for task in self.tasks]
        return {
            "level": self.level,
            "tasks": tasks,
            "without_confidence": self.without_confidence,
        }

    def to_frame(self) -> Any:
        """Return a pandas frame with one row per task."""
        return as_frame(*(task.to_dict() for task in self.tasks)).set_index("task")

    @property
    def header(self) -> list[str]:
        """Column headers of `rows`."""
        gap, titles = f"gap ({self.level:.0%} CI)", ["error", "AUROC", "log-loss", "gain"]
        return ["task", "rows", "missing", "accuracy", "confidence", gap, *titles, "finding"]

    def rows(self) -> list[list[str]]:
        """Return the table, one row per task."""
        return [
            [
                task.task,
                f"{task.n_samples:,}",
                f"{task.n_missing:,}",
                f"{task.accuracy:.3f}",
                f"{task.mean_confidence:.3f}",
                format_gap(task.gap, task.gap_low, task.gap_high),
                *(_shown(value) for value in (task.error, task.auroc, task.log_loss, task.gain)),
                task.finding,
            ]
            for task in self.tasks
        ]

    def note(self) -> str:
        """Explain the columns, and list tasks without confidences."""
        scope = (
            "interval holds"
            if len(self) == 1
            else f"intervals of all {len(self)} tasks hold jointly"
        )
        text = (
            "The gap is the mean confidence minus accuracy. If questions are independent, the "
            f"{scope} with probability {self.level:g}. The error is the debiased L2 calibration "
            "error. The gain is the reduction in log-loss by calibration on held-out rows."
        )
        if not self.without_confidence:
            return text
        return f"{text} Tasks without confidences: {', '.join(self.without_confidence)}."

    def __repr__(self) -> str:
        count = sum(task.finding != "no gap detected" for task in self.tasks)
        return f"<RunsEvaluation: {len(self)} tasks, {count} miscalibrated>"

    def _repr_html_(self) -> str:
        return html_table(self.rows(), header=self.header, note=self.note())

    def __str__(self) -> str:
        lines = [self.header, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*texts, self.note()])


def evaluate(runs: Runs, *, level: float = 0.95) -> RunsEvaluation:
    """Evaluate the calibration of each task.

    Parameters
    ----------
    runs : Runs, or dict of name -> Run
        Runs that `read` returned.
    level : float, default 0.95
        Joint level of the intervals of the gaps of all tasks. The intervals of errors and gains
        hold for each task alone.

    Returns
    -------
    RunsEvaluation

    See Also
    --------
    read : Read evaluation logs.
    calibrant.metrics.evaluate_answers : Evaluate pairs of confidence and correctness.

    Notes
    -----
    Intervals of the gap are exact (Clopper and Pearson) at level 1 - (1 - level) / tasks. If
    questions were answered several times, the interval uses the number of questions instead of the
    number of answers. This choice is conservative. `calibrant.inference.calibration_gain` computes
    the gain with structured vector scaling of the options, or with beta calibration of the
    confidences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1, 400)
    >>> run = Run("trivia", "stated", rng.random(400) < confidence - 0.2, confidence)
    >>> print(evaluate(Runs({"trivia": run})))
    task    rows  missing  accuracy  confidence  gap (95% CI) ...
    trivia  400   0        0.550     0.765       +0.215 (+0.166 to +0.266) ... overconfident
    The gap is ...
    """
    check_level(level)
    runs = as_runs(runs)
    run_of = runs.evaluated
    if not run_of:
        raise ValueError(
            "The runs have no confidences. Read logs that contain confidences (see llm.read)."
        )
    alpha = (1 - level) / len(run_of)
    tasks = tuple(_evaluate_run(name, run, alpha) for name, run in run_of.items())
    missing = {name: run.n_missing for name, run in runs.items() if not len(run)}
    return RunsEvaluation(tasks, level, missing)


def _evaluate_run(name: str, run: Run, alpha: float) -> TaskEvaluation:
    answers = evaluate_answers(run.correct, run.confidence)
    n_questions = np.array([float(len(run if run.groups is None else np.unique(run.groups)))])
    low, high = clopper_pearson(run.accuracy * n_questions, n_questions, alpha)
    mean = answers.mean_confidence
    return TaskEvaluation(
        task=name,
        source=run.source,
        n_samples=len(run),
        n_missing=run.n_missing,
        accuracy=run.accuracy,
        mean_confidence=mean,
        gap=mean - run.accuracy,
        gap_low=mean - float(high[0]),
        gap_high=mean - float(low[0]),
        auroc=auroc(run.correct, run.confidence),
        log_loss=_log_loss(run) if run.options is not None else answers.log_loss,
        figures=dict(run.figures),
        **_error(run),
        **_gain(run),
    )


def _log_loss(run: Run) -> float:
    if run.options is None or run.labels is None:
        raise ValueError("This run has no options.")
    return -float(run.options.log_proba[np.arange(len(run)), run.labels].mean())


def _error(run: Run) -> dict[str, float]:
    if len(run) < _FEWEST_ROWS:
        return dict.fromkeys(("error", "error_low", "error_high"), float("nan"))
    # In this binary problem, class 1 means that the answer is correct.
    error = debiased_interval(run.correct.astype(int), run.confidence, notion="class-1")
    return {"error": error.estimate, "error_low": error.low, "error_high": error.high}


def _gain(run: Run) -> dict[str, float]:
    names = ("gain", "gain_low", "gain_high")
    if len(run) < _FEWEST_ROWS or len(np.unique(run.correct)) < 2:
        return dict.fromkeys(names, float("nan"))
    gain = gain_of_run(run)
    return dict(zip(names, (gain.gain, gain.low, gain.high), strict=True))


def gain_of_run(run: Run) -> Gain:
    """Compute the reduction of the log-loss by calibration of the options or confidences."""
    if run.options is not None:
        method = StructuredScaling("vector")
        return calibration_gain(
            run.labels, run.options, method, inputs="log_proba", groups=run.groups, rng=0
        )
    outcome = run.correct.astype(int)
    return calibration_gain(outcome, run.confidence, BetaCalibration(), groups=run.groups, rng=0)


def auroc(correct: BoolArray, confidence: FloatArray) -> float:
    """Compute the area under the receiver operating characteristic. Ties count one half."""
    n_correct = int(correct.sum())
    n_wrong = len(correct) - n_correct
    if not n_correct or not n_wrong:
        return float("nan")
    ranks = rankdata(confidence)
    return float((ranks[correct].sum() - n_correct * (n_correct + 1) / 2) / (n_correct * n_wrong))


def _shown(value: float) -> str:
    return "-" if value != value else format_number(value)
