"""Random programs on random rows: all targets agree."""

from __future__ import annotations

import importlib.util
import shutil

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant._kernels.simplex import finite_logits, softmax
from exported import fitted, run_javascript, run_onnx, run_python, run_sql, run_torch, steps

N_ROWS = 40


def squeezed(build, value):
    """Any value as numbers between 0.01 and 0.99."""
    odds = build.append("expit", (build.append("divide", (value,), {"by": 3.0}),))
    return build.append("clip", (odds,), {"low": 0.01, "high": 0.99})


def through_logarithms(build, value, rng):
    width = build.widths[value]
    logs = build.append("log", (value,))
    kind = rng.integers(3)
    if kind == 0:
        maps = {"coef": rng.normal(size=(width, width)), "offset": rng.normal(size=width)}
        logs = build.append("affine", (logs,), maps)
    elif kind == 1:
        logs = build.append("center", (logs,))
    shares = build.append("log_softmax", (logs,))
    uniform = build.append("constant", (value,), {"values": np.full(width, -np.log(width))})
    return build.append(
        "mix", (shares, uniform), {"weights": np.array([0.8, 0.2]), "constant": 0.0}
    )


def through_curves(build, value, rng):
    points = np.sort(rng.random(6))
    kind = rng.integers(3)
    if kind == 0:
        side = ("left", "right")[rng.integers(2)]
        steps = {"edges": points, "values": rng.random(7), "side": side}
        return build.append("step", (value,), steps)
    if kind == 1:
        return build.append("interpolate", (value,), {"x": points, "y": rng.random(6)})
    bumps = {"centers": points, "heights": rng.normal(size=6), "width": 0.3}
    return build.append("bumps", (value,), bumps)


def through_odds(build, value, rng):
    odds = build.append("log_odds", (value,))
    line = {"factor": rng.normal(size=1), "offset": rng.normal(size=build.widths[value])}
    return build.append("log_expit", (build.append("scale", (odds,), line),))


def through_ranks(build, value, rng):
    count = int(rng.integers(1, build.widths[value]))
    label = build.append("top", (value,), {"count": count})
    highest = build.append("take", (value, label))
    total = build.append("sum", (highest,))
    shares = build.append("quotient", (highest, total))
    put = build.append("put", (value, label, shares if rng.integers(2) else total))
    return build.append("normalize", (put,), {"empty": 0.5})


def through_columns(build, value, rng):
    order = rng.permutation(build.widths[value])
    turned = build.append("columns", (value,), {"columns": order})
    parts = [build.append("columns", (turned,), {"columns": [k]}) for k in range(len(order))]
    first = build.append("multiply", (turned, parts[0]))
    return build.append("add", (build.append("stack", parts), first))


def through_missing(build, value, rng):
    limits = {"low": 0.3, "high": 0.6, "slack": 0.1}
    admitted = build.append("admit", (value,), limits)
    total = build.append("log_sum_exp", (value,))
    return build.append("coalesce", (admitted, value if rng.integers(2) else total))


KINDS = (
    *(through_logarithms, through_curves, through_odds),
    *(through_ranks, through_columns, through_missing),
)


def random_program(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 6))
    build = export.Builder(n_classes)
    finite = build.append("finite", (0,), {"eps": 1e-3})
    pool = [squeezed(build, finite)]
    for kind in rng.choice(len(KINDS), size=6):
        source = pool[rng.integers(len(pool))]
        pool.append(squeezed(build, KINDS[kind](build, source, rng)))
    weights = rng.dirichlet(np.ones(len(pool)))
    mixed = build.append("mix", pool, {"weights": weights, "constant": 0.1})
    build.append("softmax", (mixed,))
    program = build.program("logits", tuple(f"class {k}" for k in range(n_classes)), "random")
    rows = rng.normal(scale=3.0, size=(N_ROWS, n_classes))
    rows[0, 0] = rows[1, 1] = -np.inf
    rows[1, 0] = -30.0
    return program, rows


def available():
    """Targets that can be run here."""
    targets = {
        "python": lambda program, rows, folder: run_python(program, rows),
        "sqlite": lambda program, rows, folder: run_sql(program, rows, "sqlite"),
    }
    if shutil.which("node"):
        targets["javascript"] = run_javascript
    if importlib.util.find_spec("duckdb"):
        targets["duckdb"] = lambda program, rows, folder: run_sql(program, rows, "duckdb")
    if importlib.util.find_spec("onnxruntime"):
        targets["onnx"] = run_onnx
    if importlib.util.find_spec("torch"):
        targets["torch"] = lambda program, rows, folder: run_torch(program, rows)
    return targets


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_agree_on_all_targets(seed, tmp_path):
    program, rows = random_program(seed)
    expected = program(rows)
    for name, run in available().items():
        proba, labels = run(program, rows, tmp_path)
        assert np.abs(proba - expected).max() <= 1e-13, name
        assert labels == [program.classes[k] for k in expected.argmax(axis=1)], name


def test_random_programs_use_every_operation():
    used = {node.op for seed in range(20) for node in random_program(seed)[0].nodes}
    assert used == set(export.OPS)


def impossible(n_classes, eps):
    """A program of the floor of -inf, which shows in what it gives, and rows that need it."""
    build = export.Builder(n_classes)
    finite = build.append("finite", (0,), {"eps": eps})
    build.append("softmax", (build.append("divide", (finite,), {"by": 10.0}),))
    rows = np.random.default_rng(n_classes).normal(scale=4.0, size=(6, n_classes)) + 300.0
    rows[0, 1:] = rows[1, 0] = rows[2, :-1] = -np.inf
    rows[1, 1], rows[3, 0], rows[3, 1] = rows[1].max() - 90.0, -np.inf, -800.0
    return build.program("logits", tuple(range(n_classes)), "floor"), rows


@pytest.mark.parametrize("eps", [1e-12, 1e-3])
@pytest.mark.parametrize("n_classes", [3, 60])
def test_impossible_classes_have_the_floor_of_the_library_everywhere(n_classes, eps, tmp_path):
    program, rows = impossible(n_classes, eps)
    expected = program(rows)
    assert np.array_equal(expected, softmax(finite_logits(rows, eps) / 10.0))
    for name, run in available().items():
        assert np.abs(run(program, rows, tmp_path)[0] - expected).max() <= 1e-13, name


def test_the_floor_is_between_zero_and_one():
    with pytest.raises(ValueError, match="eps must lie between 0 and 1, got 0"):
        export.Builder(2).append("finite", (0,), {"eps": 0.0})


@pytest.mark.parametrize(
    ("n_edges", "side"),
    [(150, "left"), (150, "right"), pytest.param(4500, "left", marks=pytest.mark.slow)],
)
def test_steps_are_bit_equal_at_every_edge_and_beside_it_on_all_targets(n_edges, side, tmp_path):
    program, rows = steps(n_edges, side)
    expected = program(rows)
    for name, run in available().items():
        assert np.array_equal(run(program, rows, tmp_path)[0], expected), name


@pytest.mark.parametrize("inputs", ["proba", "log_proba"])
@pytest.mark.parametrize("notion", ["cumulative", "at-most-2"])
def test_running_sums_are_the_same_on_all_targets(notion, inputs, tmp_path):
    lifted = calibrant.MulticlassToBinary(calibrant.IsotonicCalibration(), notion=notion)
    model, scores = fitted(lifted, 5, inputs, n_samples=100)
    expected = model.predict_proba(scores)
    for name, run in available().items():
        proba, _ = run(export.program(model), scores, tmp_path)
        assert np.abs(proba - expected).max() <= 1e-13, name
