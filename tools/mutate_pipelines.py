"""Change one pipeline at a time, and show that the equivalence grid notices each change.

    python tools/mutate_pipelines.py                  # all changes, about a minute per change
    python tools/mutate_pipelines.py --only dask
    python tools/mutate_pipelines.py --list

Each change edits a copy of the package, in code that only one kind of data uses: rows in memory,
chunks, cells of scores, dask arrays, iterators, files or top scores. `tests/equivalence` then runs
until the first failure. The exit code is 1 if a change is not noticed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Change(NamedTuple):
    """A replacement of text that occurs once in a module, relative to ``src/calibrant``."""

    name: str
    module: str
    before: str
    after: str


FOLD_PLAN, CHUNKS, CELLS = "_data/fold_plan.py", "_data/chunked_sample.py", "notions/_cells.py"
CHANGES = [
    Change(
        "memory: number of groups of a single fold",
        FOLD_PLAN,
        "folds = as_folds(N_GROUPS,",
        "folds = as_folds(N_GROUPS - 1,",
    ),
    Change(
        "memory: weight of held-out rows per training row",
        FOLD_PLAN,
        "f.held_out_weight.sum() / f.fit_weight.sum()",
        "f.held_out_weight.sum() / (2 * f.fit_weight.sum())",
    ),
    Change(
        "memory: fold that predicts held-out rows",
        FOLD_PLAN,
        "parts = [(number, self._held_out(number).rows)",
        "parts = [(0, self._held_out(number).rows)",
    ),
    Change(
        "chunks: number of groups of a single fold",
        FOLD_PLAN,
        "// self.n_folds % N_GROUPS",
        "// self.n_folds % (N_GROUPS - 1)",
    ),
    Change(
        "chunks: weight of held-out rows in a training set",
        FOLD_PLAN,
        "== fold, 0.0, chunk.weight",
        "== fold, 0.05 * chunk.weight, chunk.weight",
    ),
    Change(
        "chunks: weight of held-out rows per training row",
        FOLD_PLAN,
        "held_out / (self._sample.total - held_out)",
        "held_out / self._sample.total",
    ),
    Change("chunks: row number of a fold", FOLD_PLAN, "(chunk.start + np.arange", "(np.arange"),
    Change(
        "chunks: weights",
        CHUNKS,
        "return check_weight(weight, n_rows, first_row=start)",
        "return check_weight(None, n_rows, first_row=start)",
    ),
    Change("chunks: repair of scores", CHUNKS, "renormalize=self.renormalize", "renormalize=False"),
    Change(
        "chunks: all rows have weight one", CHUNKS, "counts.n_weighted > 0", "counts.n_weighted < 0"
    ),
    Change(
        "chunks: impossible labels", CHUNKS, "return self._source.counts.n_impossible", "return 0"
    ),
    Change("cells: number of cells", CELLS, "= 2**13, 3 * 2**14, 2**8", "= 2**5, 2**5, 2**5"),
    Change(
        "cells: score of a cell",
        CELLS,
        "np.clip(score[used] / weight[used], 0.0, 1.0)",
        "ends[used]",
    ),
    Change(
        "cells: squared weights",
        CELLS,
        "squares=squares[places] *",
        "squares=0.5 * squares[places] *",
    ),
    Change("cells: ends of cells", CELLS, "cell += score > self.ends[cell]", "cell += 0"),
    Change(
        "dask: first row of a chunk",
        "_data/dask_arrays.py",
        "np.cumsum(self._rows.chunks[0])[:-1]])",
        "0 * np.cumsum(self._rows.chunks[0])[:-1]])",
    ),
    Change(
        "dask: number of sums per task",
        "_data/dask_arrays.py",
        "for k in range(0, len(sums), _GROUP_SIZE)]",
        "for k in range(0, len(sums) - 1, _GROUP_SIZE)]",
    ),
    Change(
        "iterator: first row of a block", "io/_row_blocks.py", "start += len(scores)", "start += 1"
    ),
    Change(
        "iterator: weights",
        "io/_row_blocks.py",
        "weights[0] if weights else None, start)",
        "None, start)",
    ),
    Change(
        "top scores: weights",
        "_data/top_scores.py",
        "np.bincount(self.y, self.weight, minlength",
        "np.bincount(self.y, minlength",
    ),
    Change(
        "top scores: true class outside the top m",
        "_data/top_scores.py",
        "self.is_inside = is_true.any(axis=1)",
        "self.is_inside = is_true[:, 0]",
    ),
]


def is_noticed(change: Change, tests: list[str]) -> tuple[bool, str]:
    """Run the grid on a changed copy of the package, and return whether a test failed."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        module = source / "calibrant" / change.module
        text = module.read_text(encoding="utf-8")
        if text.count(change.before) != 1:
            raise SystemExit(f"{change.module} must contain this text once: {change.before}")
        module.write_text(text.replace(change.before, change.after), encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", *tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    if run.returncode not in (0, 1):
        raise SystemExit(run.stdout + run.stderr)
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    return run.returncode == 1, failed[0].removeprefix("FAILED ").split(" - ")[0] if failed else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names of changes")
    parser.add_argument("--tests", nargs="*", default=["tests/equivalence"])
    parser.add_argument("--list", action="store_true", help="list the changes and stop")
    options = parser.parse_args()
    chosen = [change for change in CHANGES if any(part in change.name for part in options.only)]
    if options.list:
        print("\n".join(change.name for change in chosen))
        return
    missed = []
    for change in chosen:
        start = time.monotonic()
        noticed, test = is_noticed(change, options.tests)
        seconds = time.monotonic() - start
        print(f"{'noticed' if noticed else 'MISSED'} in {seconds:.0f} s: {change.name}; {test}")
        sys.stdout.flush()
        if not noticed:
            missed.append(change.name)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} changes are noticed.")
    if missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
