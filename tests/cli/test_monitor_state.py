"""What the file of a monitor keeps for later updates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

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
    with pytest.raises(ValueError, match="options in the metadata"):
        recall_options(monitor, WeightedFileArguments(Path("x.csv")))


@pytest.mark.parametrize("columns", [7, [1, 2]])
def test_damaged_columns_are_rejected(columns, monitor):
    monitor.metadata["columns"] = columns
    with pytest.raises(ValueError, match="columns in the metadata"):
        scores_of(monitor)


@pytest.mark.parametrize("files", [7, ["x"]])
def test_damaged_digests_are_rejected(files, monitor):
    monitor.metadata["files"] = files
    with pytest.raises(ValueError, match="files in the metadata"):
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
