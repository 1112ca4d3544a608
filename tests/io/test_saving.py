"""Saved calibrators: exact, whole, and nothing but a ValueError for what is not one."""

from __future__ import annotations

import json
import os
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import calibrant
import calibrators
from calibrant._output.files import written_aside
from calibrant.base import Calibrator
from calibrant.exceptions import NotFittedError
from calibrant.io import _registry
from calibrant.testing import make_data

SAVED = calibrators.ALL + calibrators.COMPOSED


_FITS = {}


def fitted(calibrator, **parameters):
    """A calibrator and the scores that it was fitted to; fitted once for all tests, each of which
    has a copy.
    """
    key = (type(calibrator), repr(calibrator), repr(parameters))
    if key not in _FITS:
        _FITS[key] = fit_anew(calibrator, **parameters)
    return deepcopy(_FITS[key])


def fit_anew(calibrator, n_samples=200, **parameters):
    calibrator = clone(calibrator).set_params(**parameters)
    scores, labels = make_data(calibrator, n_samples)
    if calibrator.classes is not None:
        labels = np.asarray(calibrator.classes)[labels]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.fit(scores, labels), scores


def saved_and_loaded(calibrator, tmp_path):
    calibrant.save(calibrator, tmp_path / "model.json")
    return calibrant.load(tmp_path / "model.json")


@pytest.fixture
def document(tmp_path):
    """A saved temperature, as the dictionary in its file."""
    calibrant.save(fitted(calibrant.TemperatureScaling())[0], tmp_path / "good.json")
    return json.loads((tmp_path / "good.json").read_text())


@pytest.fixture
def rejected(tmp_path):
    """Load a text that is no saved calibrator, and give the reason."""

    def load(content):
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "bad.json").write_bytes(raw)
        with pytest.raises(ValueError, match="is not a saved calibrator: ") as caught:
            calibrant.load(tmp_path / "bad.json")
        assert type(caught.value) is ValueError
        return str(caught.value)

    return load


@pytest.mark.parametrize("inputs", ["proba", "logits"])
@pytest.mark.parametrize("calibrator", SAVED, ids=repr)
def test_predictions_after_load_are_bit_identical(calibrator, inputs, tmp_path):
    before, scores = fitted(calibrator, inputs=inputs)
    after = saved_and_loaded(before, tmp_path)
    for rows in (scores, scores[:1], scores.astype(np.float32)):
        np.testing.assert_array_equal(after.predict_proba(rows), before.predict_proba(rows))
        np.testing.assert_array_equal(after.predict(rows), before.predict(rows))
    assert type(after) is type(before)
    assert repr(after) == repr(before)


@pytest.mark.parametrize("calibrator", SAVED, ids=repr)
def test_fitted_attributes_come_back_with_their_types(calibrator, tmp_path):
    before, _ = fitted(calibrator)
    after = saved_and_loaded(before, tmp_path)
    public = {name for name in vars(before) if name.endswith("_")}
    assert public == {name for name in vars(after) if name.endswith("_")}
    for name in public:
        assert type(getattr(after, name)) is type(getattr(before, name)), name


@pytest.mark.parametrize("calibrator", SAVED, ids=repr)
def test_a_loaded_calibrator_can_be_cloned_refitted_and_saved_again(calibrator, tmp_path):
    before, scores = fitted(calibrator)
    after = saved_and_loaded(before, tmp_path)
    calibrant.save(after, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    again, _ = fit_anew(after)
    np.testing.assert_array_equal(again.predict_proba(scores), before.predict_proba(scores))


def test_every_public_calibrator_can_be_saved():
    public = {getattr(calibrant, name) for name in calibrant.__all__}
    ours = {cls for cls in public if isinstance(cls, type) and issubclass(cls, Calibrator)}
    assert ours == {_registry.registered()[name] for name in _registry.CALIBRATORS}
    assert ours == {type(calibrator) for calibrator in SAVED}


@pytest.mark.parametrize(
    "classes",
    [
        ["pear", "fig", "apple", "date"],
        [10, 20, 30, 40],
        [True, 1.5, "x", None],
        [0.5, 1.5, 2.5, 3.5],
    ],
)
def test_class_names_of_any_kind_come_back(classes, tmp_path):
    labels = np.empty(4, dtype=object)
    labels[:] = classes
    names = labels if len({type(c) for c in classes}) > 1 else np.array(classes)
    model, scores = fitted(calibrant.TemperatureScaling())
    model.set_params(classes=names)
    model.classes_ = names
    after = saved_and_loaded(model, tmp_path)
    assert after.classes_.tolist() == classes
    assert after.classes_.dtype == names.dtype
    assert (
        after.predict(scores[:3]).tolist()
        == names[model.predict_proba(scores[:3]).argmax(axis=1)].tolist()
    )


def test_a_pooled_claim_is_written_once_and_stays_shared(tmp_path):
    model, _ = fitted(calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=60)))
    assert len(model.fallback_claims_) > 1
    after = saved_and_loaded(model, tmp_path)
    first, second = after.fallback_claims_[:2]
    assert after.calibrators_[first] is after.calibrators_[second]


def test_a_notion_object_is_a_parameter_too(tmp_path):
    notion = calibrant.notions.as_notion("top-2-label")
    model, _ = fitted(calibrant.MulticlassToBinary(calibrant.PlattScaling(), notion=notion))
    assert saved_and_loaded(model, tmp_path).notion == notion


def test_the_file_says_what_it_was_trained_on(tmp_path):
    model = calibrant.TemperatureScaling()
    scores, labels = make_data(model, 300)
    scores, labels = scores[labels != 2], labels[labels != 2]
    calibrant.save(model.fit(scores, labels), tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    training = document["training"]
    assert document["schema"] == 1
    assert document["calibrant"] == calibrant.__version__
    assert document["classes"] == [0, 1, 2, 3]
    assert training["n_samples"] == len(labels)
    assert training["class_weights"] == np.bincount(labels, minlength=4).tolist()
    assert training["log_loss_before"] == pytest.approx(
        calibrant.metrics.log_loss(labels, scores), rel=1e-12
    )
    after = calibrant.metrics.log_loss(labels, model.predict_proba(scores))
    assert training["log_loss_after"] == pytest.approx(after, rel=1e-12)


def test_saving_anything_else_is_a_type_error(tmp_path):
    with pytest.raises(TypeError, match="A LogisticRegression is not a calibrator"):
        calibrant.save(LogisticRegression(), tmp_path / "model.json")
    with pytest.raises(NotFittedError):
        calibrant.save(calibrant.TemperatureScaling(), tmp_path / "model.json")
    assert os.listdir(tmp_path) == []


def test_a_calibrator_that_is_not_ours_is_a_type_error(tmp_path):
    class Mine(calibrant.TemperatureScaling):
        pass

    model, _ = fitted(Mine())
    with pytest.raises(
        TypeError,
        match=r"Mine is not a registered calibrator .* Call calibrant\.io\.register\(Mine\)",
    ):
        calibrant.save(model, tmp_path / "model.json")


def test_a_parameter_that_cannot_be_written_is_named(tmp_path):
    model, _ = fitted(calibrant.HistogramBinning(n_bins=3))
    model.random_state = np.random.default_rng(0)
    with pytest.raises(TypeError, match=r"HistogramBinning\.random_state .* use an integer"):
        calibrant.save(model, tmp_path / "model.json")


def test_a_fit_that_holds_nan_is_not_saved(tmp_path):
    model, _ = fitted(calibrant.VectorScaling())
    model.coef_ = model.coef_ * np.nan
    with pytest.raises(ValueError, match=r"VectorScaling\.coef_ contains NaN"):
        calibrant.save(model, tmp_path / "model.json")


def test_of_a_calibrated_classifier_its_calibrator_is_saved(tmp_path, rng):
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    X[:, 0] += y
    model = calibrant.CalibratedClassifier(
        LogisticRegression(), calibrant.TemperatureScaling(), cv=3
    ).fit(X, y)
    with pytest.raises(TypeError, match=r"Save model\.calibrator_"):
        calibrant.save(model, tmp_path / "model.json")
    scores = rng.normal(size=(5, 3))
    after = saved_and_loaded(model.calibrator_, tmp_path)
    np.testing.assert_array_equal(
        after.predict_proba(scores), model.calibrator_.predict_proba(scores)
    )


def test_automatic_calibration_of_one_row_can_be_saved(tmp_path):
    model = calibrant.AutoCalibration().fit([[0.2, 0.8]], [1])
    assert np.isnan(model.losses_).all()
    assert np.isnan(saved_and_loaded(model, tmp_path).losses_).all()


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        calibrant.load(tmp_path / "nothing.json")


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .*nowhere does not exist"):
        calibrant.save(fitted(calibrant.Identity())[0], tmp_path / "nowhere" / "model.json")


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "model.json"
    target.write_text("old")

    def interrupted():
        with written_aside(target) as aside:
            aside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]


def test_devices_are_written_and_not_replaced():
    calibrant.save(fitted(calibrant.Identity())[0], os.devnull)
    assert not Path(os.devnull).is_file()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.json").write_text("")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    calibrant.save(fitted(calibrant.Identity())[0], tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    calibrant.load(tmp_path / "real.json")


def test_truncated_files_are_rejected(document, rejected):
    text = json.dumps(document)
    for end in (0, 1, 10, len(text) // 2, len(text) - 1):
        rejected(text[:end])


def test_other_files_are_rejected(rejected, tmp_path):
    assert "'utf-8' codec" in rejected(b"\x93NUMPY\x80\xff")
    assert "format" in rejected("[]")
    assert "format" in rejected('{"schema": 1}')
    with pytest.raises(ValueError, match="it is a directory"):
        calibrant.load(tmp_path)


def test_a_file_of_a_later_schema_is_rejected_with_both_versions(document, rejected):
    assert "its schema is 2, but this version" in rejected(json.dumps({**document, "schema": 2}))
    assert "its schema is True" in rejected(json.dumps({**document, "schema": True}))


def test_a_huge_file_is_rejected_unread(tmp_path):
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(3 * 2**30)
    with pytest.raises(ValueError, match=r"3,221,225,472 bytes, but the maximum is"):
        calibrant.load(tmp_path / "huge.json")


@pytest.mark.parametrize("opening", ["[", '{"tuple":[', '{"a":', '{"map":[['])
def test_deep_nesting_is_rejected(opening, document, rejected):
    rejected(opening * 10_000)
    closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(opening) if c in "[{")
    for depth in (300, 10_000):
        text = json.dumps(document).replace(
            '"temperature_": ',
            '"temperature_": ' + opening * depth + "1" + closing * depth + ', "x_": ',
        )
        rejected(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_are_no_json_are_rejected(constant, document, rejected):
    text = json.dumps(document).replace('"temperature_": ', f'"temperature_": {constant}, "x_": ')
    assert f"{constant} is not allowed" in rejected(text)


def change(document, **fitted):
    document["models"][-1]["fitted"].update(fitted)
    return json.dumps(document)


def test_nan_in_an_array_is_rejected(document, rejected):
    nan = {"array": "float64", "shape": [1], "order": "C", "data": "AAAAAAAA+H8="}
    assert "TemperatureScaling.temperature_ contains NaN" in rejected(
        change(document, temperature_=nan)
    )


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"temperature_": "hot"}, "must be a number"),
        ({"temperature_": None}, "must be a number"),
        ({"temperature_": []}, "must be a number"),
        ({"n_classes_": 10**18}, "but classes_ has 4 labels"),
        ({"n_classes_": "4"}, "but classes_ has 4 labels"),
        ({"classes_": [0, 1, 2, 3]}, "classes_ must be"),
        ({"training_": 1}, "training_ must be"),
        ({"__class__": 1}, "'__class__' is not a fitted attribute"),
        ({"fit": 1}, "'fit' is not a fitted attribute"),
        (
            {"classes_": {"array": "object", "shape": [1], "order": "C", "data": "gASVAA=="}},
            "expected an object with",
        ),
        (
            {"classes_": {"array": "float64", "shape": [10**9, 10**9], "order": "C", "data": ""}},
            "bytes, got 0",
        ),
        (
            {"classes_": {"array": "float64", "shape": [-1], "order": "C", "data": ""}},
            "is not a valid shape",
        ),
        (
            {"classes_": {"array": "text99999999", "shape": [1], "data": [""]}},
            "must be between the length of the longest string",
        ),
        ({"classes_": {"array": "float64", "shape": [1], "order": "C", "data": "é"}}, "damaged"),
        ({"classes_": {"model": 0}}, "before it is defined"),
        (
            {"classes_": {"record": "TemperatureScaling", "fields": {}}},
            "cannot be created from the fields",
        ),
        (
            {"classes_": {"record": "TrainingSummary", "fields": {}}},
            "cannot be created from the fields",
        ),
        (
            {"classes_": {"record": "Gain", "fields": {"score": "log_loss"}}},
            "cannot be created from the fields",
        ),
        ({"classes_": {"notion": "nonsense"}}, "notion"),
        ({"classes_": {"map": [[[], 1]]}}, "pairs of a key"),
        ({"classes_": {}}, "has no type"),
    ],
)
def test_parts_that_do_not_fit_are_rejected_with_the_reason(attributes, reason, document, rejected):
    assert reason in rejected(change(document, **attributes))


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "calibrant.io.save",
        "Pipeline",
        "TrainingSummary",
        3,
        None,
        ["x"],
    ],
)
def test_class_paths_are_only_names_of_the_list(name, document, rejected):
    document["models"][-1]["class"] = name
    rejected(json.dumps(document))


def test_parameters_are_checked_as_by_fit(document, rejected):
    document["models"][-1]["parameters"]["prior_scale"] = -1.0
    assert "prior_scale" in rejected(json.dumps(document))
    document["models"][-1]["parameters"]["run"] = "me"
    assert "has no parameters named 'run'" in rejected(json.dumps(document))


def test_a_depth_that_would_never_end_is_rejected(tmp_path, rejected):
    calibrant.save(
        fitted(calibrant.CanonicalBinning(partition="sierpinski"))[0], tmp_path / "model.json"
    )
    text = (tmp_path / "model.json").read_text()
    assert "has too many bins. Use a smaller depth" in rejected(
        text.replace('"depth": 3', '"depth": 3000000000')
    )


@pytest.mark.parametrize("n_cases", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files_end_in_a_value_error_or_a_working_calibrator(n_cases, tmp_path, rng):
    original = tmp_path / "original.json"
    originals = []
    for calibrator in SAVED:
        calibrant.save(fitted(calibrator)[0], original)
        originals.append(original.read_bytes())
    target, reasons = tmp_path / "mutated.json", []
    probe = np.full((1, 4), 0.25)
    for case in range(n_cases):
        target.write_bytes(mutated(originals[case % len(originals)], rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loaded = calibrant.load(target)
        except ValueError as error:
            reasons.append(str(error))
        else:
            assert np.isfinite(
                loaded.predict_proba(probe[:, : loaded.n_classes_] * 4 / loaded.n_classes_)
            ).all()
    assert len(reasons) > n_cases / 2
    assert all("is not a saved calibrator: " in reason and "\n" not in reason for reason in reasons)


def mutated(raw, rng):
    """A file with a piece changed, cut out, repeated, or the end missing."""
    data, place = bytearray(raw), int(rng.integers(len(raw)))
    match rng.integers(5):
        case 0:
            data[place] = rng.integers(256)
        case 1:
            del data[place : place + int(rng.integers(1, 40))]
        case 2:
            data[place:place] = data[place // 2 : place // 2 + int(rng.integers(1, 40))]
        case 3:
            del data[place:]
        case _:
            tokens = [
                b"null",
                b"-1",
                b"1e400",
                b"[]",
                b"{}",
                b'"a"',
                b"99999999999",
                b"NaN",
                b"true",
            ]
            data[place : place + int(rng.integers(1, 6))] = tokens[int(rng.integers(len(tokens)))]
    return bytes(data)
