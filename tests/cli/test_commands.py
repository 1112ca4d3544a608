"""What the commands do, without the command line."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import calibrant
from calibrant import _validation
from calibrant.cli._commands import evaluate_file, fit_file, make_calibrator
from calibrant.io import open_scores


@pytest.fixture
def path(tmp_path, rng):
    proba = rng.dirichlet(np.ones(3), 300)
    np.savez(
        tmp_path / "data.npz",
        logits=3 * np.log(proba),
        labels=calibrant.datasets.draw_labels(proba, rng=rng),
        class_names=np.array(["a", "b", "c"]),
    )
    return tmp_path / "data.npz"


def fitted(path, name, notion=None):
    file = open_scores(path)
    rows, calibrator = file.load(), make_calibrator(name, notion, file, 0)
    return rows, file, fit_file(rows, file, calibrator, name, path.with_name("model.json"))


def test_a_file_is_evaluated_as_its_arrays_are(path):
    data = np.load(path)
    expected = calibrant.evaluate(data["labels"], data["logits"], inputs="logits")
    assert evaluate_file(open_scores(path), 15) == expected


def test_scores_of_a_fit_are_checked_when_read_and_when_fitted_and_not_again(path, monkeypatch):
    calls = []

    def counted(scores, **options):
        calls.append(len(scores))
        return check_scores(scores, **options)

    check_scores = _validation.check_scores
    for module in ("_validation", "io._score_file", "base.new_scores"):
        monkeypatch.setattr(f"calibrant.{module}.check_scores", counted)
    fitted(path, "temperature")
    assert calls.count(300) == 2


def test_a_fit_reports_its_rows_before_and_after(path):
    rows, file, result = fitted(path, "histogram", "class-wise")
    model = calibrant.load(path.with_name("model.json"))
    before = calibrant.evaluate(rows.labels, rows.scores, inputs="logits", classes=file.classes)
    after = calibrant.evaluate(rows.labels, model.predict_proba(rows.scores), classes=file.classes)
    assert result.before == before
    assert result.after.to_dict() == pytest.approx(after.to_dict(), abs=1e-12)


def test_the_seed_reaches_a_calibrator_inside_another(path):
    file = open_scores(path)
    assert make_calibrator("histogram", "top-label", file, 7).calibrator.random_state == 7
    assert make_calibrator("auto", None, file, 7).random_state == 7


def test_a_calibrator_of_one_score_column_is_loaded_and_applied(tmp_path, rng):
    proba = rng.random(300)
    lines = [f"{p},{y}" for p, y in zip(proba, (rng.random(300) < proba).astype(int), strict=True)]
    path = tmp_path / "binary.csv"
    path.write_text("\n".join(["p,label", *lines]) + "\n")
    file = open_scores(path, proba="p", label="label")
    rows, calibrator = file.load(), make_calibrator("beta", None, file, 0)
    fit_file(rows, file, calibrator, "beta", tmp_path / "model.json")
    loaded = calibrant.load(tmp_path / "model.json")
    assert loaded.feature_names_in_.tolist() == ["p"]
    np.testing.assert_array_equal(loaded.predict_proba(proba), calibrator.predict_proba(proba))


def test_a_fit_to_rows_of_one_class_prints_a_note(path):
    data = dict(np.load(path))
    rows = data["labels"] == 1
    np.savez(path, **data | {"logits": data["logits"][rows], "labels": data["labels"][rows]})
    *_, result = fitted(path, "identity")
    assert result.notes.startswith("All rows have the label 'b', so the calibrator cannot learn")
