"""Measure the time and the memory of reports with many rows.

Run ``python benchmarks/report_size.py [ROWS ...]``. Each report has three classes and its own
process. The method is temperature scaling, unless ``--method`` names another one. The script
measures CPU seconds and the peak resident memory. The cost of the simulations does not depend on
the rows, so ten times the rows should take at most ten times as long.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

N_CLASSES = 3


def report(n_rows: int, method: str) -> None:
    """Make a report and print its cost."""
    import calibrant
    from calibrant.datasets import noisy_simplex
    from calibrant.report import summarize, to_html

    data = noisy_simplex(n_rows, N_CLASSES, noise=0.2, rng=0)
    before, started = _resident(), time.process_time()
    summary = summarize(data.labels, data.proba, calibrator=calibrant.method(method), method=method)
    spent = time.process_time() - started
    size = len(to_html(summary))
    cost = {"rows": n_rows, "seconds": spent, "data_mb": before, "peak_mb": _resident()}
    print(json.dumps({**cost, "html_kb": size / 1000}))


def _resident() -> float:
    """Return the largest resident memory so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--method", default="temperature")
    parser.add_argument(
        "--one", action="store_true", help="measure in this process (used by the script itself)"
    )
    given = parser.parse_args()
    if given.one:
        report(given.rows[0], given.method)
        return
    print("| rows | seconds | resident MB, data made | resident MB, most | HTML kB |")
    print("|---|---|---|---|---|")
    for rows in given.rows:
        command = [sys.executable, __file__, str(rows), "--one", "--method", given.method]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        cost = json.loads(done.stdout)
        shown = [cost[name] for name in ("seconds", "data_mb", "peak_mb", "html_kb")]
        print(f"| {rows:,} | " + " | ".join(f"{value:,.0f}" for value in shown) + " |", flush=True)


if __name__ == "__main__":
    main()
