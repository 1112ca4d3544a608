from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample, RowBlock
from calibrant._optim.fast_temperature import BlockConstants, TemperatureLoss, block_sums
from calibrant._optim.plain_temperature import loss_sums


@pytest.fixture
def data(rng):
    u = 3 * rng.normal(size=(500, 5))
    return u, (0.5 * u + rng.gumbel(size=u.shape)).argmax(axis=1), rng.random(500)


def exact_sums(beta, block, n_powers=4, constants=None):
    arithmetic = TemperatureLoss(ArraySample(*block[:3]), None).exact
    return block_sums(beta, arithmetic, n_powers, constants, block)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_rows", [500, 5000])
def test_sums_by_powers_are_the_plain_sums(rng, n_rows, is_weighted):
    u = 3 * rng.normal(size=(n_rows, 5))
    weight = rng.random(n_rows) if is_weighted else np.broadcast_to(2.0, n_rows)
    block = RowBlock(u, rng.integers(5, size=n_rows), weight, 0)
    assert exact_sums(0.7, block)[:3] == pytest.approx(loss_sums(0.7, block), rel=1e-12)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_third_sum_is_the_slope_of_the_second(data, is_weighted):
    u, y, weight = data
    block, step = RowBlock(u, y, weight if is_weighted else np.broadcast_to(2.0, 500), 0), 1e-4
    ahead, behind = exact_sums(0.7 + step, block), exact_sums(0.7 - step, block)
    assert exact_sums(0.7, block)[3] == pytest.approx((ahead[2] - behind[2]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize(("scale", "shift"), [(200.0, 0.0), (1.0, 1e5), (1e-3, 50.0)])
def test_blocks_whose_powers_lose_digits_are_shifted(data, scale, shift):
    u, y, weight = data
    block = RowBlock(scale * u + shift, y, weight, 0)
    sums = exact_sums(0.7, block)
    assert sums[:3] == pytest.approx(loss_sums(0.7, block), rel=1e-12)
    assert np.isnan(sums[3])


def test_constants_of_a_block_are_kept_for_the_next_pass(data):
    block, constants = RowBlock(*data, 7), {}
    first = exact_sums(0.7, block, constants=constants)
    assert constants == {7: BlockConstants.of(block)}
    assert exact_sums(0.7, block, constants=constants) == first


@pytest.mark.parametrize("prior_scale", [None, 0.25])
def test_a_loss_has_the_derivatives_of_finite_differences(data, prior_scale):
    loss, step = TemperatureLoss(ArraySample(*data), prior_scale), 1e-5
    point, ahead, behind = (loss(t, n_powers=4) for t in (-0.4, -0.4 + step, -0.4 - step))
    values = zip((ahead.value, *ahead.slopes), (behind.value, *behind.slopes), strict=True)
    for slope, (high, low) in zip(point.slopes, values, strict=False):
        assert slope == pytest.approx((high - low) / (2 * step), rel=1e-6)


def test_a_rough_pass_is_close_to_an_exact_one(data):
    loss = TemperatureLoss(ArraySample(*data), None)
    rough, exact = loss(-0.4, is_rough=True, n_powers=4), loss(-0.4, n_powers=4)
    assert rough.value == pytest.approx(exact.value, rel=1e-5)
    assert rough.slopes == pytest.approx(exact.slopes, rel=1e-4)
    assert rough != exact


def test_a_third_derivative_that_is_not_computed_is_estimated_if_a_ratio_is_given(data):
    loss = TemperatureLoss(ArraySample(*data), None)
    slope, curvature = loss(-0.4).slopes
    assert loss(-0.4, bend=0.5).slopes == (slope, curvature, 0.5 * curvature)
