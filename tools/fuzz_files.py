"""Change files at random and read them: ``python tools/fuzz_files.py --inputs 20000``.

Every input is a valid file of predictions, a saved calibrator or the state of a monitor with a few
random changes. A reader must accept it or raise ``ValueError`` or ``OSError``. Anything else is a
failure: another exception, a crash of the interpreter, more than 4 GB of memory, or more than 30
seconds. The exit code is 1 if there is a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant.io import open_scores
from calibrant.monitoring import CalibrationMonitor

BATCH = 250
MEMORY = 4 * 2**30
SECONDS = 30
ODD_VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2, 10**15, 10**400, -(2**63), 2**63, 1e308, -1e-308, 0.5, "", "x"),
    *([], {}, [[]], [0], ["x"], {"tuple": []}, {"float": "inf"}, {"model": 0}, {"map": [["a", 1]]}),
    {"array": "float64", "shape": [0, 2**40], "order": "C", "data": ""},
]
NAMES = np.array(["cat", "dog", "owl"])


# Valid files


def make_seeds(folder: Path) -> None:
    """Write the valid files that are changed later."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 40).round(4)
    codes = calibrant.datasets.draw_labels(proba, rng=rng)
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate(NAMES)}
    table = pa.table({**columns, "y": NAMES[codes], "w": np.arange(40), "note": ['a "b"\nc'] * 40})
    for ending, separator in (("csv", ","), ("tsv", "\t")):
        options = pa.csv.WriteOptions(delimiter=separator)
        pa.csv.write_csv(table, folder / f"table.{ending}", options)
    pa.parquet.write_table(table, folder / "table.parquet")
    for compression in ("uncompressed", "lz4", "zstd"):
        pa.feather.write_feather(table, folder / f"{compression}.arrow", compression=compression)
    np.savez(folder / "plain.npz", probs=proba, labels=NAMES[codes], class_names=NAMES)
    np.savez_compressed(folder / "packed.npz", logits=np.log(proba + 1e-3), labels=codes)
    np.save(folder / "scores.npy", np.asfortranarray(proba))
    np.save(folder / "labels.npy", codes)
    _make_models(folder, proba, codes)
    _make_states(folder, proba, codes)


def _make_models(folder: Path, proba: Any, codes: Any) -> None:
    calibrators = {
        "temperature": calibrant.TemperatureScaling(),
        "vector": calibrant.VectorScaling(),
        "dirichlet": calibrant.DirichletCalibration(lam=0.1),
        "isotonic": calibrant.method("isotonic", notion="class-wise"),
        "histogram": calibrant.method("histogram", notion="top-label"),
        "auto": calibrant.AutoCalibration(),
        "crossfitted": calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=2),
    }
    for name, calibrator in calibrators.items():
        calibrant.save(calibrator.fit(proba, codes), folder / f"{name}.model")


def _make_states(folder: Path, proba: Any, codes: Any) -> None:
    for name, tolerance in (("tolerant", 0.02), ("exact", 0.0)):
        monitor = CalibrationMonitor(classes=list(NAMES), tolerance=tolerance)
        monitor.update(NAMES[codes], proba, group=["a", "b"] * 20, when="week 1")
        (folder / f"{name}.state").write_text(monitor.to_json())


# Changes


def change(raw: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with a few random changes. JSON is also changed value by value."""
    if raw.startswith(b"{") and rng.random() < 0.7:
        return _change_document(raw, rng)
    data = bytearray(raw)
    for _ in range(int(rng.geometric(0.6))):
        place = int(rng.integers(0, max(1, len(data))))
        size = int(rng.integers(1, 9))
        kind = int(rng.integers(0, 6))
        if kind <= 1:
            data[place : place + 1] = rng.bytes(1)
        elif kind == 2:
            data[place : place + size] = rng.bytes(size)
        elif kind == 3:
            del data[place : place + size]
        elif kind == 4:
            data[place:place] = data[place : place + size * 8]
        else:
            value = int(rng.choice([-1, 2**31 - 1, -(2**20), 4096, 0]))
            data[place : place + 4] = value.to_bytes(4, "little", signed=True)
    if rng.random() < 0.1:
        del data[int(rng.integers(0, max(1, len(data)))) :]
    return bytes(data)


def _change_document(raw: bytes, rng: np.random.Generator) -> bytes:
    document = json.loads(raw)
    for _ in range(int(rng.geometric(0.8))):
        places = list(_places(document))
        if not places:
            break
        holder, key = places[int(rng.integers(0, len(places)))]
        if rng.random() < 0.15:
            del holder[key]
        else:
            holder[key] = ODD_VALUES[int(rng.integers(0, len(ODD_VALUES)))]
    return json.dumps(document).encode()


def _places(value: Any) -> Any:
    """Yield every member of a document with its container and its key or index."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


# Readers


def read_table(path: Path) -> None:
    labels = path.with_name("labels.npy") if path.suffix == ".npy" else None
    is_table = path.suffix not in (".npy", ".npz")
    options = {"label": "y", "weight": "w"} if is_table else {"labels": labels}
    file = open_scores(path, renormalize=True, **options)
    rows = file.load()
    assert len(rows.scores) == len(rows.labels)
    assert np.isfinite(rows.scores).all() or file.inputs != "proba"
    for block in file.blocks(all_columns=True):
        assert block.table is not None


def read_model(path: Path) -> None:
    model = calibrant.load(path)
    n_classes = len(model.classes_)
    if n_classes > 1000:
        return
    scores = np.full((2, n_classes), 1 / n_classes)
    scores = np.log(scores) if model.inputs != "proba" else scores
    proba = np.asarray(model.predict_proba(scores))
    assert np.isfinite(proba).all()
    assert isinstance(repr(model) + str(model.explain()), str)


def read_state(path: Path) -> None:
    monitor = CalibrationMonitor.from_json(path.read_bytes().decode())
    str(monitor), monitor.to_dict()
    labels = monitor.classes
    if labels is None or len(labels) > 1000:
        return
    proba = np.full((4, len(labels)), 1 / len(labels))
    monitor.update(labels[[0, 0, 1, 1]], proba, group=["a", "b"] * 2)
    str(CalibrationMonitor.from_json(monitor.to_json()))


READERS: dict[str, Callable[[Path], None]] = {".model": read_model, ".state": read_state}


def read(path: Path) -> str:
    """Read a file. Return "accepted", "rejected", or the last lines of a traceback."""
    try:
        signal.alarm(SECONDS)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            READERS.get(path.suffix, read_table)(path)
    except (ValueError, OSError):
        return "rejected"
    except BaseException:
        return " | ".join(traceback.format_exc().strip().splitlines()[-3:])
    finally:
        signal.alarm(0)
    return "accepted"


# Runs


def run_input(number: int, seeds: list[Path], folder: Path) -> str:
    """Change one of the files and read it."""
    rng = np.random.default_rng([20, number])
    seed = seeds[number % len(seeds)]
    path = folder / f"input{seed.suffix}"
    path.write_bytes(change(seed.read_bytes(), rng))
    return read(path)


def in_child(work: Callable[[Any], None]) -> tuple[list[list[str]], int]:
    """Run work in a child process. Return the lines that it writes, and its exit code."""
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ends[0])
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            with os.fdopen(ends[1], "w", buffering=1) as out:
                work(out)
            os._exit(0)
        finally:  # never return, because the parent runs the rest of the script
            os._exit(1)
    os.close(ends[1])
    with os.fdopen(ends[0], errors="replace") as lines:
        entries = [line.rstrip("\n").split("\t", 1) for line in lines]
    return entries, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(n_inputs: int, folder: Path) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return the failures, and how often each kind of file was accepted, rejected or failed."""
    sources = folder / "seeds"
    sources.mkdir()
    _, code = in_child(lambda out: make_seeds(sources))
    if code:
        raise RuntimeError("The valid files could not be written.")
    seeds = sorted(path for path in sources.iterdir() if path.name != "labels.npy")
    (folder / "labels.npy").write_bytes((sources / "labels.npy").read_bytes())
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[str] = []
    next_input = 0
    while next_input < n_inputs:
        numbers = range(next_input, min(next_input + BATCH, n_inputs))

        def work(out: Any, numbers: range = numbers) -> None:
            for number in numbers:
                out.write(f"{number}\t{run_input(number, seeds, folder)}\n")

        entries, code = in_child(work)
        outcomes = [outcome for _, outcome in entries]
        if len(outcomes) < len(numbers):
            outcomes.append(f"the process ended with exit code {code}")
        for number, outcome in zip(numbers, outcomes, strict=False):
            kind = seeds[number % len(seeds)].suffix
            is_failure = outcome not in ("accepted", "rejected")
            counts[kind, "failed" if is_failure else outcome] += 1
            if is_failure:
                failures.append(f"input {number} ({seeds[number % len(seeds)].name}): {outcome}")
        next_input += len(outcomes)
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=2000)
    n_inputs = parser.parse_args().inputs
    signal.signal(signal.SIGALRM, _time_out)
    with tempfile.TemporaryDirectory() as name:
        counts, failures = run(n_inputs, Path(name))
    print("| file | inputs | accepted | rejected | failed |\n| --- | --- | --- | --- | --- |")
    for kind in sorted({kind for kind, _ in counts}):
        row = [counts[kind, outcome] for outcome in ("accepted", "rejected", "failed")]
        print(f"| {kind} | {sum(row)} | {' | '.join(map(str, row))} |")
    print(f"{n_inputs} inputs, {len(failures)} failures")
    print("\n".join(failures[:50]))
    return 1 if failures else 0


def _time_out(number: int, frame: Any) -> None:
    raise SystemExit(
        f"more than {SECONDS} seconds"
    )  # not an OSError, which would count as a rejection


if __name__ == "__main__":
    sys.exit(main())
