"""Measure the cost of reading evaluation logs of language models, and calibrate option logits.

    python benchmarks/llm_logs.py [--lines 1_000_000] [--data ../shared/data] [--write]

Lines have the format of lm-evaluation-harness and 3.4 kB. The limits are 60 CPU seconds and 500 MB
for a million lines. The second part measures the reduction of the log-loss in nats by 300
calibration rows, on 4,000 other rows. "masked" leaves out the two options that are never correct.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import _one_thread  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "llm_logs.csv"
SIZE = 3_400
"""Bytes per line of MMLU with five examples in the prompt."""


def line(doc_id: int, sums: list[float], label: int) -> str:
    context = "x" * ((SIZE - 700) // 4)
    record = {
        "doc_id": doc_id,
        "doc": {"question": "Which of these is right?", "choices": list("ABCD"), "answer": label},
        "target": str(label),
        "arguments": {
            f"gen_args_{i}": {"arg_0": context, "arg_1": f" {'ABCD'[i]}"} for i in range(4)
        },
        "resps": [[[str(value), "False"]] for value in sums],
        "filtered_resps": [[str(value), "False"] for value in sums],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": "0" * 64,
        "prompt_hash": "0" * 64,
        "target_hash": "0" * 64,
        "acc": float(np.argmax(sums) == label),
    }
    return json.dumps(record) + "\n"


def write_log(path: Path, n_lines: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, n_lines, 10_000):
            sums = rng.normal(-20, 5, size=(min(10_000, n_lines - start), 4)).round(6)
            labels = rng.integers(4, size=len(sums))
            file.writelines(
                line(start + i, sums[i].tolist(), int(labels[i])) for i in range(len(sums))
            )


def read_log(path: Path) -> None:
    """Read a log in this process, and print lines, CPU seconds and peak memory."""
    from calibrant import llm

    start = time.process_time()
    run = next(iter(llm.read(path).values()))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"lines": len(run), "cpu_s": round(seconds, 1), "peak_mb": round(peak)}))


def measure_reading(n_lines: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples_mmlu_2026-11-01T10-20-30.123456.jsonl"
        write_log(path, n_lines)
        print(f"{path.stat().st_size / n_lines:,.0f} bytes per line")
        # A separate process is needed, because peak memory is a maximum over its whole life.
        done = subprocess.run(
            [sys.executable, __file__, "--read", str(path)],
            check=True,
            capture_output=True,
            text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def gains(path: Path, n_options: int, n_splits: int) -> list[float]:
    """Return mean reductions of the log-loss by temperature scaling and by the ensemble."""
    from calibrant import AutoCalibration, OptionScores, TemperatureScaling, evaluate

    data, rows = np.load(path), []
    labels = data["labels"]
    scores = data["logits"].astype(np.float64)
    options = OptionScores(scores, np.full(len(labels), n_options))
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(labels))
        fit, test = order[:300], order[300:4300]
        before = evaluate(labels[test], options[test])
        models = [c(inputs="log_proba") for c in (TemperatureScaling, AutoCalibration)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = [
                evaluate(
                    labels[test], m.fit(options[fit], labels[fit]).predict_proba(options[test])
                )
                for m in models
            ]
        rows.append([before.log_loss - a.log_loss for a in after])
        rows[-1].append(after[1].accuracy - before.accuracy)
    return np.mean(rows, axis=0).round(4).tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=lambda text: int(text.replace("_", "")), default=1_000_000)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read_log(arguments.read)
        return 0
    cost = measure_reading(arguments.lines)
    table = [["lines", cost["lines"]], ["cpu_s", cost["cpu_s"]], ["peak_mb", cost["peak_mb"]]]
    for path in sorted(arguments.data.glob("llm_emotion_*.npz")):
        for name, n_options in (("all", 6), ("masked", 4)):
            temperature, auto, accuracy = gains(path, n_options, arguments.splits)
            key = f"{path.stem} {name}"
            table += [
                [f"{key}: gain of temperature", temperature],
                [f"{key}: gain of auto", auto],
                [f"{key}: accuracy of auto", accuracy],
            ]
    for name, value in table:
        print(f"{name:<70} {value}")
    if arguments.write:
        with RESULTS.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["measure", "value"], *table])
    limits = {"cpu_s": 60 * arguments.lines / 1e6 + 2, "peak_mb": 500}
    return int(any(cost[name] > limit for name, limit in limits.items()))


if __name__ == "__main__":
    sys.exit(main())
