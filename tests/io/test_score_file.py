"""Files of predictions, opened and not read."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling, evaluate
from calibrant._kernels.simplex import log_softmax
from calibrant.exceptions import DataWarning
from calibrant.io import _score_file as score_file
from calibrant.io import open_scores
from top_rows import best

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
    monkeypatch.setattr("calibrant.io._readers.WORK_MEMORY", 400)
    monkeypatch.setattr("calibrant.io._array_reader.WORK_MEMORY", 400)
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


def test_an_array_is_read_in_blocks_with_labels_beside_it(data, tmp_path):
    logits, labels = data
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.save(tmp_path / "p.npy", proba.astype(np.float32))
    np.save(tmp_path / "y.npy", labels)
    file = open_scores(tmp_path / "p.npy", labels=tmp_path / "y.npy")
    assert not isinstance(file.reader.scores, np.ndarray)
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
    with pytest.raises(ValueError, match=r"Pass proba='b' if these .* or logits='b' if these are"):
        open_scores(tmp_path / "x.parquet", label="a")
    with pytest.raises(ValueError, match="an unknown file extension"):
        open_scores(write_text(tmp_path / "x.xls"))
    with pytest.raises(FileNotFoundError):
        open_scores(tmp_path / "none.parquet")


def test_signs_in_the_names_of_columns_are_no_options(tmp_path):
    columns = {"score--cat": [0.5], "score--dog": [0.5], "year": [3], "y": ["cat"]}
    pa_parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="The columns are score--cat, score--dog, year"):
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


def test_all_rows_can_be_loaded(data, tmp_path):
    logits, labels = data
    file = open_scores(write(tmp_path / "scores.parquet", logits, labels), weight="w")
    scores, names, weight = file.load()
    np.testing.assert_array_equal(scores, logits)
    np.testing.assert_array_equal(names, NAMES[labels])
    np.testing.assert_array_equal(weight, np.arange(500) % 3)
    assert open_scores(file.path).load().weight is None
    assert file.n_bytes == 500 * 3 * 8
    assert repr(file) == "<ScoreFile scores.parquet: 500 rows of logits>"


def test_what_was_guessed_can_be_read(data, tmp_path):
    path = write(tmp_path / "scores.parquet", *data)
    (guess,) = open_scores(path, classes=None).guesses
    assert guess.startswith("Reading z_pear, z_apple, z_fig as logits of 3 classes")
    assert open_scores(path, logits="z_*", label="label").guesses == ()


def test_rows_that_were_accepted_once_are_not_checked_again(data, tmp_path, monkeypatch):
    checked = []
    check = score_file.check_scores

    def count(scores, **options):
        checked.append(len(scores))
        return check(scores, **options)

    monkeypatch.setattr(score_file, "check_scores", count)
    file = open_scores(write(tmp_path / "scores.parquet", *data))
    for _ in range(3):
        assert sum(len(block.scores) for block in file.blocks()) == 500
    assert sum(checked) == 500


def test_errors_name_rows_of_the_file_and_parameters(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.io._array_reader.WORK_MEMORY", 400)
    proba = np.full((200, 2), 0.5)
    proba[101] = 0.9
    np.savez(tmp_path / "x.npz", probs=proba, labels=np.zeros(200, dtype=int))
    file = open_scores(tmp_path / "x.npz")
    with pytest.raises(
        ValueError, match=r"Row 101 .* Pass renormalize=True .*, or logits= for raw"
    ):
        file.load()
    np.testing.assert_array_equal(open_scores(file.path, renormalize=True).load().scores, 0.5)
    proba[101] = 0
    np.savez(tmp_path / "x.npz", probs=proba, labels=np.zeros(200, dtype=int))
    with pytest.raises(ValueError, match=r"Row 101 .* cannot be renormalized"):
        open_scores(file.path, renormalize=True).load()


def test_rounded_rows_are_repaired_with_one_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.io._array_reader.WORK_MEMORY", 400)
    proba = np.tile([0.333, 0.666], (300, 1))
    np.savez(tmp_path / "x.npz", probs=proba, labels=np.zeros(300, dtype=int))
    file = open_scores(tmp_path / "x.npz")
    with pytest.warns(DataWarning, match=r"\(row 0 sums .* this warning, pass renormalize=True"):
        scores = file.load().scores
    np.testing.assert_allclose(scores, [[1 / 3, 2 / 3]] * 300)
    np.testing.assert_array_equal(file.load().scores, scores)  # without a warning


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_of_the_best_classes_is_read_as_top_scores(ending, rng, tmp_path):
    log_proba = log_softmax(2 * rng.normal(size=(300, 6)))
    y = (log_proba + rng.gumbel(size=log_proba.shape)).argmax(axis=1)
    top = best(log_proba, 2)
    columns = {f"top{k + 1}_label": top.labels[:, k] for k in range(2)}
    columns |= {f"top{k + 1}_logprob": top.log_proba[:, k] for k in range(2)}
    table = pa.table({**columns, "y": y, "w": np.arange(300) % 3})
    path = tmp_path / f"top.{ending}"
    (pa_csv.write_csv if ending == "csv" else pa_parquet.write_table)(table, path)
    file = open_scores(path, n_classes=6, weight="w")
    assert (file.has_top_scores, file.n_classes, file.inputs) == (True, 6, "log_proba")
    found = evaluate(file.labels, file.scores, sample_weight=file.weight)
    assert found == evaluate(y, top, sample_weight=np.arange(300) % 3)
    with pytest.raises(ValueError, match=r"Pass n_classes= .*, or classes= with all labels"):
        open_scores(path)


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
    with pytest.raises(ValueError, match=r"'plum' in row 321 .* Pass classes="):
        evaluate(file.labels, file.scores, inputs="logits")
