from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

import notion_names
from calibrant import datasets
from calibrant.metrics import _smooth, smooth_calibration_error
from calibrant.notions import as_notion


def by_definition(score, outcome, sigma, n_points=4001):
    """The integral of the definition, with the Gaussian and its relevant reflections."""
    t = np.linspace(0, 1, n_points)
    total = np.zeros_like(t)
    for shift in range(-6, 7, 2):
        for image in (score, -score):
            total += np.exp(-0.5 * ((t[:, None] - image - shift) / sigma) ** 2) @ (score - outcome)
    density = np.abs(total) / (len(score) * sigma * np.sqrt(2 * np.pi))
    return float((density.sum() - (density[0] + density[-1]) / 2) / (n_points - 1))


@pytest.mark.parametrize("sigma", [0.01, 0.05, 0.3, 1.0])
def test_a_bandwidth_gives_the_integral_of_the_definition(sigma, rng):
    score = np.concatenate([rng.random(60), [0.0, 0.0, 1.0, 1.0, 1.0]])
    outcome = (rng.random(65) < 0.4).astype(float)
    value = smooth_calibration_error(outcome.astype(int), score, notion="class-1", bandwidth=sigma)
    # Each residual is distributed over two grid points, which changes the error by about (step /
    # sigma)^2.
    assert value == pytest.approx(by_definition(score, outcome, sigma), abs=1e-5)


def test_mass_at_one_is_counted_whole():
    # A reference implementation gives 0.329 here; the residuals are 0 at 1 and 0.5 at 0.5, on half
    # of the rows.
    y, score = [1] * 500 + [0] * 500, [1.0] * 500 + [0.5] * 500
    assert smooth_calibration_error(y, score, notion="class-1") == pytest.approx(0.25, abs=1e-9)
    mirrored = smooth_calibration_error(
        [0] * 500 + [1] * 500, 1 - np.array(score), notion="class-1"
    )
    assert mirrored == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize("place", [0.0, 1.0])
def test_residuals_at_the_ends_are_counted_whole(place):
    assert smooth_calibration_error(
        [0, 1], [place, place], notion="class-1", bandwidth=0.1
    ) == pytest.approx(0.5)


def test_the_bandwidth_is_the_error_itself(rng):
    data = datasets.linear_family(2000, 0.3, rng=rng)
    value = smooth_calibration_error(data.labels, data.proba, notion="class-1")
    again = smooth_calibration_error(data.labels, data.proba, notion="class-1", bandwidth=value)
    assert again == pytest.approx(value, abs=1e-9)


def test_the_root_is_that_of_a_bisection(rng):
    data = datasets.power_family(500, 2.0, rng=rng)

    def error(bandwidth):
        return smooth_calibration_error(
            data.labels, data.proba, notion="class-1", bandwidth=bandwidth
        )

    low, high = 2**-13, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    result = smooth_calibration_error(data.labels, data.proba, notion="class-1")
    assert result == pytest.approx((low + high) / 2, abs=1e-12)


@given(st.integers(0, 10**6))
def test_smoothing_more_never_increases_the_error(seed):
    data = datasets.power_family(50, 2.0, rng=seed)
    errors = [
        smooth_calibration_error(data.labels, data.proba, notion="class-1", bandwidth=s)
        for s in (0.01, 0.1, 0.4)
    ]
    assert errors[0] >= errors[1] - 1e-9
    assert errors[1] >= errors[2] - 1e-9


@pytest.mark.parametrize("notion", notion_names.NAMES)
def test_a_weight_is_a_number_of_copies(notion, rng):
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    copies = rng.integers(0, 3, size=40)
    rows = np.repeat(np.arange(40), copies)
    weighted = smooth_calibration_error(y, proba, notion=notion, sample_weight=copies)
    assert weighted == pytest.approx(
        smooth_calibration_error(y[rows], proba[rows], notion=notion), abs=1e-9
    )


def test_one_row_constant_scores_and_certain_scores():
    assert smooth_calibration_error([1], [0.7], notion="class-1") == pytest.approx(0.3)
    assert smooth_calibration_error([1, 0], [0.5, 0.5], notion="class-1") == 0.0
    assert smooth_calibration_error([0, 1], np.eye(2)) == 0.0
    assert smooth_calibration_error([1, 0], np.eye(2)) == pytest.approx(1.0)


def test_a_bandwidth_below_the_grid_is_rejected():
    with pytest.raises(ValueError, match="bandwidth must be at least"):
        smooth_calibration_error([0, 1], [0.2, 0.8], bandwidth=1e-5)


EXACT = "SmoothECE exact vs relplot (cross-check: definition-level reflected-Gaussian integral)"


def golden_cases(real_data, reference):
    focal = real_data("focal_cifar10_resnet50_gupta")
    yield (
        focal["test_labels"],
        softmax(focal["test_logits"].astype(float), axis=1),
        reference["focal_cifar10_resnet50_gupta"],
    )
    wide = real_data("cifar100_wideresnet164_netcal")
    proba = wide["probs"][5000:].astype(float)
    name = next(key for key in reference if key.startswith("cifar100_wideresnet164"))
    yield wide["labels"][5000:], proba / proba.sum(axis=1, keepdims=True), reference[name]


def test_exact_values_on_real_predictions(real_data, reference):
    for y, proba, golden in golden_cases(real_data, reference):
        exact = golden["uncalibrated_test"][EXACT]
        assert smooth_calibration_error(y, proba, bandwidth=0.05) == pytest.approx(
            exact["exact_smECE_sigma0.05"], abs=1e-8
        )
        given_bandwidth = smooth_calibration_error(
            y, proba, bandwidth=exact["exact_bandwidth_fixed_point"]
        )
        assert given_bandwidth == pytest.approx(exact["exact_smECE"], abs=1e-8)
        # The reference stopped its bisection 4e-5 away from the fixed point; the error changes less
        # than its bandwidth.
        assert smooth_calibration_error(y, proba) == pytest.approx(exact["exact_smECE"], abs=5e-6)


@pytest.mark.parametrize("bandwidth", [0.01, 0.05, 0.3])
def test_the_integral_between_zeros_is_that_of_the_grid(rng, bandwidth):
    cosines = _smooth._cosine_coefficients(
        next(
            iter(
                as_notion("class-1").claims(
                    rng.dirichlet([1, 1], 300), rng.integers(2, size=300), np.ones(300)
                )
            )
        )
    )
    order = np.arange(len(cosines))
    smoothed = cosines * np.exp(-0.5 * (np.pi * bandwidth * order) ** 2)
    assert _smooth._smoothed(cosines, bandwidth) == pytest.approx(
        _smooth._grid_integral(smoothed), abs=1e-11
    )
