"""Write the tables of the page of printed numbers: ``python tools/write_glossary.py``.

The explanations come from the glossary of the report, so the page and the report agree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from calibrant import TemperatureScaling
from calibrant.datasets import noisy_simplex
from calibrant.report import Report, summarize
from calibrant.report._glossary import COLUMNS, GENERAL, MEASURES, TESTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "numbers.md"
MARKS = ("<!-- written by tools/write_glossary.py -->", "<!-- end of written -->")


def _example() -> Report:
    """Return a small report, which has the titles of measures and tests."""
    data = noisy_simplex(400, 3, noise=0.5, rng=0)
    return summarize(
        data.labels, data.proba, calibrator=TemperatureScaling(), method="temperature",
        n_resamples=20, random_state=0,
    )  # fmt: skip


_ECE, _INTERVAL = "metrics.expected_calibration_error", "inference.debiased_interval"
FUNCTIONS = {
    **dict.fromkeys(("confidence-l2", "class-wise-l2", "top-label-l2"), _INTERVAL),
    **dict.fromkeys(("conf_ece", "cw_ece", "tl_ece", "mce"), _ECE),
    "ks": "metrics.ks_error",
}
"""Functions of measures whose names differ in `calibrant.metrics`."""


def _measures(report: Report) -> str:
    functions = {row.name: f"metrics.{row.name}" for row in report.metrics} | FUNCTIONS
    lines = [
        f"| {row.title} | {MEASURES[row.name]} | `{functions[row.name]}` |"
        for row in report.metrics
    ]
    return "\n".join(["| name | meaning | function |", "|---|---|---|", *lines])


def _table(terms: dict[str, str]) -> str:
    lines = [f"| {term} | {text} |" for term, text in terms.items()]
    return "\n".join(["| name | meaning |", "|---|---|", *lines])


def tables() -> list[str]:
    """Return the tables of measures, tests, columns and other terms."""
    report = _example()
    return [
        _measures(report),
        _table({test.title: TESTS[test.name] for test in report.tests}),
        _table(COLUMNS),
        _table(GENERAL),
    ]


def page(text: str) -> str:
    """Return the page with updated tables."""
    generated = iter(tables())
    marked = f"{re.escape(MARKS[0])}.*?{re.escape(MARKS[1])}"
    return re.sub(
        marked, lambda _: f"{MARKS[0]}\n\n{next(generated)}\n\n{MARKS[1]}", text, flags=re.DOTALL
    )


def main() -> int:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
