"""Promises about hostile and damaged files, lost data and the command line, by their findings."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from calibrant._files import write_text, written_aside
from calibrant.cli import run

pa = pytest.importorskip("pyarrow")
pa_parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("typer")


def command(capsys, *arguments, code=0):
    assert run([str(a) for a in arguments]) == code, capsys.readouterr().err
    return capsys.readouterr()


# Writing


def test_d1_3_a_planted_link_is_not_followed(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "model.json"
    victim.write_text("precious")
    (tmp_path / f".model.json.{os.getpid()}.part").symlink_to(victim)
    write_text(target, "new")
    assert victim.read_text() == "precious"
    assert target.read_text() == "new"
    assert not target.is_symlink()


def test_d1_3_the_name_of_the_file_aside_cannot_be_foreseen(tmp_path):
    seen = set()
    for _ in range(20):
        with written_aside(tmp_path / "out") as aside:
            seen.add(aside.name)
    assert len(seen) == 20


def test_d1_3_many_may_save_to_one_path_at_once(tmp_path):
    path, errors = tmp_path / "model.json", []

    def save(text):
        for _ in range(25):
            try:
                write_text(path, text * 1000)
            except OSError as error:
                errors.append(error)

    threads = [threading.Thread(target=save, args=(str(k),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(path.read_text())) == 1
    assert os.listdir(tmp_path) == ["model.json"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_d1_6_a_file_that_is_overwritten_keeps_its_mode(mode, tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_user_gives_new_files(tmp_path):
    write_text(tmp_path / "ours", "")
    (tmp_path / "theirs").write_text("")
    modes = {(tmp_path / name).stat().st_mode for name in ("ours", "theirs")}
    assert len(modes) == 1


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    write_text(tmp_path / ("n" * 255), "text")
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_d1_10_a_signal_leaves_the_old_output_and_nothing_else(number, tmp_path):
    (tmp_path / "out").write_text("old")
    script = (
        "import sys, time\n"
        "from calibrant import cli, _files\n"
        "def slow(arguments):\n"
        "    with _files.written_aside('out') as aside:\n"
        "        aside.write_text('half')\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "cli._run = slow\n"
        "cli.main([])\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "writing\n"
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert said == "calibrant: interrupted; nothing was written\n"
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "old"
