"""Values of papers and of their authors' code, on the same real predictions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import evaluate
from calibrant.binning import Bins
from calibrant.metrics import brier_score, ks_error
from calibrant.metrics import expected_calibration_error as ece

DENSENET = "cifar10_densenet40_kull_sample"
FOCAL = "focal_cifar10_resnet50_gupta"
WIDERESNET = "cifar100_wideresnet164_netcal"


@pytest.fixture(scope="module")
def densenet(real_data):
    file = real_data(DENSENET)
    return file["test_labels"], softmax(file["test_logits"].astype(np.float64), axis=1)


def test_densenet_confidence_error_of_kull(densenet):
    assert ece(*densenet) == pytest.approx(0.0550027, abs=5e-8)
    assert 1 - evaluate(*densenet).accuracy == pytest.approx(0.0758, abs=1e-12)


def test_densenet_class_wise_error_of_kull_is_a_sum_over_classes(densenet):
    # The printed 0.11430 uses 14 bins and a separate one for p = 1; with 15 bins the sum is
    # 0.11403.
    assert ece(*densenet, notion="class-wise", aggregate="sum") == pytest.approx(0.11403, abs=5e-6)


@pytest.mark.parametrize(
    ("notion", "percent"), [("confidence", 5.493), ("rank-2", 3.343), ("within-top-2", 2.255)]
)
def test_densenet_ks_errors_of_gupta_2021(densenet, notion, percent):
    assert 100 * ks_error(*densenet, notion=notion) == pytest.approx(percent, abs=5e-4)


GUPTA_RAMDAS = {
    # file: TL-ECE, CW-ECE x100, TL-MCE as printed (max over bins), TL-MCE of eq. 17 (max over
    # cells)
    "cifar10_resnet50_gupta": (0.02498403, 0.46156763, 0.31543274, 0.66643969),
    "cifar10_wide_resnet_gupta": (0.02275366, 0.43920326, 0.77146066, 0.77146066),
    "cifar100_resnet50_gupta": (0.11839647, 0.21736657, 0.43631516, 0.94206627),
    "cifar100_resnet110_gupta": (0.12693110, 0.23880120, 0.31295378, 0.92428247),
    "focal_cifar10_resnet50_gupta": (0.02222674, 0.42198294, 0.29794960, 0.62946071),
}


@pytest.mark.parametrize("name", GUPTA_RAMDAS)
def test_top_label_and_class_wise_errors_of_gupta_and_ramdas(real_data, name):
    file = real_data(name)
    y, proba = file["test_labels"], softmax(file["test_logits"].astype(np.float64), axis=1)
    measured = (
        ece(y, proba, notion="top-label"),
        100 * ece(y, proba, notion="class-wise"),
        ece(y, proba, notion="top-label", norm=np.inf, aggregate="bin"),
        ece(y, proba, notion="top-label", norm=np.inf),
    )
    assert measured == pytest.approx(GUPTA_RAMDAS[name], abs=1e-8)


@pytest.fixture(scope="module", params=[FOCAL, WIDERESNET])
def case(request, real_data, reference):
    """Labels and probabilities of the test rows, and figures of the references."""
    file = real_data(request.param)
    if request.param == FOCAL:
        proba, y = softmax(file["test_logits"].astype(np.float64), axis=1), file["test_labels"]
    else:  # rows 5000..9999, renormalized in float64
        proba, y = file["probs"][5000:].astype(np.float64), file["labels"][5000:]
        proba = proba / proba.sum(axis=1, keepdims=True)
    key = next(k for k in reference if k.startswith(request.param))
    return y, proba, reference[key]["uncalibrated_test"]


def test_evaluation_agrees_with_the_references(case):
    y, proba, printed = case
    result, basic, wenger = evaluate(y, proba), printed["basic"], printed["wenger_scoring"]
    kull, pycalib = (
        printed["dnn_experiments (Kull 2019 evaluation.py)"],
        printed["pycalib_cc (classifier-calibration/PyCalib metrics.py)"],
    )
    expected = {
        "accuracy": basic["accuracy"],
        "log_loss": basic["nll"],
        "brier_score": basic["brier_sum"],
        "conf_ece": kull["conf_ECE_15"],
        "mce": kull["MCE_15"],
        "cw_ece": pycalib["classwise_ECE_15"],
        "ks": printed["spline_calibration"]["KS"]["top1"],
        "confidence_on_errors": wenger["overconfidence"],
        "doubt_on_correct": wenger["underconfidence"],
        "sharpness": wenger["sharpness"],
    }
    assert {k: getattr(result, k) for k in expected} == pytest.approx(expected, abs=1e-8)


def test_other_numbers_of_bins_and_class_wise_maxima(case):
    y, proba, printed = case
    check, netcal = (
        printed["plain_numpy_crosscheck (cross-check)"]["B=10,left_closed"],
        printed["netcal 1.3.6"],
    )
    assert ece(y, proba, n_bins=10) == pytest.approx(
        netcal["ECE bins=10 equal_intervals=True"], abs=1e-8
    )
    assert ece(y, proba, n_bins=10, norm=np.inf) == pytest.approx(
        netcal["MCE bins=10 equal_intervals=True"], abs=1e-8
    )
    assert ece(y, proba, n_bins=25) == pytest.approx(
        printed["spline_calibration"]["conf_ECE_25"], abs=1e-8
    )
    assert ece(y, proba, n_bins=10, notion="class-wise", aggregate="sum") == pytest.approx(
        check["cw_ECE_sum"], abs=1e-8
    )
    assert ece(y, proba, n_bins=10, notion="class-wise", norm=np.inf) == pytest.approx(
        check["cw_MCE_max"], abs=1e-8
    )
    # Kull's class-wise ECE with bins=15 has 14 bins and a separate one for p = 1, which is another
    # definition.
    kull = printed["dnn_experiments (Kull 2019 evaluation.py)"][
        "classwise_ECE_bins=15 (really 14 bins)"
    ]
    assert ece(y, proba, n_bins=14, notion="class-wise") == pytest.approx(kull, abs=1e-4)


@pytest.mark.parametrize(("notion", "key"), [("rank-2", "top2"), ("within-top-2", "within_top2")])
def test_ks_errors_of_other_ranks(case, notion, key):
    y, proba, printed = case
    assert ks_error(y, proba, notion=notion) == pytest.approx(
        printed["spline_calibration"]["KS"][key], abs=1e-8
    )


def test_top_one_brier_score(case):
    y, proba, printed = case
    assert brier_score(y, proba, notion="confidence") == pytest.approx(
        printed["basic"]["top1_brier (spline-calibration)"], abs=1e-8
    )


def equal_size_bins(scores, n_bins=15):
    """Groups of the reference: ``array_split`` of the sorted scores, with longer groups first.

    Our bins follow the share of scores at or below a value, so up to one row per bin is in another
    bin.
    """
    return np.array([group.max() for group in np.array_split(np.sort(scores), n_bins)])


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("notion", ["confidence", "class-wise"])
def test_squared_errors_of_kumar_on_their_bins(case, notion, debias):
    y, proba, printed = case
    kind = "top-label" if notion == "confidence" else "marginal"
    expected = printed["verified_calibration"][
        f"lower_bound_scaling_ce p=2 debias={debias} num_bins=15 equal-mass {kind}"
    ]
    columns = [proba.max(axis=1)] if notion == "confidence" else list(proba.T)
    bins = Bins(tuple(equal_size_bins(column) for column in columns))
    assert ece(y, proba, notion=notion, bins=bins, norm=2, debias=debias) == pytest.approx(
        expected, abs=1e-8
    )
    # With our quantile bins the value agrees up to the effect of one row per bin.
    own = ece(y, proba, notion=notion, strategy="quantile", norm=2, debias=debias)
    assert own == pytest.approx(expected, rel=0.05)


def test_top_label_errors_of_gupta_and_ramdas_on_their_equal_mass_bins(case):
    """Their released metric splits each predicted class into ``array_split`` groups."""
    y, proba, printed = case
    top, label = proba.max(axis=1), proba.argmax(axis=1)
    edges = tuple(
        equal_size_bins(top[label == k]) if (label == k).any() else np.ones(1)
        for k in range(proba.shape[1])
    )
    expected = printed["df_posthoc (assessment.py)"]["toplabel_ece n_bins=15"]
    assert ece(y, proba, notion="top-label", bins=Bins(edges)) == pytest.approx(expected, abs=1e-8)
