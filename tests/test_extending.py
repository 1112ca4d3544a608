"""The three ways to extend Calibrant, followed from outside: a calibrator, a metric and a notion
that use public names only.

`CONTRIBUTING.md` says how to take such a thing into the package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import calibrant
from calibrant import inference, metrics
from calibrant.base import BaseBinaryCalibrator, BaseCalibrator, FittedValue
from calibrant.notions import ClaimBlock, Notion
from calibrant.testing import check_calibrator


class FrequencyMixture(BaseCalibrator):
    """``(1 - w) softmax(u) + w f``, f the class frequencies and w in [0, 1] by log-loss."""

    def __init__(self, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        rows = sample.rows("this method")
        u, y, weight = rows.u, rows.y, rows.weight
        proba = np.exp(u[:] - np.logaddexp.reduce(u[:], axis=1, keepdims=True))
        self.frequency_ = np.bincount(y, weight, minlength=u.shape[1]) / weight.sum()
        true, frequency = proba[np.arange(len(y)), y], self.frequency_[y]

        def loss(w):
            return -weight @ np.log((1 - w) * true + w * frequency)

        self.weight_ = minimize_scalar(loss, bounds=(0, 1), method="bounded").x

    def _log_proba(self, u):
        proba = np.exp(u - np.logaddexp.reduce(u, axis=1, keepdims=True))
        return np.log((1 - self.weight_) * proba + self.weight_ * self.frequency_)


class Shrinkage(BaseBinaryCalibrator):
    """Scores moved a fixed share of the way to the base rate."""

    def __init__(self, share=0.5, inputs="proba", classes=None):
        self.share = share
        self.inputs = inputs
        self.classes = classes

    def _fit(self, claim):
        self.rate_ = claim.weight @ claim.hits / claim.weight.sum()

    def _predict(self, score):
        return score + self.share * (self.rate_ - score)


def spherical_loss(y_true, y_prob, *, sample_weight=None):
    """``1 - mean(p_y / |p|)``: one minus the spherical score."""
    proba = np.asarray(y_prob)
    scores = proba[np.arange(len(proba)), y_true] / np.linalg.norm(proba, axis=1)
    return 1 - np.average(scores, weights=sample_weight)


@dataclass(frozen=True)
class OneOf(Notion):
    """One claim: the probability of a set of classes, is the truth among them?"""

    columns: tuple[int, ...]

    @property
    def name(self):
        return f"one-of-{'-'.join(map(str, self.columns))}"

    def n_quantities(self, n_classes):
        return 1

    def select(self, proba, y=None):
        score = proba[:, self.columns].sum(axis=1, dtype=np.float64, keepdims=True)
        hit = np.flatnonzero(np.isin(y, self.columns)) if y is not None else np.empty(0, int)
        return ClaimBlock(np.minimum(score, 1.0), None, hit)

    def members(self, quantity, n_classes):
        return self.columns


@pytest.fixture
def overconfident(rng):
    """Labels, and probabilities that are too sure of themselves."""
    logits = rng.normal(scale=1.5, size=(600, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(2.5 * logits)
    return labels, proba / proba.sum(axis=1, keepdims=True)


# ---------------------------------------------------------------- a calibrator


@pytest.mark.parametrize("inputs", ["proba", "logits"])
def test_a_calibrator_of_whole_vectors_keeps_every_promise(inputs):
    check_calibrator(FrequencyMixture(inputs=inputs))


def test_a_calibrator_of_one_claim_keeps_every_promise():
    check_calibrator(Shrinkage(0.25))


def test_a_calibrator_is_compared_stacked_lifted_and_put_around_a_classifier(overconfident):
    labels, proba = overconfident
    table = calibrant.compare(labels, proba, methods={"mixture": FrequencyMixture()}, cv=3)
    assert table.gains["data", "mixture", "log_loss"].low > 0
    stack = calibrant.AutoCalibration([FrequencyMixture()], cv=3).fit(proba, labels)
    lifted = calibrant.MulticlassToBinary(Shrinkage(), "class-wise", normalize=True)
    model = calibrant.CalibratedClassifier(LogisticRegression(), FrequencyMixture(), cv=3)
    for fitted in (stack, lifted.fit(proba, labels), model.fit(proba, labels)):
        loss = metrics.log_loss(labels, fitted.predict_proba(proba))
        assert loss < metrics.log_loss(labels, proba)


def test_a_calibrator_that_was_not_registered_is_rejected_by_save(overconfident, tmp_path):
    labels, proba = overconfident
    with pytest.raises(TypeError, match="FrequencyMixture"):
        calibrant.save(FrequencyMixture().fit(proba, labels), tmp_path / "model.json")


def test_a_registered_calibrator_is_saved_and_loaded_bit_for_bit(overconfident, tmp_path):
    labels, proba = overconfident

    class RegisteredMixture(FrequencyMixture):
        """Known to files by a name of its own."""

    calibrant.io.register(RegisteredMixture, name="tests.mixture")
    fitted = RegisteredMixture().fit(proba, labels)
    calibrant.save(fitted, tmp_path / "model.json")
    loaded = calibrant.load(tmp_path / "model.json")
    assert type(loaded) is RegisteredMixture
    np.testing.assert_array_equal(loaded.predict_proba(proba), fitted.predict_proba(proba))


def test_a_file_is_rejected_where_it_is_not_what_a_calibrator_declares(overconfident, tmp_path):
    labels, proba = overconfident

    class DeclaredMixture(FrequencyMixture):
        """Says what a fit leaves behind."""

        @property
        def fitted_values(self):
            return {"weight_": FittedValue((), 0.0, 1.0), "frequency_": FittedValue(("K",), 0.0)}

    calibrant.io.register(DeclaredMixture, name="tests.declared")
    path = tmp_path / "model.json"
    calibrant.save(DeclaredMixture().fit(proba, labels), path)
    document = json.loads(path.read_text())
    assert type(calibrant.load(path)) is DeclaredMixture
    document["models"][-1]["fitted"]["weight_"] = 2.0
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"tests\.declared\.weight_ must be between 0 and 1"):
        calibrant.load(path)


# ---------------------------------------------------------------- a metric


def test_a_metric_is_a_function_wherever_a_name_is_taken(overconfident):
    labels, proba = overconfident
    interval = inference.bootstrap_interval(spherical_loss, labels, proba, n_resamples=99, rng=0)
    assert interval.low < spherical_loss(labels, proba) < interval.high
    test = inference.consistency_test(labels, proba, spherical_loss, n_resamples=99, rng=0)
    assert test.statistic == spherical_loss(labels, proba)


def test_a_metric_takes_part_in_a_comparison_and_in_cross_validation(overconfident):
    labels, proba = overconfident
    named = {"spherical": spherical_loss}
    table = calibrant.compare(labels, proba, methods=["temperature"], metrics=named, cv=3)
    assert table.metrics == ("spherical",)
    assert table.mean[0, 1, 0] < table.mean[0, 0, 0]
    score = metrics.scorer(metrics.Metric("spherical", spherical_loss, "Spherical loss"))
    values = cross_val_score(FrequencyMixture(), proba, labels, scoring=score, cv=3)
    assert len(values) == 3


def test_a_metric_of_claims_asks_a_notion_for_them(overconfident):
    labels, proba = overconfident
    claims = OneOf((0, 1, 2, 3)).claims(proba, labels, np.ones(len(labels)))
    (claim,) = claims
    assert claim.outcome.all()
    np.testing.assert_allclose(claim.score, 1.0)


# ---------------------------------------------------------------- a notion


def test_a_notion_is_measured_by_every_metric_of_claims(overconfident):
    labels, proba = overconfident
    pair = proba[:, [0, 2]].sum(axis=1)
    truth = np.isin(labels, [0, 2]).astype(int)
    for metric in (metrics.expected_calibration_error, metrics.ks_error):
        assert metric(labels, proba, notion=OneOf((0, 2))) == pytest.approx(
            metric(truth, pair, notion="class-1")
        )


def test_a_notion_selects_for_a_scorer(overconfident):
    labels, proba = overconfident
    score = metrics.scorer("expected_calibration_error", notion=OneOf((0, 2)))
    values = cross_val_score(FrequencyMixture(), proba, labels, scoring=score, cv=3)
    assert (values <= 0).all()


def test_a_notion_is_calibrated_guaranteed_and_filled_into_rows(overconfident):
    labels, proba = overconfident
    binning = calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=4), OneOf((0, 2)))
    fitted = binning.fit(proba, labels)
    before = metrics.expected_calibration_error(labels, proba, notion=OneOf((0, 2)))
    claims = fitted.predict_claims(proba)[:, 0]
    rows = fitted.predict_proba(proba)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    np.testing.assert_allclose(rows[:, [0, 2]].sum(axis=1), claims)
    after = metrics.expected_calibration_error(labels, rows, notion=OneOf((0, 2)))
    assert after < before / 2
    said = str(fitted.guarantee())
    assert "one of class 0, class 2" in said
    assert "top class" not in said


def test_a_notion_is_drawn_and_not_called_by_the_name_of_another(overconfident):
    pytest.importorskip("matplotlib")
    from matplotlib.text import Text

    labels, proba = overconfident
    display = calibrant.plots.ReliabilityDisplay.from_predictions(
        labels, proba, notion=OneOf((0, 2))
    ).plot()
    drawn = [text.get_text() for text in display.figure_.findobj(Text)]
    assert "predicted probability" in drawn
    assert not any("confidence" in text or "top" in text for text in drawn), drawn
