"""Write the section "Benchmarks and evidence" of the manual: ``python tools/write_evidence.py``.

Every number in the prose, every figure and every CSV file comes from tables in
`benchmarks/records`, which the benchmark scripts write. `tools/evidence_texts` has the prose with
fields such as ``<default>``. Run this script after a benchmark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from evidence_tables import DATA, EVIDENCE, csv_files, number, table

TEXTS = Path(__file__).with_name("evidence_texts")
SCIKIT_LEARN = ("sigmoid", "isotonic", "temperature")
MINUS = "mean log-loss minus the default's"


class Page:
    """A page of the section with its records and a function for the fields of its text."""

    def __init__(self, name: str, records: list[str], about: str) -> None:
        self.name, self.records, self.about = name, records, about
        self.template = (TEXTS / f"{name}.md").read_text(encoding="utf-8")
        self.title = self.template.splitlines()[0].lstrip("# ")

    def __call__(self, values: Callable[[], dict[str, str]]) -> Page:
        self.values = values
        PAGES[self.name] = self
        return self

    def text(self) -> str:
        """Return the page as Markdown."""
        return f"{_fill(self.template, self.values())}\n{self._downloads()}"

    def _downloads(self) -> str:
        files = [name for record in self.records for name in csv_files(record)]
        links = ", ".join(f"[{name}](data/{name})" for name in files)
        pages = " and ".join(f"`benchmarks/records/{record}.md`" for record in self.records)
        return (
            f"## Data\n\nDownload all tables as CSV files: {links}. See {pages} for the full "
            f"results.\n"
        )


PAGES: dict[str, Page] = {}


def _fill(template: str, fields: dict[str, str]) -> str:
    """Replace ``<name>`` by its value. Angle brackets leave braces free for formulas."""
    return re.sub(r"<(\w+)>", lambda match: fields[match[1]], template)


def _size(text: str) -> str:
    """Return a size such as 25kx1000 in words."""
    rows, classes = text.replace("k", "000").replace("M", "000000").split("x")
    return f"{int(rows):,} rows and {int(classes):,} classes"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


@Page(
    "default",
    ["default"],
    "`CalibratedClassifier` and scikit-learn's `CalibratedClassifierCV` on 24 data sets",
)
def default():
    rows = {row["family"]: row for row in table("default", "Mean test log-loss")}
    differences = {row["method"]: row for row in table("default", "Difference to the default")}
    names = [name for name in rows["all"] if name.startswith(SCIKIT_LEARN)]
    best = min(names, key=lambda name: number(rows["all"][name]))
    gaps = {row["family"]: row for row in table("default", "Mean absolute value")}
    ranks = {row["family"]: row for row in table("default", "Mean rank")}
    return {
        "cases": rows["all"]["cases"],
        "default": rows["all"]["default"],
        "uncalibrated": rows["all"]["uncalibrated"],
        "best": best,
        "best_loss": rows["all"][best],
        "difference": f"{number(differences[best][MINUS]):.3f}",
        "error": f"{number(differences[best]['standard error']):.3f}",
        "won": differences[best]["data sets won"],
        "gap": gaps["all"]["default"],
        "gap_before": gaps["all"]["uncalibrated"],
        "mlp": rows["mlp"]["default"],
        "mlp_one": rows["mlp"]["one fit"],
        "mlp_rank": f"{number(ranks['mlp']['default']):.2f}",
        "mlp_one_rank": f"{number(ranks['mlp']['one fit']):.2f}",
        "tree_gap": gaps["tree"]["default"],
    }


@Page(
    "do-no-harm",
    ["do-no-harm"],
    "how often `AutoCalibration` increases log-loss on real predictions",
)
def do_no_harm():
    rows = {row["rows"]: row for row in table("do-no-harm", "All files")}
    calibrated = {row["rows"]: row for row in table("do-no-harm", "Scores that are already")}
    return {
        **{
            f"auto_{key.replace(',', '')}": f"{number(row['auto']):.3f}"
            for key, row in rows.items()
        },
        **{
            f"worse_{key.replace(',', '')}": row["auto worse by > 0.005"]
            for key, row in rows.items()
        },
        "temperature_50": f"{number(rows['50']['temperature']):.3f}",
        "temperature_1000": f"{number(rows['1,000']['temperature']):.3f}",
        "worst": f"{-number(rows['50']['worst fit of auto']):.3f}",
        "calibrated_30": calibrated["30"]["auto worse by > 0.005"],
        "calibrated_120": calibrated["120"]["auto worse by > 0.005"],
        "loss_30": f"{-number(calibrated['30']['auto']):.4f}",
        "temperature_30": f"{-number(calibrated['30']['temperature']):.3f}",
        "files": rows["50"]["files"],
    }


@Page(
    "confidence",
    ["top-probability"],
    "the error of the highest predicted probability after `AutoCalibration`",
)
def confidence():
    rows = table("top-probability", "Averaged over draws")
    mean = {
        name: f"{sum(number(row[name]) for row in rows) / len(rows):.3f}"
        for name in ("auto", "its stack alone", "temperature", "confidence spline")
    }
    within = sum(number(row["ours / best"]) <= 1.2 for row in rows)
    return {
        "files": str(len(rows)),
        "auto": mean["auto"],
        "stack": mean["its stack alone"],
        "temperature": mean["temperature"],
        "spline": mean["confidence spline"],
        "within": str(within),
    }


@Page(
    "coverage",
    ["coverage"],
    "how often 95% intervals contain the true value",
)
def coverage():
    rows = table("coverage", "The family")
    sizes = ("n = 10", "n = 30", "n = 100", "n = 1,000")
    cells = [(row["interval"], row[size]) for row in rows for size in sizes]
    run = [(name, number(cell)) for name, cell in cells if cell[0].isdigit()]
    second = [row[size] for row in table("coverage", "A family") for size in sizes]
    return {
        "cells": str(len(cells)),
        "rejected": str(len(cells) - len(run)),
        "second": f"{min(number(cell) for cell in second if cell):.3f}",
        "least": f"{min(value for _, value in run):.3f}",
        "others": f"{min(value for name, value in run if not name.startswith('label')):.3f}",
    }


@Page(
    "error-rates",
    ["statements"],
    "stated and simulated error rates of tests, intervals, bands and alarms",
)
def error_rates():
    rows = [row for row in table("statements") if row["stated"].startswith("at most")]
    bound = [row for row in rows if row["stated"] == "at most 0.05"]
    worst = max(bound, key=lambda row: number(row["observed"]))
    return {
        "rows": str(len(rows)),
        "held": str(sum(row["holds"] == "yes" for row in rows)),
        "bound": str(len(bound)),
        "worst": f"{number(worst['observed']):.3f}",
        "error": worst["standard error"],
        "statement": worst["statement"],
    }


def _exceptions(cases):
    if not cases:
        return ""
    verb = "exception is" if len(cases) == 1 else "exceptions are"
    return f"The {verb} {' and '.join(filter(None, [', '.join(cases[:-1]), cases[-1]]))}."


@Page(
    "performance",
    ["performance", "growth"],
    "CPU time compared with other packages, and growth with rows and classes",
)
def performance():
    rows = [row for row in table("performance", "All cases") if row["ratio"]]
    single = [row for row in rows if row["case"] != "AutoCalibration"]
    stacks = sorted(number(row["ratio"]) for row in rows if row["case"] == "AutoCalibration")
    ratios = sorted(number(row["ratio"]) for row in single)
    slower = [
        f"{row['case']} for {_size(row['rows x classes'])}"
        for row in single
        if number(row["ratio"]) < 1
    ]
    by_case = {row["case"]: row for row in table("performance", "Targets")}
    times = {(row["rows x classes"], row["case"]): row for row in table("performance", "All cases")}
    growth = [
        row
        for name in ("Sums", "Fits", "Functions", "Methods", "Growth")
        for row in table("growth", name)
    ]
    return {
        "cases": str(len(ratios)),
        "faster": str(len(ratios) - len(slower)),
        "exceptions": _exceptions(slower),
        "stack_least": f"{1 / stacks[-1]:.0f}",
        "stack_most": f"{1 / stacks[0]:.0f}",
        "median": f"{ratios[len(ratios) // 2]:.1f}",
        "most": f"{ratios[-1]:.0f}",
        "temperature": f"{number(by_case['temperature, 1Mx10']['measured']):.0f}",
        "fast": f"{number(by_case['temperature, 1Mx10']['measured (2)']):.0f}",
        "million": f"{number(times['1Mx10', 'evaluate']['ms']) / 1000:.2f}",
        "exponent": f"{max(number(row['exponent']) for row in growth):.2f}",
        "growth": str(len(growth)),
    }


@Page(
    "ranking",
    ["ranking"],
    "mean ranks of Calibrant and of four other packages on 25 data sets",
)
def ranking():
    rows = table("ranking", "Where the automatic choice")
    first = [row for row in rows if ", 1 of" in row["automatic choice, place"]]
    fifty = {row["method"]: row for row in table("ranking", "50 rows to calibrate on")}
    thousand = {row["method"]: row for row in table("ranking", "1,000 rows to calibrate on")}
    return {
        "groups": str(len(rows)),
        "first": str(len(first)),
        "rank_1000": f"{number(thousand['auto']['rank, log-loss']):.1f}",
        "second": list(thousand)[1],
        "second_rank": f"{number(thousand[list(thousand)[1]]['rank, log-loss']):.1f}",
        "harm_50": fifty["auto"]["harmed"],
        "isotonic_50": fifty["sklearn isotonic"]["harmed"],
        "temperature_50": fifty["temperature"]["harmed"],
        "methods": str(len(fifty)),
    }


@Page(
    "reproduction",
    ["reproduction"],
    "numbers and figures of four papers, compared with the results of Calibrant",
)
def reproduction():
    *_, total = table("reproduction")
    return {
        "figures": f"{number(total['figures']):,.0f}",
        "within": f"{number(total['within']):,.0f}",
        "share": _percent(number(total["within"]) / number(total["figures"])),
        "explained": total["outside, explained"],
        "unexplained": total["outside, unexplained"],
    }


@Page(
    "monitoring",
    ["monitoring"],
    "false alarms, detection delays and speed of `CalibrationMonitor`",
)
def monitoring():
    alarms = table("monitoring", "calibrated")
    detector = [number(row["all four"]) for row in alarms if row["reading"] == "detector"]
    delays = table("monitoring", "delays")
    temperature = [number(row["ratio"]) for row in delays if row["drift"].startswith("temp")]
    tolerance = {row["true gap"]: row for row in table("monitoring", "tolerance")}
    speed = {(row["classes"], row["tolerance"]): row for row in table("monitoring", "speed")}
    peers = {row["drift"]: row for row in table("monitoring", "peers")}
    performance = table("monitoring", "performance")
    return {
        "alarms": f"{max(detector):.0f}",
        "low": _percent(min(temperature)),
        "high": _percent(max(temperature)),
        "quiet": f"{100 * number(tolerance['0.02']['share alarmed in 20,000 rows']):.1f}%",
        "found": tolerance["0.04"]["median rows"],
        "speed": f"{number(speed['10', '0.02']['rows/s']):,.0f}",
        "state": f"{number(speed['1,000', '0.02']['state, bytes']) / 1e6:.2f}",
        "delay": peers["temperature 1.5"]["calibrant, e-detector"],
        "rolling": peers["temperature 1.5"]["rolling ECE"],
        "mapie": peers["temperature 1.5"]["MAPIE, accuracy"],
        "estimate": performance[1]["estimate"],
        "reference": performance[1]["reference accuracy"],
    }


@Page(
    "large-data",
    ["cluster"],
    "agreement with results in memory, memory per process, and loss of a worker, with dask",
)
def large_data():
    equality = table("cluster", "cluster equality")
    exact = [row for row in equality if row["at most"] == "1e-08"]
    cells = [row for row in equality if row["at most"] != "1e-08"]
    memory = table("cluster", "cluster memory")
    scaling = table("cluster", "cluster scaling")
    workers = [max(number(row["worker 1"]), number(row["worker 2"])) for row in memory]
    return {
        "exact": str(len(exact)),
        "difference": f"{max(number(row['difference']) for row in exact):.0e}",
        "cells": f"{max(number(row['difference']) for row in cells):.0e}",
        "memory": f"{max(workers):.0f}",
        "client": f"{max(number(row['client']) for row in memory):.0f}",
        "matrix": scaling[-1]["speed-up"],
    }


def index() -> str:
    """Return the first page of the section."""
    fields = {name: PAGES[name].values() for name in PAGES}
    lines = [f"| [{page.title}]({name}.md) | {page.about} |" for name, page in PAGES.items()]
    return _fill(
        (TEXTS / "index.md").read_text(encoding="utf-8"),
        {
            "table": "\n".join(lines),
            "entries": "\n".join(PAGES),
            "default": fields["default"]["default"],
            "best": fields["default"]["best_loss"],
            "uncalibrated": fields["default"]["uncalibrated"],
            "worse": fields["do-no-harm"]["worse_50"],
            "coverage": fields["coverage"]["others"],
            "alarms": fields["monitoring"]["alarms"],
        },
    )


def files() -> dict[str, str]:
    """Return the text of all pages and CSV files by their path below `docs/evidence`."""
    pages = {f"{name}.md": page.text() for name, page in PAGES.items()}
    records = [record for page in PAGES.values() for record in page.records]
    data = {f"data/{name}": text for record in records for name, text in csv_files(record).items()}
    return {"index.md": index(), **pages, **data}


def main() -> int:
    from evidence_figures import FIGURES, IMAGES

    DATA.mkdir(parents=True, exist_ok=True)
    for old in DATA.glob("*.csv"):
        old.unlink()
    for name, text in files().items():
        (EVIDENCE / name).write_text(text, encoding="utf-8")
    for save in FIGURES.values():
        save(IMAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
