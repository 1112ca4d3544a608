"""After a quiet time the detector rings long before a plain e-process, at an equal budget."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._members import Members, Rows
from calibrant.monitoring._rule import make_rule
from calibrant.monitoring._wealth import run_factors
from streams import draw, sharpened

N_STREAMS, QUIET, LONGEST, SIZE = 40, 3_072, 6_144, 128


def members():
    rule = make_rule(
        false_alarm=0.05,
        horizon=QUIET + LONGEST,
        tolerance=0.0,
        notions=("confidence", "class-wise"),
        mode="detector",
        arl=None,
        lag=1,
        inputs="proba",
    )
    return Members(rule, 4)


def delays(beta, rng):
    """Median rows to the alarm of a plain e-process, whose fixed members weigh alike, and of the
    detector as the monitor weighs them.
    """
    watch = members()
    ends = watch.layout.ends[:3]
    sizes = np.diff(ends, prepend=0)
    alike = np.concatenate([np.full(size, 1 / size / 3) for size in sizes])
    own = watch.layout.weight[: ends[-1]]
    readings = [(alike, 0.0, np.log(20)), (own / own.sum(), 1.0, watch.rule.threshold)]
    log_m = [np.zeros((N_STREAMS, ends[-1])), np.full((N_STREAMS, ends[-1]), -np.inf)]
    found = np.full((2, N_STREAMS), np.inf)
    for start in range(-QUIET, LONGEST, SIZE):
        proba = rng.dirichlet(np.full(4, 0.4), SIZE * N_STREAMS)
        truth = proba if start < 0 else sharpened(proba, beta)
        rows = Rows(proba, draw(truth, rng))
        factors = watch.of_block(rows, np.zeros(watch.n_claims), ()).factors[:, : ends[-1]]
        factors = factors.reshape(SIZE, N_STREAMS, -1)
        for i, (weight, entry, limit) in enumerate(readings):
            run = run_factors(log_m[i], factors, np.full((SIZE, N_STREAMS), entry), weight)
            log_m[i] = run.last
            above = (run.path >= limit) & (start >= 0)
            first = np.where(above.any(axis=0), start + 1 + above.argmax(axis=0), np.inf)
            found[i] = np.minimum(found[i], first)
    return np.median(found, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.25, 1.5, 0.8])
def test_b3_temperatures_are_found_in_two_thirds_of_the_rows(rng, temperature):
    plain, detector = delays(1 / temperature, rng)
    assert detector <= 2 / 3 * plain
    assert np.isfinite(detector)
