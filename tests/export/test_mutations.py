"""Mutated programs: each raises a ValueError when it is read, or runs.

``python tests/export/test_mutations.py 5000`` tries more of them than the tests do.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

if __name__ == "__main__":  # the tests find these modules by their configuration
    sys.path.insert(0, str(Path(__file__).parents[1]))

import calibrant
from calibrant import export
from exported import fitted

ODD = [
    *(
        None,
        True,
        False,
        "",
        "0",
        "nan",
        "x",
        [],
        {},
        [[]],
        [0],
        [None],
        ["a"],
        [[0.0], [1.0, 2.0]],
    ),
    *(0, 1, -1, 2, 3, 7, 10**6, 10**30, -(2**63), 0.0, -0.0, 0.5, -1.5, 1e308, -1e308, 5e-324),
    *("left", "right", "softmax", "\ud800", "a\0b", "x)\nprint(1)\n#", 'x"""', "</script>"),
]
"""What takes the place of a part of a program."""

MODELS = [
    (calibrant.TemperatureScaling(), "proba"),
    (calibrant.StructuredScaling(), "logits"),
    (calibrant.AutoCalibration(cv=3), "proba"),
    (calibrant.MulticlassToBinary(calibrant.IsotonicCalibration(), notion="top-label"), "proba"),
    (calibrant.MulticlassToBinary(calibrant.VennAbers(), notion="within-top-2"), "log_proba"),
    (calibrant.MulticlassToBinary(calibrant.BetaCalibration()), "logits"),
    (calibrant.GaussianProcessCalibration(n_samples=0), "proba"),
]

ROWS = {
    "proba": [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]],
    "logits": [[0.0, 1.5, -40.0], [-np.inf, 0.0, 3.0]],
    "log_proba": np.log([[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]]).tolist(),
}


def documents():
    """Programs of several calibrators as JSON text."""
    return [export.program(fitted(model, 3, inputs)[0]).to_json() for model, inputs in MODELS]


def places(document, path=()):
    """The paths of all parts of a document."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutated(text, rng):
    """The text of a program with one or two parts replaced, removed or repeated."""
    document = json.loads(text)
    for _ in range(rng.randint(1, 2)):
        *path, last = rng.choice(list(places(document)))
        parent = document
        for key in path:
            parent = parent[key]
        change(parent, last, rng)
    return json.dumps(document)


def change(parent, key, rng):
    kind = rng.randrange(6)
    if kind == 0 and len(parent) > 1:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(rng.randint(0, len(parent)), parent[key])
    elif kind == 2 and isinstance(parent, list):
        parent[key] = rng.choice(parent)
    elif kind == 3 and key == "op":
        parent[key] = rng.choice(sorted(export.OPS))
    elif kind > 3 and isinstance(parent[key], float):
        parent[key] *= rng.choice([0.0, -1.0, 0.5, 1.1, 1e-300, 1e300])
    else:
        parent[key] = rng.choice(ODD)


def rows_of(program):
    """A valid row, and for three classes those of `ROWS`."""
    if program.n_classes == 3:
        return np.array(ROWS[program.inputs])
    uniform = np.full((1, program.n_classes), 1.0 / program.n_classes)
    return uniform if program.inputs == "proba" else np.log(uniform)


def outcome(text):
    """Whether a program is rejected or runs; any other error is raised."""
    try:
        program = export.Program.from_json(text)
    except ValueError:
        return "rejected"
    rows = rows_of(program)
    with np.errstate(all="ignore"):  # changed numbers may overflow
        assert program(rows).shape == rows.shape
    exec(export.to_python(program), {})
    export.to_javascript(program)
    assert export.Program.from_json(program.to_json()).to_json() == program.to_json()
    return "runs"


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_program_is_rejected_or_runs(seed):
    rng, texts = random.Random(seed), documents()
    outcomes = Counter(outcome(mutated(rng.choice(texts), rng)) for _ in range(50))
    assert min(outcomes["rejected"], outcomes["runs"]) > 0


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    generator, programs = random.Random(0), documents()
    counts = Counter(outcome(mutated(generator.choice(programs), generator)) for _ in range(count))
    sys.stdout.write(f"{dict(counts)}\n")
