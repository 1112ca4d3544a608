from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from calibrant.binary import BetaCalibration
from calibrant.exceptions import ConvergenceWarning

BETACAL = "beta_calibration betacal"


def check_exact_maximum(reference, dataset, parameters, p, y):
    """betacal stops about 1e-3 away from its maximum; the exact one, found beside it, is what a fit
    must reach."""
    expected = reference["focal_cifar10_resnet50_gupta"][BETACAL][dataset][parameters]
    exact = expected["exact_MLE_newton (unconstrained)"]
    beta = BetaCalibration(parameters).fit(p, y)
    assert beta.a_ == pytest.approx(exact.get("a", exact.get("a=b")), abs=1e-6)
    assert beta.b_ == pytest.approx(exact.get("b", exact.get("a=b")), abs=1e-6)
    if "c" in exact:
        assert beta.c_ == pytest.approx(exact["c"], abs=1e-6)
    assert beta.objective_ == pytest.approx(expected["exact_MLE_train_nll"], abs=1e-10)
    assert beta.objective_ <= expected["train_nll"]
    assert beta.m_ == pytest.approx(expected["map_ [a,b,m]"][2], abs=1e-3)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_betacals_exact_maximum_on_synthetic_data(reference, probcal_golden, parameters):
    p, y, _ = probcal_golden("binary_p_y_score").T
    check_exact_maximum(
        reference, "probcal_binary (probcal/binary_p_y_score.csv)", parameters, p, y.astype(int)
    )


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_betacals_exact_maximum_on_real_data(reference, real_data, parameters):
    data = real_data("focal_cifar10_resnet50_gupta")
    p = softmax(data["val_logits"].astype(float), axis=1)[:, 3]
    check_exact_maximum(
        reference, "cifar10_class3_vs_rest", parameters, p, (data["val_labels"] == 3).astype(int)
    )


def test_probcal_agrees(probcal_golden, probcal_reference):
    p, y, _ = probcal_golden("binary_p_y_score").T
    expected = probcal_reference["reference"]["binary"]["cal_beta"]
    beta = BetaCalibration().fit(p, y.astype(int))
    np.testing.assert_allclose([beta.a_, beta.b_, beta.c_], [expected[k] for k in "abc"], atol=1e-8)
    np.testing.assert_allclose(beta.predict_proba(p[:6])[:, 1], expected["pred_head6"], atol=1e-8)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_the_map_is_the_formula_and_m_is_mapped_to_one_half(probcal_golden, parameters):
    p, y, _ = probcal_golden("binary_p_y_score").T
    beta = BetaCalibration(parameters).fit(p, y.astype(int))
    by_formula = 1 / (1 + np.exp(-beta.c_) * (1 - p) ** beta.b_ / p**beta.a_)
    np.testing.assert_allclose(beta.predict_proba(p)[:, 1], by_formula, atol=1e-12)
    assert beta.predict_proba([beta.m_])[0, 1] == pytest.approx(0.5, abs=1e-12)
    assert beta.c_ == pytest.approx(
        beta.b_ * np.log1p(-beta.m_) - beta.a_ * np.log(beta.m_), abs=1e-12
    )


def test_calibrated_scores_stay_as_they_are(rng):
    p = rng.random(200_000)
    beta = BetaCalibration().fit(p, (rng.random(200_000) < p).astype(int))
    np.testing.assert_allclose(
        [beta.a_, beta.b_, beta.c_], [1, 1, 0], atol=0.05
    )  # standard errors about 0.012


def constrained_maximum(p, y):
    def loss(v):
        eta = v[0] * np.log(p) - v[1] * np.log1p(-p) + v[2]
        return np.mean(np.logaddexp(0, eta) - y * eta)

    return minimize(
        loss,
        [1, 1, 0],
        bounds=[(0, None), (0, None), (None, None)],
        method="L-BFGS-B",
        options={"ftol": 1e-15},
    )


@pytest.mark.parametrize("seed", range(6))
def test_dropping_negative_coefficients_gives_the_constrained_maximum(seed):
    generator = np.random.default_rng(seed)
    p, noise = generator.beta(1, 1, 60), generator.random(60)
    y = (
        generator.random(60) < [p, 1 - p, p * (1 - p) * 4, noise, p**4, 1 - 4 * p * (1 - p)][seed]
    ).astype(int)
    beta = BetaCalibration().fit(p, y)
    best = constrained_maximum(p, y)
    assert min(beta.a_, beta.b_) >= 0
    assert beta.objective_ == pytest.approx(best.fun, abs=1e-8)
    np.testing.assert_allclose(
        [beta.a_, beta.b_, beta.c_], best.x, atol=2e-3
    )  # where L-BFGS-B stops


def test_scores_that_point_the_wrong_way_give_the_base_rate_unless_they_may_be_turned(rng):
    p = rng.random(500)
    y = (rng.random(500) > p).astype(int)
    beta = BetaCalibration().fit(p, y)
    assert beta.a_ == beta.b_ == 0
    np.testing.assert_allclose(beta.predict_proba([0.0, 0.4, 1.0])[:, 1], y.mean(), atol=1e-9)
    free = BetaCalibration(constrained=False).fit(p, y)
    assert max(free.a_, free.b_) < 0
    assert free.objective_ < beta.objective_


def test_separable_scores_warn_once_and_stay_finite():
    beta = BetaCalibration()
    with pytest.warns(ConvergenceWarning, match="no finite optimum.*PlattScaling") as caught:
        beta.fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert len(caught) == 1
    assert not beta.converged_
    assert np.isfinite([beta.a_, beta.b_, beta.c_, beta.m_]).all()


def test_m_is_at_an_end_where_the_map_stays_on_one_side_of_one_half():
    flat = [0.3] * 10
    assert BetaCalibration().fit(flat, [1] * 9 + [0]).m_ == 0
    assert BetaCalibration().fit(flat, [0] * 9 + [1]).m_ == 1
    assert BetaCalibration().fit(flat, [0] * 5 + [1] * 5).m_ == 0.5


def test_logits_are_the_same_as_their_probabilities(rng):
    z = rng.normal(size=300)
    y = (rng.random(300) < 1 / (1 + np.exp(-z))).astype(int)
    from_logits, from_proba = (
        BetaCalibration(inputs="logits").fit(z, y),
        BetaCalibration().fit(1 / (1 + np.exp(-z)), y),
    )
    assert from_logits.a_ == pytest.approx(from_proba.a_, abs=1e-9)


def test_unknown_parameters_are_rejected():
    with pytest.raises(ValueError, match="parameters must be one of 'abm', 'am', 'ab'"):
        BetaCalibration("abc").fit([0.2, 0.8], [0, 1])
