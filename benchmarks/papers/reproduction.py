"""Compare published values with those of Calibrant: the common part of the scripts.

A script measures *cases* and stores their numbers in ``results/PAPER.csv``, so an interrupted run
continues. It then makes *tables* from the stored numbers. ``python
benchmarks/papers/reproduction.py`` writes the page from these files only.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from calibrant._output.files import written_aside
from calibrant._output.progress import tracked
from calibrant.selection._table import markdown_table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))
from result_table import append_result, read_results

RESULTS = HERE / "results"
PAGE = ROOT / "benchmarks" / "records" / "reproduction.md"
PAPERS = ("gupta_ramdas_2022", "gupta_2021", "wenger_2020", "kull_2019", "kull_2019_uci")

Measured = Mapping[str, Any]
"""Results of a case by name: numbers, or lists of them over seeds, splits or folds."""


@dataclass(frozen=True)
class Figure:
    """A published number and ours. ``tolerance`` is the largest allowed difference."""

    row: str
    column: str
    published: float
    ours: float
    tolerance: float
    digits: int

    @property
    def is_within(self) -> bool:
        # The difference may exceed the tolerance by round-off.
        return abs(self.ours - self.published) <= self.tolerance + 1e-9


@dataclass(frozen=True)
class Table:
    """The values of a published table, their tolerance, and explanations of differences.

    ``explained`` maps (row, column), either of which may be "*", to a sentence. ``note`` is shown
    below the table.
    """

    name: str
    tolerance: str
    figures: Sequence[Figure]
    explained: Mapping[tuple[str, str], str] = field(default_factory=dict)
    note: str = ""

    @property
    def outside(self) -> list[Figure]:
        return [figure for figure in self.figures if not figure.is_within]

    def reason(self, figure: Figure) -> str | None:
        keys = [(r, c) for r in (figure.row, "*") for c in (figure.column, "*")]
        return next((self.explained[key] for key in keys if key in self.explained), None)

    @property
    def unexplained(self) -> list[Figure]:
        return [figure for figure in self.outside if self.reason(figure) is None]


def rounded(row: str, column: str, published: float, ours: float, digits: int, units=0.5) -> Figure:
    """Return a value of the same data and computation. Its tolerance is half a unit of the last
    digit.
    """
    return Figure(row, column, published, float(ours), units * 10.0**-digits, digits)


def drawn(
    row: str, column: str, published: float, ours: Sequence[float], digits: int, n_published: int
) -> Figure:
    """Return a mean of random draws next to a mean of ``n_published`` draws.

    The tolerance is two standard errors of the difference and half a unit of the last printed
    digit.
    """
    spread = float(np.std(ours, ddof=1)) if len(ours) > 1 else 0.0
    error = spread * np.sqrt(1 / len(ours) + 1 / n_published)
    tolerance = 2 * error + 0.5 * 10.0**-digits
    return Figure(row, column, published, float(np.mean(ours)), float(tolerance), digits)


# Data and results


def data_folder() -> Path:
    return Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))


def load(folder: Path, name: str) -> dict[str, Any]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def load_split(folder: Path, name: str) -> tuple[Any, Any, Any, Any]:
    """Return calibration logits and labels, and test logits and labels, in float64."""
    file = load(folder, name)
    X, Z = (file[key].astype(np.float64) for key in ("val_logits", "test_logits"))
    return X, file["val_labels"], Z, file["test_labels"]


def results_file(paper: str) -> Path:
    return RESULTS / f"{paper}.csv"


def read_paper(paper: str) -> dict[str, Measured]:
    return read_results(results_file(paper))


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_result(paper: str, case: str, measured: Measured) -> None:
    append_result(results_file(paper), case, short(measured))


def short(value: Any) -> Any:
    """Round to eight digits, which are more than any table prints."""
    if isinstance(value, Mapping):
        return {key: short(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [short(item) for item in value]
    return float(f"{float(value):.8g}")


# The page


def show(tables: Iterable[Table]) -> str:
    return "\n\n".join(section(table) for table in tables)


def section(table: Table) -> str:
    total, good = len(table.figures), len(table.figures) - len(table.outside)
    parts = [
        f"### {table.name}",
        f"Tolerance: {table.tolerance}",
        comparison(table.figures),
        f"Within tolerance: {good} of {total}.",
    ]
    notes = [table.note] if table.note else []
    return "\n\n".join(parts + notes + outside_lines(table))


def comparison(figures: Sequence[Figure]) -> str:
    """Return a table with cells "published / ours", in bold if outside the tolerance."""
    rows = list(dict.fromkeys(f.row for f in figures))
    columns = list(dict.fromkeys(f.column for f in figures))
    cells = {(f.row, f.column): cell(f) for f in figures}
    return markdown_table(
        ["published / ours", *columns],
        [[row, *(cells.get((row, column), "-") for column in columns)] for row in rows],
    )


def cell(figure: Figure) -> str:
    # One digit more than printed shows the effect of rounding.
    text = f"{figure.published:.{figure.digits}f} / {figure.ours:.{figure.digits + 1}f}"
    return text if figure.is_within else f"**{text}**"


def outside_lines(table: Table) -> list[str]:
    if not table.outside:
        return []
    reasons: dict[str, list[str]] = {}
    for figure in table.outside:
        reason = table.reason(figure) or "Unexplained."
        off = abs(figure.ours - figure.published)
        place = f"{figure.row}, {figure.column} (off by {off:.2g}, allowed {figure.tolerance:.2g})"
        reasons.setdefault(reason, []).append(place)
    lines = [f"- {reason} {'; '.join(places)}." for reason, places in reasons.items()]
    return ["Outside tolerance:\n\n" + "\n".join(lines)]


def summary(papers: Mapping[str, Sequence[Table]]) -> str:
    rows = [
        [titles(paper), table.name, *counts([table])] for paper in papers for table in papers[paper]
    ]
    everything = [table for tables in papers.values() for table in tables]
    rows.append(["all", "", *counts(everything)])
    header = ["paper", "table", "figures", "within", "outside, explained", "outside, unexplained"]
    return markdown_table(header, rows)


def counts(tables: Sequence[Table]) -> list[str]:
    total = sum(len(table.figures) for table in tables)
    outside = sum(len(table.outside) for table in tables)
    unexplained = sum(len(table.unexplained) for table in tables)
    share = f"{total - outside} ({(total - outside) / total:.0%})" if total else "0"
    return [str(total), share, str(outside - unexplained), str(unexplained)]


def titles(paper: str) -> str:
    return importlib.import_module(paper).TITLE


HEAD = """# Published tables compared with Calibrant

The scripts of `benchmarks/papers` write this page from the numbers in `benchmarks/papers/results`.
A test checks that both agree. Each table states the largest difference to the published value that
is allowed, its tolerance. *Print precision* is half a unit of the last printed digit, for values of
the same data by the same computation. For values with random draws (splits, folds, ties), the
tolerance is two standard errors of the difference of both means, by the spread of our draws, and
half a unit of the last printed digit.

A cell is `published / ours`, and our value has one more digit. Values outside their tolerance are
bold, and "-" marks values that were not computed. Each value outside its tolerance has an
explanation or is listed as unexplained. Explained values do not count as within their tolerance.

Counts of values within their tolerance need a comparison, because tolerances of mean ranks are wide
(medians of 0.44 to 0.96 of 7 ranks). In one check, the value of another method replaced ours. Then
42% of Table 5 and 57% of Table 8 of Kull et al. (UCI data sets) were within their tolerance, and
12% to 21% of the other tables. No script of this page repeats that count. Some details of a paper
were inferred because they give the best agreement. The text of each table names them.
"""


FIGURES = """## Figures

`benchmarks/papers/figures.py` draws these figures with the plots of the library. Figures without
"papers" in their file name come from the [gallery](../../docs/guide/gallery.md), which shows their
code.

Gupta & Ramdas 2022, Figure 2: for any number of bins, the top-label error of ResNet-50 is larger
than the confidence error.

![Confidence and top-label errors](../../docs/images/ece_versus_bins.svg)

Their Figures 5 to 8 for the available networks: top-label and class-wise errors for 5 to 25 bins.
Histogram binning uses the same number of bins. As in the paper, temperature scaling has no effect
if the temperature is 1 (WRN-26-10). Dirichlet calibration of 100 classes has no finite optimum and
is left out.

![Errors for 5 to 25 bins](../../docs/images/papers_errors_by_bins.svg)

Their Figures 4 and 9: a random forest on cover types before and after top-label binning, its
validity plot, and the error of each class.

![Top-label reliability of a forest](../../docs/images/covtype_reliability.svg)

![Validity](../../docs/images/covtype_validity.svg)

![Error by class](../../docs/images/covtype_errors.svg)

Their Figure 12: logistic regression on three classes of the same data set, binned by projections,
and the Sierpinski partition.

![Bins of whole vectors](../../docs/images/simplex_bins.svg)

![A partition](../../docs/images/simplex_partition.svg)

Gupta et al. 2021, Figures 1, 3, 5, 7 and 9: cumulative graphs of DenseNet-40 for the top-1 to top-3
scores and for the top 2 and top 3 together. The KS errors are those in the titles of the paper.

![Cumulative graphs](../../docs/images/papers_cumulative_before.svg)

Their Figures 2, 4, 6, 8 and 10, lower rows: the same graphs after splines, on the test rows.

![Cumulative graphs after splines](../../docs/images/papers_cumulative_after.svg)

Kull et al. 2019, Figure 5a of the supplement: critical differences of the log-loss of naive Bayes,
from the stored results.

![Critical differences](../../docs/images/papers_critical_difference.svg)

Their Figure 6, which includes Figure 5b and Figure 3a of the paper: critical differences of all
cases, by each measure. The Friedman tests are below the tables.

![Critical differences of all cases](../../docs/images/papers_critical_differences.svg)

Wenger et al. 2020, Figures 3 and 4: active learning in two orders of the KITTI rows. A forest
requests labels of rows whose entropy is above 0.5, without calibration and with Gaussian process
calibration. The random forest is fitted again after each 1,500 rows. The Mondrian forests of the
paper learn row by row, but no package that provides them can be installed today, so our values
differ. As in the paper, the calibrated forest reaches the same error with fewer labels.
Underconfidence decreases and overconfidence increases. Theorem 1 holds at every step, which a test
checks.

![Active learning](../../docs/images/papers_active_learning.svg)
"""


def page() -> str:
    papers = {name: tables_of(name) for name in PAPERS}
    papers = {name: tables for name, tables in papers.items() if tables}
    parts = [HEAD, summary(papers)]
    for name, tables in papers.items():
        module = importlib.import_module(name)
        parts += [f"## {module.TITLE}", module.INTRO.strip(), show(tables)]
    parts.append(FIGURES)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def tables_of(paper: str) -> list[Table]:
    results = read_paper(paper)
    tables = importlib.import_module(paper).tables(results) if results else []
    return [table for table in tables if table.figures]


# Running


def run(script: ModuleType, arguments: Sequence[str] | None = None) -> None:
    """Measure the missing cases of a script, print the tables and write the page.

    ``--quick`` measures a part of the first case and stores nothing.
    """
    chosen = parse(script, arguments)
    paper = script.__name__ if script.__name__ != "__main__" else Path(script.__file__).stem
    warnings.simplefilter("ignore")  # the reproduced fits do not always converge
    if chosen.quick:
        case = script.cases()[0]
        print(show(script.tables({case: script.measure(chosen.data, case, quick=True)})))
        return
    every = script.full_cases() if chosen.full else script.cases()
    wanted = [case for case in every if chosen.only in case]
    finished = read_paper(paper)
    left = [case for case in wanted if case not in finished]
    jobs = (delayed(keep)(script.__file__, paper, case, chosen.data) for case in left)
    done = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")(jobs)
    for _ in tracked(done, total=len(left), description=paper, progress=True):
        pass
    print(show(tables_of(paper)))
    write_text(PAGE, page())


def parse(script: ModuleType, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(script.__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of predictions")
    parser.add_argument(
        "--quick", action="store_true", help="measure a part of one case and store nothing"
    )
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    if hasattr(script, "full_cases"):
        parser.add_argument("--full", action="store_true", help="measure all cases of the paper")
    parser.set_defaults(full=False)
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    return parser.parse_args(arguments)


def keep(file: str, paper: str, case: str, data: Path) -> None:
    """Measure a case and store it with its CPU seconds."""
    warnings.simplefilter("ignore")
    begin = time.process_time()
    measured = dict(importlib.import_module(Path(file).stem).measure(data, case, quick=False))
    write_result(paper, case, measured | {"cpu_seconds": time.process_time() - begin})


if __name__ == "__main__":
    write_text(PAGE, page())
