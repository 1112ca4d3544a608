"""Files of predictions, opened and not read."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling, evaluate
from calibrant.io import open_scores

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pa_parquet = pytest.importorskip("pyarrow.parquet")

NAMES = np.array(["pear", "apple", "fig"])


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(500, 3))
    labels = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, labels


def table_of(logits, labels):
    columns = {f"z_{name}": logits[:, k] for k, name in enumerate(NAMES)}
    return pa.table({**columns, "label": NAMES[labels], "w": np.arange(len(labels)) % 3})


def write(path, logits, labels):
    table = table_of(logits, labels)
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=90)
    elif path.suffix == ".npz":
        np.savez(path, logits=logits, labels=NAMES[labels], class_names=NAMES)
    else:
        pa_parquet.write_table(table, path, row_group_size=90)
    return path


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "npz"])
def test_a_file_is_fitted_and_evaluated_as_its_rows_are(ending, data, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.io._sources.FILE_ELEMENTS", 200)
    monkeypatch.setattr("calibrant.io._arrays.FILE_ELEMENTS", 200)
    logits, labels = data
    file = open_scores(write(tmp_path / f"scores.{ending}", logits, labels))
    assert (file.inputs, file.classes.tolist()) == ("logits", NAMES.tolist())
    model = TemperatureScaling(inputs=file.inputs).fit(file.scores, file.labels)
    whole = TemperatureScaling(inputs="logits", classes=NAMES).fit(logits, NAMES[labels])
    assert model.temperature_ == pytest.approx(whole.temperature_, rel=1e-9)
    assert model.classes_.tolist() == NAMES.tolist()
    found = evaluate(file.labels, file.scores, inputs=file.inputs)
    assert found.log_loss == pytest.approx(evaluate(labels, logits, inputs="logits").log_loss)


def test_weights_are_a_column_of_the_file(data, tmp_path):
    logits, labels = data
    file = open_scores(write(tmp_path / "scores.parquet", logits, labels), weight="w")
    found = evaluate(file.labels, file.scores, inputs="logits", sample_weight=file.weight)
    whole = evaluate(labels, logits, inputs="logits", sample_weight=np.arange(500) % 3)
    assert found.accuracy == pytest.approx(whole.accuracy)
    assert found.n_samples == whole.n_samples


def test_an_array_is_mapped_with_labels_beside_it(data, tmp_path):
    logits, labels = data
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.save(tmp_path / "p.npy", proba.astype(np.float32))
    np.save(tmp_path / "y.npy", labels)
    file = open_scores(tmp_path / "p.npy", labels=tmp_path / "y.npy")
    assert isinstance(file.source.scores, np.memmap)
    assert file.n_rows == 500
    assert evaluate(file.labels, file.scores).accuracy == evaluate(labels, proba).accuracy


def test_rows_are_divided_by_their_sum_where_it_is_asked_for(data, tmp_path):
    logits, labels = data
    weights = np.exp(logits)
    np.savez(tmp_path / "p.npz", probs=weights, labels=labels)
    file = open_scores(tmp_path / "p.npz", renormalize=True)
    whole = evaluate(labels, weights / weights.sum(axis=1, keepdims=True))
    assert evaluate(file.labels, file.scores).log_loss == pytest.approx(whole.log_loss)


def test_columns_may_be_named_one_by_one(data, tmp_path):
    logits, labels = data
    path = write(tmp_path / "scores.parquet", logits, labels)
    file = open_scores(
        path, logits=["z_fig", "z_pear", "z_apple"], classes=["fig", "pear", "apple"]
    )
    found = evaluate(file.labels, file.scores, inputs=file.inputs)
    assert found.accuracy == evaluate(labels, logits, inputs="logits").accuracy


def test_errors_name_parameters_and_not_options(tmp_path):
    pa_parquet.write_table(pa.table({"a": [0.5], "b": [0.5], "c": [1]}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="Say so by proba= or logits=, as in proba='p_"):
        open_scores(tmp_path / "x.parquet", label="a")
    with pytest.raises(ValueError, match="an ending that is not known"):
        open_scores(write_text(tmp_path / "x.xls"))
    with pytest.raises(FileNotFoundError):
        open_scores(tmp_path / "none.parquet")


def test_signs_in_the_names_of_columns_are_no_options(tmp_path):
    columns = {"score--cat": [0.5], "score--dog": [0.5], "year": [3], "y": ["cat"]}
    pa_parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="there are score--cat, score--dog, year"):
        open_scores(tmp_path / "x.parquet")


def test_log_probabilities_may_be_named(data, tmp_path):
    logits, labels = data
    log_proba = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    table = pa.table({**{f"s{k}": log_proba[:, k] for k in range(3)}, "y": labels})
    pa_parquet.write_table(table, tmp_path / "x.parquet")
    file = open_scores(tmp_path / "x.parquet", log_proba="s*")
    assert file.inputs == "log_proba"
    whole = evaluate(labels, logits, inputs="logits")
    assert evaluate(file.labels, file.scores, inputs="log_proba").log_loss == pytest.approx(
        whole.log_loss
    )


def write_text(path):
    path.write_text("nothing", encoding="utf-8")
    return path


def test_a_label_that_is_no_class_is_named_with_its_row(data, tmp_path):
    logits, labels = data
    table = table_of(logits, labels)
    names = NAMES[labels].astype(object)
    names[321] = "plum"
    table = table.set_column(3, "label", pa.array(names))
    pa_parquet.write_table(table, tmp_path / "x.parquet")
    file = open_scores(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"'plum' in row 321 .* by classes="):
        evaluate(file.labels, file.scores, inputs="logits")
