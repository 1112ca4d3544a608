"""Beside river: its own checks, on one of its classifiers that is recalibrated as it learns."""

from __future__ import annotations

import pytest

from calibrant.monitoring import OnlineCalibration

base = pytest.importorskip("river.base", reason="river is not installed")


class Recalibrated(base.Wrapper, base.Classifier):
    """A classifier of river whose probabilities are recalibrated by what it said before it learnt
    each label.
    """

    def __init__(self, classifier, share=1 / 2000):
        self.classifier = classifier
        self.share = share
        self.calibration = OnlineCalibration(share=share)

    @property
    def _wrapped_model(self):
        return self.classifier

    @classmethod
    def _unit_test_params(cls):
        yield {"classifier": river_classifier()}

    def learn_one(self, x, y, **kwargs):
        self.calibration.learn_one(self.classifier.predict_proba_one(x), y)
        self.classifier.learn_one(x, y, **kwargs)

    def predict_proba_one(self, x, **kwargs):
        said = self.classifier.predict_proba_one(x, **kwargs)
        return self.calibration.predict_proba_one(said)


def river_classifier():
    from river import naive_bayes

    return naive_bayes.GaussianNB()


@pytest.mark.slow
def test_the_checks_of_river_pass_on_a_recalibrated_classifier():
    from river import checks

    checks.check_estimator(Recalibrated(river_classifier()))


@pytest.mark.slow
def test_the_log_loss_of_a_classifier_of_river_becomes_smaller():
    from river import datasets, metrics

    plain, calibrated = river_classifier(), Recalibrated(river_classifier())
    losses = [metrics.CrossEntropy(), metrics.CrossEntropy()]
    for x, y in datasets.ImageSegments().take(300):
        for model, loss in zip((plain, calibrated), losses, strict=True):
            loss.update(y, model.predict_proba_one(x))
            model.learn_one(x, y)
    assert losses[1].get() < losses[0].get()
