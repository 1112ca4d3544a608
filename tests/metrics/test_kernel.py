from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

import notion_names
from calibrant import datasets
from calibrant.metrics import kernel_calibration_error
from calibrant.metrics._kernel import median_distance, sorted_forms, tiled_forms

NOTIONS = ["canonical", *notion_names.NAMES]


def by_pairs(points, residual, bandwidth):
    """The definition, summed over pairs."""
    n, total = len(points), 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                distance = np.abs(points[i] - points[j]).sum() / (2 if points.shape[1] > 1 else 1)
                total += np.exp(-distance / bandwidth) * (residual[i] @ residual[j])
    return total / (n * (n - 1))


@pytest.fixture
def data(rng):
    return datasets.noisy_simplex(40, 3, 0.3, rng=rng)


def test_canonical_by_pairs(data):
    residual = np.eye(3)[data.labels] - data.proba
    value = kernel_calibration_error(data.labels, data.proba, bandwidth=0.2)
    assert value == pytest.approx(by_pairs(data.proba, residual, 0.2), abs=1e-14)


def test_confidence_by_pairs(data):
    top = data.proba.max(axis=1, keepdims=True)
    right = (data.proba.argmax(axis=1) == data.labels)[:, None]
    value = kernel_calibration_error(data.labels, data.proba, notion="confidence", bandwidth=0.2)
    assert value == pytest.approx(by_pairs(top, right - top, 0.2), abs=1e-14)


def test_class_wise_is_the_mean_over_classes_and_top_label_the_mean_over_predicted_ones(data):
    each = [
        kernel_calibration_error(data.labels, data.proba, notion=f"class-{k}", bandwidth=0.2)
        for k in range(3)
    ]
    value = kernel_calibration_error(data.labels, data.proba, notion="class-wise", bandwidth=0.2)
    assert value == pytest.approx(np.mean(each), abs=1e-14)
    predicted, expected = data.proba.argmax(axis=1), 0.0
    for k in range(3):
        rows = predicted == k
        part = kernel_calibration_error(
            data.labels[rows], data.proba[rows], notion="confidence", bandwidth=0.2
        )
        expected += rows.mean() * part
    value = kernel_calibration_error(data.labels, data.proba, notion="top-label", bandwidth=0.2)
    assert value == pytest.approx(expected, abs=1e-14)


@given(st.integers(0, 10**6), st.sampled_from([1e-4, 0.01, 0.5, 100.0]))
def test_the_sorted_way_gives_the_sum_over_all_pairs(seed, bandwidth):
    generator = np.random.default_rng(seed)
    point = generator.integers(0, 20, 30) / 19 / bandwidth
    columns = generator.normal(size=(30, 4))
    gram = np.exp(-np.abs(point[:, None] - point))
    expected = np.einsum("im,ij,jm->m", columns, gram, columns)
    assert sorted_forms(point, columns) == pytest.approx(expected, rel=1e-10)


def test_tiles_add_up_to_the_whole(rng):
    root = rng.normal(size=(1100, 2))
    columns = rng.normal(size=(1100, 3))
    value = tiled_forms(lambda a, b: root[a] @ root[b].T, columns)
    assert value == pytest.approx(np.sum((root.T @ columns) ** 2, axis=0), rel=1e-10)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_a_weight_is_a_number_of_copies(notion, estimator, rng):
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    copies = rng.integers(0, 3, size=40)
    rows = np.repeat(np.arange(40), copies)
    weighted = kernel_calibration_error(
        y, proba, notion=notion, estimator=estimator, sample_weight=copies
    )
    assert weighted == pytest.approx(
        kernel_calibration_error(y[rows], proba[rows], notion=notion, estimator=estimator),
        abs=1e-13,
    )


@pytest.mark.parametrize("notion", ["canonical", "confidence", "class-wise"])
def test_the_unbiased_estimate_has_mean_zero_for_a_calibrated_model(notion):
    draws = [datasets.noisy_simplex(50, 3, 0.0, rng=s) for s in range(300)]
    values = np.array(
        [kernel_calibration_error(d.labels, d.proba, notion=notion, bandwidth=0.2) for d in draws]
    )
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(len(values))


def test_blocks_average_the_estimates_of_their_rows(data):
    y, proba = data.labels, data.proba
    each = [
        kernel_calibration_error(y[i : i + 10], proba[i : i + 10], bandwidth=0.2)
        for i in range(0, 40, 10)
    ]
    value = kernel_calibration_error(y, proba, bandwidth=0.2, block_size=10)
    assert value == pytest.approx(np.mean(each), abs=1e-14)


def test_a_smaller_last_block_counts_by_its_pairs(data):
    y, proba = data.labels[:25], data.proba[:25]
    parts = [slice(0, 10), slice(10, 20), slice(20, 25)]
    each = [kernel_calibration_error(y[part], proba[part], bandwidth=0.2) for part in parts]
    value = kernel_calibration_error(y, proba, bandwidth=0.2, block_size=10)
    assert value == pytest.approx(np.average(each, weights=[90, 90, 20]), abs=1e-14)


def test_one_block_of_all_rows_is_the_whole(data):
    for notion in ("canonical", "class-wise"):
        whole = kernel_calibration_error(data.labels, data.proba, notion=notion)
        assert kernel_calibration_error(
            data.labels, data.proba, notion=notion, block_size=40
        ) == pytest.approx(whole, abs=1e-14)


def test_the_median_distance_is_in_total_variation_and_ignores_copies_and_order(rng):
    points = rng.dirichlet(np.ones(4), 30)
    pairs = [np.abs(a - b).sum() / 2 for i, a in enumerate(points) for b in points[:i]]
    assert median_distance(points) == pytest.approx(np.median(pairs))
    repeated = rng.permutation(np.repeat(points, 3, axis=0))
    assert median_distance(repeated) == pytest.approx(np.median(pairs))


def test_one_row_and_constant_predictions():
    assert kernel_calibration_error([0], [[0.7, 0.3]]) == 0.0
    assert kernel_calibration_error([0], [[0.7, 0.3]], block_size=5) == 0.0
    assert kernel_calibration_error([0], [[0.7, 0.3]], estimator="biased") == pytest.approx(
        2 * 0.09
    )
    assert kernel_calibration_error([0, 0], [[0.7, 0.3]] * 2) == pytest.approx(2 * 0.09)


def test_what_does_not_go_together_is_rejected(data):
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        kernel_calibration_error(data.labels, data.proba, bandwidth=0.0)
    with pytest.raises(ValueError, match="block_size needs estimator='unbiased'"):
        kernel_calibration_error(data.labels, data.proba, estimator="biased", block_size=4)
    with pytest.raises(ValueError, match="block_size needs weights of 1"):
        kernel_calibration_error(
            data.labels, data.proba, block_size=4, sample_weight=np.full(40, 2.0)
        )
    with pytest.raises(ValueError, match="estimator must be one of"):
        kernel_calibration_error(data.labels, data.proba, estimator="best")


def test_the_biased_confidence_error_is_the_squared_mmce_of_two_references(real_data, reference):
    focal = real_data("focal_cifar10_resnet50_gupta")
    y, proba = focal["test_labels"], softmax(focal["test_logits"].astype(float), axis=1)
    golden = reference["focal_cifar10_resnet50_gupta"]

    def mmce(rows, bandwidth):
        value = kernel_calibration_error(
            y[rows], proba[rows], notion="confidence", bandwidth=bandwidth, estimator="biased"
        )
        return value**0.5

    netcal = golden["uncalibrated_test"]["netcal 1.3.6"]["MMCE (exp(-2.5|d|), i.e. bandwidth 0.4)"]
    assert mmce(slice(None), 0.4) == pytest.approx(netcal, abs=1e-12)
    probcal = golden["probcal_R_on_cifar10 (val->test)"]["mmce_first2000_test"]
    assert mmce(slice(2000), 0.2) == pytest.approx(probcal["bw0.2"], abs=1e-12)
    assert mmce(slice(2000), 0.4) == pytest.approx(probcal["bw0.4"], abs=1e-12)
