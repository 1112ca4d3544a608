"""Sums over rows: addition, and conversion to plain values and back."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from calibrant.metrics._sums import EvaluationSums, KeptScores, SumRule, state_of, sums_of


@pytest.fixture
def block(rng):
    proba = rng.dirichlet(np.ones(4), 300)
    return proba, rng.integers(4, size=300), rng.integers(1, 3, size=300).astype(float)


def sums(block, rows=slice(None), keep_top=None):
    rule = SumRule("proba", 10, keep_top)
    return EvaluationSums.of_block(*(part[rows] for part in block), rule)


def numbers(total):
    tables = [total.confidence, total.class_wise, total.top_label]
    own = [np.concatenate([t.weight, t.score, t.outcome]).ravel() for t in tables]
    return np.concatenate([*own, [total.log_loss, total.brier, total.tops.ks()]])


def test_sums_of_two_blocks_add_up_to_those_of_their_union(block):
    both = sums(block, slice(0, 100)) + sums(block, slice(100, None))
    np.testing.assert_allclose(numbers(both), numbers(sums(block)), rtol=1e-12)
    assert {entry.name for entry in fields(both)} >= {"confidence", "top", "tops"}


def test_logits_are_summed_as_their_probabilities(block):
    proba, y, weight = block
    of_logits = EvaluationSums.of_block(np.log(proba) + 7, y, weight, SumRule("logits", 10, None))
    np.testing.assert_allclose(numbers(of_logits), numbers(sums(block)), rtol=1e-9, atol=1e-12)


def test_plain_values_survive_json_to_the_last_bit(block):
    total = sums(block, slice(0, 100)) + sums(block, slice(100, None))
    again = sums_of(json.loads(json.dumps(state_of(total))), 10, None)
    np.testing.assert_array_equal(numbers(again), numbers(total))


def test_top_scores_beyond_their_limit_are_dropped_for_good(block):
    top = sums(block).tops
    limited = KeptScores(299) + top
    assert limited.parts == ()
    assert not limited.is_complete
    assert (limited + sums(block, slice(0, 1)).tops).ks() is None
    assert (KeptScores(300) + top).ks() == top.ks()


def test_nothing_is_kept_where_nothing_may_be(block):
    assert sums(block, keep_top=0).tops.parts == ()
