"""Search for miscalibrated groups."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import draw_labels
from calibrant.inference import find_groups

pd = pytest.importorskip("pandas")


@pytest.fixture
def table(rng):
    return pd.DataFrame(
        {"region": rng.choice(["north", "south", "west"], 3000), "age": rng.integers(20, 80, 3000)}
    )


def test_a_group_of_two_conditions_is_found_and_can_be_selected(rng, table):
    proba = rng.dirichlet(np.ones(3), 3000)
    wrong = (table["region"] == "north") & (table["age"] <= 40)
    y = np.where(wrong, proba.argmin(axis=1), draw_labels(proba, rng=rng))
    found = find_groups(y, proba, table)
    assert found[0].name in ("region = north and age <= 40.5", "age <= 40.5 and region = north")
    assert found[0].gap_low > 0
    assert str(found[0]).startswith(found[0].name)
    np.testing.assert_array_equal(found[0].mask(table), wrong)
    assert found[0].to_dict()["n_samples"] == found[0].n_samples


def test_two_classes_are_searched_by_the_second_class(rng):
    score = rng.uniform(size=3000)
    x = rng.normal(size=(3000, 2))
    y = (rng.uniform(size=3000) < np.clip(score + 0.3 * (x[:, 1] > 0), 0, 1)).astype(int)
    found = find_groups(y, score, x)
    assert found[0].name.startswith("x1 >")
    assert found[0].gap_high < 0


def test_calibrated_models_have_no_group_in_most_cases(rng, table):
    n_found = 0
    for _ in range(60):
        proba = rng.dirichlet(np.ones(3), 600)
        n_found += bool(find_groups(draw_labels(proba, rng=rng), proba, table[:600]))
    assert n_found <= 7  # at level 5% more occur in 2% of the cases


def test_missing_values_and_few_rows(rng, table):
    proba = rng.dirichlet(np.ones(3), 3000)
    y = draw_labels(proba, rng=rng)
    holes = table.assign(age=table["age"].where(table["age"] < 60))
    assert isinstance(find_groups(y, proba, holes), tuple)
    assert find_groups(y[:60], proba[:60], table[:60]) == ()


def test_bad_tables_are_rejected(rng, table):
    proba = rng.dirichlet(np.ones(3), 3000)
    y = draw_labels(proba, rng=rng)
    with pytest.raises(ValueError, match="rows"):
        find_groups(y, proba, table[:-1])
    with pytest.raises(ValueError, match=r"X must have shape \(n, n_features\)"):
        find_groups(y, proba, np.zeros(3000))
    with pytest.raises(ValueError, match="X has no columns"):
        find_groups(y, proba, {})
