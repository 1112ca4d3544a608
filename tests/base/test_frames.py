from __future__ import annotations

import numpy as np
import pytest

from calibrant import CalibratedClassifier, TemperatureScaling, load, save
from calibrant.base import _frames

pandas = pytest.importorskip("pandas")


def frame_of(rng, names, n=30):
    return pandas.DataFrame(rng.dirichlet(np.ones(len(names)), n), columns=names)


def test_a_flat_array_has_one_column_and_a_table_as_many_as_it_has():
    assert _frames.n_columns([0.1, 0.2]) == 1
    assert _frames.n_columns([[0.1, 0.2, 0.7]]) == 3


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["a", "b"], ["a", "b"]), (["1", "0"], ["0", "1"]), ([0, 1], None), (["a", 1], None)],
)
def test_only_names_that_are_text_are_kept_and_in_the_order_of_the_classes(names, expected):
    frame = pandas.DataFrame([[0.5, 0.5]], columns=names)
    found = _frames.fitted_names(frame, np.arange(2))
    assert (found if found is None else found.tolist()) == expected


def test_a_fit_to_a_frame_keeps_its_names_and_one_to_an_array_forgets_them(rng):
    frame, y = frame_of(rng, ["cat", "dog", "eel"]), np.arange(30) % 3
    model = TemperatureScaling(prior_scale=1.0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["cat", "dog", "eel"]
    assert model.feature_names_in_.dtype == object
    assert not hasattr(model.fit(frame.to_numpy(), y), "feature_names_in_")


def test_columns_in_another_order_are_put_in_that_of_the_fit(rng):
    frame, y = frame_of(rng, ["cat", "dog", "eel"]), np.arange(30) % 3
    model = TemperatureScaling(prior_scale=1.0).fit(frame, y)
    expected = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(frame[["dog", "cat", "eel"]]), expected)
    with pytest.raises(
        ValueError, match="X has the columns cat, dog, emu, but the calibrator was fitted with"
    ):
        model.predict(frame.rename(columns={"eel": "emu"}))
    model.predict(frame[model.feature_names_in_])


def test_rows_without_names_are_taken_by_position(rng):
    frame, y = frame_of(rng, ["cat", "dog", "eel"]), np.arange(30) % 3
    model = TemperatureScaling(prior_scale=1.0).fit(frame, y)
    np.testing.assert_array_equal(model.predict_proba(frame.to_numpy()), model.predict_proba(frame))
    unnamed = TemperatureScaling(prior_scale=1.0).fit(frame.to_numpy(), y)
    np.testing.assert_array_equal(unnamed.predict_proba(frame), model.predict_proba(frame))


def test_names_are_saved_with_the_calibrator(rng, tmp_path):
    frame, y = frame_of(rng, ["cat", "dog", "eel"]), np.arange(30) % 3
    save(TemperatureScaling(prior_scale=1.0).fit(frame, y), tmp_path / "m.json")
    assert load(tmp_path / "m.json").feature_names_in_.tolist() == ["cat", "dog", "eel"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_come_out_where_they_are_asked_for(rng, kind):
    pytest.importorskip(kind)
    frame, y = frame_of(rng, ["cat", "dog", "eel"]), np.arange(30) % 3
    frame.index = frame.index + 100
    model = TemperatureScaling(prior_scale=1.0, classes=["c", "d", "e"])
    out = model.set_output(transform=kind).fit(frame, np.array(list("cde"))[y])
    for table in (out.predict_proba(frame), out.predict_log_proba(frame)):
        assert type(table).__module__.startswith(kind)
        assert list(table.columns) == ["c", "d", "e"]
    if kind == "pandas":
        assert out.predict_proba(frame).index.equals(frame.index)


def test_a_calibrated_classifier_has_the_names_of_its_features(rng):
    from sklearn.linear_model import LogisticRegression

    frame, y = frame_of(rng, ["x", "z"], 60), np.arange(60) % 2
    model = CalibratedClassifier(LogisticRegression(), TemperatureScaling(1.0), cv=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["x", "z"]
