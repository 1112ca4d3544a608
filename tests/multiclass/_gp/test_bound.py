"""The variational bound against naive formulas, finite differences and brute-force integrals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant.multiclass._gp import bound as bound_module
from calibrant.multiclass._gp.bound import DiagonalResidual, FullResidual, ScaledRows, SparseBound
from calibrant.multiclass._gp.kernel import InducingInputs, Kernel, rbf

RESIDUALS = pytest.mark.parametrize("residual", [DiagonalResidual, FullResidual])
PACKED = np.concatenate([np.log([0.7, 1.3, 0.05]), [-2.0, -0.9, 0.1, 1.2, 2.0]])


def some_rows(rng, n_rows=30, n_classes=4) -> ScaledRows:
    u = 2 * rng.normal(size=(n_rows, n_classes))
    return ScaledRows(
        u, rng.integers(n_classes, size=n_rows), 0.1 + 2 * rng.random(n_rows), center=0.3, scale=1.7
    )


def bound_at(packed, rows, residual) -> SparseBound:
    return SparseBound(rows, InducingInputs(Kernel(*np.exp(packed[:3])), packed[3:]), residual)


def finite_difference(function, at, step=1e-5):
    return np.array(
        [(function(at + e) - function(at - e)) / (2 * step) for e in step * np.eye(len(at))]
    )


# ---- the objective, as the paper writes it: inducing variables that are not whitened, loops over
# rows -----------------


def naive_marginals(bound: SparseBound, mean, covariance):
    """Means phi_n and covariances C_n of the latent values of each row, by the formulas of
    supplement S2.1."""
    prior, rows = bound.inducing, bound.rows
    K_w = prior.root @ prior.root.T
    S = prior.root @ covariance @ prior.root.T
    for n in range(len(rows.y)):
        x = rows.inputs(slice(n, n + 1))[0]
        K_f = rbf(x, x, prior.kernel) + prior.kernel.noise * np.eye(len(x))
        A = rbf(x, prior.inputs, prior.kernel) @ np.linalg.inv(K_w)
        rest = K_f - A @ K_w @ A.T
        if bound._residual is DiagonalResidual:
            rest = np.diag(np.diag(rest))
        yield rows.u[n] + A @ prior.root @ mean, rest + A @ S @ A.T


def kl_of_inducing(bound: SparseBound, mean, covariance) -> float:
    """KL[q(u) || p(u)] of the inducing variables themselves."""
    root = bound.inducing.root
    K_w, m, S = root @ root.T, root @ mean, root @ covariance @ root.T
    inverse = np.linalg.inv(K_w)
    log_ratio = np.linalg.slogdet(K_w)[1] - np.linalg.slogdet(S)[1]
    return 0.5 * (np.trace(inverse @ S) + m @ inverse @ m - len(m) + log_ratio)


def naive_objective(bound: SparseBound, mean, covariance) -> float:
    """Eq. 6 with the expectations of eq. 7, term by term."""
    total = -kl_of_inducing(bound, mean, covariance)
    marginals = naive_marginals(bound, mean, covariance)
    for y, weight, (phi, C) in zip(bound.rows.y, bound.rows.weight, marginals, strict=True):
        s = np.exp(log_softmax(phi))
        total += weight * (log_softmax(phi)[y] + 0.5 * (s @ C @ s - np.diag(C) @ s))
    return total


@RESIDUALS
def test_the_value_is_equation_6_with_the_taylor_term_of_equation_7(rng, residual):
    bound = bound_at(PACKED, some_rows(rng), residual)
    posterior = bound.at(rng.normal(size=5))
    assert (
        abs(posterior.value - naive_objective(bound, posterior.mean, posterior.covariance)) < 1e-10
    )


@RESIDUALS
def test_the_closed_form_of_the_covariance_is_the_best_one(rng, residual):
    bound = bound_at(PACKED, some_rows(rng), residual)
    posterior = bound.at(rng.normal(size=5))
    for _ in range(5):
        change = 0.05 * rng.normal(size=(5, 5))
        other = (
            posterior.covariance
            + change @ change.T
            + 1e-3 * (change + change.T) * posterior.covariance
        )
        assert naive_objective(bound, posterior.mean, other) < posterior.value


@RESIDUALS
def test_gradient_by_the_mean_matches_finite_differences(rng, residual):
    bound, mean = bound_at(PACKED, some_rows(rng), residual), rng.normal(size=5)
    expected = finite_difference(lambda m: bound.at(m).value, mean)
    np.testing.assert_allclose(bound.gradient(bound.at(mean)), expected, atol=1e-7)


@RESIDUALS
def test_gradient_by_kernel_and_inducing_inputs_matches_finite_differences(rng, residual):
    rows, mean = some_rows(rng), rng.normal(size=5)
    bound = bound_at(PACKED, rows, residual)
    expected = finite_difference(
        lambda packed: bound_at(packed, rows, residual).at(mean).value, PACKED
    )
    np.testing.assert_allclose(bound.outer_gradient(bound.at(mean)), expected, atol=1e-7)


@RESIDUALS
def test_the_mean_found_is_stationary(rng, residual):
    bound = bound_at(PACKED, some_rows(rng), residual)
    found = bound.maximum(np.zeros(5), tolerance=1e-18)
    np.testing.assert_allclose(bound.gradient(found), 0, atol=1e-7)
    assert found.value > bound.at(np.zeros(5)).value


@RESIDUALS
def test_at_the_maximum_the_outer_gradient_is_the_whole_derivative(rng, residual):
    rows = some_rows(rng)

    def maximised(packed):
        return bound_at(packed, rows, residual).maximum(np.zeros(5), tolerance=1e-20).value

    bound = bound_at(PACKED, rows, residual)
    gradient = bound.outer_gradient(bound.maximum(np.zeros(5), tolerance=1e-20))
    np.testing.assert_allclose(gradient, finite_difference(maximised, PACKED), atol=1e-6)


@RESIDUALS
@pytest.mark.parametrize("keep", [0, 10**9])
def test_blocks_of_any_size_give_the_same_sums(rng, monkeypatch, residual, keep):
    rows, mean = some_rows(rng), rng.normal(size=5)
    whole = bound_at(PACKED, rows, residual)
    monkeypatch.setattr(bound_module, "READ_BLOCK", 7 * 20)
    monkeypatch.setattr(bound_module, "KEPT_MEMORY", keep)
    split = bound_at(PACKED, rows, residual)
    a, b = whole.at(mean), split.at(mean)
    assert abs(a.value - b.value) < 1e-10
    np.testing.assert_allclose(split.outer_gradient(b), whole.outer_gradient(a), atol=1e-10)


@RESIDUALS
def test_a_weight_of_two_is_the_row_twice(rng, residual):
    rows, mean = some_rows(rng), rng.normal(size=5)
    weighted = bound_at(PACKED, rows._replace(weight=np.full(30, 2.0)), residual).at(mean)
    doubled = ScaledRows(
        np.tile(rows.u, (2, 1)), np.tile(rows.y, 2), np.ones(60), rows.center, rows.scale
    )
    assert abs(weighted.value - bound_at(PACKED, doubled, residual).at(mean).value) < 1e-10


def test_both_covariances_agree_where_every_score_is_an_inducing_input():
    """Nothing is left unexplained then but the noise, which is diagonal anyway."""
    u = np.array([[-2.0, -0.9], [0.1, 1.2], [2.0, -2.0]])
    rows = ScaledRows(u, np.array([0, 1, 0]), np.ones(3))
    packed = PACKED.copy()
    packed[2] = np.log(1e-10)
    mean = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    values = [
        bound_at(packed, rows, residual).at(mean).value
        for residual in (DiagonalResidual, FullResidual)
    ]
    assert abs(values[0] - values[1]) < 1e-6  # what the jitter leaves


# ---- the bound is a bound
# ---------------------------------------------------------------------------------------------


def gaussian_grid(n_dimensions: int, n_points: int = 20):
    """Gauss-Hermite nodes and log weights of a standard normal in several dimensions."""
    node, weight = np.polynomial.hermite_e.hermegauss(n_points)
    nodes = np.stack(np.meshgrid(*[node] * n_dimensions), axis=-1).reshape(-1, n_dimensions)
    log_weights = np.stack(np.meshgrid(*[np.log(weight / weight.sum())] * n_dimensions), axis=-1)
    return nodes, log_weights.reshape(-1, n_dimensions).sum(axis=1)


def contrasts(u: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The linear map from all latent values to those of each row minus that of its label."""
    n_rows, n_classes = u.shape
    rows = []
    for n, k in product(range(n_rows), range(n_classes)):
        if k != y[n]:
            row = np.zeros(u.size)
            row[n * n_classes + k], row[n * n_classes + y[n]] = 1.0, -1.0
            rows.append(row)
    return np.array(rows)


def log_likelihood(differences: np.ndarray, n_rows: int) -> np.ndarray:
    """Sum over rows of log softmax at the label, from differences to it."""
    split = differences.reshape(len(differences), n_rows, -1)
    padded = np.concatenate([np.zeros((*split.shape[:2], 1)), split], axis=2)
    return -logsumexp(padded, axis=2).sum(axis=1)


def exact_evidence(bound: SparseBound) -> float:
    """log p(y), integrated numerically over the joint prior of all latent values."""
    rows, prior = bound.rows, bound.inducing
    x = rows.inputs(slice(None)).ravel()
    covariance = rbf(x, x, prior.kernel) + prior.kernel.noise * np.eye(len(x))
    if bound._residual is DiagonalResidual:
        features = prior.features(x)
        covariance = features @ features.T + np.diag(prior.unexplained(features))
    D = contrasts(rows.u, rows.y)
    nodes, log_weight = gaussian_grid(len(D))
    values = D @ rows.u.ravel() + nodes @ np.linalg.cholesky(D @ covariance @ D.T).T
    return float(logsumexp(log_weight + log_likelihood(values, len(rows.y))))


def bound_by_quadrature(bound: SparseBound, mean, covariance) -> float:
    """Eq. 6 with the expectations integrated numerically instead of expanded."""
    total = -kl_of_inducing(bound, mean, covariance)
    for n, (phi, C) in enumerate(naive_marginals(bound, mean, covariance)):
        D = contrasts(phi[None], bound.rows.y[n : n + 1])
        nodes, log_weight = gaussian_grid(len(D), 40)
        values = D @ phi + nodes @ np.linalg.cholesky(D @ C @ D.T).T
        total += np.exp(log_weight) @ log_likelihood(values, 1)
    return total


@RESIDUALS
@pytest.mark.parametrize(("n_rows", "n_classes"), [(1, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_equation_6_with_exact_expectations_is_below_the_evidence(
    rng, residual, n_rows, n_classes, variance
):
    for _ in range(3):
        rows = some_rows(rng, n_rows, n_classes)._replace(weight=np.ones(n_rows))
        prior = InducingInputs(Kernel(variance, 1.0, 0.05), np.sort(rng.normal(size=2)))
        bound = SparseBound(rows, prior, residual)
        evidence = exact_evidence(bound)
        best = bound.maximum(np.zeros(2), tolerance=1e-12)
        assert bound_by_quadrature(bound, best.mean, best.covariance) < evidence
        other = best.mean + 0.3 * rng.normal(size=2)
        assert bound_by_quadrature(bound, other, best.covariance) < evidence


def test_the_exact_bound_is_tight_where_the_posterior_is_almost_gaussian():
    """One weak observation of one inducing variable: the gap must close, or the two integrals are
    not of one model."""
    rows = ScaledRows(np.array([[0.4, -0.4]]), np.array([0]), np.ones(1))
    prior = InducingInputs(Kernel(0.01, 1.0, 1e-9), np.array([-0.4, 0.4]))
    bound = SparseBound(rows, prior, FullResidual)
    best = bound.maximum(np.zeros(2), tolerance=1e-14)
    gap = exact_evidence(bound) - bound_by_quadrature(bound, best.mean, best.covariance)
    assert 0 <= gap < 1e-6
    assert abs(best.value - exact_evidence(bound)) < 1e-5


def test_equation_7_may_lie_above_the_evidence():
    """It is an approximation: it charges nothing for uncertainty about a probability of almost
    one."""
    rows = ScaledRows(np.array([[9.0, -9.0]]), np.array([0]), np.ones(1))
    bound = SparseBound(
        rows, InducingInputs(Kernel(400.0, 1.0, 1e-6), np.array([-9.0, 9.0])), FullResidual
    )
    assert bound.maximum(np.zeros(2), tolerance=1e-12).value > exact_evidence(bound) + 0.1
