"""Score maps: apply and its transpose, curvature by its definition, solvers that precondition."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._kernels.simplex import softmax
from calibrant._optim import maps
from calibrant._optim.maps import AffineMap, DiagonalMap, dense_solve

K = 4
MAPS = [DiagonalMap(K), AffineMap(K)]
every_map = pytest.mark.parametrize("score_map", MAPS, ids=lambda m: type(m).__name__)


@pytest.fixture
def rows(rng):
    u = rng.normal(size=(30, K))
    return u, softmax(rng.normal(size=(30, K))), rng.random(30) + 0.1


def test_the_diagonal_map_scales_and_shifts_each_class():
    theta = np.array([[2.0, 3.0], [0.5, -0.5]])
    np.testing.assert_array_equal(DiagonalMap(2).apply(theta, np.ones((1, 2))), [[2.5, 2.5]])


def test_row_k_of_the_affine_map_gives_the_logit_of_class_k():
    theta = np.array([[1.0, 2.0, 0.5], [3.0, 4.0, -0.5]])
    np.testing.assert_array_equal(
        AffineMap(2).apply(theta, np.array([[1.0, 10.0]])), [[21.5, 42.5]]
    )


@every_map
def test_the_identity_changes_nothing(score_map, rows):
    np.testing.assert_array_equal(score_map.apply(score_map.identity(), rows[0]), rows[0])
    assert score_map.identity().shape == score_map.shape


@every_map
def test_apply_leaves_its_input_alone(score_map, rows):
    before = rows[0].copy()
    score_map.apply(score_map.identity() + 1.0, rows[0])
    np.testing.assert_array_equal(rows[0], before)


@every_map
def test_pullback_is_the_transpose_of_apply(score_map, rows, rng):
    u, theta, gradient = rows[0], rng.normal(size=score_map.shape), rng.normal(size=(30, K))
    assert (score_map.apply(theta, u) * gradient).sum() == pytest.approx(
        (theta * score_map.pullback(gradient, u)).sum()
    )


def curvature_by_definition(score_map, p, u, weight):
    """The Hessian in the basis of unit parameters, row by row."""
    units = np.eye(int(np.prod(score_map.shape))).reshape(-1, *score_map.shape)
    total = 0.0
    for p_i, u_i, w_i in zip(p, u, weight, strict=True):
        jacobian = np.stack([score_map.apply(unit, u_i[None])[0] for unit in units])
        total = total + w_i * jacobian @ (np.diag(p_i) - np.outer(p_i, p_i)) @ jacobian.T
    return total


@every_map
def test_curvature_is_that_of_its_definition(score_map, rows):
    u, p, weight = rows
    np.testing.assert_allclose(
        score_map.curvature(p, u, weight),
        curvature_by_definition(score_map, p, u, weight),
        atol=1e-12,
    )


def class_blocks(score_map):
    """For each class, the places of its parameters in the flat vector."""
    index = np.arange(int(np.prod(score_map.shape))).reshape(score_map.shape)
    return index.T if isinstance(score_map, DiagonalMap) else index


@every_map
def test_the_block_solver_inverts_the_block_of_each_class(score_map, rows, rng):
    u, p, weight = rows
    diagonal = np.full(score_map.shape, 0.3)
    hessian = curvature_by_definition(score_map, p, u, weight) + 0.3 * np.eye(diagonal.size)
    v = rng.normal(size=score_map.shape)
    found = score_map.block_solve(score_map.blocks(p, u, weight), diagonal)(v).ravel()
    for own in class_blocks(score_map):
        block = hessian[np.ix_(own, own)]
        np.testing.assert_allclose(block @ found[own], v.ravel()[own], rtol=1e-6)


def test_blocks_that_classes_share_solve_their_share(rows, rng, monkeypatch):
    u, p, weight = rows
    monkeypatch.setattr(maps, "BLOCK_CLASSES", K - 1)
    score_map, diagonal = AffineMap(K), np.full((K, K + 1), 0.3)
    blocks = score_map.blocks(p, u, weight)
    assert len(blocks) == 2
    gram, share = blocks
    v = rng.normal(size=score_map.shape)
    found = score_map.block_solve(blocks, diagonal)(v)
    for k in range(K):
        block = gram * share[k] / share.sum() + 0.3 * np.eye(K + 1)
        np.testing.assert_allclose(block @ found[k], v[k], rtol=1e-6)


@every_map
def test_constants_along_the_gauge_change_no_probability(score_map, rows, rng):
    theta = rng.normal(size=score_map.shape)
    axis, mask = score_map.gauge()
    shift = mask * rng.normal(size=np.where(np.arange(2) == axis, 1, score_map.shape))
    np.testing.assert_allclose(
        softmax(score_map.apply(theta + shift, rows[0])),
        softmax(score_map.apply(theta, rows[0])),
        atol=1e-12,
    )


def test_the_dense_solver_leaves_flat_directions_almost_alone():
    solve = dense_solve(np.diag([2.0, 0.0]), np.zeros((1, 2)))
    np.testing.assert_allclose(solve(np.array([[1.0, 0.0]])), [[0.5, 0.0]], rtol=1e-9)


def test_round_off_that_makes_a_hessian_indefinite_is_lifted():
    solve = dense_solve(np.diag([1.0, -1e-9]), np.zeros((1, 2)))
    assert np.isfinite(solve(np.ones((1, 2)))).all()
