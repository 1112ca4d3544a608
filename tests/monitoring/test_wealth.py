"""The recursion in blocks is the recursion row by row."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._wealth import as_streams, run_members

EVEN = np.full(3, 1 / 3)


def by_hand(start, factors, entry):
    m, path = np.exp(start), []
    for row in factors:
        m = (m + entry) * row
        path.append(np.log(m.mean()))
    return np.array(path), np.log(m)


@pytest.mark.parametrize("entry", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.1, 5.0, 40.0])
def test_blocks_are_the_recursion(rng, entry, scale):
    log_f = rng.normal(scale=scale, size=(60, 3)).clip(-10, 10) - 0.2
    start = np.array([0.0, -np.inf if entry else -1.0, 2.0])
    run = run_members(start[None], log_f[:, None], np.full((60, 1), entry), EVEN)
    path, last = by_hand(start, np.exp(log_f), entry)
    np.testing.assert_allclose(run.path[:, 0], path, atol=1e-9)
    np.testing.assert_allclose(run.last[0], last, atol=1e-9)


def test_numbers_that_do_not_fit_are_kept_as_logarithms():
    run = run_members(np.zeros((1, 1)), np.full((10, 1, 1), 500.0), np.ones((10, 1)), np.ones(1))
    assert run.path[-1, 0] == pytest.approx(5000 + np.log(2), abs=1e-9)


def test_rows_are_dealt_to_streams_in_turn():
    rows = np.arange(1.0, 6.0)[:, None]
    dealt = as_streams(rows, offset=4, n_streams=3)[:, :, 0]
    assert dealt.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_detector_gains_one_a_row_on_average_in_an_honest_stream(rng):
    factors = rng.choice([0.5, 1.5], size=(20_000, 50, 1))
    run = run_members(
        np.full((20_000, 1), -np.inf),
        np.log(np.moveaxis(factors, 0, 1)),
        np.ones((50, 20_000)),
        np.ones(1),
    )
    mean, error = np.exp(run.path[-1]).mean(), np.exp(run.path[-1]).std() / np.sqrt(20_000)
    assert abs(mean - 50) < 4 * error
