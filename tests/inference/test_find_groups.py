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


def wrong_in(rows, rng):
    """Labels and scores of three classes that are only miscalibrated in some rows."""
    proba = rng.dirichlet(np.ones(3), len(rows))
    return np.where(rows, proba.argmin(axis=1), draw_labels(proba, rng=rng)), proba


@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_the_name_of_a_group_states_whether_missing_numbers_belong_to_it(rng, table, missing):
    age = table["age"].to_numpy(dtype=float, copy=True)
    wrong = age < 40
    age = np.where(wrong, missing, age)
    (group,) = find_groups(*wrong_in(wrong, rng), {"age": age})
    np.testing.assert_array_equal(group.mask({"age": age}), wrong)
    assert group.name == ("age is missing" if np.isnan(missing) else "age > 1.70141e+38")


def test_missing_numbers_may_join_an_interval(rng, table):
    age = table["age"].to_numpy(dtype=float, copy=True)
    wrong = (age < 40) | (age > 75)
    age = np.where(age > 75, np.nan, age)
    (group,) = find_groups(*wrong_in(wrong, rng), {"age": age})
    assert group.name == "(age <= 39.5 or missing)"
    np.testing.assert_array_equal(group.mask({"age": age}), wrong)


def test_a_row_is_in_a_group_independently_of_other_rows(rng, table):
    age = table["age"].to_numpy(dtype=float, copy=True)
    age[rng.uniform(size=len(age)) < 0.1] = np.nan
    (group, *_) = find_groups(*wrong_in(age < 40, rng), {"age": age})
    together = group.mask({"age": age})
    alone = [group.mask({"age": age[[row]]})[0] for row in range(100)]
    assert alone == together[:100].tolist()


def test_missing_categories_and_dates_have_readable_names(rng, table):
    region = table["region"].astype("string").mask(table["region"] == "south")
    dates = pd.to_datetime(np.where(table["age"] < 30, "2024-01-01", "2024-02-01"))
    frame = pd.DataFrame({"region": region, "date": dates})
    missing = (table["region"] == "south").to_numpy()
    assert find_groups(*wrong_in(missing, rng), frame)[0].name == "region = missing"
    early = (table["age"] < 30).to_numpy()
    assert find_groups(*wrong_in(early, rng), frame)[0].name == "date = 2024-01-01"


@pytest.mark.parametrize("level", [0, 1, 95])
def test_the_level_is_a_probability(level, rng, table):
    with pytest.raises(ValueError, match="level"):
        find_groups(*wrong_in(table["age"] < 30, rng), table, level=level)


def test_columns_of_different_lengths_are_rejected(rng, table):
    columns = {"age": table["age"], "region": table["region"][:-1]}
    with pytest.raises(ValueError, match="age has 3000 rows and region has 2999 rows"):
        find_groups(*wrong_in(table["age"] < 30, rng), columns)
