"""What the R package probcal printed, beyond its Dirichlet calibration."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import (
    BetaCalibration,
    IsotonicCalibration,
    MulticlassToBinary,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.metrics import expected_calibration_error as ece


@pytest.fixture
def binary(probcal_golden):
    table = probcal_golden("binary_p_y_score")
    return table[:, 0], table[:, 1].astype(int)


@pytest.fixture
def noisy(probcal_golden):
    return probcal_golden("noisy_self_p"), probcal_golden("noisy_self_y").astype(int) - 1


def test_binary_temperature(binary, probcal_reference):
    printed = probcal_reference["reference"]["binary"]["cal_temperature_binary"]
    fitted = TemperatureScaling().fit(*binary)
    assert fitted.temperature_ == pytest.approx(
        printed["temperature"], abs=1e-4
    )  # R's search stops there
    assert fitted.objective_ * len(binary[1]) == pytest.approx(printed["value"], abs=1e-6)
    np.testing.assert_allclose(
        fitted.predict_proba(binary[0])[:6, 1], printed["pred_head6"], atol=1e-5
    )


def test_multiclass_temperature_and_vector_scaling(noisy, probcal_reference):
    printed = probcal_reference["reference"]["noisy_self"]
    temperature = TemperatureScaling().fit(*noisy)
    assert temperature.temperature_ == pytest.approx(
        printed["cal_temperature_multiclass_on_logp"]["temperature"], abs=1e-4
    )
    assert temperature.objective_ == pytest.approx(
        printed["cal_temperature_multiclass_on_logp"]["value"], abs=1e-9
    )
    vector, expected = VectorScaling().fit(*noisy), printed["cal_vector_scaling_on_logp"]
    assert vector.objective_ == pytest.approx(expected["value"], abs=1e-7)
    np.testing.assert_allclose(vector.coef_, expected["scale"], atol=2e-3)  # R stops early
    np.testing.assert_allclose(
        vector.intercept_ - vector.intercept_.mean(), expected["bias"], atol=2e-3
    )


@pytest.mark.parametrize(
    ("name", "calibrator", "tolerance"),
    [
        ("beta", BetaCalibration(constrained=False), 1e-6),
        # R interpolates between the ends of blocks, ours are steps: equal where a score lies inside
        # a block.
        ("isotonic", IsotonicCalibration(), 1e-9),
    ],
)
def test_one_vs_rest_predictions(noisy, name, calibrator, tolerance, probcal_golden):
    fitted = MulticlassToBinary(calibrator, notion="class-wise", normalize=True).fit(*noisy)
    np.testing.assert_allclose(
        fitted.predict_proba(noisy[0]),
        probcal_golden(f"noisy_self_ovr_{name}_pred"),
        atol=tolerance,
    )


def test_class_wise_and_confidence_errors(noisy, probcal_reference):
    printed = probcal_reference["reference"]["noisy_self"]["metrics_raw"]
    proba, y = noisy
    assert ece(y, proba, n_bins=10) == pytest.approx(printed["ece_conf_10"], abs=1e-12)
    assert ece(y, proba, n_bins=10, notion="class-wise") == pytest.approx(
        printed["ece_cw_10"], abs=1e-12
    )
    assert ece(y, proba, n_bins=10, norm=np.inf) == pytest.approx(printed["mce_conf_10"], abs=1e-12)


def test_binary_errors_are_those_of_class_one(binary, probcal_reference):
    printed = probcal_reference["reference"]["binary"]["metrics"]
    score, y = binary
    for n_bins in (10, 15, 100):
        assert ece(y, score, notion="class-1", n_bins=n_bins) == pytest.approx(
            printed[f"ece_{n_bins}"], abs=1e-12
        )
