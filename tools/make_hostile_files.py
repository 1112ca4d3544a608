"""Hostile and damaged inputs, the message of the command line about each, and its cost.

``python tools/make_hostile_files.py`` writes docs/development/hostile-files.md. The slow tests run
the same cases and check the exit code, the message of one line and the memory.
"""

from __future__ import annotations

import base64
import io
import json
import os
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

import calibrant
import calibrant.cli._app  # before processes are forked, each of which would import it
from calibrant.cli import run
from calibrant.selection._table import markdown_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "development" / "hostile-files.md"
NAMES = ("cat", "dog", "owl")
HEADER = "p_cat,p_dog,p_owl,y"
FUZZED = """## Files with random changes

`tools/fuzz_files.py` makes random changes to 20,000 valid files. The script changes bytes of
all files, and values of JSON documents. A reader must accept each changed file or reject the
file as bad input. The last column counts other exceptions, crashes, and files that take more
than 4 GB of memory or 30 seconds.

| file | inputs | accepted | rejected | failed |
| --- | --- | --- | --- | --- |
| Arrow | 3,333 | 714 | 2,619 | 0 |
| CSV and TSV | 2,222 | 213 | 2,009 | 0 |
| Parquet | 1,111 | 211 | 900 | 0 |
| NPY | 1,111 | 376 | 735 | 0 |
| NPZ | 2,222 | 75 | 2,147 | 0 |
| saved calibrator | 7,779 | 772 | 7,007 | 0 |
| state of a monitor | 2,222 | 323 | 1,899 | 0 |
"""
MOST_MEGABYTES = 300
"""Maximum additional memory, for blocks of 16 MB, their text, and buffers of Arrow."""


class Case(NamedTuple):
    """An input with its name, a function that creates it, and a command."""

    name: str
    make: Callable[[], Any]
    command: str


class Outcome(NamedTuple):
    """What a command ended with."""

    code: int
    message: str
    megabytes: float
    seconds: float
    n_lost: int = 0
    """Files that were there before and are changed or gone."""


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of three decimals, and labels."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), n)
    return proba, np.array(NAMES)[calibrant.datasets.draw_labels(proba, rng=rng)]


def write(path: str, content: str | bytes) -> None:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    Path(path).write_bytes(raw)


def table(header: str = HEADER, change: Callable[[list[str]], list[str]] = list) -> str:
    """A good text file, or one with its lines changed."""
    proba, labels = rows()
    lines = [f"{a!r},{b!r},{c!r},{y}" for (a, b, c), y in zip(proba.tolist(), labels, strict=True)]
    return "\n".join([header, *change(lines)]) + "\n"


def csv(path: str = "x.csv", header: str = HEADER, line: str | None = None) -> Callable[[], None]:
    """A text file whose fifth row is ``line``."""

    def change(lines: list[str]) -> list[str]:
        return lines if line is None else [*lines[:4], line, *lines[5:]]

    return lambda: write(path, table(header, change))


def model(change: Callable[[dict[str, Any]], Any], calibrator: Any = None) -> Callable[[], None]:
    """A saved model, changed."""

    def make() -> None:
        proba, labels = rows(200)
        fitted = (
            calibrant.TemperatureScaling(classes=list(NAMES)) if calibrator is None else calibrator
        )
        is_binary = type(fitted).__module__.startswith("calibrant.binary")
        data = (proba[:, 0], labels == "cat") if is_binary else (proba, labels)
        fitted = fitted if is_binary else fitted.set_params(classes=list(NAMES))
        calibrant.save(fitted.fit(*data), "m.json")
        document = json.loads(Path("m.json").read_text())
        changed = change(document)
        write("m.json", json.dumps(document if changed is None else changed))
        write("x.csv", table())

    return make


def fitted(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["models"][-1]["fitted"].update(values)


def zeros(*shape: int) -> dict[str, Any]:
    data = base64.b64encode(bytes(8 * int(np.prod(shape)))).decode()
    return {"array": "float64", "shape": list(shape), "order": "C", "data": data}


def nested(document: dict[str, Any]) -> None:
    last = document["models"][-1]
    for _ in range(20):
        parts = [{"model": len(document["models"]) - 1}] * 2
        document["models"].append({**last, "fitted": {**last["fitted"], "calibrators_": parts}})


def archive(entries: dict[str, bytes], path: str = "x.npz") -> Callable[[], None]:
    def make() -> None:
        with zipfile.ZipFile(path, "w") as file:
            for name, content in entries.items():
                file.writestr(name, content)

    return make


def array_header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def bomb() -> None:
    with (
        zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as file,
        file.open("probs.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(array_header((2**25, 2)))
        for _ in range(32):
            entry.write(bytes(2**24))


def savez(**arrays: Any) -> Callable[[], None]:
    proba, labels = rows()
    content = {"probs": proba, "labels": labels, "class_names": np.array(NAMES), **arrays}
    return lambda: np.savez("x.npz", **{k: v for k, v in content.items() if v is not None})


def npy(content: bytes) -> Callable[[], None]:
    def make() -> None:
        write("x.npy", content)
        np.save("y.npy", rows()[1])

    return make


def parquet(change: Callable[[bytes], bytes] = bytes, **columns: Any) -> Callable[[], None]:
    def make() -> None:
        proba, labels = rows()
        scores = {f"p_{name}": proba[:, k] for k, name in enumerate(NAMES)}
        pa_parquet.write_table(pa.table({**scores, "y": labels, **columns}), "x.parquet")
        write("x.parquet", change(Path("x.parquet").read_bytes()))

    return make


def equal_rows() -> None:
    part = pa.table({"p_a": np.full(2**20, 0.5), "p_b": np.full(2**20, 0.5), "y": ["a"] * 2**20})
    with pa_parquet.ParquetWriter("x.parquet", part.schema) as writer:
        for _ in range(24):
            writer.write_table(part)


def apply_before() -> None:
    model(lambda document: None)()
    with open(os.devnull, "w") as nowhere:
        run_quietly(["apply", "m.json", "x.csv", "-o", "y.csv"], nowhere)


def run_quietly(arguments: list[str], nowhere: Any) -> None:
    streams, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), nowhere, nowhere
    try:
        run(arguments)
    finally:
        sys.stdout, sys.stderr = streams


def _texts() -> Iterator[Case]:
    evaluate = "evaluate x.csv"
    yield Case("empty file", lambda: write("x.csv", ""), evaluate)
    yield Case("only a header", lambda: write("x.csv", HEADER + "\n"), evaluate)
    yield Case(
        "random bytes", lambda: write("x.csv", np.random.default_rng(0).bytes(4096)), evaluate
    )
    yield Case("zero bytes", lambda: write("x.csv", bytes(4096)), evaluate)
    yield Case("UTF-16", lambda: write("x.csv", table().encode("utf-16")), evaluate)
    yield Case("a label that is not valid UTF-8", csv(line="0.2,0.3,0.5,c\udcfft"), evaluate)
    yield Case("an unclosed quote", csv(line='0.2,0.3,0.5,"cat'), evaluate)
    yield Case("a row with too few values", csv(line="0.2,0.3"), evaluate)
    yield Case("a row with too many values", csv(line="0.2,0.3,0.5,cat,dog"), evaluate)
    for name, line in {
        "NaN": "nan,0.5,0.5,cat",
        "infinity": "inf,0.5,0.5,cat",
        "a negative probability": "-0.5,1.0,0.5,cat",
        "a probability above one": "1.5,0.0,0.0,cat",
        "a row that sums to 0.5": "0.1,0.1,0.3,cat",
        "text in a score column": "high,0.5,0.5,cat",
        "a missing score": ",0.5,0.5,cat",
        "an unknown label": "0.2,0.3,0.5,elk",
        "a label with a terminal escape sequence": "0.2,0.3,0.5,\x1b[2Jelk",
    }.items():
        yield Case(name, csv(line=line), evaluate)
    yield Case("a duplicate column", csv(header="p_cat,p_cat,p_owl,y"), evaluate)
    yield Case(
        "an escape sequence in the header",
        csv(header="\x1b[2Ja,b,c,\x07d"),
        "evaluate x.csv --label e",
    )
    yield Case(
        "a header with a right-to-left override",
        csv(header="a\u202e,b,c,d"),
        "evaluate x.csv --label e",
    )
    yield Case("an identifier in place of a label", csv(header="p_cat,p_dog,p_owl,id"), evaluate)
    yield Case("score columns that do not match the labels", csv(header="p_0,p_1,p_2,y"), evaluate)
    yield Case("text as weights", csv(), "evaluate x.csv --label y --weight y")
    yield Case("semicolons", lambda: write("x.csv", table().replace(",", ";")), evaluate)
    yield Case(
        "one line of 20 MB", lambda: write("x.csv", HEADER + "\n" + "1" * 20_000_000), evaluate
    )
    yield Case(
        "a column name of 1 MB", csv(header=f"{'p' * 10**6},b,c,y"), "evaluate x.csv --label q"
    )
    yield Case(
        "20,000 columns",
        lambda: write("x.csv", ",".join(f"c{k}" for k in range(20_000)) + "\n"),
        evaluate,
    )
    yield Case(
        "10,001 different labels",
        lambda: write("x.csv", "p_a,p_b,y\n" + "".join(f"0.5,0.5,k{k}\n" for k in range(10_001))),
        evaluate,
    )


def _arguments() -> Iterator[Case]:
    yield Case("a missing file", lambda: None, "evaluate x.csv")
    yield Case("a folder in place of a file", lambda: os.mkdir("x.csv"), "evaluate x.csv")
    yield Case("a symbolic link to itself", lambda: os.symlink("x.csv", "x.csv"), "evaluate x.csv")
    yield Case("an unknown file extension", lambda: write("x.pkl", b"\x80\x04."), "evaluate x.pkl")
    yield Case("too few names in --classes", csv(), "evaluate x.csv --classes cat,dog")
    yield Case("a duplicate name in --classes", csv(), "evaluate x.csv --classes cat,cat,owl")
    yield Case("an output that is the input", csv(), "fit x.csv -m identity -o x.csv")
    yield Case("an output in a missing folder", csv(), "fit x.csv -m identity -o no/m.json")
    yield Case("a folder as the output", csv(), "fit x.csv -m identity -o .")
    yield Case(
        "an output with an unknown file extension",
        model(lambda d: None),
        "apply m.json x.csv -o out.xls",
    )
    yield Case("scores that are already calibrated", apply_before, "apply m.json y.csv -o z.csv")
    yield Case("an unknown method", csv(), "fit x.csv -m platypus -o m.json")
    yield Case("a data file in place of the model", csv(), "apply x.csv x.csv -o z.csv")
    yield Case(
        "score columns of unknown classes",
        lambda: (model(lambda d: None)(), csv(header="p_bus,p_car,p_van,y")()),
        "apply m.json x.csv -o z.csv",
    )


def _arrays() -> Iterator[Case]:
    proba, labels = rows()
    yield Case("0.5 MB that declare 0.5 GB", bomb, "evaluate x.npz")
    yield Case(
        "a header that declares 8 GB",
        archive({"probs.npy": array_header((2**29, 2))}),
        "evaluate x.npz",
    )
    yield Case("pickled labels", savez(labels=np.array([{}] * 60, dtype=object)), "evaluate x.npz")
    yield Case(
        "a file that is not an archive",
        lambda: write("x.npz", b"PK\x03\x04 no archive"),
        "evaluate x.npz",
    )
    yield Case(
        "a truncated archive",
        lambda: (savez()(), write("x.npz", Path("x.npz").read_bytes()[:900])),
        "evaluate x.npz",
    )
    yield Case(
        "an entry whose path leaves the archive",
        archive({"../../probs.npy": array_header((2, 2)) + bytes(32)}),
        "evaluate x.npz",
    )
    yield Case("no array of scores", savez(probs=None), "evaluate x.npz")
    yield Case("two arrays of scores", savez(logits=proba), "evaluate x.npz")
    yield Case("a wrong number of labels", savez(labels=labels[:5]), "evaluate x.npz")
    yield Case("scores with three axes", savez(probs=proba[:, :, None]), "evaluate x.npz")
    yield Case("scores that are text", savez(probs=proba.astype(str)), "evaluate x.npz")
    yield Case(
        "a wrong number of class names", savez(class_names=np.array(["a"])), "evaluate x.npz"
    )
    good = io.BytesIO()
    np.save(good, proba)
    raw = good.getvalue()
    both = "evaluate x.npy --labels y.npy --classes cat,dog,owl"
    yield Case("a truncated header", npy(raw[:40]), both)
    yield Case("truncated data", npy(raw[:-100]), both)
    yield Case("a header that contains code", npy(raw.replace(b"{'descr'", b"__import")), both)
    yield Case("a header that declares 16 TB", npy(array_header((2**40, 2))), both)
    yield Case("a header that declares Python objects", npy(array_header((60, 3), "|O")), both)
    yield Case("an unknown format version", npy(raw[:6] + b"\x09\x09" + raw[8:]), both)


def _parquets() -> Iterator[Case]:
    yield Case(
        "only the magic bytes", lambda: write("x.parquet", b"PAR1PAR1"), "evaluate x.parquet"
    )
    yield Case("a truncated file", parquet(lambda raw: raw[:-20]), "evaluate x.parquet")
    yield Case(
        "a damaged footer",
        parquet(lambda raw: raw[:-400] + bytes(392) + raw[-8:]),
        "evaluate x.parquet",
    )
    yield Case("labels that are lists", parquet(y=[[1]] * 60), "evaluate x.parquet --label y")
    yield Case("scores that are structures", parquet(p_cat=[{"a": 1}] * 60), "evaluate x.parquet")
    yield Case("25 million equal rows", equal_rows, "fit x.parquet -m canonical -o m.json")


def _models() -> Iterator[Case]:
    apply = "apply m.json x.csv -o z.csv"
    for value in (-1.0, 0.0, True, 1e-300):
        yield Case(
            f"a temperature of {json.dumps(value)}", model(fitted(temperature_=value)), apply
        )
    yield Case(
        "a header with other classes", model(lambda d: d.update(classes=["a", "b", "c"])), apply
    )
    yield Case("an unknown fitted attribute", model(fitted(extra_=1)), apply)
    yield Case("10^18 classes", model(fitted(n_classes_=10**18)), apply)
    yield Case(
        "text of 5 GB",
        model(
            fitted(
                classes_={
                    "array": "text65536",
                    "shape": [20_000],
                    "data": [f"c{k}" for k in range(20_000)],
                }
            )
        ),
        apply,
    )
    yield Case(
        "arrays that broadcast to 6 GB",
        model(fitted(a_=zeros(400, 1, 1), b_=zeros(1, 800, 1)), calibrant.BetaCalibration()),
        apply,
    )
    yield Case(
        "an empty array of 2^28 columns",
        model(fitted(draws_=zeros(0, 2**28)), calibrant.GaussianProcessCalibration(n_inducing=4)),
        apply,
    )
    yield Case(
        "20 levels with two references each",
        model(nested, calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=2)),
        apply,
    )
    yield Case(
        "a wrong number of bins",
        model(fitted(n_bins_=10**9), calibrant.CanonicalBinning(n_bins=4)),
        apply,
    )
    yield Case(
        "a class of another package",
        model(lambda d: d["models"][-1].update({"class": "os.system"})),
        apply,
    )
    yield Case("an unknown schema version", model(lambda d: d.update(schema=99)), apply)
    for name, raw in {
        "100,000 nested brackets": b"[" * 100_000,
        "a truncated model": b'{"format": "calibrant-model", "schema"',
        "a pickle": b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94.",
        "NaN in a model": b'{"format": "calibrant-model", "schema": NaN}',
    }.items():
        yield Case(name, lambda raw=raw: write("m.json", raw), apply)
    yield Case("a folder in place of the model", lambda: os.mkdir("m.json"), apply)
    yield Case("a missing model", csv(), apply)


def cases() -> list[Case]:
    """All of them."""
    return [*_texts(), *_arguments(), *_arrays(), *_parquets(), *_models()]


def measure(case: Case) -> Outcome:
    """Run a case in a folder and a process of its own; memory is what it takes beyond an idle
    one.
    """
    idle = _idle_megabytes()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        case.make()
        before = contents()
        outcome = _run_forked(case.command.split())
        after = contents()
    if set(after) - set(before):
        raise AssertionError(f"{case.name}: left {set(after) - set(before)} behind")
    outcome = outcome._replace(n_lost=sum(after.get(path) != before[path] for path in before))
    message = outcome.message.replace(f"{os.path.realpath(folder)}/", "")
    return outcome._replace(message=message, megabytes=max(0.0, outcome.megabytes - idle))


def contents() -> dict[str, bytes]:
    """The files of the current folder."""
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def working_folder() -> None:
    """A reference, a week, a model, and the state of a monitor that has counted a week."""
    for name, label in zip(("ref", "w1", "w2"), NAMES, strict=True):
        csv(f"{name}.csv", line=f"0.2,0.3,0.5,{label}")()
    with open(os.devnull, "w") as nowhere:
        for command in (
            "fit ref.csv -m temperature -o m.json",
            "monitor start ref.csv -o s.json",
            "monitor update s.json w1.csv",
        ):
            run_quietly(command.split(), nowhere)
    write("s.html", Path("s.json").read_bytes())


REPLACING = (
    "monitor update s.json w2.csv --metrics s.json",
    "monitor update s.json w2.csv --metrics w2.csv",
    "monitor update s.json w2.csv --metrics m.json",
    "monitor update s.json w1.csv",
    "monitor start ref.csv -o ref.csv",
    "monitor start ref.csv -o w1.csv",
    "monitor start ref.csv -o s.json",
    "monitor start ref.csv -o m.json",
    "monitor show s.html -o s.html",
    "fit ref.csv -m temperature -o ref.csv",
    "fit ref.csv -m temperature -o w1.csv",
    "fit ref.csv -m temperature -o s.json",
    "report ref.csv -m temperature -o m.json",
    "report w1.csv --model m.json -o m.json",
    "export m.json --to python -o s.json",
    "apply m.json ref.csv -o m.json",
)
"""Commands that would replace their input, another kind of file, or a state with rows in it."""

_SPELLINGS = (
    (("True", "False"), ("True", "False")),
    (("true", "false"), ("True", "False")),
    (("01", "02", "03"), ("01", "02", "03")),
    (("01", "02", "03"), ("1", "2", "3")),
    (("1.0", "2.0", "3.0"), ("1", "2", "3")),
    (("1.0", "2.0", "3.0"), ("1.0", "2.0", "3.0")),
    (("1", "01"), ("1", "01")),
    (("1", "1.0"), ("1", "1.0")),
    (("1", "True"), ("1", "True")),
    (("-1", "0", "1"), ("-1", "0", "1")),
    (("yes", "no"), ("True", "False")),
    (("b", "a"), ("b", "a")),
)
"""Names of columns, and labels of a file whose highest score is always correct."""


def label_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield files of numeric or boolean labels, some of which have one missing label."""
    for classes, labels in _SPELLINGS:
        for n_used in sorted({len(labels), max(1, len(labels) - 1)}):
            yield f"{'/'.join(classes)} {n_used}", partial(_write_labels, classes, labels[:n_used])


def _write_labels(classes: tuple[str, ...], labels: tuple[str, ...]) -> None:
    lines = [",".join([*(f"p_{name}" for name in classes), "y"])]
    for number in range(30):
        place = number % len(labels)
        scores = [0.8 if k == place else 0.2 / (len(classes) - 1) for k in range(len(classes))]
        lines.append(",".join([*map(repr, scores), labels[place]]))
    write("x.csv", "\n".join(lines) + "\n")


def count_labels(outcomes: list[Outcome]) -> tuple[int, int, int]:
    """Count label files that were read correctly, rejected, or read wrong without an error."""
    accepted = [json.loads(outcome.message) for outcome in outcomes if outcome.code == 0]
    right = sum(result["accuracy"] == 1.0 for result in accepted)
    rejected = sum(outcome.code == 2 for outcome in outcomes)
    return right, rejected, len(accepted) - right


def count_failures(outcomes: list[Outcome]) -> list[int]:
    """Count inputs that were lost or changed, tracebacks, and processes that a signal ended."""
    return [
        sum(outcome.n_lost > 0 for outcome in outcomes),
        sum("Traceback" in outcome.message or outcome.code == 1 for outcome in outcomes),
        sum(outcome.code < 0 for outcome in outcomes),
    ]


def counts(measured: list[Outcome]) -> str:
    """Return the section with the table of counts."""
    replacing = [measure(Case(text, working_folder, text)) for text in REPLACING]
    command = "evaluate x.csv --label y --json"
    labels = [measure(Case(name, make, command)) for name, make in label_cases()]
    right, rejected, wrong = count_labels(labels)
    rows = [
        [
            "hostile and damaged inputs in the next table",
            len(measured),
            *count_failures(measured),
            "-",
        ],
        ["commands that would replace a file", len(replacing), *count_failures(replacing), "-"],
        ["numeric labels", len(labels), *count_failures(labels), wrong],
    ]
    header = [
        "inputs",
        "number",
        "data losses",
        "tracebacks",
        "crashes",
        "wrong labels without an error",
    ]
    return (
        "## Counts\n\n"
        + markdown_table(header, rows)
        + f"\n\nCommands read {right} files with numeric labels correctly and reject {rejected} as "
        "ambiguous.\n\n"
    )


@cache
def _idle_megabytes() -> float:
    """Memory of an idle process after all imports."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        csv()()
        with open(os.devnull, "w") as nowhere:
            run_quietly(["fit", "x.csv", "-m", "identity", "-o", "m.json"], nowhere)
        return _run_forked(["--version"]).megabytes


def _run_forked(arguments: list[str]) -> Outcome:
    start = time.perf_counter()
    child = os.fork()
    if not child:
        _become(arguments)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    message = Path("output.txt").read_text(encoding="utf-8", errors="replace")
    Path("output.txt").unlink()
    return Outcome(os.waitstatus_to_exitcode(status), message, used.ru_maxrss / 1024, seconds)


def _become(arguments: list[str]) -> None:
    """Run a command with its output in a file, and end the process."""
    resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
    code = 1
    try:
        with open("output.txt", "w", encoding="utf-8", errors="surrogateescape") as output:
            sys.stdout = sys.stderr = output
            code = run([*arguments, "-q"] if len(arguments) > 1 else arguments)
    finally:
        os._exit(code)


def page() -> str:
    """Return the text of the page."""
    measured = [(case, measure(case)) for case in cases()]
    lines = [
        [
            c.name,
            c.command,
            o.code,
            " ".join(o.message.split())[:200],
            f"{o.megabytes:.0f}",
            f"{o.seconds:.1f}",
        ]
        for c, o in measured
    ]
    return (
        "# Hostile and damaged inputs\n\n"
        f"This page lists {len(lines)} damaged, contradictory or hostile inputs, with the message\n"
        "of the command line. Each command ends with exit\n"
        "code 2 and a one-line message. No command writes a file, executes code from a file, or\n"
        "prints control characters to the terminal. Memory (MB) is the additional memory compared\n"
        "with an idle command, and time is in seconds. `tools/make_hostile_files.py` writes\n"
        "this page, and the slow tests run all commands.\n\n"
        + counts([outcome for _, outcome in measured])
        + "## Inputs and messages\n\n"
        + markdown_table(["input", "command", "exit", "message", "MB", "s"], lines)
        + "\n\n"
        + FUZZED
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
