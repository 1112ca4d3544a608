"""The examples of README, beside scikit-learn's temperature: ``python benchmarks/examples.py``.

Four classifiers on scikit-learn's digits, half of the rows to train and calibrate on and half to
judge, mean test log-loss over splits. With ``--readme`` the table is written into README.md.
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

from default import OURS, RAW, Case, drawn, losses, train_on

README = Path(__file__).resolve().parent.parent / "README.md"
RIVAL = "temperature, ensemble"
CLOSE = 0.003
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
    """Losses (seeds, methods) of every example: as it is, by default, by temperature."""
    out: dict[str, list[list[float]]] = {}
    for seed in seeds:
        X, y, n_train = drawn(Case("digits", "", seed), Path())
        for name, model in examples(seed).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an MLP that did not converge is one of users'
                made = losses(train_on(model, X, y, n_train))
            out.setdefault(name, []).append([made[key] for key in (RAW, OURS, RIVAL)])
    return {name: np.mean(rows, axis=0) for name, rows in out.items()}


def table(measured: dict[str, Any], seeds: list[int]) -> str:
    lines = [
        "| log-loss on digits | as it is | `CalibratedClassifier` | scikit-learn's temperature |",
        "|---|---:|---:|---:|",
        *(
            f"| `{name}` | {raw:.3f} | {ours:.3f} | {rival:.3f} |"
            for name, (raw, ours, rival) in measured.items()
        ),
        "",
        f"(Mean over {len(seeds)} split(s) into halves.)",
    ]
    return "\n".join(lines)


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
    return 1 if any(ours > rival + CLOSE for _, ours, rival in measured.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
