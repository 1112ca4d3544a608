"""Names, parameters and conventions that scikit-learn users expect."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB

import calibrant
import calibrant.cli
from calibrant import CalibratedClassifier, MulticlassToBinary
from calibrant.datasets import digits_predictions, noisy_simplex
from calibrant.exceptions import NotFittedError


@pytest.fixture(scope="module")
def features():
    return make_classification(
        240, n_features=6, n_informative=5, n_redundant=0, n_classes=3, random_state=0
    )


@pytest.fixture(scope="module")
def digits():
    data = digits_predictions()
    return data.val_proba[:400], data.val_labels[:400]


class NeverFitted(GaussianNB):
    """A classifier whose fit is a mistake."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("fitted before parameters were checked")


# a name means the same map everywhere


def test_a_method_name_selects_the_same_calibrator_in_compare_as_in_method(digits):
    proba, labels = digits
    rows = np.arange(len(labels))
    split = [(rows[::2], rows[1::2]), (rows[1::2], rows[::2])]
    named = calibrant.compare(labels, proba, methods=["isotonic"], cv=split, metrics=["log_loss"])
    lifted = calibrant.method("isotonic", notion="class-wise")
    losses = [
        calibrant.metrics.log_loss(
            labels[judge], lifted.fit(proba[fit], labels[fit]).predict_proba(proba[judge])
        )
        for fit, judge in split
    ]
    np.testing.assert_allclose(named.mean[0, 1, 0], np.mean(losses), rtol=1e-12)


def test_a_method_name_selects_the_same_calibrator_in_a_classifier_as_in_method(features):
    X, y = features
    named = CalibratedClassifier(GaussianNB(), "isotonic", cv=3).fit(X, y)
    given = CalibratedClassifier(GaussianNB(), calibrant.method("isotonic"), cv=3).fit(X, y)
    np.testing.assert_array_equal(named.predict_proba(X), given.predict_proba(X))


def test_a_binary_method_rejects_multiclass_scores_and_shows_the_one_vs_rest_code(digits):
    proba, labels = digits
    with pytest.raises(ValueError, match="Use MulticlassToBinary") as error:
        calibrant.method("isotonic").fit(proba, labels)
    advice = repr(calibrant.method("isotonic"))
    assert f"MulticlassToBinary({advice}, " in str(error.value)


def test_compare_and_the_stacked_ensemble_accept_a_list_of_calibrators(digits):
    proba, labels = digits
    listed = [calibrant.TemperatureScaling(), "isotonic", calibrant.VectorScaling()]
    result = calibrant.compare(labels, proba, methods=listed, cv=2, metrics=["log_loss"])
    assert result.methods == ("uncalibrated", "TemperatureScaling", "isotonic", "VectorScaling")
    stack = calibrant.AutoCalibration(["temperature", calibrant.VectorScaling()], cv=2)
    assert stack.fit(proba, labels).names_ == (
        *("identity", "temperature", "VectorScaling", "uniform"),
    )


# predict is the argmax of predict_proba


@pytest.mark.parametrize("notion", ["confidence", "top-label", "top-2-confidence", "within-top-2"])
@pytest.mark.parametrize("name", ["spline", "histogram"])
def test_predict_returns_the_class_with_the_highest_probability(digits, name, notion):
    proba, labels = digits
    model = calibrant.method(name, notion=notion).fit(proba, labels)
    out = model.predict_proba(proba)
    np.testing.assert_array_equal(model.predict(proba), out.argmax(axis=1))
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_accuracy_does_not_change_if_calibrated_confidences_exceed_one_over_the_number_of_classes():
    data = noisy_simplex(2000, 5, noise=0.5, rng=0)
    model = MulticlassToBinary(calibrant.PlattScaling(), notion="confidence")
    model.fit(data.proba, data.labels)
    assert (model.predict_claims(data.proba) > 1 / 5).all()
    np.testing.assert_array_equal(model.predict(data.proba), data.proba.argmax(axis=1))


@pytest.mark.parametrize(
    ("name", "notion", "lost"),
    [("spline", "confidence", 2), ("histogram", "top-label", 0), ("spline", "top-label", 143)],
)
def test_on_cifar100_the_predicted_class_changes_only_if_its_probability_is_at_most_one_percent(
    real_data, name, notion, lost
):
    """4.05 % and 1.21 % of the rows once left it, and accuracy fell from 0.7490 to 0.7463."""
    data = real_data("cifar100_resnet110_gupta")
    logits, labels = data["test_logits"], data["test_labels"]
    model = calibrant.method(name, notion=notion).set_params(inputs="logits")
    model.fit(data["val_logits"], data["val_labels"])
    said, top = model.predict(logits), logits.argmax(axis=1)
    np.testing.assert_array_equal(said, model.predict_proba(logits).argmax(axis=1))
    assert np.count_nonzero(said != top) == lost
    assert (model.predict_claims(logits)[said != top] <= 1 / 100).all()
    assert (said == labels).mean() == pytest.approx(0.7490, abs=5e-5)


# the habits of a scikit-learn user


def test_a_calibrator_can_be_passed_by_its_name(features):
    X, y = features
    model = CalibratedClassifier(GaussianNB(), "temperature", cv=3).fit(X, y)
    assert type(model.calibrators_[0]) is calibrant.TemperatureScaling
    search = GridSearchCV(
        CalibratedClassifier(GaussianNB(), cv=2), {"calibrator": ["platt", "temperature"]}, cv=2
    )
    assert search.fit(X, y).best_params_["calibrator"] in ("platt", "temperature")


def test_an_unknown_method_name_raises_an_error_before_anything_is_fitted(features):
    with pytest.raises(ValueError, match=r"Did you mean 'isotonic'\?"):
        CalibratedClassifier(NeverFitted(), "isotonc").fit(*features)


def test_the_error_of_cv_prefit_recommends_a_frozen_estimator(features):
    with pytest.raises(ValueError, match=r"FrozenEstimator\(estimator\)"):
        CalibratedClassifier(NeverFitted(), cv="prefit").fit(*features)


def test_a_frozen_estimator_is_calibrated_without_a_new_fit(features):
    X, y = features
    fitted = GaussianNB().fit(X[::2], y[::2])
    model = CalibratedClassifier(FrozenEstimator(fitted), "temperature").fit(X[1::2], y[1::2])
    alone = calibrant.TemperatureScaling().fit(fitted.predict_proba(X[1::2]), y[1::2])
    assert model.calibrator_.temperature_ == pytest.approx(alone.temperature_)


def test_a_class_instead_of_an_instance_raises_an_error_before_fitting(features):
    with pytest.raises(
        TypeError, match=r"got the class TemperatureScaling\. Pass TemperatureScaling\(\)"
    ):
        CalibratedClassifier(NeverFitted(), calibrant.TemperatureScaling).fit(*features)
    with pytest.raises(TypeError, match=r"got the class GaussianNB\. Pass GaussianNB\(\)"):
        CalibratedClassifier(GaussianNB).fit(*features)


def test_explain_describes_every_fitted_estimator(features, digits):
    proba, labels = digits
    for name in ("temperature", "vector", "histogram", "ensemble-temperature"):
        model = calibrant.method(name, notion="class-wise" if name == "histogram" else None)
        with pytest.raises(NotFittedError):
            model.explain()
        said = model.fit(proba, labels).explain()
        assert said.startswith(f"{type(model).__name__}. ")
        assert ":math:" not in said
    assert f"T = {model.temperature_:.4g}" in said
    assert f"to {model.training_.log_loss_after:.3g}. Expect a smaller reduction on new" in said
    X, y = features
    pairs = CalibratedClassifier(GaussianNB(), "temperature", cv=3, ensemble=True).fit(X, y)
    assert pairs.explain().startswith(
        "The predictions are the average of 3 pairs. Each pair is a GaussianNB and"
    )
    lines = pairs.calibrator_.explain().splitlines()
    assert lines[0].startswith("CrossFitted. The average of 3 fits of TemperatureScaling")
    for calibrator, line in zip(pairs.calibrators_, lines[1:], strict=True):
        assert f"the temperature {calibrator.temperature_:.3g}" in line
    one = CalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    assert one.explain().startswith(
        "The predictions are the weighted average of 16 fits of GaussianNB."
    )
    assert one.explain().endswith(one.calibrator_.explain())


def test_a_regressor_is_rejected(features):
    with pytest.raises(TypeError, match=r"LinearRegression is a regressor, but a classifier with"):
        CalibratedClassifier(LinearRegression()).fit(*features)


def test_the_error_for_labels_of_a_single_class_states_the_class(features):
    with pytest.raises(ValueError, match=r"of one class \('a'\)"):
        CalibratedClassifier(GaussianNB()).fit(features[0], np.full(len(features[0]), "a"))


def test_a_float_cv_is_the_fraction_of_the_rows_for_the_calibrator(features):
    X, y = features
    model = CalibratedClassifier(GaussianNB(), "temperature", cv=0.25).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.estimators_[0].class_count_.sum() == 180
    assert model.calibrator_.class_weights_.sum() == 60
    with pytest.raises(ValueError, match=r"fraction between 0 and 1 of rows to hold out, got 1\.5"):
        CalibratedClassifier(GaussianNB(), cv=1.5).fit(X, y)


# folds of one row


def test_folds_of_one_row_are_rejected_for_ensembles(features):
    X, y = features
    model = CalibratedClassifier(NeverFitted(), "platt", cv=LeaveOneOut(), ensemble=True)
    with pytest.raises(
        ValueError, match=r"A fold has only one row.*or pass ensemble=False to fit one calibrator"
    ):
        model.fit(X, y)


def test_leave_one_out_without_an_ensemble_fits_one_calibrator_on_all_rows(features):
    X, y = features[0][:60], features[1][:60]
    model = CalibratedClassifier(
        LogisticRegression(), "temperature", cv=LeaveOneOut(), ensemble=False
    ).fit(X, y)
    assert model.calibrator_.class_weights_.sum() == 60


# the label of an average


def test_a_calibrated_classifier_predicts_the_class_with_the_highest_probability(features):
    X, y = features
    lifted = MulticlassToBinary(calibrant.HistogramBinning(n_bins=3), notion="top-label")
    model = CalibratedClassifier(RandomForestClassifier(20, random_state=0), lifted, cv=3)
    model.fit(X, y)
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)]
    )


# groups


@pytest.fixture(scope="module")
def patients(features):
    """Twelve patients, whose rows are nearly copies of each other."""
    X, y = features
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(12), 20)
    order = rng.permutation(240)
    return X[order], y[order], who[order]


class Folds:
    """A splitter that remembers what it was given, copies of it too, and cuts by group."""

    def __init__(self):
        self.seen = []

    def __deepcopy__(self, memo):
        return self

    def split(self, X, y=None, groups=None):
        self.seen.append(groups)
        return GroupKFold(3).split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


def test_groups_are_passed_to_the_splitter_without_metadata_routing(patients):
    X, y, who = patients
    model = CalibratedClassifier(GaussianNB(), "temperature", cv=GroupKFold(5))
    model.fit(X, y, groups=who)
    assert len(model.estimators_) == 10 + 5 + 1


def test_groups_are_passed_to_the_splitter_by_metadata_routing(patients):
    X, y, who = patients
    with config_context(enable_metadata_routing=True):
        model = CalibratedClassifier(GaussianNB(), "temperature", cv=GroupKFold(3))
        routed = model.fit(X, y, groups=who).predict_proba(X)
    plain = CalibratedClassifier(GaussianNB(), "temperature", cv=GroupKFold(3))
    np.testing.assert_array_equal(routed, plain.fit(X, y, groups=who).predict_proba(X))


def test_an_integer_cv_keeps_groups_together(patients):
    X, y, who = patients
    counted = CalibratedClassifier(GaussianNB(), "temperature", cv=3).fit(X, y, groups=who)
    given = CalibratedClassifier(GaussianNB(), "temperature", cv=StratifiedGroupKFold(3))
    np.testing.assert_array_equal(
        counted.predict_proba(X), given.fit(X, y, groups=who).predict_proba(X)
    )


@pytest.mark.parametrize("ensemble", [True, False])
def test_groups_are_passed_to_the_folds_of_the_calibrator(patients, ensemble):
    X, y, who = patients
    inner = Folds()
    stack = calibrant.AutoCalibration(["temperature"], cv=inner)
    CalibratedClassifier(GaussianNB(), stack, cv=3, ensemble=ensemble).fit(X, y, groups=who)
    assert len(inner.seen) == (3 if ensemble else 1)
    outer = list(StratifiedGroupKFold(3).split(X, y, who))
    sizes = [len(np.unique(who[test])) for _, test in outer] if ensemble else [12]
    assert [len(np.unique(groups)) for groups in inner.seen] == sizes


def test_groups_are_passed_to_the_folds_of_stacked_ensembles_and_cross_fitted_calibrators(digits):
    proba, labels = digits
    who = np.arange(len(labels)) // 20
    folds = GroupKFold(3)
    for model in (
        calibrant.CrossFitted("temperature", cv=folds),
        calibrant.AutoCalibration(["temperature"], cv=folds),
    ):
        model.fit(proba, labels, groups=who)
        assert np.isfinite(model.predict_proba(proba)).all()


def test_compare_keeps_groups_together_and_passes_them_to_the_folds_of_a_method(digits):
    proba, labels = digits
    who = np.arange(len(labels)) // 20
    inner = Folds()
    stack = calibrant.AutoCalibration(["temperature"], cv=inner)
    calibrant.compare(labels, proba, methods={"stack": stack}, cv=4, groups=who)
    seen = [{*groups.tolist()} for groups in inner.seen]
    assert len(seen) == 4
    held = [set(range(20)) - groups for groups in seen]
    assert sorted(group for part in held for group in part) == list(range(20))


def test_groups_determine_the_folds_of_a_calibration_gain(digits):
    proba, labels = digits
    who = np.arange(len(labels)) // 20
    one, other = (
        calibrant.inference.calibration_gain(labels, proba, cv=cv, groups=who)
        for cv in (GroupKFold(5), list(GroupKFold(5).split(proba, labels, who)))
    )
    assert one == other


def test_groups_of_the_wrong_length_and_a_single_group_raise_an_error(digits):
    proba, labels = digits
    with pytest.raises(ValueError, match=r"groups must have shape \(400,\)"):
        calibrant.AutoCalibration().fit(proba, labels, groups=[1, 2])
    with pytest.raises(ValueError, match="groups has only one distinct value"):
        calibrant.CrossFitted("temperature").fit(proba, labels, groups=np.zeros(400))


# frames out


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_calibrated_classifier_returns_data_frames_after_set_output(features, kind):
    pytest.importorskip(kind)
    X, y = features
    names = np.array(["ant", "bee", "cat"])[y]
    model = CalibratedClassifier(GaussianNB(), "temperature", cv=2).fit(X, names)
    plain = model.predict_proba(X)
    frame = model.set_output(transform=kind).predict_proba(X)
    assert list(frame.columns) == ["ant", "bee", "cat"]
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    np.testing.assert_array_equal(model.predict_log_proba(X).to_numpy(), np.log(plain))
    np.testing.assert_array_equal(model.predict(X), model.classes_[plain.argmax(axis=1)])


# scorers, and one set of names


def test_weights_are_passed_to_a_scorer_by_metadata_routing(features):
    X, y = features
    weight = np.where(y == 0, 3.0, 1.0)
    with config_context(enable_metadata_routing=True):
        score = calibrant.metrics.scorer("log_loss").set_score_request(sample_weight=True)
        model = GaussianNB().set_fit_request(sample_weight=False)
        found = cross_validate(
            model, X, y, scoring=score, cv=KFold(2), params={"sample_weight": weight}
        )["test_score"]
    for value, (train, test) in zip(found, KFold(2).split(X), strict=True):
        proba = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        loss = calibrant.metrics.log_loss(y[test], proba, sample_weight=weight[test])
        assert value == pytest.approx(-loss, rel=1e-12)


@pytest.mark.parametrize("name", ["ece", "conf_ece", "ks", "ks_error", "brier", "log_loss"])
def test_scorers_and_compare_and_tests_accept_the_same_metric_names(digits, features, name):
    proba, labels = digits
    scored = calibrant.metrics.scorer(name)(GaussianNB().fit(*features), *features)
    assert np.isfinite(scored)
    compared = calibrant.compare(labels, proba, methods=["identity"], metrics=[name], cv=2)
    assert compared.metrics == (name,)
    tested = calibrant.inference.consistency_test(labels, proba, name, n_resamples=9, rng=0)
    assert 0 < tested.p_value <= 1


# weights, kinds of scores and notions in tests and intervals


@pytest.mark.parametrize("kwargs", [{"metric": "cw_ece"}, {"metric": "ks"}])
def test_a_consistency_test_depends_only_on_ratios_of_weights(digits, kwargs):
    """Whole numbers are no exception: the p-value does not jump with the last digit."""
    proba, labels = digits
    weight = 1 + np.arange(len(labels)) % 3
    test = partial(calibrant.inference.consistency_test, labels, proba, n_resamples=19, rng=0)
    whole = test(sample_weight=weight, **kwargs)
    assert whole.p_value == test(sample_weight=1.0001 * weight, **kwargs).p_value


@pytest.mark.parametrize("low", [0.5, 1.0])
def test_a_consistency_test_computes_the_weighted_error(digits, low):
    proba, labels = digits
    weight = np.round(np.linspace(low, 1.5 + low, len(labels)), 1)
    result = calibrant.inference.consistency_test(
        labels, proba, "conf_ece", n_resamples=19, rng=0, sample_weight=weight
    )
    error = calibrant.metrics.expected_calibration_error(labels, proba, sample_weight=weight)
    assert result.statistic == pytest.approx(error, rel=1e-12)


def test_the_kernel_test_and_the_bootstrap_reject_unequal_weights(digits):
    proba, labels = digits
    weight, options = np.arange(len(labels)) % 3, {"n_resamples": 19, "rng": 0}
    interval = partial(calibrant.inference.bootstrap_interval, "brier_score")
    for function in (calibrant.inference.kernel_test, interval):
        with pytest.raises(ValueError, match=r"accepts only equal weights.* np\.repeat"):
            function(labels, proba, sample_weight=weight, **options)
        present = weight > 0
        weighted = function(labels, proba, sample_weight=0.2 * present, **options)
        assert weighted == function(labels[present], proba[present], **options)


def test_tests_and_intervals_accept_logits(digits):
    proba, labels = digits
    logits = np.log(np.maximum(proba, 1e-9)) + 3.0
    soft = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    options = {"n_resamples": 19, "rng": 0}
    test = calibrant.inference.consistency_test
    one, other = test(labels, logits, inputs="logits", **options), test(labels, soft, **options)
    assert one.statistic == pytest.approx(other.statistic, abs=1e-12)
    kernel = calibrant.inference.kernel_test
    assert kernel(
        labels, logits, inputs="logits", notion="confidence", **options
    ).statistic == pytest.approx(kernel(labels, soft, notion="confidence", **options).statistic)
    interval = partial(calibrant.inference.bootstrap_interval, "brier_score")
    assert interval(labels, logits, inputs="logits", **options).estimate == pytest.approx(
        interval(labels, soft, **options).estimate
    )


def test_a_consistency_test_accepts_a_type_of_calibration(digits):
    proba, labels = digits
    test = calibrant.inference.consistency_test
    by_notion = test(labels, proba, notion="top-label", n_resamples=19, rng=0)
    by_metric = test(labels, proba, "tl_ece", n_resamples=19, rng=0)
    assert (by_notion.statistic, by_notion.p_value) == (by_metric.statistic, by_metric.p_value)


def test_a_calibration_gain_accepts_a_list_of_splits(digits):
    proba, labels = digits
    splits = list(KFold(4).split(proba))
    gain = calibrant.inference.calibration_gain
    assert gain(labels, proba, cv=splits) == gain(labels, proba, cv=KFold(4))


# a class by its name


@pytest.fixture(scope="module")
def animals():
    data = noisy_simplex(600, 3, noise=0.4, rng=1)
    names = ["cat", "dog", "owl"]
    return np.array(names)[data.labels], data.proba, names


def test_metrics_accept_types_of_calibration_that_contain_a_class_name(animals):
    labels, proba, names = animals
    codes = np.searchsorted(names, labels)
    for metric in (
        calibrant.metrics.expected_calibration_error,
        calibrant.metrics.ks_error,
        calibrant.metrics.brier_score,
        calibrant.metrics.kernel_calibration_error,
        calibrant.metrics.smooth_calibration_error,
    ):
        assert metric(labels, proba, notion="class-owl", classes=names) == metric(
            codes, proba, notion="class-2"
        )


def test_calibrators_and_tests_accept_types_of_calibration_that_contain_a_class_name(animals):
    labels, proba, names = animals
    codes = np.searchsorted(names, labels)
    named = MulticlassToBinary(calibrant.PlattScaling(), notion="class-owl", classes=names)
    placed = MulticlassToBinary(calibrant.PlattScaling(), notion="class-2")
    np.testing.assert_array_equal(
        named.fit(proba, labels).predict_proba(proba), placed.fit(proba, codes).predict_proba(proba)
    )
    test = partial(calibrant.inference.consistency_test, n_resamples=19, rng=0)
    assert (
        test(labels, proba, notion="class-owl", classes=names).p_value
        == test(codes, proba, notion="class-2").p_value
    )


def test_an_unknown_class_name_raises_an_error_with_a_suggestion(animals):
    labels, proba, names = animals
    with pytest.raises(ValueError, match=r"Unknown class 'owls'. Did you mean 'owl'\?"):
        calibrant.metrics.ks_error(labels, proba, notion="class-owls", classes=names)


# fields that explain themselves


def test_the_docstring_of_evaluation_explains_every_field():
    said = calibrant.Evaluation.__doc__
    assert all(field.name in said for field in fields(calibrant.Evaluation))


def test_the_mean_confidence_on_errors_is_not_called_overconfidence(animals):
    labels, proba, names = animals
    table = str(calibrant.evaluate(labels, proba, classes=names))
    assert "mean confidence on errors" in table
    assert "overconfidence" not in table


@pytest.mark.parametrize("name", sorted(set(calibrant.metrics.registry.__all__)))
def test_every_metric_accepts_logits_and_weights(animals, name):
    labels, proba, names = animals
    metric, weight = getattr(calibrant.metrics, name), np.arange(len(labels)) % 3
    options = {"sample_weight": weight, "classes": names}
    logits = np.log(proba) - 4.0
    assert metric(labels, logits, inputs="logits", **options) == pytest.approx(
        metric(labels, proba, **options), rel=1e-9
    )


def public_functions_of_scores():
    """Every public function, and constructor of a display, that is given truth and scores."""
    rooms = (calibrant, calibrant.metrics, calibrant.inference, calibrant.report, calibrant.plots)
    for room in rooms:
        for name in room.__all__:
            # Its metric is a function that knows; top scores are log-probabilities.
            if name in ("CriticalDifferenceDisplay", "log_loss_bounds"):
                continue
            made = getattr(room, name)
            made = getattr(made, "from_predictions", made)
            if not callable(made) or (isinstance(made, type) and name != "MetricAccumulator"):
                continue
            taken = inspect.signature(made).parameters
            if {"y_true", "y"} & set(taken) and {"y_prob", "scores", "before"} & set(taken):
                yield pytest.param(taken, id=f"{room.__name__}.{name}")


@pytest.mark.parametrize("taken", list(public_functions_of_scores()))
def test_every_function_of_labels_and_scores_accepts_inputs_and_classes(taken):
    if "class_axis" in taken:  # makes rows of arrays of more axes, whatever they hold
        return
    assert {"inputs", "classes"} <= set(taken)
    assert taken["inputs"].default == "proba"


def test_the_tests_find_all_functions_of_labels_and_scores():
    found = {param.id for param in public_functions_of_scores()}
    assert len(found) >= 40
    wanted = {"inference.debiased_interval", "inference.validity_curve", "plots.ValidityDisplay"}
    assert {f"calibrant.{name}" for name in wanted | {"report.summarize", "compare"}} <= found


def test_decompositions_and_intervals_and_curves_accept_logits(digits):
    proba, labels = digits
    logits = np.log(np.maximum(proba, 1e-9)) + 3.0
    # The library's own softmax: another one differs in the last bit, which moves tied rows to
    # other bins.
    soft = calibrant.Identity(inputs="logits").fit(logits, labels).predict_proba(logits)
    inference = calibrant.inference
    pairs = [
        [f(labels, logits, inputs="logits"), f(labels, soft)]
        for f in (
            lambda *a, **k: inference.debiased_interval(*a, **k).estimate,
            lambda *a, **k: inference.validity_curve(*a, **k)(0.05),
            lambda *a, **k: inference.validity_curve(
                *a, notion="canonical", bins=np.arange(400) % 9, **k
            )(0.2),
            lambda *a, **k: inference.calibration_line(*a, **k).slope.estimate,
            lambda *a, **k: inference.hosmer_lemeshow_test(*a, **k).statistic,
            lambda *a, **k: inference.ks_test(*a, **k).statistic,
            lambda *a, **k: (
                inference.score_decomposition(*a, calibrant.Identity(), rng=0, **k)
                .claims[3]
                .miscalibration
            ),
        )
    ]
    for one, other in pairs:
        assert one == pytest.approx(other, rel=1e-6)
    with pytest.raises(ValueError, match=r"but inputs is 'logits'\. Pass inputs='proba'"):
        calibrant.metrics.expected_calibration_error(
            labels, soft.max(axis=1), y_pred=labels, inputs="logits"
        )


def test_metrics_reject_probabilities_whose_sum_is_far_from_one(digits):
    proba, labels = digits
    with pytest.raises(ValueError, match=r"Pass p / p.sum\(axis=1, keepdims=True\)"):
        calibrant.metrics.log_loss(labels, 0.7 * proba)
    divided = 0.7 * proba / (0.7 * proba).sum(axis=1, keepdims=True)
    evaluated = calibrant.evaluate(labels, 0.7 * proba, renormalize=True)
    assert calibrant.metrics.log_loss(labels, divided) == pytest.approx(evaluated.log_loss)


# weights of a report

REPORT = {"calibrator": calibrant.TemperatureScaling(), "n_resamples": 49}


def test_a_report_ignores_rows_of_weight_zero(digits):
    proba, labels = digits[0][:200], digits[1][:200]
    weight, group = 3.0 * (np.arange(200) % 3 > 0), np.arange(200) % 2
    summarize, present = calibrant.report.summarize, weight > 0
    one = summarize(labels, proba, sample_weight=weight, by={"half": group}, **REPORT)
    other = summarize(labels[present], proba[present], by={"half": group[present]}, **REPORT)
    assert one.n_samples == pytest.approx(other.n_samples)
    gains = [next(m for m in made.metrics if m.name == "log_loss") for made in (one, other)]
    assert gains[0].before.value == pytest.approx(gains[1].before.value)
    assert (one.guarantee, one.is_weighted) == (None, True)
    assert "its proof requires rows without weights" in calibrant.report.to_markdown(one)
    assert "its proof requires rows without weights" in calibrant.report.to_html(one)


def test_a_report_with_unequal_weights_states_which_intervals_and_tests_it_omits(digits):
    proba, labels = digits
    weight = np.linspace(0.1, 1.9, len(labels))
    made = calibrant.report.summarize(labels, proba, sample_weight=weight, **REPORT)
    found = {row.name: row for row in made.metrics}
    expected = calibrant.evaluate(labels, proba, sample_weight=weight)
    assert found["log_loss"].before.value == pytest.approx(expected.log_loss)
    assert found["log_loss"].before.low is None
    assert found["confidence-l2"].before.low is not None
    assert {test.name for test in made.tests} == {"conf_ece", "cw_ece", "tl_ece", "predicted-class"}
    how = " ".join(made.how)
    assert "effective number of rows, 315 of 400" in how
    assert "have no confidence interval and there is no kernel test" in how
    scaled = calibrant.report.summarize(labels, proba, sample_weight=weight / 1e6, **REPORT)
    assert scaled.verdict == made.verdict


def test_calibration_rows_of_a_report_can_have_weights(digits):
    proba, labels = digits
    weight = np.arange(200) % 3
    rows = np.repeat(np.arange(200), weight)
    made = [
        calibrant.report.summarize(labels[200:], proba[200:], calibration=fit, **REPORT)
        for fit in ((proba[:200], labels[:200], weight), (proba[rows], labels[rows]))
    ]
    assert made[0].map.text == made[1].map.text
    assert made[0].guarantee is None


def test_the_report_command_accepts_weights(tmp_path, capsys, monkeypatch):
    pytest.importorskip("typer")
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    data = noisy_simplex(90, 2, rng=0)
    frame = pandas.DataFrame(data.proba, columns=["p_0", "p_1"])
    frame.assign(label=data.labels, w=np.arange(90) % 3).to_csv("f.csv", index=False)
    options = ["--weight", "w", "-m", "temperature", "--json"]
    assert calibrant.cli.run(["report", "f.csv", "-o", "r.md", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_samples"] == pytest.approx(54)  # 90^2 / 150
    assert found["is_weighted"]
    assert "--weight w" in found["code"]


def test_a_report_accepts_rng_or_random_state():
    data = noisy_simplex(60, 2, rng=0)
    made = partial(calibrant.report.summarize, data.labels, data.proba, **REPORT)
    one = made(rng=1).metrics
    assert one == made(random_state=1).metrics
    assert one != made().metrics
    with pytest.raises(ValueError, match="two names for the same parameter"):
        made(rng=1, random_state=1)


def test_compare_accepts_rng_or_random_state(digits):
    proba, labels = digits
    compare = partial(calibrant.compare, labels, proba, methods=["temperature"], cv=2)
    one, other = compare(rng=3), compare(random_state=3)
    np.testing.assert_array_equal(one.mean, other.mean)
    assert (one.mean != compare(rng=4).mean).any()
    with pytest.raises(ValueError, match="two names for the same parameter"):
        compare(rng=3, random_state=3)
