"""Score drift: quiet on rows like the reference, loud on others."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import ScoreDrift


def test_a_class_that_became_frequent_is_found_and_named(rng):
    drift = ScoreDrift(rng.dirichlet([1, 1, 2], 5000), horizon=10_000)
    assert not drift.update(rng.dirichlet([1, 1, 2], 1000)).alarm
    step = drift.update(rng.dirichlet([1, 3, 2], 1000))
    assert step.alarm
    assert step.worst_class == 1
    assert step.to_dict()["evidence"] > 1
    assert drift.mean[1] > drift.reference_mean[1]


def test_other_classes_and_one_row_are_refused(rng):
    with pytest.raises(ValueError, match="classes of the reference"):
        ScoreDrift(rng.dirichlet(np.ones(3), 10)).update(rng.dirichlet(np.ones(4), 10))
    with pytest.raises(ValueError, match="reference rows"):
        ScoreDrift([[0.5, 0.5]])
    with pytest.raises(ValueError, match="false_alarm"):
        ScoreDrift([[0.5, 0.5]] * 3, false_alarm=2)


@pytest.mark.slow
def test_b10_the_level_holds_with_five_hundred_reference_rows(rng):
    def alarms():
        drift = ScoreDrift(rng.dirichlet(np.full(10, 0.2), 500), horizon=5000)
        return drift.update(rng.dirichlet(np.full(10, 0.2), 5000)).alarm

    assert np.mean([alarms() for _ in range(60)]) <= 0.05
