"""All members together: families side by side, learned ones last."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._families import TemperatureFamily
from calibrant.monitoring._members import Members, Rows
from calibrant.monitoring._rule import make_rule
from monitored import RULE


def members(n_classes=4, **options):
    return Members(make_rule(**(RULE | options)), n_classes)


def test_claims_of_all_notions_stand_one_after_the_other():
    made = members(notions=("confidence", "class-wise", "top-label"))
    assert made.n_claims == 1 + 4 + 4
    assert [made.claim_slice(i) for i in range(3)] == [slice(0, 1), slice(1, 5), slice(5, 9)]


def test_with_a_tolerance_only_claims_are_bet_on():
    made = members(tolerance=0.02)
    assert made.families == made.claims
    assert made.experts == made.start() == ()
    assert made.layout.n_members == 12 * (1 + 4)


def test_without_one_temperatures_and_learned_members_join():
    made = members(tolerance=0.0)
    assert made.layout.n_members == 6 * (1 + 4) + 6 + 4
    assert len(made.layout.ends) == 4
    assert members(tolerance=0.0, lag=2).experts == ()


def test_a_block_has_the_factors_of_each_family_in_its_place(stream):
    made = members(tolerance=0.0)
    y, proba = stream(30)
    sums = made.of_block(Rows(proba, y), np.zeros(5), made.start())
    for index, family in enumerate(made.families):
        expected = family.factors(proba, y).reshape(30, -1)
        np.testing.assert_array_equal(sums.factors[:, made.layout.family(index)], expected)
    assert isinstance(made.families[-1], TemperatureFamily)
    residual = np.eye(4)[y] - proba
    np.testing.assert_allclose(sums.gaps.residual[1:], residual.sum(axis=0), atol=1e-12)


def test_learned_members_bet_with_what_they_have_learnt(stream):
    made = members(tolerance=0.0)
    (y, proba), states = stream(50, beta=0.5), made.start()
    first = made.of_block(Rows(proba, y), np.zeros(5), states)
    np.testing.assert_allclose(first.factors[:, -4:], 1.0, atol=1e-12)  # still the identity
    states = made.learn(states, first.learnt)
    second = made.of_block(Rows(proba, y), np.zeros(5), states)
    rows = np.arange(50)
    for state, factor in zip(states, second.factors[:, -4:].T, strict=True):
        said = state.proba(np.log(proba))[rows, y]
        np.testing.assert_allclose(factor, said / proba[rows, y], rtol=1e-9)
    assert (second.factors[:, -4:].prod(axis=0) > 1).all()


@pytest.mark.parametrize(
    ("n_classes", "options", "expected"),
    [(2, {}, 512), (2, {"tolerance": 0.0}, 256), (5000, {}, 16)],
)
def test_blocks_are_smaller_where_members_are_many_or_learn(n_classes, options, expected):
    assert members(n_classes, **options).block_rows == expected
