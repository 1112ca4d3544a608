"""What the commands do, without the command line."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import calibrant
from calibrant import _validation
from calibrant.cli._commands import evaluate_file, fit_file, make_calibrator, read_all
from calibrant.io._columns import FileOptions


def silent(line):
    pass


def plain(blocks, n_rows):
    return blocks


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


def test_a_file_is_evaluated_as_its_arrays_are(path):
    data = np.load(path)
    expected = calibrant.evaluate(data["labels"], data["logits"], inputs="logits")
    assert evaluate_file(FileOptions(path), 15, silent, plain) == expected


def test_a_file_is_read_whole_with_codes_and_labels(path):
    rows = read_all(FileOptions(path), silent, plain)
    np.testing.assert_array_equal(rows.y, np.load(path)["labels"])
    assert set(rows.labels) == {"a", "b", "c"}
    assert rows.weight is None


def test_scores_of_a_fit_are_checked_when_read_and_when_fitted_and_not_again(path, monkeypatch):
    calls = []

    def counted(scores, **options):
        calls.append(len(scores))
        return check_scores(scores, **options)

    check_scores = _validation.check_scores
    for module in ("calibrant._validation", "calibrant.io._sources", "calibrant.base._new_scores"):
        monkeypatch.setattr(f"{module}.check_scores", counted)
    rows = read_all(FileOptions(path), silent, plain)
    fit_file(rows, "temperature", None, 0, path.with_name("model.json"))
    assert calls.count(300) == 2


def test_a_fit_reports_its_rows_before_and_after(path):
    rows = read_all(FileOptions(path), silent, plain)
    fitted = fit_file(rows, "histogram", "class-wise", 0, path.with_name("model.json"))
    model = calibrant.load(path.with_name("model.json"))
    assert fitted.before == calibrant.evaluate(rows.y, rows.scores, inputs="logits")
    after = calibrant.evaluate(rows.labels, model.predict_proba(rows.scores), classes=rows.classes)
    assert fitted.after.to_dict() == pytest.approx(after.to_dict(), abs=1e-12)


def test_the_seed_reaches_a_lifted_calibrator(path):
    rows = read_all(FileOptions(path), silent, plain)
    assert make_calibrator("histogram", "top-label", rows, 7).calibrator.random_state == 7
    assert make_calibrator("auto", None, rows, 7).random_state == 7
