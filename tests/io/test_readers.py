"""Files as blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from calibrant.io._readers import as_text, open_reader
from calibrant.io._roles import FileOptions, ModelScores

PROBA = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
LABELS = np.array([0, 1, 1])


def opened(path, model=None, needs_label=True, **said):
    return open_reader(FileOptions(path, **said), needs_label=needs_label, model=model)


def expecting(inputs):
    return ModelScores(np.arange(2), inputs)


@pytest.fixture
def both(tmp_path):
    np.savez(tmp_path / "both.npz", probs=PROBA, logits=np.log(PROBA), labels=LABELS)
    return tmp_path / "both.npz"


def test_the_model_decides_which_of_two_arrays_is_read(both):
    for inputs, scores in (("proba", PROBA), ("logits", np.log(PROBA))):
        source = opened(both, expecting(inputs))
        assert source.inputs == inputs
        np.testing.assert_array_equal(source.scores, scores)
    with pytest.raises(
        ValueError, match="only one array of scores, but the file has probs, logits"
    ):
        opened(both)


def test_splits_of_an_npz_file_are_chosen_by_name(tmp_path):
    np.savez(tmp_path / "s.npz", val_logits=PROBA, val_labels=LABELS, test_probs=PROBA)
    source = opened(tmp_path / "s.npz", split="val")
    assert (source.score_name, source.inputs, source.n_rows) == ("val_logits", "logits", 3)
    with pytest.raises(ValueError, match="pass split= with test or val"):
        opened(tmp_path / "s.npz")
    with pytest.raises(ValueError, match="has no labels"):
        opened(tmp_path / "s.npz", split="test")


def test_an_npy_file_holds_what_is_said(tmp_path):
    np.save(tmp_path / "scores.npy", PROBA)
    np.save(tmp_path / "labels.npy", LABELS)
    path = tmp_path / "scores.npy"
    assert opened(path, labels=tmp_path / "labels.npy").inputs == "proba"
    assert opened(path, labels=tmp_path / "labels.npy", logits="z").inputs == "logits"
    assert opened(path, expecting("logits"), needs_label=False).score_name == "logits"
    with pytest.raises(ValueError, match=r"Pass proba= or logits=, not both"):
        opened(path, proba="p", logits="z", needs_label=False)
    np.savez(tmp_path / "labels.npz", labels=LABELS)
    with pytest.raises(ValueError, match=r"must be an \.npy file of labels"):
        opened(path, labels=tmp_path / "labels.npz")


def test_labels_become_text_without_decimal_points():
    assert as_text(pa.array([1.0, 2.0])).to_pylist() == ["1", "2"]
    assert as_text(pa.array([True, False])).to_pylist() == ["1", "0"]
    assert as_text(pa.array(["a", "b"]).dictionary_encode()).to_pylist() == ["a", "b"]
    with pytest.raises(ValueError, match="contains other numbers"):
        as_text(pa.array([0.5]))
