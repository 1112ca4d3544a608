"""Calibrated options of many tasks."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import OptionScores
from calibrant.llm import OptionCalibration, Run, Runs
from calibrant.llm._option_calibration import join_options

needs_groups = pytest.mark.skipif(
    not hasattr(calibrant.selection, "GroupCalibration"), reason="GroupCalibration is missing"
)


SHIFTS = {"a": 3.0, "b": -3.0, "c": 0.0}


def task(rng, name, n_rows, shift, n_options=4, source="options (sum)"):
    """Scores of a model that prefers the first option by ``shift``, and is overconfident."""
    logits = rng.normal(size=(n_rows, n_options))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    scores = 2 * logits
    scores[:, 0] += shift
    options = OptionScores(scores)
    correct = scores.argmax(axis=1) == labels
    return Run(name, source, correct, options.proba.max(axis=1), options, labels)


def tasks(rng, n_rows=150):
    runs = {name: task(rng, name, n_rows, shift) for name, shift in SHIFTS.items()}
    return Runs({**runs, "d": task(rng, "d", n_rows, 0.0, n_options=3)})


def known(run, shift):
    """The true probabilities: the shift and the factor of the scores are undone."""
    logits = (run.options.log_proba - shift * (np.arange(run.options.n_classes) == 0)) / 2
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True)


def loss(proba, run):
    return -np.log(proba[np.arange(len(run)), run.labels]).mean()


@needs_groups
def test_effects_of_tasks_beat_the_common_calibrator(rng):
    fitted, new = tasks(rng, 400), tasks(rng, 600)
    model = OptionCalibration("structured-vector").fit(fitted)
    pooled = OptionCalibration("structured-vector", strength=np.inf).fit(fitted)
    raw, best, common, shrunk = (
        np.mean([loss(f(name, run), run) for name, run in new.items()])
        for f in (
            lambda name, run: np.pad(run.options.proba, ((0, 0), (0, 4 - run.options.n_classes))),
            lambda name, run: known(run, SHIFTS.get(name, 0.0)),
            lambda name, run: pooled.predict_proba(run, task=name),
            lambda name, run: model.predict_proba(run, task=name),
        )
    )
    assert common < raw - 0.1
    # At least two thirds of the excess over the true probabilities of known effects.
    assert shrunk < best + (common - best) / 3


@needs_groups
def test_absent_options_keep_probability_zero(rng):
    model = OptionCalibration("temperature").fit(tasks(rng))
    proba = model.predict_proba(tasks(rng)["d"])
    assert proba.shape[1] == 4
    assert (proba[:, 3] == 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    unknown = model.predict_proba(task(rng, "new", 10, 0.0))
    assert unknown.shape == (10, 4)


@needs_groups
def test_other_sources_are_rejected(rng):
    model = OptionCalibration("temperature").fit(tasks(rng))
    other = task(rng, "a", 10, 0.0, source="options (char)")
    with pytest.raises(ValueError, match=r"source 'options \(char\)', but the calibrator"):
        model.predict_proba(other)
    with pytest.raises(ValueError, match="different sources"):
        OptionCalibration().fit(Runs({**tasks(rng), "e": other}))


@needs_groups
def test_calibrated_runs_have_smaller_gaps(rng):
    model, new = OptionCalibration("structured-vector").fit(tasks(rng, 300)), tasks(rng, 300)
    for name, run in new.items():
        after = model.calibrate(run, task=name)
        gaps = [abs(r.confidence.mean() - r.accuracy) for r in (run, after)]
        assert gaps[1] < max(gaps[0], 0.08)
        assert after.source == "options (sum), calibrated"
        assert (after.options.n_options == run.options.n_options).all()


def test_options_of_tasks_are_joined(rng):
    options, labels, names = join_options(tasks(rng, 5))
    assert options.shape == (20, 4)
    assert options.n_options.tolist() == [4] * 15 + [3] * 5
    assert len(labels) == 20
    assert names[-1] == "d"
    answers = Run("a", "stated", np.ones(3, bool), np.full(3, 0.5))
    with pytest.raises(ValueError, match="no options"):
        join_options(Runs({"a": answers}))
