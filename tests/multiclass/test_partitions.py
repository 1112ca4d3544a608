from __future__ import annotations

import numpy as np
import pytest

from calibrant.multiclass._partitions import (
    GridPartition,
    ProjectionPartition,
    SierpinskiPartition,
    fit_projections,
)


@pytest.mark.parametrize(
    "partition",
    [
        SierpinskiPartition(3, 3),
        GridPartition(3, 5),
        GridPartition(4, 3),
    ],
    ids=repr,
)
def test_every_row_has_a_bin_of_the_partition_and_no_bin_is_in_vain(partition, rng):
    u = rng.dirichlet(np.full(partition.n_classes, 0.5), 60_000)
    place = partition.assign(u)
    assert place.min() >= 0
    assert place.max() < partition.n_bins
    assert len(np.unique(place)) == partition.n_bins


def test_bins_of_the_grid_are_small(rng):
    u = rng.dirichlet(np.ones(3), 2000)
    place = GridPartition(3, 5).assign(u)
    for b in np.unique(place):
        assert np.ptp(u[place == b], axis=0).max() <= 0.2 + 1e-9


def test_a_row_goes_to_the_first_projection_that_cuts_it_off():
    partition = ProjectionPartition(-np.eye(2), np.array([-0.8, -0.5]))
    u = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    assert partition.assign(u).tolist() == [0, 1, 2]


def test_thresholds_cut_off_equal_numbers_and_their_rows_count_for_nothing(rng):
    u = rng.dirichlet(np.ones(3), 99)
    partition, kept = fit_projections(u, np.ones(99), -np.eye(3))
    assert np.bincount(partition.assign(u)).tolist() == [24, 24, 24, 27]
    assert np.count_nonzero(kept == 0) == 3


def test_one_row_is_left_out_of_those_that_tie_at_a_threshold():
    u = np.array([[0.9, 0.1]] * 3 + [[0.2, 0.8]] * 2)
    _, kept = fit_projections(u, np.ones(5), -np.eye(2)[:1])
    assert kept.sum() == pytest.approx(4)
    np.testing.assert_allclose(kept[:3], kept[0])
