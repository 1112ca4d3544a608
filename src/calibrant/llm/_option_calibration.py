"""Calibrate options of multiple-choice questions of many tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from calibrant._kernels.simplex import ABSENT, log_of, zero_absent
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import OptionScores, check_fitted
from calibrant.llm._run import Run, Runs, as_runs


class OptionCalibration(BaseEstimator):
    """Calibrate the options of multiple-choice questions, with effects of tasks.

    Tasks share one calibrator. Each task also gets its own correction, which is shrunk toward the
    common calibrator. Corrections of tasks with many rows are shrunk less. An option that a
    question does not have keeps probability 0.

    Parameters
    ----------
    calibrator : calibrator or str, optional
        The calibrator of all tasks, or its name. The default is `calibrant.AutoCalibration`.
    strength : float, optional
        Penalty of the effects of tasks. Infinity disables the effects. By default, the penalty with
        the lowest held-out log-loss is selected.
    random_state : int, optional
        Seed for the folds. None means 0.

    Attributes
    ----------
    model_ : calibrant.selection.GroupCalibration
        The fitted calibrator, with tasks as groups.
    source_ : str
        Source of the scores. Scores of other sources are rejected.
    classes_ : array of int
        Option positions.

    See Also
    --------
    AnswerCalibration : Calibrate confidences of open answers.
    calibrant.selection.GroupCalibration : Calibrate with effects of groups.

    Notes
    -----
    Option positions are the classes. Models prefer some letters to others, and an offset per
    position corrects this preference, which depends on the task.
    """

    def __init__(
        self,
        calibrator: Any = None,
        strength: float | None = None,
        *,
        random_state: int | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.strength = strength
        self.random_state = random_state

    def fit(self, runs: Runs) -> Self:
        """Fit the calibrator to all runs with options.

        Parameters
        ----------
        runs : Runs
            Runs that `read` returned, with scores of one source.

        Returns
        -------
        self
        """
        # Imported here, because only this class needs groups.
        from calibrant.selection import GroupCalibration

        runs = as_runs(runs)
        self.source_ = runs.one_source("calibrator")
        options, labels, tasks = join_options(runs)
        model = GroupCalibration(
            self.calibrator,
            self.strength,
            random_state=self.random_state,
            inputs="log_proba",
            classes=np.arange(options.n_classes),
        )
        self.model_ = model.fit(options, labels, by={"task": tasks})
        self.classes_ = np.arange(options.n_classes)
        return self

    def predict_proba(self, run: Run, *, task: str | None = None) -> FloatArray:
        """Return calibrated probabilities of the options of a run.

        Parameters
        ----------
        run : Run
            A run with the same source of scores as the runs in `fit`.
        task : str, optional
            Name of a run that was passed to `fit`. The default is the task of the run. The common
            calibrator is used for unknown tasks.

        Returns
        -------
        array of shape (n, K)
            K is the largest number of options in `fit`. Absent options have probability 0.
        """
        check_fitted(self)
        if run.options is None or run.source != self.source_:
            raise ValueError(
                f"The run has scores of the source {run.source!r}, but the calibrator was fitted "
                f"on scores of the source {self.source_!r}. Read all logs with the same options."
            )
        calibrator = self.model_.for_group({"task": run.task if task is None else task})
        proba = calibrator.predict_proba(run.options)
        scores = run.options.as_scores("log_proba")
        n_missing = len(self.classes_) - run.options.n_classes
        padded = np.pad(scores, ((0, 0), (0, n_missing)), constant_values=ABSENT)
        return zero_absent(np.asarray(proba), padded)

    def calibrate(self, run: Run, *, task: str | None = None) -> Run:
        """Return a run with calibrated options, for `evaluate` and `find_answer_threshold`.

        Parameters
        ----------
        run : Run
            A run with the same source of scores as the runs in `fit`, but other rows.
        task : str, optional
            As in `predict_proba`.

        Returns
        -------
        Run
            The run with calibrated options. The confidences of the run are the highest calibrated
            probabilities. The chosen option can differ from the option with the highest
            uncalibrated score.
        """
        proba = self.predict_proba(run, task=task)
        correct, confidence = _top(proba, np.asarray(run.labels))
        return replace(
            run,
            source=f"{run.source}, calibrated",
            correct=correct,
            confidence=confidence,
            options=OptionScores(log_of(proba), run.options.n_options) if run.options else None,
            figures={},
        )


def _top(proba: FloatArray, labels: IntArray) -> tuple[Any, FloatArray]:
    return proba.argmax(axis=1) == labels, proba.max(axis=1)


def join_options(runs: Runs) -> tuple[OptionScores, IntArray, AnyArray]:
    """Return options, labels and task names of all runs with options."""
    run_of = {name: run for name, run in runs.evaluated.items() if run.options is not None}
    if not run_of:
        raise ValueError(
            "The runs have no options. Read logs of multiple-choice tasks, or use "
            "AnswerCalibration."
        )
    options = _join_tables([run.options for run in run_of.values() if run.options is not None])
    labels = np.concatenate([run.labels for run in run_of.values() if run.labels is not None])
    return options, labels, np.repeat(list(run_of), [len(run) for run in run_of.values()])


def _join_tables(tables: list[OptionScores]) -> OptionScores:
    n_columns = max(table.n_classes for table in tables)
    log_proba = np.full((sum(map(len, tables)), n_columns), -np.inf)
    first = 0
    for table in tables:
        log_proba[first : first + len(table), : table.n_classes] = table.log_proba
        first += len(table)
    return OptionScores(log_proba, np.concatenate([table.n_options for table in tables]))
