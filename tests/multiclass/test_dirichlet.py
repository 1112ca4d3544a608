"""Dirichlet calibration: the R specification, Theorem 1, its relatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.model_selection import GridSearchCV, KFold

from calibrant import BetaCalibration, DirichletCalibration, TemperatureScaling
from calibrant._kernels.simplex import log_softmax, softmax
from calibrant._optim.objective import Objective
from calibrant.datasets import digits_predictions
from calibrant.exceptions import ConvergenceWarning
from calibrant.metrics import log_loss, scorer
from calibrant.multiclass.dirichlet import canonical_to_linear, generative_to_linear


@pytest.fixture(scope="module")
def noisy(probcal_golden):
    return probcal_golden("noisy_self_p"), probcal_golden("noisy_self_y").astype(int) - 1


@pytest.mark.parametrize("lam", [0.001, 0.01, 0.1])
def test_cal_dirichlet_fits_are_the_tight_optimum(noisy, lam, probcal_reference):
    fitted = DirichletCalibration(lam=lam).fit(*noisy)
    tight = probcal_reference["tight_optimum"]["noisy_self"][f"lambda={lam}"]
    assert fitted.objective_ == pytest.approx(tight["tight_objective"], abs=1e-10)
    np.testing.assert_allclose(fitted.coef_, tight["W"], atol=1e-7)
    np.testing.assert_allclose(fitted.intercept_, tight["b"], atol=1e-7)


@pytest.mark.parametrize("lam", ["0.001", "0.01", "0.1"])
def test_cal_dirichlet_predictions_are_those_of_r(noisy, lam, probcal_golden):
    # R stops early: its predictions are up to 9e-4 off its own optimum.
    proba = DirichletCalibration(lam=float(lam)).fit(*noisy).predict_proba(noisy[0])
    np.testing.assert_allclose(
        proba, probcal_golden(f"noisy_self_dirichlet_lambda{lam}_pred"), atol=2e-3
    )


def test_the_choice_of_lam_is_that_of_r(noisy, probcal_reference):
    fitted = DirichletCalibration().fit(*noisy)
    printed = probcal_reference["reference"]["noisy_self"]
    assert fitted.lam_ == printed["select_dirichlet_lambda"] == 0.1
    assert fitted.mu_ == 0.1
    # Held-out losses of early-stopped fits: the same to three digits.
    np.testing.assert_allclose(fitted.cv_scores_, printed["cv_scores"], atol=1e-3)


def test_the_separable_example_of_the_r_documentation_ends_warns_once_and_predicts_all(
    probcal_golden, calls
):
    proba, y = probcal_golden("doc_p"), probcal_golden("doc_y").astype(int) - 1
    calls.watch(Objective, "hessian_product")
    with pytest.warns(
        ConvergenceWarning, match="separate the calibration labels perfectly"
    ) as record:
        fitted = DirichletCalibration().fit(proba, y)
    # 16 fits, none of which has an optimum to find; 2,587 products when this was written.
    assert 0 < calls["hessian_product"] < 5000
    assert len(record) == 1
    assert fitted.n_iter_ < 100
    assert (
        fitted.lam_ > 0
    )  # no penalty has a finite optimum here, but none at all does worst on held-out rows
    np.testing.assert_array_equal(fitted.predict(proba), y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.intercept_).all()


def test_a_class_with_fewer_than_two_rows_falls_back_to_a_fixed_strength(noisy):
    proba, y = noisy
    kept = (y != 2) | (np.arange(len(y)) == np.flatnonzero(y == 2)[0])
    fitted = DirichletCalibration().fit(proba[kept], y[kept])
    assert fitted.lam_ == 1e-3
    assert fitted.cv_scores_ is None


def test_the_first_of_ties_is_chosen(noisy):
    assert DirichletCalibration(grid=(0.2 * (1 + 1e-13), 0.2)).fit(*noisy).lam_ > 0.2
    assert DirichletCalibration(grid=(0.2, 0.2 * (1 + 1e-13))).fit(*noisy).lam_ == 0.2


@pytest.fixture(scope="module")
def fitted():
    data = digits_predictions("boosting")
    return DirichletCalibration(lam=1e-3).fit(data.val_proba, data.val_labels), data.test_proba


def test_theorem_1_all_three_parametrisations_predict_the_same(fitted):
    calibrator, proba = fitted
    log_proba = np.log(np.clip(proba, 1e-12, 1 - 1e-12))
    expected = calibrator.predict_proba(proba)
    coef, center = calibrator.canonical()
    alpha, prior = calibrator.generative()
    canonical = softmax(log_proba @ coef.T + coef.sum(axis=1) * np.log(10) + np.log(center))
    beta = gammaln(alpha).sum(axis=1) - gammaln(alpha.sum(axis=1))
    generative = softmax(
        log_proba @ (alpha - 1).T + np.log(prior) - beta
    )  # Bayes' rule with Dirichlet densities
    np.testing.assert_allclose(canonical, expected, atol=1e-12)
    np.testing.assert_allclose(generative, expected, atol=1e-12)


def test_theorem_1_backwards_both_forms_lead_to_the_linear_one(fitted):
    calibrator, proba = fitted
    log_proba = np.log(np.clip(proba, 1e-12, 1 - 1e-12))
    for coef, intercept in (
        canonical_to_linear(*calibrator.canonical()),
        generative_to_linear(*calibrator.generative()),
    ):
        out = np.exp(log_softmax(log_proba @ coef.T + intercept))
        np.testing.assert_allclose(out, calibrator.predict_proba(proba), atol=1e-12)


def test_the_canonical_form_is_what_the_paper_demands(fitted):
    coef, center = fitted[0].canonical()
    np.testing.assert_array_equal(coef.min(axis=0), 0)
    assert center.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        fitted[0].predict_proba(np.full((1, 10), 0.1))[0], center, atol=1e-12
    )
    alpha, prior = fitted[0].generative()
    assert (alpha >= 1).all()
    assert prior.sum() == pytest.approx(1)


def test_temperature_scaling_is_the_dirichlet_map_of_a_scaled_identity(fitted):
    _, proba = fitted
    labels = np.where(np.arange(len(proba)) % 3 > 0, proba.argmax(axis=1), 7)
    temperature = TemperatureScaling().fit(proba, labels)
    calibrator = DirichletCalibration(lam=1.0).fit(proba, labels)
    calibrator.coef_, calibrator.intercept_ = np.eye(10) / temperature.temperature_, np.zeros(10)
    np.testing.assert_allclose(
        calibrator.predict_proba(proba), temperature.predict_proba(proba), atol=1e-12
    )


def test_two_classes_without_penalty_are_beta_calibration_without_constraints(rng):
    score = rng.beta(1.5, 1, size=2000)
    y = (rng.random(2000) < score**2).astype(int)
    beta = BetaCalibration(constrained=False).fit(score, y).predict_proba(score)
    np.testing.assert_allclose(
        DirichletCalibration(lam=0).fit(score, y).predict_proba(score), beta, atol=1e-7
    )


def test_a_grid_over_both_strengths_by_scikit_learns_own_search():
    data = digits_predictions("naive_bayes")
    grid = {"lam": [1e-4, 1e-2, 1.0], "mu": [1e-4, 1.0]}
    search = GridSearchCV(
        DirichletCalibration(),
        grid,
        scoring=scorer("log_loss"),
        cv=KFold(3, shuffle=True, random_state=0),
    )
    search.fit(data.val_proba, data.val_labels)
    assert (
        search.cv_results_["mean_test_score"].max()
        == search.best_score_
        > -log_loss(data.val_labels, data.val_proba)
    )
    assert set(search.best_params_) == {"lam", "mu"}
    assert log_loss(data.test_labels, search.predict_proba(data.test_proba)) < log_loss(
        data.test_labels, data.test_proba
    )


def test_classes_in_another_order_give_the_same_map_in_that_order(rng):
    data = digits_predictions("forest")
    order = rng.permutation(10)
    place = np.argsort(order)
    first = (
        DirichletCalibration(lam=1e-2)
        .fit(data.val_proba, data.val_labels)
        .predict_proba(data.test_proba)
    )
    second = DirichletCalibration(lam=1e-2).fit(data.val_proba[:, order], place[data.val_labels])
    np.testing.assert_allclose(
        second.predict_proba(data.test_proba[:, order]), first[:, order], atol=1e-8
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": -0.1}, "lam must be a finite number of at least 0"),
        ({"mu": np.inf}, "mu must be"),
        ({"penalty": "l1"}, "penalty must be one of 'odir', 'l2'"),
        ({"eps": 0}, "eps must be a number between 0 and 0.5"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"grid": ()}, "grid must not be empty"),
        ({"grid": (-1,)}, "lam must be"),
    ],
)
def test_bad_parameters_say_what_must_hold(options, message):
    with pytest.raises(ValueError, match=message):
        DirichletCalibration(**options).fit([[0.5, 0.5], [0.2, 0.8]], [0, 1])
