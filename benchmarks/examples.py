"""Compare the examples of the README with scikit-learn's temperature scaling.

    python benchmarks/examples.py [--readme]

Four classifiers are trained and calibrated on half of scikit-learn's digits and evaluated on the
other half. The table shows means over random splits. ``--readme`` writes it into README.md. Ends
with exit code 1 if an example is not first.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from default import OURS, RAW, Case, drawn, scores_of, train_on

README = Path(__file__).resolve().parent.parent / "README.md"
RIVAL = "temperature, ensemble"
_BETWEEN = re.compile(
    r"(<!-- written by benchmarks/examples.py -->\n).*?(\n<!-- end of examples -->)", re.DOTALL
)


def examples(seed: int) -> dict[str, Any]:
    return {
        "RandomForestClassifier()": RandomForestClassifier(random_state=seed),
        "HistGradientBoostingClassifier(max_iter=15)": HistGradientBoostingClassifier(
            max_iter=15, random_state=seed
        ),
        "GaussianNB()": GaussianNB(),
        "MLPClassifier()": MLPClassifier(random_state=seed),
    }


def measure(seeds: list[int]) -> dict[str, Any]:
    """Mean log-loss and mean confidence minus accuracy of every example, (3 methods, 2)."""
    scores: dict[str, list[list[tuple[float, float]]]] = {}
    for seed in seeds:
        X, y, n_train = drawn(Case("digits", "", seed), Path())
        for name, model in examples(seed).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an MLP with default parameters may not converge
                by_method = scores_of(train_on(model, X, y, n_train))
            three = [by_method[method] for method in (RAW, OURS, RIVAL)]
            scores.setdefault(name, []).append([(one.loss, one.gap) for one in three])
    return {name: np.mean(values, axis=0) for name, values in scores.items()}


def table(measured: dict[str, Any], seeds: list[int]) -> str:
    lines = [
        "| classifier | uncalibrated | `CalibratedClassifier` | scikit-learn's temperature |",
        "|---|---:|---:|---:|",
    ]
    for name, values in measured.items():
        cells = " | ".join(f"{loss:.3f} ({gap:+.3f})" for loss, gap in values)
        lines.append(f"| `{name}` | {cells} |")
    n_best = sum(values[:, 0].argmin() == 1 for values in measured.values())
    note = (
        f"`CalibratedClassifier` has the lowest test log-loss for {n_best} of {len(measured)} "
        f"classifiers (scikit-learn's digits, mean over {len(seeds)} random splits into halves, "
        "lower is better). Values in parentheses are mean confidence minus accuracy (0 is best)."
    )
    return "\n".join([*lines, "", note])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    measured = measure(options.seeds)
    text = table(measured, options.seeds)
    print(text)
    if options.readme:
        page = README.read_text(encoding="utf-8")
        README.write_text(_BETWEEN.sub(rf"\g<1>\n{text}\n\g<2>", page), encoding="utf-8")
    return 0 if all(values[:, 0].argmin() == 1 for values in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
