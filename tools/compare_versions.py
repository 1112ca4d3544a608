"""Compare fits and metrics of two versions of the package.

    git worktree add ../before REVISION
    python tools/compare_versions.py ../before/src

Each version runs in its own process on the same simulated logits. The script prints the largest
absolute difference of every predicted probability and metric, and ends with exit code 1 if a
difference exceeds 1e-10. Names that one of the versions lacks are listed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-10
MULTICLASS = {
    "TemperatureScaling": {},
    "EnsembleTemperatureScaling": {},
    "BayesianTemperatureScaling": {},
    "VectorScaling": {},
    "MatrixScaling": {"lam": 1e-3},
    "DirichletCalibration": {"lam": 1e-3},
    "StructuredScaling": {},
}
BINARY = {
    "PlattScaling": {},
    "BetaCalibration": {},
    "IsotonicCalibration": {},
    "HistogramBinning": {},
    "SplineCalibration": {},
    "BBQ": {},
    "VennAbers": {},
}
NOTIONS = ("class-wise", "top-label", "confidence")


def simulate(rng: np.random.Generator, n_rows: int) -> tuple[Any, Any]:
    """Return overconfident logits of five classes, and labels."""
    logits = 2.0 * rng.normal(size=(n_rows, 5))
    proba = np.exp(0.5 * logits)
    uniform = rng.random((n_rows, 1)) * proba.sum(axis=1, keepdims=True)
    return logits, (uniform > proba.cumsum(axis=1)).sum(axis=1)


def results(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the numbers of every fit and metric that the version has."""
    rng = np.random.default_rng(0)
    (logits, y), (new, y_new) = simulate(rng, 2000), simulate(rng, 1000)
    for name, parameters in MULTICLASS.items():
        if hasattr(module, name):
            calibrator = getattr(module, name)(inputs="logits", **parameters)
            yield name, calibrator.fit(logits, y).predict_proba(new)
    for name, parameters in BINARY.items():
        for notion in NOTIONS if hasattr(module, name) else ():
            calibrator = module.MulticlassToBinary(
                getattr(module, name)(**parameters), notion=notion, inputs="logits"
            )
            yield f"{name}, {notion}", calibrator.fit(logits, y).predict_proba(new)
    proba = np.exp(new)
    proba /= proba.sum(axis=1, keepdims=True)
    evaluation = module.evaluate(y_new, proba).to_dict()
    for name, value in evaluation.items():
        if isinstance(value, float):
            yield name, np.array(value)


def record(path: str) -> None:
    """Write the results of the version that is first on the path."""
    import calibrant

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.savez(path, **dict(results(calibrant)))


def run(source: Path, path: Path) -> Any:
    """Return the results of the version in ``source``."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, "--record", str(path)], env=environment, check=True)
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def main() -> int:
    if sys.argv[1:2] == ["--record"]:
        record(sys.argv[2])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = run(Path(sys.argv[1]), Path(folder, "before.npz"))
        now = run(ROOT / "src", Path(folder, "now.npz"))
    shared = [name for name in before if name in now]
    differences = {name: float(abs(before[name] - now[name]).max()) for name in shared}
    for name, difference in differences.items():
        print(f"{difference:8.1e}  {name}")
    print(f"only in one version: {', '.join(sorted(set(before) ^ set(now))) or 'none'}")
    return int(max(differences.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
