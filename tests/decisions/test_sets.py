"""`PredictionSets`: definitions, coverage, and equality with other packages."""

import numpy as np
import pytest
from scipy.stats import beta, kstest
from sklearn.linear_model import LogisticRegression

from calibrant import Identity, TemperatureScaling
from calibrant.decisions import PredictionSets
from calibrant.decisions._sets import _mass_before, _rank, _uniform_numbers
from calibrant.exceptions import DataWarning


def _rows(rng, n, n_classes=4):
    proba = rng.dirichlet(np.full(n_classes, 0.4), size=n)
    labels = (rng.random((n, 1)) > np.cumsum(proba, axis=1)).sum(axis=1)
    return proba, np.minimum(labels, n_classes - 1)


@pytest.fixture
def rows(rng):
    return _rows(rng, 600)


def test_lac_sets_are_labels_above_a_probability(rows):
    proba, labels = rows
    model = PredictionSets(coverage=0.9).fit(proba[:200], labels[:200])
    scores = np.sort(1 - proba[np.arange(200), labels[:200]])
    rank = int(np.ceil(201 * 0.9))
    assert model.thresholds_.tolist() == [scores[rank - 1]] * 4
    np.testing.assert_array_equal(
        model.predict_set(proba[200:]), 1 - proba[200:] <= scores[rank - 1]
    )


def test_aps_sums_the_probabilities_before_a_label():
    proba = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(_mass_before(proba), [[0.8, 0.0, 0.5], [0.0, 1.0, 1.0]])


def test_aps_sets_are_never_empty_unless_they_are_randomized(rows):
    proba, labels = rows
    plain = PredictionSets(coverage=0.5, score="aps").fit(proba, labels).predict_set(proba)
    assert plain.any(axis=1).all()
    assert plain[np.arange(600), proba.argmax(axis=1)].all()
    random = PredictionSets(coverage=0.5, score="aps", randomize=True).fit(proba, labels)
    assert not random.predict_set(proba).any(axis=1).all()
    np.testing.assert_array_equal(random.predict_set(proba), random.predict_set(proba))


@pytest.mark.parametrize(
    "options", [{"score": "lac"}, {"score": "aps"}, {"score": "aps", "randomize": True}]
)
def test_sets_contain_the_label_with_the_stated_probability(rng, options):
    held = []
    for seed in range(300):
        proba, labels = _rows(rng, 150)
        model = PredictionSets(coverage=0.9, random_state=seed, **options)
        sets = model.fit(proba[:50], labels[:50]).predict_set(proba[50:])
        held.append(sets[np.arange(100), labels[50:]].mean())
    error = np.std(held) / np.sqrt(len(held))
    exact = _rank(50, 0.9) / 51
    assert np.mean(held) >= exact - 3 * error
    if options != {"score": "aps"}:  # without randomization some sets are larger than needed
        assert np.mean(held) <= exact + 3 * error


def test_every_class_is_covered_if_asked_for(rng):
    held = np.zeros(3)
    for _ in range(100):
        proba = rng.dirichlet([4, 1, 0.5], size=700)
        labels = (rng.random((700, 1)) > np.cumsum(proba, axis=1)).sum(axis=1).clip(max=2)
        model = PredictionSets(coverage=0.8, class_conditional=True)
        sets = model.fit(proba[:300], labels[:300]).predict_set(proba[300:])
        for k in range(3):
            held[k] += sets[300:, k][labels[600:] == k].mean() / 100
    assert (held > 0.78).all()


def test_small_classes_are_pooled_or_always_included(rows):
    proba, labels = rows
    keep = (labels < 2) | (np.cumsum(labels == 2) <= 3) & (labels == 2)
    keep |= (np.cumsum(labels == 3) <= 4) & (labels == 3)
    X, y = proba[keep], labels[keep]
    pooled = PredictionSets(coverage=0.9, class_conditional=True).fit(X, y)
    assert pooled.pooled_classes_.tolist() == [2, 3]
    assert pooled.thresholds_[2] == pooled.thresholds_[3] == np.inf  # 7 rows are too few as well
    always = PredictionSets(coverage=0.9, class_conditional=True, small="always").fit(X, y)
    assert always.always_classes_.tolist() == [2, 3]
    assert always.predict_set(proba)[:, 2:].all()
    looser = PredictionSets(coverage=0.85, class_conditional=True).fit(X, y)
    assert np.isfinite(looser.thresholds_).all()
    assert "For the classes 2, 3, the coverage holds only on average over the rows of" in str(
        looser.guarantee()
    )


def test_few_rows_give_full_sets(rows):
    proba, labels = rows
    with pytest.warns(DataWarning, match="90% needs at least 9 rows, got 8 rows in total"):
        model = PredictionSets(coverage=0.9).fit(proba[:8], labels[:8])
    with pytest.warns(DataWarning, match="needs at least 9999 rows"):
        PredictionSets(coverage=0.9999).fit(proba, labels)
    assert model.predict_set(proba).all()
    guarantee = model.guarantee()
    assert (guarantee.low, guarantee.high, guarantee.expected) == (1.0, 1.0, 1.0)
    exact = PredictionSets(coverage=0.9).fit(proba[:9], labels[:9])
    assert np.isfinite(exact.thresholds_).all()  # (9 + 1) * 0.9 is 9 and not 10


def test_the_guarantee_holds_the_range_of_the_coverage(rows):
    guarantee = PredictionSets(coverage=0.9).fit(*rows).guarantee()
    low, high = beta.ppf([0.05, 0.95], _rank(600, 0.9), 601 - _rank(600, 0.9))
    assert (guarantee.low, guarantee.high) == pytest.approx((low, high))
    assert guarantee.expected == pytest.approx(_rank(600, 0.9) / 601)
    assert "set coverage on new rows is between" in str(guarantee)


def test_a_class_that_is_in_every_set_does_not_determine_the_range(rows):
    proba, labels = rows
    keep = (labels < 3) | (np.cumsum(labels == 3) <= 4)
    X, y = proba[keep], labels[keep]
    guarantee = PredictionSets(coverage=0.9, class_conditional=True).fit(X, y).guarantee()
    n_least = int(np.bincount(y)[:3].min())
    low, high = beta.ppf([0.05, 0.95], _rank(n_least, 0.9), n_least + 1 - _rank(n_least, 0.9))
    assert (guarantee.low, guarantee.high) == pytest.approx((low, high))
    assert guarantee.always == ("3",)
    assert "The class 3 is in every set" in str(guarantee)


def test_a_pool_with_too_few_rows_is_in_every_set(rows):
    proba, labels = rows
    keep = (labels < 2) | (np.cumsum(labels == 2) <= 3) & (labels == 2)
    keep |= (np.cumsum(labels == 3) <= 4) & (labels == 3)
    model = PredictionSets(coverage=0.9, class_conditional=True).fit(proba[keep], labels[keep])
    guarantee = model.guarantee()
    assert (guarantee.pooled, guarantee.always) == ((), ("2", "3"))


def test_a_changed_coverage_does_not_change_the_guarantee(rows):
    model = PredictionSets(coverage=0.9).fit(*rows)
    expected = str(model.guarantee())
    assert str(model.set_params(coverage=0.99).guarantee()) == expected


def test_a_randomized_set_depends_on_its_row_and_not_on_its_batch(rng):
    proba, labels = _rows(rng, 1200)
    model = PredictionSets(score="aps", randomize=True).fit(proba[:600], labels[:600])
    sets = model.predict_set(proba[600:])
    single = np.array([model.predict_set(proba[i : i + 1])[0] for i in range(600, 1200)])
    np.testing.assert_array_equal(single, sets)
    other = model.set_params(random_state=1).predict_set(proba[600:])
    assert (other != sets).any()


def test_random_numbers_of_rows_are_uniform(rng):
    numbers = _uniform_numbers(rng.dirichlet(np.ones(3), 20_000), 0)
    assert kstest(numbers, "uniform").pvalue > 0.01


def test_the_score_is_the_set_coverage(rows):
    proba, labels = rows
    model = PredictionSets(coverage=0.9).fit(proba[:300], labels[:300])
    held = model.predict_set(proba[300:])[np.arange(300), labels[300:]]
    assert model.score(proba[300:], labels[300:]) == pytest.approx(held.mean())
    assert model.get_params()["score"] == "lac"


def test_labels_of_sets_begin_with_the_most_probable(rows):
    proba, labels = rows
    names = np.array(["a", "b", "c", "d"])
    model = PredictionSets(coverage=0.99, classes=names).fit(proba, names[labels])
    listed = model.predict_labels(proba)
    assert all(entry[0] == names[p.argmax()] for entry, p in zip(listed, proba, strict=True))
    assert [len(entry) for entry in listed] == model.predict_set(proba).sum(axis=1).tolist()


def test_rows_of_the_calibrator_are_rejected(rows):
    proba, labels = rows
    calibrator = TemperatureScaling().fit(proba[:300], labels[:300])
    with pytest.raises(ValueError, match="rows that are also in X"):
        PredictionSets(calibrator).fit(proba[:300], labels[:300])
    PredictionSets(calibrator).fit(proba[300:], labels[300:])
    assert PredictionSets(Identity()).fit(proba, labels).certificate_.n_rows == 300
    assert PredictionSets(LogisticRegression()).fit(proba, labels).predict_set(proba).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.0}, "coverage must be a number between 0 and 1"),
        ({"score": "raps"}, "score must be one of 'lac', 'aps'"),
        ({"small": "drop"}, "small must be one of 'pool', 'always'"),
        ({"randomize": True}, 'randomize=True needs score="aps"'),
    ],
)
def test_bad_options_are_rejected(rows, options, message):
    with pytest.raises(ValueError, match=message):
        PredictionSets(**options).fit(*rows)


class _Fixed:
    """A fitted classifier of MAPIE whose features are probabilities."""

    classes_ = np.arange(4)
    n_features_in_ = 4

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X).argmax(axis=1)

    def predict_proba(self, X):
        return np.asarray(X)

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.parametrize("coverage", [0.7, 0.8, 0.9, 0.95])
def test_lac_sets_equal_those_of_mapie(rows, coverage):
    classification = pytest.importorskip("mapie.classification")
    from sklearn.base import BaseEstimator, ClassifierMixin

    proba, labels = rows
    fixed = type("Fixed", (_Fixed, ClassifierMixin, BaseEstimator), {})()
    peer = classification.SplitConformalClassifier(
        fixed, confidence_level=coverage, conformity_score="lac", prefit=True
    )
    peer.conformalize(proba[:200], labels[:200])
    expected = peer.predict_set(proba[200:])[1][:, :, 0]
    model = PredictionSets(coverage=coverage).fit(proba[:200], labels[:200])
    np.testing.assert_array_equal(model.predict_set(proba[200:]), expected)


@pytest.mark.parametrize("coverage", [0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("conditional", [False, True])
def test_lac_sets_equal_those_of_crepes(rows, coverage, conditional):
    crepes = pytest.importorskip("crepes")
    proba, labels = rows
    scores = 1 - proba
    peer = crepes.ConformalClassifier()
    options = {"confidence": coverage, "smoothing": False}
    true = scores[np.arange(200), labels[:200]]
    if conditional:
        peer.fit(true, bins=labels[:200])
        columns = [
            peer.predict_set(scores[200:, [k]], np.full(400, k), **options)[:, 0] for k in range(4)
        ]
        expected, counts = np.column_stack(columns), np.bincount(labels[:200], minlength=4)
    else:
        peer.fit(true)
        expected, counts = peer.predict_set(scores[200:], **options), np.full(4, 200)
    model = PredictionSets(coverage=coverage, class_conditional=conditional, small="always")
    sets = model.fit(proba[:200], labels[:200]).predict_set(proba[200:])
    # crepes keeps a label whose p-value equals 1 - coverage, which makes sets larger if
    # (n + 1) (1 - coverage) is a whole number.
    allowed = (counts + 1) * (1 - coverage)
    same = ~np.isclose(allowed, np.round(allowed))
    np.testing.assert_array_equal(sets[:, same], expected[:, same].astype(bool))
