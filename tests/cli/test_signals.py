"""Signals that come at a bad moment."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from calibrant.cli._signals import Termination, catch_signals


def test_a_signal_during_an_import_is_handled_afterwards(tmp_path):
    (tmp_path / "slow_module.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\ndone = True\n"
    )
    script = (
        "import os, signal, time\n"
        "from calibrant import cli\n"
        "def slow(arguments):\n"
        "    import slow_module\n"
        "    print(slow_module.done, flush=True)\n"
        "    time.sleep(60)\n"
        "cli._run = slow\n"
        "cli.main([])\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (child.returncode, child.stdout) == (128 + signal.SIGTERM, "True\n")
    assert child.stderr == "calibrant: The command was interrupted. No file was written.\n"


def test_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Termination), catch_signals():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_platform_without_timers_and_hangups_ends_at_once(monkeypatch):
    for name in ("setitimer", "SIGALRM", "SIGHUP"):
        monkeypatch.delattr(signal, name, raising=False)

    def interrupted():
        with catch_signals():
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Termination) as ended:
        interrupted()
    assert ended.value.args == (signal.SIGTERM,)
