"""Calibrated streams raise false alarms at most as promised, and drift is found quickly."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring._alternatives import Members, Rows, make_rule
from calibrant.monitoring._evidence import run_factors
from monitored import RULE
from streams import draw, sharpened

N_STREAMS, N_ROWS = 200, 4_096
N_DELAYS, QUIET, LONGEST, SIZE = 40, 3_072, 6_144, 128
MOST = 0.05 + 3 * np.sqrt(0.05 * 0.95 / N_STREAMS)


def make_members(tolerance, horizon, n_classes=4):
    return Members(make_rule(**(RULE | {"tolerance": tolerance, "horizon": horizon})), n_classes)


def alarm_shares(members, rng, gap=0.0):
    """Share of streams with an alarm, by family and mode; with a gap, the first class is that
    much rarer than predicted.
    """
    parts = [members.layout.family(i) for i in range(len(members.layout.ends))]
    parts.append(slice(0, members.layout.n_members))
    size = members.block_rows
    states = [members.start_experts() for _ in range(N_STREAMS)]
    log_m = {(i, d): None for i in range(len(parts)) for d in (False, True)}
    alarms = {key: np.zeros(N_STREAMS, dtype=bool) for key in log_m}
    for _ in range(N_ROWS // size):
        factors = np.empty((size, N_STREAMS, members.layout.n_members))
        for s in range(N_STREAMS):
            proba = rng.dirichlet(np.full(members.n_classes, 0.4), size)
            truth = proba if not gap else shifted(proba, gap)
            sums = members.evaluate_block(
                Rows(proba, draw(truth, rng)), np.zeros(members.n_claims), states[s]
            )
            states[s] = members.learn(states[s], sums.expert_sums)
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
            alarms[key] |= (run.path >= limit).any(axis=0)
    return {key: share.mean() for key, share in alarms.items()}


def shifted(proba, gap):
    truth = proba.copy()
    moved = np.minimum(truth[:, 0], gap)
    truth[:, 0] -= moved
    truth[:, 1] += moved
    return truth


@pytest.mark.slow
def test_every_family_keeps_the_bound_alone_and_all_do_together(rng):
    shares = alarm_shares(make_members(0.0, N_ROWS), rng)
    assert len(shares) == 10  # confidence, class-wise, temperature, learned, all; two modes
    assert max(shares.values()) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.02])
def test_within_the_tolerance_every_family_keeps_the_bound(rng, gap):
    shares = alarm_shares(make_members(0.02, N_ROWS, n_classes=2), rng, gap)
    assert max(shares.values()) <= MOST


def test_rows_that_miss_one_by_rounding_are_no_evidence(rng):
    proba = rng.dirichlet(np.ones(3), 600)
    y = draw(proba, rng)
    rounded = (0.9995 * proba).astype(np.float32)  # within what float32 may be off
    nats = [
        CalibrationMonitor(tolerance=0.0, mode="test").update(y, p).nats for p in (proba, rounded)
    ]
    assert nats[1] == pytest.approx(nats[0], abs=1e-3)


def test_certain_forecasts_that_are_correct_are_no_evidence():
    monitor = CalibrationMonitor(tolerance=0.0, mode="test")
    assert -0.001 < monitor.update([0] * 300, [[1.0, 0.0, 0.0]] * 300).nats <= 1e-9


def test_experts_predict_before_they_see_the_label(rng):
    members = make_members(0.0, N_ROWS)
    proba = rng.dirichlet(np.ones(4), 64)
    factors = []
    for y in (np.zeros(64, dtype=int), np.full(64, 3)):
        states = members.start_experts()
        sums = members.evaluate_block(Rows(proba, y), np.zeros(members.n_claims), states)
        factors.append(sums.factors[:, members.layout.family(3)])
    # Before the first step the maps are the identity, whatever the labels of the block.
    np.testing.assert_allclose(factors, 1.0, atol=1e-9)


def test_the_mean_factor_of_a_learned_map_is_at_most_one(rng):
    members = make_members(0.0, N_ROWS)
    proba = rng.dirichlet(np.full(4, 0.2), 50)
    states = members.start_experts()
    for _ in range(3):
        rows = Rows(proba, rng.integers(0, 4, 50))
        states = members.learn(
            states, members.evaluate_block(rows, np.zeros(members.n_claims), states).expert_sums
        )
    mean = 0.0
    for k in range(4):
        rows = Rows(proba, np.full(50, k))
        factors = members.evaluate_block(rows, np.zeros(members.n_claims), states).factors
        mean = mean + proba[:, [k]] * factors[:, members.layout.family(3)]
    assert mean.max() <= 1 + 1e-9
    assert np.abs(states[0].theta - members.start_experts()[0].theta).max() > 0.01


def delays(beta, rng):
    """Median rows to the alarm of a plain e-process with equal weights of its alternatives, and of
    the detector with those of the monitor.
    """
    watch = make_members(0.0, QUIET + LONGEST)
    ends = watch.layout.ends[:3]
    sizes = np.diff(ends, prepend=0)
    even = np.concatenate([np.full(size, 1 / size / 3) for size in sizes])
    own = watch.layout.weight[: ends[-1]]
    readings = [(even, 0.0, np.log(20)), (own / own.sum(), 1.0, watch.rule.threshold)]
    log_m = [np.zeros((N_DELAYS, ends[-1])), np.full((N_DELAYS, ends[-1]), -np.inf)]
    found = np.full((2, N_DELAYS), np.inf)
    for start in range(-QUIET, LONGEST, SIZE):
        proba = rng.dirichlet(np.full(4, 0.4), SIZE * N_DELAYS)
        truth = proba if start < 0 else sharpened(proba, beta)
        rows = Rows(proba, draw(truth, rng))
        factors = watch.evaluate_block(rows, np.zeros(watch.n_claims), ()).factors[:, : ends[-1]]
        factors = factors.reshape(SIZE, N_DELAYS, -1)
        for i, (weight, entry, limit) in enumerate(readings):
            run = run_factors(log_m[i], factors, np.full((SIZE, N_DELAYS), entry), weight)
            log_m[i] = run.last
            above = (run.path >= limit) & (start >= 0)
            first = np.where(above.any(axis=0), start + 1 + above.argmax(axis=0), np.inf)
            found[i] = np.minimum(found[i], first)
    return np.median(found, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.25, 1.5, 0.8])
def test_temperatures_are_found_in_two_thirds_of_the_rows(rng, temperature):
    plain, detector = delays(1 / temperature, rng)
    assert detector <= 2 / 3 * plain
    assert np.isfinite(detector)
