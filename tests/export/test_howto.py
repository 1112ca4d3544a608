"""The page about export runs as it is written."""

from __future__ import annotations

import http.server
import importlib.util
import json
import re
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import export
from exported import _connect

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "guide" / "export.md"
FENCE = re.compile(r"```(\w+)(?: needs: ([^\n]*))?\n(.*?)```", re.DOTALL)
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def blocks(language):
    """Pieces of code of the page, each with the packages that it needs."""
    if not PAGE.exists():
        pytest.skip("the documentation is not at hand")
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    return [(code, needs.split()) for kind, needs, code in found if kind == language]


def run(code, space):
    exec(compile(code, PAGE.name, "exec", dont_inherit=True), space)


def run_blocks_for(package=None):
    """Run the blocks of the page in order: those that need nothing, and those of one package."""
    space = {}
    for code, needs in blocks("python"):
        if not needs or package in needs:
            run(code, space)


def test_the_page_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the page saves a model
    _connect("sqlite").close()
    run_blocks_for()
    assert "softmax" in capsys.readouterr().out


@pytest.mark.parametrize("package", ["skl2onnx", "torch", "mlflow", "skops"])
@pytest.mark.filterwarnings("ignore")  # theirs
def test_the_page_runs_where_packages_are(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    needed = {name for _, needs in blocks("python") if package in needs for name in needs}
    assert needed, f"no block of the page needs {package}"
    missing = {name for name in needed if not importlib.util.find_spec(name)}
    if missing:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")
    _connect("sqlite").close()
    run_blocks_for(package)


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
def test_the_browser_page_shows_what_the_calibrator_says(tmp_path):
    (page,) = [code for code, _ in blocks("html")]
    model = calibrant.TemperatureScaling(prior_scale=0.5, classes=["cat", "dog", "owl"])
    model.fit([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], ["cat", "dog", "cat"])
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    (tmp_path / "calibrator.mjs").write_text(export.to_javascript(model), encoding="utf-8")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Silent, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        shown = shown_by_browser(f"http://127.0.0.1:{server.server_port}/index.html", tmp_path)
    finally:
        server.shutdown()
        server.server_close()
    label, _, numbers = re.search(r'id="answer">(.*?)</p>', shown).group(1).partition(" ")
    assert label == model.predict([[0.7, 0.2, 0.1]])[0]
    expected = model.predict_proba([[0.7, 0.2, 0.1]])[0]
    assert np.abs(np.array(json.loads(numbers)) - expected).max() <= 1e-15


def shown_by_browser(address, folder):
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    command = [BROWSER, *options, "--virtual-time-budget=10000", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()
