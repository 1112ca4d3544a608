"""Files that are changed at random are accepted or rejected, and nothing else happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("resource")

SCRIPT = Path(__file__).parents[2] / "tools" / "fuzz_files.py"


@pytest.mark.parametrize("n_inputs", [400, pytest.param(5000, marks=pytest.mark.slow)])
def test_changed_files_are_accepted_or_rejected(n_inputs):
    # A process of its own, because it forks, which threads of other tests do not survive.
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--inputs", str(n_inputs)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{n_inputs} inputs, 0 failures" in done.stdout
