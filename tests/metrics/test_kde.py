from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import notion_names
from calibrant import datasets
from calibrant.metrics import kde_calibration_error


def by_definition(score, outcome, width, norm):
    """Sums of triweight kernels at every score and its mirror images, on a fine grid of [0, 1]."""
    t = (np.arange(20_000) + 0.5) / 20_000

    def density(points):
        total = np.zeros_like(t)
        for image in (points, -points, 2 - points):
            distance = (t[:, None] - image) / (3 * width)
            total += (35 / 32 * np.maximum(1 - distance**2, 0) ** 3).sum(axis=1) / (3 * width)
        return total

    every, hits = density(score), density(score[outcome == 1])
    rate = np.minimum(np.divide(hits, every, out=np.zeros_like(hits), where=every > 1e-9), 1)
    return (np.sum(np.abs(t - rate) ** norm * every) / every.sum()) ** (1 / norm)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_integral_of_the_definition(norm, rng):
    score = rng.random(80)
    outcome = (rng.random(80) < score**2).astype(int)
    value = kde_calibration_error(outcome, score, notion="class-1", bandwidth=0.03, norm=norm)
    # The authors' grid has no points at 0 and 1 and a step of 1.3e-4.
    assert value == pytest.approx(by_definition(score, outcome, 0.03, norm), abs=5e-4)


def test_the_default_bandwidth_is_that_of_the_authors(rng):
    score = rng.random(100)
    outcome = (rng.random(100) < score).astype(int)
    width = score[outcome == 1].std() * 200**-0.2
    value = kde_calibration_error(outcome, score, notion="class-1")
    assert value == pytest.approx(
        kde_calibration_error(outcome, score, notion="class-1", bandwidth=width), abs=1e-12
    )


def test_the_limit_is_the_true_error():
    data = datasets.power_family(400_000, 3.0, rng=1)
    assert kde_calibration_error(data.labels, data.proba, notion="class-1") == pytest.approx(
        data.errors["class-1-l1"], abs=0.003
    )
    squared = kde_calibration_error(data.labels, data.proba, notion="class-1", norm=2)
    assert squared == pytest.approx(data.errors["class-1-l2"], abs=0.003)


@pytest.mark.parametrize("notion", notion_names.NAMES)
def test_a_weight_is_a_number_of_copies(notion, rng):
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    copies = rng.integers(0, 3, size=40)
    rows = np.repeat(np.arange(40), copies)
    weighted = kde_calibration_error(y, proba, notion=notion, sample_weight=copies)
    assert weighted == pytest.approx(
        kde_calibration_error(y[rows], proba[rows], notion=notion), abs=1e-9
    )


@pytest.mark.parametrize(
    ("y", "score", "expected"),
    [
        ([1], [0.7], 0.3),
        ([0], [0.7], 0.7),
        ([1, 1], [1.0, 1.0], 0.0),
        ([0, 0], [0.0, 0.0], 0.0),
        ([0, 0], [1.0, 1.0], 1.0),
    ],
)
def test_scores_that_do_not_vary_leave_the_plain_gap(y, score, expected):
    # The smallest bandwidth, 2.7e-4, blurs the gap by as much.
    assert kde_calibration_error(y, score, notion="class-1") == pytest.approx(expected, abs=3e-4)


def test_nonsense_is_rejected():
    with pytest.raises(ValueError, match="norm must be a finite number"):
        kde_calibration_error([0, 1], [0.2, 0.8], norm=np.inf)
    with pytest.raises(ValueError, match="bandwidth must be positive"):
        kde_calibration_error([0, 1], [0.2, 0.8], bandwidth=0.0)


def test_real_predictions_give_the_figures_of_the_authors_code(real_data, reference):
    focal = real_data("focal_cifar10_resnet50_gupta")
    proba = softmax(focal["test_logits"].astype(float), axis=1)
    golden = reference["focal_cifar10_resnet50_gupta"]["uncalibrated_test"]
    # The confidences of the reference are rounded to float32.
    first = kde_calibration_error(focal["test_labels"], proba)
    assert first == pytest.approx(golden["mixnmatch KDE-ECE (ece_kde_binary order=1)"], abs=2e-8)
    second = kde_calibration_error(focal["test_labels"], proba, norm=2)
    assert second**2 == pytest.approx(golden["mixnmatch KDE-ECE order=2"], abs=2e-8)

    wide = real_data("cifar100_wideresnet164_netcal")
    proba = wide["probs"][5000:].astype(float)
    name = next(key for key in reference if key.startswith("cifar100_wideresnet164"))
    value = kde_calibration_error(wide["labels"][5000:], proba / proba.sum(axis=1, keepdims=True))
    published = reference[name]["uncalibrated_test"]["mixnmatch KDE-ECE (ece_kde_binary order=1)"]
    assert value == pytest.approx(published, abs=2e-8)
