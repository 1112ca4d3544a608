"""The boundary of the walk: recorded values, exact level, and cells of many ranks."""

import numpy as np
import pytest

import plain_walk
from calibrant.decisions._boundary import Boundary, boundary_of


@pytest.mark.parametrize(
    ("n", "risk", "ranks"),
    [
        (100, 0.1, [31, 48, 63, 78]),
        (200, 0.05, [62, 98, 129, 158]),
        (500, 0.02, [158, 247, 326, 399]),
        (1000, 0.05, [79, 117, 150, 182]),
    ],
)
def test_the_first_ranks_that_allow_errors_are_the_recorded_ones(n, risk, ranks):
    allowed = boundary_of(n, risk, 0.1).allowed
    assert [int(np.argmax(allowed >= k)) + 1 for k in range(4)] == ranks


def test_a_thousand_rows_allow_35_errors_at_risk_5_percent():
    assert boundary_of(1000, 0.05, 0.1).allowed[-1] == 35


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.4])
@pytest.mark.parametrize(("n", "risk"), [(30, 0.1), (90, 0.05), (150, 0.3)])
def test_the_boundary_equals_the_plain_one(n, risk, delta):
    np.testing.assert_array_equal(
        boundary_of(n, risk, delta).allowed, plain_walk.boundary(n, risk, delta)[1:]
    )


@pytest.mark.parametrize(("n", "risk"), [(200, 0.1), (600, 0.02)])
def test_the_walk_crosses_with_the_stated_probability(n, risk):
    boundary = boundary_of(n, risk, 0.1)
    crossing = plain_walk.crossing(np.r_[-1, boundary.allowed], risk)
    assert 1 - boundary.not_crossed == pytest.approx(crossing, abs=1e-12)
    assert 0.09 < crossing <= 0.1


def test_a_boundary_in_cells_holds_at_every_rank():
    dense = boundary_of(300, 0.1, 0.1)
    ranks = np.array([1, 2, 3, 5, 9, 17, 33, 65, 90, 120, 150, 190, 220, 260])
    cells = Boundary(300, 0.1, ranks, dense.limits[ranks - 1])
    crossing = plain_walk.crossing(np.r_[-1, cells.allowed], 0.1)
    assert 1 - cells.not_crossed == pytest.approx(crossing, abs=1e-12)


def test_many_rows_have_few_cells_and_use_up_delta():
    boundary = boundary_of(100_000, 0.05, 0.1)
    assert len(boundary.ranks) < 3500
    assert 0.0995 < 1 - boundary.not_crossed <= 0.1
    assert len(boundary.allowed) == 100_000


def test_too_few_rows_allow_nothing():
    assert boundary_of(44, 0.05, 0.1).allowed.max() == -1
    assert boundary_of(45, 0.05, 0.1).allowed.max() == 0
