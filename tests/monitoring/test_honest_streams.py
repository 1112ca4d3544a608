"""Honest streams ring at most as promised: every family alone, and all of them together."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring._members import Members, Rows
from calibrant.monitoring._rule import make_rule
from calibrant.monitoring._wealth import run_factors
from streams import draw

N_STREAMS, N_ROWS = 200, 4_096
MOST = 0.05 + 3 * np.sqrt(0.05 * 0.95 / N_STREAMS)


def members_of(tolerance, n_classes=4):
    rule = make_rule(
        false_alarm=0.05,
        horizon=N_ROWS,
        tolerance=tolerance,
        notions=("confidence", "class-wise"),
        mode="detector",
        arl=None,
        lag=1,
        inputs="proba",
    )
    return Members(rule, n_classes)


def shares_alarmed(members, rng, gap=0.0):
    """Share of streams that ring, by family and reading; a gap makes the first of two classes as
    much rarer as is said of it.
    """
    parts = [members.layout.family(i) for i in range(len(members.layout.ends))]
    parts.append(slice(0, members.layout.n_members))
    size = members.block_rows
    states = [members.start() for _ in range(N_STREAMS)]
    log_m = {(i, d): None for i in range(len(parts)) for d in (False, True)}
    rung = {key: np.zeros(N_STREAMS, dtype=bool) for key in log_m}
    for _ in range(N_ROWS // size):
        factors = np.empty((size, N_STREAMS, members.layout.n_members))
        for s in range(N_STREAMS):
            proba = rng.dirichlet(np.full(members.n_classes, 0.4), size)
            truth = proba if not gap else shifted(proba, gap)
            sums = members.of_block(
                Rows(proba, draw(truth, rng)), np.zeros(members.n_claims), states[s]
            )
            states[s] = members.learn(states[s], sums.learnt)
            factors[:, s] = sums.factors
        for key in log_m:
            index, is_detector = key
            own = members.layout.weight[parts[index]]
            if log_m[key] is None:
                log_m[key] = np.full((N_STREAMS, len(own)), -np.inf if is_detector else 0.0)
            entry = np.full((size, N_STREAMS), float(is_detector))
            run = run_factors(log_m[key], factors[:, :, parts[index]], entry, own / own.sum())
            log_m[key] = run.last
            limit = np.log(N_ROWS / 0.05 if is_detector else 1 / 0.05)
            rung[key] |= (run.path >= limit).any(axis=0)
    return {key: one.mean() for key, one in rung.items()}


def shifted(proba, gap):
    truth = proba.copy()
    moved = np.minimum(truth[:, 0], gap)
    truth[:, 0] -= moved
    truth[:, 1] += moved
    return truth


@pytest.mark.slow
def test_b1_b2_every_family_keeps_the_promise_alone_and_all_do_together(rng):
    shares = shares_alarmed(members_of(0.0), rng)
    assert len(shares) == 10  # confidence, class-wise, temperature, learned, all; two readings
    assert max(shares.values()) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.02])
def test_b4_within_the_tolerance_every_family_keeps_the_promise(rng, gap):
    shares = shares_alarmed(members_of(0.02, n_classes=2), rng, gap)
    assert max(shares.values()) <= MOST


def test_rows_that_miss_one_by_rounding_are_no_evidence(rng):
    proba = rng.dirichlet(np.ones(3), 600)
    y = draw(proba, rng)
    said = (0.9995 * proba).astype(np.float32)  # within what float32 may be off
    nats = [CalibrationMonitor(tolerance=0.0, mode="test").update(y, p).nats for p in (proba, said)]
    assert nats[1] == pytest.approx(nats[0], abs=1e-3)


def test_certain_forecasts_that_come_true_win_nothing():
    monitor = CalibrationMonitor(tolerance=0.0, mode="test")
    assert -0.001 < monitor.update([0] * 300, [[1.0, 0.0, 0.0]] * 300).nats <= 1e-9


def test_what_is_learned_bets_before_it_sees_the_label(rng):
    members = members_of(0.0)
    proba = rng.dirichlet(np.ones(4), 64)
    said = []
    for y in (np.zeros(64, dtype=int), np.full(64, 3)):
        states = members.start()
        sums = members.of_block(Rows(proba, y), np.zeros(members.n_claims), states)
        said.append(sums.factors[:, members.layout.family(3)])
    # Before anything was learnt the maps are the identity, whatever the labels of the block.
    np.testing.assert_allclose(said, 1.0, atol=1e-9)


def test_the_mean_factor_of_a_learned_map_is_at_most_one(rng):
    members = members_of(0.0)
    proba = rng.dirichlet(np.full(4, 0.2), 50)
    states = members.start()
    for _ in range(3):
        rows = Rows(proba, rng.integers(0, 4, 50))
        states = members.learn(
            states, members.of_block(rows, np.zeros(members.n_claims), states).learnt
        )
    mean = 0.0
    for k in range(4):
        rows = Rows(proba, np.full(50, k))
        factors = members.of_block(rows, np.zeros(members.n_claims), states).factors
        mean = mean + proba[:, [k]] * factors[:, members.layout.family(3)]
    assert mean.max() <= 1 + 1e-9
    assert np.abs(states[0].theta - members.start()[0].theta).max() > 0.01
