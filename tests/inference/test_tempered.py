from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference._tempered import tempered_rows


def test_moments_are_those_of_the_log_loss_minus_its_expected_value(rng):
    proba = rng.dirichlet(np.ones(3), 40)
    rows = tempered_rows(proba, "proba", None)
    moments = rows.moments(2.0)
    true = np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows.tempered(2.0), true)
    # The statistic of a row for each label, and its distribution over rows and labels.
    u = np.log(proba)
    statistic = (proba * u).sum(axis=1, keepdims=True) - u
    assert (proba * statistic).sum() == pytest.approx(0, abs=1e-12)
    assert moments.null_variance == pytest.approx((proba * statistic**2).sum() / 40)
    mean = (true * statistic).sum() / 40
    assert moments.shift == pytest.approx(mean)
    assert moments.variance == pytest.approx((true * (statistic - mean) ** 2).sum() / 40)


def test_power_is_half_at_the_critical_value_and_grows_with_rows(rng):
    moments = tempered_rows(rng.dirichlet(np.ones(3), 200), "proba", None).moments(1.3)
    critical = 1.959963984540054**2 * moments.null_variance / moments.shift**2
    assert moments.power(critical, 0.05) == pytest.approx(0.5)
    assert moments.power(4 * critical, 0.05) > 0.9


def test_only_some_rows_of_many_are_kept_but_all_are_counted(rng):
    proba = rng.dirichlet(np.ones(60), 20_000)
    rows = tempered_rows(proba, "proba", None)
    assert rows.u.size <= 500_000
    assert rows.n_rows == 20_000
