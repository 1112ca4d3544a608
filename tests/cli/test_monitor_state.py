"""What the file of a monitor keeps for later updates."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from calibrant.cli import _monitor_state
from calibrant.cli._monitor_state import digest_rows, note_file, recall_options, scores_of
from calibrant.cli._options import WeightedFileArguments
from calibrant.io import LoadedRows
from calibrant.monitoring import CalibrationMonitor


@pytest.fixture
def monitor():
    return CalibrationMonitor(classes=["a", "b"])


def test_options_of_an_update_win_over_those_of_the_start(monitor):
    monitor.metadata["options"] = {"label": "y", "proba": "p_*", "sep": ";"}
    data = WeightedFileArguments(Path("x.csv"), label="z", logits="z_*", classes="b,a")
    used = recall_options(monitor, data)
    assert (used.label, used.proba, used.logits, used.sep) == ("z", None, "z_*", ";")
    assert used.classes is None


@pytest.mark.parametrize("options", [[], {"file": "x"}, {"label": 7}])
def test_damaged_options_are_rejected(options, monitor):
    monitor.metadata["options"] = options
    with pytest.raises(ValueError, match="'options' in the metadata"):
        recall_options(monitor, WeightedFileArguments(Path("x.csv")))


@pytest.mark.parametrize("columns", [7, [1, 2]])
def test_damaged_columns_are_rejected(columns, monitor):
    monitor.metadata["columns"] = columns
    with pytest.raises(ValueError, match="'columns' in the metadata"):
        scores_of(monitor)


@pytest.mark.parametrize("files", [7, ["x"]])
def test_damaged_digests_are_rejected(files, monitor):
    monitor.metadata["files"] = files
    with pytest.raises(ValueError, match="'files' in the metadata"):
        note_file(monitor, "week", "0", again=False)


def test_a_digest_depends_on_scores_labels_weights_and_groups(rng):
    scores, labels = rng.dirichlet(np.ones(2), 5), np.array(list("ababa"))
    digests = {
        digest_rows(LoadedRows(scores, labels, None), None),
        digest_rows(LoadedRows(scores[::-1], labels, None), None),
        digest_rows(LoadedRows(scores, labels[::-1], np.ones(5)), None),
        digest_rows(LoadedRows(scores, labels, 2 * np.ones(5)), None),
        digest_rows(LoadedRows(scores, labels, None), list("nnsss")),
    }
    assert len(digests) == 5
    assert digest_rows(LoadedRows(scores.copy(), labels, None), None) in digests


@pytest.fixture
def windows(monkeypatch):
    """No flock, and open files cannot be removed."""
    opened, close, unlink = {}, os.close, Path.unlink

    def open_file(path, *args, open=os.open):
        descriptor = open(path, *args)
        opened[descriptor] = Path(path)
        return descriptor

    def close_file(descriptor):
        opened.pop(descriptor, None)
        close(descriptor)

    def unlink_file(path, missing_ok=False):
        if path in opened.values():
            raise PermissionError(32, "The file is used by another process", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(_monitor_state, "fcntl", None)
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "close", close_file)
    monkeypatch.setattr(Path, "unlink", unlink_file)


def test_a_state_is_locked_and_released_where_there_is_no_flock(windows, tmp_path):
    state = tmp_path / "state.json"
    for _ in range(2):
        with _monitor_state.locked(state):
            with pytest.raises(ValueError, match=r"locked by another update\. If no other"):
                _monitor_state.locked(state).__enter__()
            assert os.listdir(tmp_path) == ["state.json.lock"]
        assert os.listdir(tmp_path) == []
