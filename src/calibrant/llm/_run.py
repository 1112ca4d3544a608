"""The rows of evaluations, as one `Run` per task and source of confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant._validation import OptionScores, as_array, check_same_length
from calibrant.metrics._answers import as_outcomes


@dataclass(frozen=True, eq=False)
class Run:
    """The answers of one model to the questions of one task.

    Attributes
    ----------
    task : str
        Name of the task.
    source : str
        Source of the confidences, for example ``"options (sum)"`` or ``"stated"``. Confidences of
        different sources are not comparable and are never mixed.
    correct : ndarray of bool, shape (n,)
        Whether the answer is correct.
    confidence : ndarray of shape (n,)
        Confidence of the answer, between 0 and 1.
    options : OptionScores or None
        Log-probabilities of the options of multiple-choice questions.
    labels : ndarray of int, shape (n,), or None
        Position of the correct option. If several options are correct, this is the position of the
        correct option with the highest score.
    features : dict of name -> ndarray of shape (n,)
        Additional numeric features of the answers, such as ``"mean_logprob"``. Missing values are
        NaN.
    groups : ndarray of int, shape (n,), or None
        Question of each row, if questions were answered several times.
    n_missing : int
        Number of answers without a confidence, which the arrays do not contain.
    skipped : dict of reason -> int
        Numbers of lines that were not used, and of rows that were used with a note, by reason.
    figures : dict of name -> float
        Metrics that the tool stored or would compute from these rows, under the names of the tool.
    path : str
        Path of the file that contains the run.

    See Also
    --------
    read : Read evaluation logs.
    """

    task: str
    source: str
    correct: BoolArray
    confidence: FloatArray
    options: OptionScores | None = None
    labels: IntArray | None = None
    features: Mapping[str, FloatArray] = field(default_factory=dict)
    groups: IntArray | None = None
    n_missing: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    path: str = ""

    def __post_init__(self) -> None:
        # Users can also create a run from lists or columns of a data frame.
        columns = {"correct": as_outcomes(np.atleast_1d(as_array(self.correct)))}
        columns["confidence"] = np.atleast_1d(as_array(self.confidence)).astype(np.float64)
        optional = {"labels": self.labels, "groups": self.groups, **self.features}
        rows = {name: np.atleast_1d(as_array(x)) for name, x in optional.items() if x is not None}
        check_same_length(**columns, **rows)
        for name, values in columns.items():
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.correct)

    def __getitem__(self, rows: Any) -> Run:
        """Select rows by a slice, a mask or row numbers.

        The result has no ``n_missing`` and no ``figures``.
        """
        return replace(
            self,
            correct=self.correct[rows],
            confidence=self.confidence[rows],
            options=None if self.options is None else self.options[rows],
            labels=None if self.labels is None else self.labels[rows],
            features={name: values[rows] for name, values in self.features.items()},
            groups=None if self.groups is None else self.groups[rows],
            n_missing=0,
            skipped={},
            figures={},
        )

    @property
    def accuracy(self) -> float:
        """Share of correct answers among the rows with a confidence."""
        return float(np.mean(self.correct))

    def __repr__(self) -> str:
        missing = f", {self.n_missing} without a confidence" if self.n_missing else ""
        return f"Run({self.task!r}, {len(self)} rows, source {self.source!r}{missing})"


class Runs(Mapping[str, Run]):
    """Runs by task, as `read` returns them.

    Parameters
    ----------
    runs : dict of name -> Run
        The runs. The name is the task, or ``model/task`` if several models answered the task.

    Attributes
    ----------
    tasks : tuple of str
        Names of the runs.
    ignored : tuple of str
        Files of the folder that contain no evaluation.

    See Also
    --------
    read : Read evaluation logs.
    evaluate : Evaluate the calibration of each task.
    """

    def __init__(self, runs: Mapping[str, Run], ignored: tuple[str, ...] = ()) -> None:
        self._runs = dict(runs)
        self.ignored = ignored

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def __getitem__(self, task: str) -> Run:
        if task not in self._runs:
            names = ", ".join(repr(name) for name in self.tasks[:8])
            raise KeyError(f"There is no task {task!r}. The tasks are {names}.")
        return self._runs[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        rows = sum(map(len, self.values()))
        return f"Runs({len(self)} task{'s' * (len(self) != 1)}, {rows:,} rows)"

    @property
    def evaluated(self) -> dict[str, Run]:
        """The runs that have rows with confidences."""
        return {name: run for name, run in self.items() if len(run)}

    def one_source(self, purpose: str) -> str:
        """Return the source of confidence of all runs, and raise if there are several."""
        sources = sorted({run.source for run in self.evaluated.values()})
        if not sources:
            raise ValueError("The runs have no rows. Pass runs that llm.read returned.")
        if len(sources) > 1:
            raise ValueError(
                f"The runs have confidences of different sources: {', '.join(sources)}. These "
                f"sources are not comparable, so they cannot share one {purpose}. Pass the runs of "
                f"one source: llm.Runs({{name: run for name, run in runs.items() if "
                f"run.source == {sources[0]!r}}})."
            )
        return sources[0]


def as_runs(runs: Any) -> Runs:
    """Return runs by name, or raise if the argument contains anything else."""
    if isinstance(runs, Mapping) and all(isinstance(run, Run) for run in runs.values()):
        return runs if isinstance(runs, Runs) else Runs(runs)
    fix = "Pass llm.Runs({run.task: run})." if isinstance(runs, Run) else "Pass llm.read(path)."
    raise TypeError(f"runs must be llm.Runs or a dict of runs, got {type(runs).__name__}. {fix}")
