"""Output files, monitor states and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")
pytest.importorskip("fcntl")

import calibrant
from calibrant.cli import run

HEADER = "p_cat,p_dog,p_owl,y"
NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A reference, two weeks, a model and the state of a monitor that has counted one week."""
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "w1", "w2"):
        write_week(f"{name}.csv", rng)
    assert run(["fit", "ref.csv", "-m", "temperature", "-o", "m.json", "-q"]) == 0
    assert run(["monitor", "start", "ref.csv", "-o", "s.json", "-q"]) == 0
    assert run(["monitor", "update", "s.json", "w1.csv", "-q"]) == 0
    return tmp_path


def write_week(path, rng, n_rows=300, power=1.0):
    proba = rng.dirichlet(np.full(3, 0.5), n_rows)
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    labels = NAMES[calibrant.datasets.draw_labels(truth, rng=rng)]
    rows = zip(proba.tolist(), labels, strict=True)
    lines = [f"{','.join(map(repr, row))},{label}" for row, label in rows]
    Path(path).write_text("\n".join([HEADER, *lines]) + "\n")


def n_counted(path="s.json"):
    return json.loads(Path(path).read_text())["n_rows"]


def rejected(capsys, *arguments):
    capsys.readouterr()
    assert run([*arguments]) == 2
    return capsys.readouterr().err


def start(*arguments, **options):
    """A command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "calibrant", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        **{"stdout": subprocess.PIPE, **options},
    )


# Files that would be replaced


@pytest.mark.parametrize(
    "arguments",
    [
        ("monitor", "update", "s.json", "w2.csv", "--metrics", "s.json"),
        ("monitor", "update", "s.json", "w2.csv", "--metrics", "w2.csv"),
        ("monitor", "update", "s.json", "w2.csv", "--metrics", "m.json"),
        ("monitor", "start", "ref.csv", "-o", "ref.csv"),
        ("monitor", "start", "ref.csv", "-o", "w1.csv"),
        ("monitor", "start", "ref.csv", "-o", "s.json"),
        ("monitor", "start", "ref.csv", "-o", "m.json"),
        ("monitor", "show", "s.html", "-o", "s.html"),
        ("fit", "ref.csv", "-m", "temperature", "-o", "w1.csv"),
        ("fit", "ref.csv", "-m", "temperature", "-o", "s.json"),
        ("report", "ref.csv", "-m", "temperature", "-o", "m.json"),
        ("export", "m.json", "--to", "python", "-o", "s.json"),
    ],
    ids=" ".join,
)
def test_a_command_replaces_neither_its_input_nor_a_file_of_another_kind(arguments, folder, capsys):
    os.link("s.json", "s.html")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "would be overwritten" in rejected(capsys, *arguments)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_monitor_state_with_rows_is_replaced_only_with_the_option_force(folder, capsys):
    said = rejected(capsys, "monitor", "start", "ref.csv", "-o", "s.json")
    assert "contains a monitor state with 300 rows" in said
    assert "--force" in said
    assert run(["monitor", "start", "ref.csv", "-o", "s.json", "--force", "-q"]) == 0
    assert n_counted() == 0
    assert run(["monitor", "start", "ref.csv", "-o", "s.json", "-q"]) == 0  # it counts nothing


def test_an_output_of_the_same_kind_is_replaced(folder):
    for _ in range(2):
        assert run(["fit", "ref.csv", "-m", "temperature", "-o", "m.json", "-q"]) == 0
        assert run(["apply", "m.json", "w1.csv", "-o", "out.csv", "-q"]) == 0
    for week in ("w2", "ref"):
        update = ["monitor", "update", "s.json", f"{week}.csv", "--metrics", "x.prom", "-q"]
        assert run(update) == 0


def test_raw_scores_of_arrays_are_kept_and_not_calibrated_twice(folder, rng, capsys):
    proba = rng.dirichlet(np.ones(3), 50)
    np.save("x.npy", proba)
    np.savez("x.npz", probs=proba)
    assert "would be overwritten" in rejected(capsys, "apply", "m.json", "x.npy", "-o", "x.npy")
    assert run(["apply", "m.json", "x.npz", "-o", "x.npz", "-q"]) == 0
    said = rejected(capsys, "apply", "m.json", "x.npz", "-o", "x.npz")
    assert "already calibrated" in said
    np.testing.assert_array_equal(np.load("x.npy"), proba)
    with np.load("x.npz") as arrays:
        np.testing.assert_array_equal(arrays["raw_probs"], proba)


# Updates of a monitor


def test_a_monitor_recognizes_a_file_that_was_already_added(folder, rng, capsys):
    Path("copy.csv").write_bytes(Path("w1.csv").read_bytes())
    assert "These rows were already added with the name 'w1'" in rejected(
        capsys, "monitor", "update", "s.json", "copy.csv"
    )
    said = rejected(capsys, "monitor", "update", "s.json", "w2.csv", "--when", "w1")
    assert "An update with the name 'w1' was already added" in said
    assert n_counted() == 300
    assert run(["monitor", "update", "s.json", "copy.csv", "--again", "-q"]) == 0
    assert n_counted() == 600


def test_the_digest_of_rows_does_not_depend_on_the_format_of_the_file(folder, capsys):
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.csv.read_csv("w1.csv"), "w1-again.parquet")
    said = rejected(capsys, "monitor", "update", "s.json", "w1-again.parquet")
    assert "These rows were already added" in said


def test_an_update_has_a_separate_exit_code_if_its_output_cannot_be_written(folder, rng):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    write_week("w3.csv", rng)
    with open("/dev/full", "w") as full:
        for arguments, out in (
            (["w2.csv", "--metrics", "/dev/full"], subprocess.PIPE),
            (["w3.csv"], full),
        ):
            child = start("monitor", "update", "s.json", *arguments, stdout=out)
            said = child.communicate(timeout=120)[1]
            assert child.returncode == 4
            assert "The rows were added, but the results could not be written" in said
            assert "Traceback" not in said
    assert n_counted() == 900


def test_a_pipe_is_rejected_as_an_output_for_metrics(folder, capsys):
    os.mkfifo("pipe")
    update = ("monitor", "update", "s.json", "w2.csv", "--metrics", "pipe")
    assert "is a pipe" in rejected(capsys, *update)
    assert n_counted() == 300


def test_an_alarm_sets_the_exit_code_even_if_the_pipe_is_closed(folder, rng):
    write_week("bad.csv", rng, n_rows=6000, power=0.2)
    read, write = os.pipe()
    os.close(read)
    child = start("monitor", "update", "s.json", "bad.csv", "-q", stdout=write)
    os.close(write)
    assert (child.communicate(timeout=120)[1], child.returncode) == ("", 3)


def test_class_names_that_a_terminal_cannot_show_are_escaped(folder):
    for path in ("ref.csv", "w2.csv"):
        text = Path(path).read_text(encoding="utf-8").replace("cat", "kät")
        Path(path).write_text(text, encoding="utf-8")
    assert run(["monitor", "start", "ref.csv", "-o", "t.json", "-q"]) == 0
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    child = start("monitor", "update", "t.json", "w2.csv", "-q", env=environment)
    out, said = child.communicate(timeout=120)
    assert (child.returncode, said) == (0, "")
    assert out.isascii()


def test_an_update_through_a_symbolic_link_uses_the_same_lock(folder, capsys):
    from calibrant.cli._monitor_state import locked

    Path("sub").mkdir()
    Path("sub/link.json").symlink_to("../s.json")
    with locked(Path("s.json")):
        assert "locked" in rejected(capsys, "monitor", "update", "sub/link.json", "w2.csv")
    assert run(["monitor", "update", "sub/link.json", "w2.csv", "-q"]) == 0
    assert Path("sub/link.json").is_symlink()
    assert n_counted() == 600


def test_a_lock_is_released_when_its_process_is_killed(folder):
    script = (
        "import time\n"
        "from pathlib import Path\n"
        "from calibrant.cli._monitor_state import locked\n"
        "with locked(Path('s.json')):\n"
        "    print('locked', flush=True)\n"
        "    time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "locked\n"
    assert run(["monitor", "update", "s.json", "w2.csv", "-q"]) == 2
    child.kill()
    child.wait()
    child.stdout.close()
    assert run(["monitor", "update", "s.json", "w2.csv", "-q"]) == 0


@pytest.mark.slow
def test_two_simultaneous_updates_are_each_counted_or_rejected(folder, rng):
    for name in "abcd":
        write_week(f"{name}.csv", rng)
    Path("link.json").symlink_to("s.json")
    children = [
        start("monitor", "update", state, f"{name}.csv", "-q")
        for name, state in zip("abcd", ["s.json", "link.json"] * 2, strict=True)
    ]
    for child in children:
        child.communicate(timeout=200)
    codes = [child.returncode for child in children]
    assert set(codes) <= {0, 2}
    assert n_counted() == 300 * (1 + codes.count(0))


def test_an_update_that_would_write_an_unreadable_state_keeps_the_old_state(folder, capsys):
    state = json.loads(Path("s.json").read_text())
    Path("s.json").write_text(json.dumps({**state, "n_rows": 10**15}))
    before = Path("s.json").read_bytes()
    rejected(capsys, "monitor", "update", "s.json", "w2.csv")
    assert Path("s.json").read_bytes() == before


def test_monitor_start_stores_the_options_that_updates_need(folder, capsys):
    for name in ("ref", "w1"):
        text = Path(f"{name}.csv").read_text().replace(HEADER, "s1,s2,s3,outcome")
        text = text.replace(",", ";").replace(".", ",")
        Path(f"{name}-de.csv").write_text(text)
    options = ["--label", "outcome", "--proba", "s1,s2,s3", "--classes", "cat,dog,owl"]
    signs = ["--sep", ";", "--decimal", ","]
    begin = ["monitor", "start", "ref-de.csv", "-o", "t.json", *options, *signs]
    assert run(begin) == 0
    assert "calibrant monitor update t.json" in capsys.readouterr().out
    assert run(["monitor", "update", "t.json", "w1-de.csv", "-q", "--json"]) == 0
    step = json.loads(capsys.readouterr().out)
    assert run(["monitor", "show", "s.json", "--json"]) == 0
    assert step["nats"] == json.loads(capsys.readouterr().out)["nats"]


# Signals


def test_the_message_about_a_signal_states_whether_the_output_was_written(tmp_path):
    script = (
        "import os, signal\n"
        "from calibrant import cli\n"
        "from calibrant._output import files\n"
        "def slow(arguments):\n"
        "    files.write_text('out', 'text')\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "cli._run = slow\n"
        "cli.main([])\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert child.returncode == 128 + signal.SIGTERM
    assert child.stderr == "calibrant: The command was interrupted. Files written: out.\n"


@pytest.mark.slow
def test_a_signal_at_any_moment_ends_a_command_with_a_one_line_message(folder):
    import time

    for place in range(12):
        child = start("fit", "ref.csv", "-m", "temperature", "-o", f"x{place}.json", "-q")
        time.sleep(0.15 * place)
        child.send_signal([signal.SIGTERM, signal.SIGINT][place % 2])
        said = child.communicate(timeout=120)[1]
        # Before the command begins, Python itself reacts to the signal.
        is_early = child.returncode in (-signal.SIGTERM, -signal.SIGINT)
        is_early = is_early or "KeyboardInterrupt" in said
        is_late = child.returncode == 0
        assert is_early or is_late or said.startswith("calibrant: The command was interrupted."), (
            said
        )
        assert ("No file was written" in said) <= (not Path(f"x{place}.json").exists())
