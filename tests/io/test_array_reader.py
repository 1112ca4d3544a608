"""Files of NumPy arrays: what their heads say, and names that are understood."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from calibrant.io import _array_reader
from calibrant.io._array_reader import ArrayReader
from calibrant.io._roles import FileOptions, ModelScores

PROBA = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])


def opened(path, model=None, **options):
    return ArrayReader(FileOptions(path, **options), needs_label=True, model=model)


def test_class_names_must_be_as_many_as_columns(tmp_path):
    np.savez(tmp_path / "a.npz", y_prob=PROBA, y_true=[0, 1, 1], class_names=["a", "b"])
    assert opened(tmp_path / "a.npz").names == ("a", "b")
    np.savez(tmp_path / "b.npz", probs=PROBA, labels=[0, 1, 1], class_names=["a"])
    with pytest.raises(
        ValueError, match=r"class_names has shape \(1,\), but the scores have 2 columns"
    ):
        opened(tmp_path / "b.npz")


def test_packed_arrays_are_read(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", logits=np.log(PROBA), labels=[0, 1, 1])
    source = opened(tmp_path / "a.npz")
    assert (source.inputs, source.n_rows) == ("logits", 3)


def test_weights_are_an_array_that_the_user_names(tmp_path):
    np.savez(tmp_path / "a.npz", probs=PROBA, labels=[0, 1, 1], w=[1, 0, 3])
    (block,) = opened(tmp_path / "a.npz", weight="w").blocks()
    assert block.weight.tolist() == [1.0, 0.0, 3.0]
    for name in ("v", "probs"):
        with pytest.raises(ValueError, match=f"no array '{name}' with one number per row"):
            opened(tmp_path / "a.npz", weight=name)


def test_columns_are_put_in_the_order_of_a_model(tmp_path):
    np.savez(tmp_path / "a.npz", probs=PROBA, labels=["a", "b", "b"], class_names=["a", "b"])
    model = ModelScores(np.array(["b", "a"]), "proba")
    (block,) = opened(tmp_path / "a.npz", model).blocks()
    np.testing.assert_array_equal(block.scores, PROBA[:, ::-1])


def test_labels_in_a_file_of_their_own_are_not_kept_in_memory(tmp_path, monkeypatch):
    np.save(tmp_path / "p.npy", np.tile(PROBA, (100, 1)))
    np.save(tmp_path / "y.npy", np.tile([0, 1, 1], 100))
    monkeypatch.setattr(_array_reader, "WORK_MEMORY", 200)
    sizes = []
    read = _array_reader.FileArray.__getitem__
    monkeypatch.setattr(
        _array_reader.FileArray,
        "__getitem__",
        lambda array, rows: (sizes.append(rows.stop - rows.start), read(array, rows))[1],
    )
    reader = opened(tmp_path / "p.npy", labels=tmp_path / "y.npy")
    blocks = list(reader.blocks())
    assert sum(len(block.labels) for block in blocks) == 300
    assert reader.distinct_labels() == {"0", "1"}
    assert max(sizes) <= 100
