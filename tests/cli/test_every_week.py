"""The script of the page about monitoring, as cron runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calibrant.cli import run
from streams import draw, sharpened

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("typer")

SCRIPT = Path(__file__).parents[2] / "docs" / "guide" / "monitor_every_week.sh"
LETTER = '#!/bin/sh\necho "$@" >> letters.txt\ncat > letter.txt\n'


def write_week(path, rng, beta=1.0, n_rows=400):
    proba = rng.dirichlet(np.full(3, 0.5), n_rows)
    labels = np.array(list("abc"))[draw(sharpened(proba, beta), rng)]
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate("abc")}
    pyarrow.parquet.write_table(pyarrow.table({**columns, "label": labels}), path)


def install(folder, name, text):
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.slow
def test_a_year_of_weekly_files_and_a_letter_about_week_thirty(tmp_path, monkeypatch, rng):
    import pyarrow.parquet  # noqa: F401

    monkeypatch.chdir(tmp_path)
    (tmp_path / "labeled").mkdir()
    (tmp_path / "bin").mkdir()
    install(tmp_path / "bin", "calibrant", f'#!/bin/sh\nexec {sys.executable} -m calibrant "$@"\n')
    install(tmp_path / "bin", "mail", LETTER)
    write_week(tmp_path / "reference.parquet", rng, n_rows=2000)
    assert run(["monitor", "start", "reference.parquet", "-o", "state.json", "-q"]) == 0
    for week in range(1, 53):
        name = f"labeled/2026-week-{week:02d}.parquet"
        write_week(tmp_path / name, rng, beta=0.5 if week >= 30 else 1.0)
        if week not in (29, 31):  # a process a week is slow: only around the drift
            code = run(["monitor", "update", "state.json", name, "-q"])
            assert code == 0 if week < 30 else code == 3 or week == 30
            continue
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [str(SCRIPT), f"2026-week-{week}"], env={**os.environ, "PATH": path}, check=False
        )
        assert done.returncode == 0
    letters = (tmp_path / "letters.txt").read_text().splitlines()
    assert len(letters) == 1  # about week 31, none of week 29
    letter, page = ((tmp_path / name).read_text() for name in ("letter.txt", "monitor.html"))
    assert letter.startswith("Alarm")
    assert "2026-week-30" in letter
    assert "credit model" in page
    assert "calibrant_monitor_alarm 1\n" in (tmp_path / "calibrant.prom").read_text()
    bad = subprocess.run(
        [str(SCRIPT), "no-such-week"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode == 1
    assert "the state is unchanged" in bad.stderr
