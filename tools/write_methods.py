"""Write the generated parts of the page of calibrators: ``python tools/write_methods.py``.

The table of methods comes from the registry. The figures of the evidence come from the records of
the benchmarks, so both pages agree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from calibrant.selection.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "records"
PAGE = ROOT / "docs" / "guide" / "choose-calibrator.md"
MARKS = ("<!-- written by tools/write_methods.py -->", "<!-- end of written -->")
_MEASURED = ("temperature", "structured-vector", "structured-matrix", "auto")


def methods() -> str:
    """Return one row per method with its name, its calibrator and its description."""
    lines = ["| name | calibrator | description |", "|---|---|---|"]
    for name, method in METHODS.items():
        lines.append(f"| `{name}` | `{type(method.make()).__name__}` | {method.help} |")
    return "\n".join(lines)


def evidence() -> str:
    """Return mean gains by the number of rows, and the default compared with scikit-learn."""
    gains, family = _table("do-no-harm.md"), _table("default.md")
    lines = [
        f"| rows | {' | '.join(f'`{name}`' for name in _MEASURED)} | `auto` worse by > 0.005 |",
        f"|---|{'---:|' * (len(_MEASURED) + 1)}",
    ]
    for row in gains:
        values = [row[name] for name in _MEASURED]
        lines.append(f"| {row['rows']} | {' | '.join(values)} | {row['auto worse by > 0.005']} |")
    overall = {name: value.strip("*") for name, value in family[-1].items()}
    best = {name: _better(overall, name) for name in ("temperature", "sigmoid", "isotonic")}
    values = [f"{value} ({name})" for name, value in best.items()]
    others = f"{', '.join(values[:-1])} and {values[-1]}"
    lines += [
        "",
        "The table shows the mean reduction of the test log-loss in nats over 24 data sets of real "
        "predictions (higher is better). The last column is the share of fits in which `auto` "
        "increased log-loss by more than 0.005. See [Risk of automatic "
        "calibration](../evidence/do-no-harm.md) for details.",
        "",
        f"In {overall['cases']} cases with scikit-learn classifiers, the mean test log-loss is "
        f"{overall['uncalibrated']} without calibration and {overall['default']} with "
        "`CalibratedClassifier(model)`. With the better value of `ensemble`, scikit-learn's "
        f"`CalibratedClassifierCV` reaches {others}. See [Comparison with "
        "scikit-learn](../evidence/default.md) for details.",
    ]
    return "\n".join(lines)


def _table(name: str) -> list[dict[str, str]]:
    """Return the first table of a page as dictionaries."""
    text = (RECORDS / name).read_text(encoding="utf-8")
    head, _, *rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    return [dict(zip(_cells(head), _cells(row), strict=True)) for row in rows]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _better(overall: dict[str, str], name: str) -> str:
    return min(value for key, value in overall.items() if key.startswith(name))


def page(text: str) -> str:
    """Return the page with updated parts."""
    blocks = iter((evidence(), methods()))
    marked = f"{re.escape(MARKS[0])}.*?{re.escape(MARKS[1])}"
    return re.sub(
        marked, lambda _: f"{MARKS[0]}\n\n{next(blocks)}\n\n{MARKS[1]}", text, flags=re.DOTALL
    )


def main() -> int:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
