"""`CalibratedClassifier`: the checks of scikit-learn, and tests that they do not cover."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
from collections import Counter
from itertools import product

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, LeaveOneOut, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant
from calibrant import CalibratedClassifier, _validation, metrics
from calibrant._kernels.simplex import softmax
from calibrant.base import training as _training
from calibrant.classifier import _classifier
from calibrant.exceptions import DataWarning

# The checks use separable data, on which unpenalized fits do not converge and raise a warning.
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.ConvergenceWarning")

# One calibrator of each base class and inner form. These checks are about the classifier around it;
# `check_calibrator` tests every calibrator itself.
_QUICK = [calibrant.StructuredScaling()]
_OTHER_KINDS = [
    calibrant.Identity(),
    calibrant.IsotonicCalibration(),
    calibrant.DirichletCalibration(),
    calibrant.CanonicalBinning(n_bins=5),
    calibrant.PlattScaling(),
    calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=3)),
    calibrant.CrossFitted(calibrant.TemperatureScaling()),
    None,
]


@parametrize_with_checks(
    [CalibratedClassifier(LogisticRegression(), calibrator) for calibrator in _QUICK]
)
@pytest.mark.filterwarnings("ignore:The smallest class has")  # of scikit-learn's tiny data
def test_scikit_learn_checks_hold(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [CalibratedClassifier(LogisticRegression(), calibrator) for calibrator in _OTHER_KINDS]
)
def test_scikit_learn_checks_hold_for_every_kind_of_calibrator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(random_state=0),
        HistGradientBoostingClassifier(max_iter=15, random_state=0),
        GaussianNB(),
        MLPClassifier(random_state=0),
    ],
    ids=["random forest", "gradient booster", "naive Bayes", "multilayer perceptron"],
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.slow
def test_three_lines_calibrate_any_classifier_of_digits(digits, estimator):
    X, new, y, truth = digits
    model = CalibratedClassifier(estimator).fit(X, y)
    proba = model.predict_proba(new)
    plain = clone(estimator).fit(X, y).predict_proba(new)
    assert metrics.log_loss(truth, proba) < metrics.log_loss(truth, plain)


def test_decision_functions_are_taken_as_logits_and_probabilities_otherwise(iris):
    X, y = iris
    calibrator = calibrant.TemperatureScaling()
    logistic = LogisticRegression(max_iter=500)
    linear = CalibratedClassifier(logistic, calibrator, ensemble=False).fit(X, y)
    bayes = CalibratedClassifier(GaussianNB(), calibrator, ensemble=False).fit(X, y)
    assert (linear.score_method_, linear.inputs_, linear.calibrators_[0].inputs) == (
        "decision_function",
        "logits",
        "logits",
    )
    assert (bayes.score_method_, bayes.inputs_, bayes.calibrators_[0].inputs) == (
        "predict_proba",
        "proba",
        "proba",
    )


def test_binary_decision_functions_are_log_odds(iris):
    X, y = iris[0][50:], iris[1][50:]
    model = CalibratedClassifier(
        FrozenEstimator(LogisticRegression().fit(X, y)), calibrant.Identity()
    ).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), model.estimator.predict_proba(X), atol=1e-10
    )  # scores keep 36 bits


def test_classifiers_without_probabilities_get_them(iris):
    X, y = iris
    proba = CalibratedClassifier(RidgeClassifier()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_pairwise_decision_functions_are_rejected_with_the_remedy(iris):
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(*iris)


def test_a_frozen_estimator_is_calibrated_on_all_rows_and_never_refitted(iris):
    X, y = iris
    prefit = GaussianNB().fit(X[::2], y[::2])
    model = CalibratedClassifier(FrozenEstimator(prefit), calibrant.TemperatureScaling()).fit(
        X[1::2], y[1::2]
    )
    by_hand = calibrant.TemperatureScaling().fit(prefit.predict_proba(X[1::2]), y[1::2])
    assert len(model.calibrators_) == 1
    assert model.calibrator_.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-6)


def test_a_frozen_estimator_may_be_calibrated_without_one_of_its_classes(iris):
    X, y = iris
    prefit = FrozenEstimator(GaussianNB().fit(X, y))
    proba = CalibratedClassifier(prefit).fit(X[y != 2], y[y != 2]).predict_proba(X)
    assert proba.shape == (150, 3)
    assert np.isfinite(proba).all()


def test_the_ensemble_averages_the_pairs(iris):
    X, y = iris
    model = CalibratedClassifier(GaussianNB(), calibrant.TemperatureScaling(), cv=3).fit(X, y)
    pairs = [
        c.predict_proba(e.predict_proba(X))
        for e, c in zip(model.estimators_, model.calibrators_, strict=True)
    ]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(pairs, axis=0), atol=1e-9)


def test_without_ensemble_one_calibrator_learns_from_all_out_of_fold_scores(iris):
    X, y = iris
    model = CalibratedClassifier(GaussianNB(), calibrant.TemperatureScaling(), ensemble=False).fit(
        X, y
    )
    assert len(model.estimators_) == len(model.calibrators_) == 1
    np.testing.assert_allclose(model.estimators_[0].theta_, GaussianNB().fit(X, y).theta_)
    assert model.calibrator_ is model.calibrators_[0]


def test_the_calibrator_of_an_ensemble_is_one_map_of_scores(iris):
    X, y = iris
    model = CalibratedClassifier(GaussianNB(), calibrant.TemperatureScaling(), cv=3).fit(X, y)
    scores = GaussianNB().fit(X, y).predict_proba(X)
    mean = np.mean([c.predict_proba(scores) for c in model.calibrators_], axis=0)
    np.testing.assert_allclose(model.calibrator_.predict_proba(scores), mean)


def test_binary_calibrators_are_lifted_class_by_class(iris):
    model = CalibratedClassifier(GaussianNB(), calibrant.PlattScaling()).fit(*iris)
    lifted = model.calibrators_[0]
    assert isinstance(lifted, calibrant.MulticlassToBinary)
    assert (lifted.notion, lifted.normalize) == ("class-wise", True)


def test_any_classifier_of_probabilities_will_do_as_calibrator(iris):
    X, y = iris
    model = CalibratedClassifier(LogisticRegression(max_iter=500), KNeighborsClassifier(20)).fit(
        X, y
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


CHECKED = ("check_predictions", "encode_labels", "summarize_training", "check_scores")


@pytest.fixture
def calls(monkeypatch):
    """Number of calls of the functions that check data or sum over it."""
    counts = Counter()

    def counted(name, function):
        def count(*args, **options):
            counts[name] += 1
            return function(*args, **options)

        return count

    for home, name in product((_validation, _training), CHECKED):
        function = getattr(home, name, None)
        for module in [m for n, m in sys.modules.items() if n.startswith("calibrant")]:
            if function is not None and vars(module).get(name) is function:
                monkeypatch.setattr(module, name, counted(name, function))
    return counts


@pytest.mark.parametrize("ensemble", [True, False])
def test_data_are_checked_once(calls, digits, ensemble):
    X, _, y, _ = digits
    model = CalibratedClassifier(GaussianNB(), ensemble=ensemble).fit(X, y)
    fits = getattr(model.calibrator_, "calibrators_", [model.calibrator_])
    # A calibrator of the confidence checks the predicted classes that it is fitted to.
    n_corrected = sum(fit.top_ is not None for fit in fits)
    assert calls["check_scores"] == (
        5 if ensemble else 1
    )  # the scores of each classifier are checked
    assert calls["check_predictions"] == 0
    assert calls["encode_labels"] <= 1 + n_corrected
    assert calls["summarize_training"] == 0


class Table(ClassifierMixin, BaseEstimator):
    """A classifier whose features are the probabilities themselves."""

    def __init__(self, dtype="float64"):
        self.dtype = dtype

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X).astype(self.dtype)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    return softmax(rng.normal(size=(200_000, 20))), rng.integers(0, 20, 200_000)


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_predictions_take_the_memory_of_the_output(table, dtype):
    X, y = table
    calibrator = calibrant.StructuredScaling("vector")
    model = CalibratedClassifier(Table(dtype), calibrator, cv=3).fit(X[:2000], y[:2000])
    tracemalloc.start()
    proba = model.predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * proba.nbytes


@pytest.mark.parametrize("form", [np.asarray, sparse.coo_array, np.ndarray.tolist])
def test_blocks_of_any_size_give_the_same_rows(iris, form, monkeypatch):
    X, y = iris
    model = CalibratedClassifier(LogisticRegression(max_iter=500), calibrant.TemperatureScaling())
    model.fit(form(X), y)
    whole = model.predict_proba(form(X))
    monkeypatch.setattr(_classifier, "READ_BLOCK", 30)
    np.testing.assert_allclose(model.predict_proba(form(X)), whole, atol=1e-9)


def test_with_fewer_than_five_folds_one_fit_on_all_rows_predicts(iris):
    X, y = iris
    calibrator = calibrant.TemperatureScaling()
    model = CalibratedClassifier(GaussianNB(), calibrator, cv=3).fit(X, y)
    alone = CalibratedClassifier(GaussianNB(), calibrator, cv=3, ensemble=False).fit(X, y)
    assert len(model.estimators_) == 1
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_where_clones_see_all_rows_but_one_the_whole_predicts_alone(iris):
    X, y = iris[0][::5], iris[1][::5]
    map_ = calibrant.TemperatureScaling()
    model = CalibratedClassifier(GaussianNB(), map_, cv=LeaveOneOut()).fit(X, y)
    assert len(model.estimators_) == 1


def test_a_share_held_out_makes_one_pair_by_default(iris):
    X, y = iris
    map_ = calibrant.TemperatureScaling()
    model = CalibratedClassifier(GaussianNB(), map_, cv=0.3).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.calibrator_.class_weights_.sum() == 45


def test_an_unknown_ensemble_is_rejected(iris):
    with pytest.raises(ValueError, match='ensemble must be "auto", True or False'):
        CalibratedClassifier(GaussianNB(), ensemble="always").fit(*iris)


def test_the_map_of_an_ensemble_is_saved_without_the_rows_of_its_folds(iris, tmp_path):
    X, y = iris
    map_ = calibrant.TemperatureScaling()
    model = CalibratedClassifier(GaussianNB(), map_, cv=3, ensemble=True).fit(X, y)
    assert (model.calibrator_.cv, model.calibrators_) == (3, model.calibrator_.calibrators_)
    np.testing.assert_allclose(model.calibrator_.class_prior_, model.class_prior_)
    calibrant.save(model.calibrator_, tmp_path / "map.json")
    loaded = calibrant.load(tmp_path / "map.json")
    scores = np.array([[0.2, 0.3, 0.5]])
    np.testing.assert_array_equal(
        loaded.predict_proba(scores), model.calibrator_.predict_proba(scores)
    )


def test_text_labels_come_back(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    model = CalibratedClassifier(GaussianNB(), calibrant.StructuredScaling("vector")).fit(
        X, names[y]
    )
    assert model.classes_.tolist() == names.tolist()
    assert set(model.predict(X)) == set(names)
    assert model.calibrators_[0].classes_.tolist() == names.tolist()


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(max_iter=500)])
def test_a_class_with_one_row_is_missing_from_a_fold_and_kept(iris, estimator):
    X, y = iris
    rows = np.flatnonzero((y < 2) | (np.arange(len(y)) == 120))
    model = CalibratedClassifier(estimator, calibrant.TemperatureScaling(0.25))
    with pytest.warns(DataWarning, match="The smallest class has 1 row, fewer than the 5 folds"):
        model.fit(X[rows], y[rows])
    proba = model.predict_proba(X)
    assert proba.shape == (150, 3)
    assert (proba > 0).all()
    assert model.score(X[y < 2], y[y < 2]) > 0.95


def test_data_frames_keep_their_names():
    pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = CalibratedClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), calibrant.TemperatureScaling()
    )
    assert list(model.fit(X, y).feature_names_in_) == list(X.columns)
    assert model.predict_proba(X).shape == (150, 3)


def test_weights_reach_estimator_and_calibrator(iris):
    X, y = iris
    weight = np.where(y == 0, 0.0, 1.0)
    weight[:5] = 1e-3  # a class of weight zero would not count as a class
    model = CalibratedClassifier(
        LogisticRegression(max_iter=500), calibrant.StructuredScaling("vector")
    )
    plain, weighted = clone(model).fit(X, y), clone(model).fit(X, y, sample_weight=weight)
    assert weighted.predict_proba(X)[y == 0, 0].mean() < plain.predict_proba(X)[y == 0, 0].mean()
    assert weighted.class_prior_[0] < 1e-4


def test_an_estimator_that_takes_no_weights_is_named(iris):
    X, y = iris
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not accept sample_weight"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))


def test_metadata_is_routed_to_estimator_and_splitter(iris):
    X, y = iris
    groups = np.arange(len(y)) % 10
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        model = CalibratedClassifier(inner, calibrant.TemperatureScaling(), cv=GroupKFold(5))
        model.fit(X, y, groups=groups, sample_weight=np.ones(len(y)))
    assert len(model.estimators_) == 16


def test_a_pipeline_gets_weights_by_routing(iris):
    X, y = iris
    weight = np.where(y == 0, 100.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        scale = StandardScaler().set_fit_request(sample_weight=False)
        model = CalibratedClassifier(make_pipeline(scale, inner), calibrant.Identity())
        weighted = model.fit(X, y, sample_weight=weight).estimators_[0][-1].intercept_
        plain = model.fit(X, y).estimators_[0][-1].intercept_
    assert np.abs(weighted - plain).max() > 0.1


def groups_of(y):
    return np.array(["a", "b"])[np.arange(len(y)) % 2]


@pytest.mark.parametrize("is_routed", [False, True])
@pytest.mark.parametrize("ensemble", ["auto", False])
def test_groups_reach_a_group_calibration(iris, is_routed, ensemble):
    X, y = iris
    frame = {"site": groups_of(y)}
    calibrator = calibrant.GroupCalibration("bayesian-temperature")
    with sklearn.config_context(enable_metadata_routing=is_routed):
        model = CalibratedClassifier(GaussianNB(), calibrator, ensemble=ensemble)
        model.fit(X, y, by=frame)
        proba = model.predict_proba(X, by=frame)
        assert (model.predict(X, by=frame) == model.classes_[proba.argmax(axis=1)]).all()
        with pytest.raises(ValueError, match="by= is missing"):
            model.predict_proba(X)
    assert model.calibrator_.by_ == ("site",)
    assert model.calibrator_.group_weights_.tolist() == [75, 75]


def test_groups_reach_a_pipeline_by_routing(iris):
    X, y = iris
    calibrator = calibrant.GroupCalibration("bayesian-temperature")
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), CalibratedClassifier(GaussianNB(), calibrator))
        model.fit(X, y, by=groups_of(y))
        assert model.predict_proba(X, by=groups_of(y)).shape == (150, 3)


def test_groups_that_no_calibrator_uses_are_rejected(iris):
    X, y = iris
    model = CalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    with pytest.raises(TypeError, match="by= needs a GroupCalibration"):
        model.predict_proba(X, by=groups_of(y))
    with pytest.raises(TypeError, match="no parameter 'color'"):
        model.predict_proba(X, color=1)
    grouped = CalibratedClassifier(GaussianNB(), calibrant.GroupCalibration(), ensemble=True)
    with pytest.raises(ValueError, match="ensemble=True fits one per fold"):
        grouped.fit(X, y, by=groups_of(y))
    with pytest.raises(ValueError, match="rows"):
        grouped.set_params(ensemble=False).fit(X, y, by=groups_of(y)[1:])


def test_it_is_a_scikit_learn_citizen(iris):
    X, y = iris
    model = CalibratedClassifier(
        DecisionTreeClassifier(max_depth=3, random_state=0), calibrant.TemperatureScaling(0.25)
    )
    scores = cross_val_score(model, X, y, scoring=metrics.scorer("log_loss"), cv=3)
    assert np.isfinite(scores).all()
    fitted = model.fit(X, y)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X)
    )


def test_one_class_is_rejected():
    with pytest.raises(ValueError, match="at least two classes"):
        CalibratedClassifier(GaussianNB()).fit(np.eye(4), np.zeros(4, dtype=int))


def test_something_without_scores_is_rejected(iris):
    class Mute(GaussianNB):
        predict_proba = None

    with pytest.raises(TypeError, match="neither decision_function nor predict_proba"):
        CalibratedClassifier(Mute()).fit(*iris)


@pytest.mark.parametrize("ensemble", ["auto", True, False])
def test_splits_may_be_masks_or_negative_indices(ensemble, rng):
    X, y = load_iris(return_X_y=True)
    fold = rng.permutation(len(y)) % 5
    rows = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    masks = [(fold != k, fold == k) for k in range(5)]
    negative = [(a - len(y), b - len(y)) for a, b in rows]
    expected, *others = (
        CalibratedClassifier(GaussianNB(), "temperature", cv, ensemble).fit(X, y).predict_proba(X)
        for cv in (rows, masks, negative)
    )
    for proba in others:
        np.testing.assert_array_equal(proba, expected)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "cv has no splits"),
        ([(range(50), range(50, 151))], "does not fit the 150 rows"),
        ([(np.ones(3, dtype=bool), np.ones(150, dtype=bool))], "or masks of length 150"),
    ],
)
def test_splits_of_other_rows_are_rejected(cv, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(GaussianNB(), "temperature", cv=cv).fit(X, y)


def test_arguments_that_are_no_fitted_classifier_are_named():
    X, y = load_iris(return_X_y=True)
    frozen = CalibratedClassifier(FrozenEstimator(GaussianNB()), "temperature")
    with pytest.raises(NotFittedError, match="Fit the inner classifier first"):
        frozen.fit(X, y)
    for estimator in (None, "forest"):
        with pytest.raises(TypeError, match=f"Expected a classifier, got {estimator!r}"):
            CalibratedClassifier(estimator, "temperature").fit(X, y)


def test_groups_without_a_calibrator_of_groups_are_rejected():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="by= needs a GroupCalibration, but the calibrator is 'te"):
        CalibratedClassifier(GaussianNB(), "temperature").fit(X, y, by=y)
