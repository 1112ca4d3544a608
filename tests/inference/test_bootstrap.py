from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from calibrant import datasets
from calibrant.inference import bootstrap_interval
from calibrant.inference._bootstrap import RowDraws
from calibrant.inference._skewed import model_spread, spread_of
from calibrant.metrics import expected_calibration_error, log_loss


@pytest.fixture
def data():
    return datasets.noisy_simplex(400, 3, 0.2, rng=4)


@pytest.mark.parametrize(
    "metric",
    [
        "conf_ece",
        "cw_ece",
        "tl_ece",
        "mce",
        "expected_calibration_error",
        expected_calibration_error,
        partial(expected_calibration_error, notion="class-wise"),
        partial(expected_calibration_error, norm=2, debias=False),
    ],
)
def test_plug_in_errors_are_rejected_with_the_reason_and_the_remedy(metric, data):
    reason = "the error is biased and resampling adds the same bias again"
    with pytest.raises(ValueError, match=rf"{reason}.*use debiased_interval\(y_true, y_prob\)"):
        bootstrap_interval(metric, data.labels, data.proba)


@pytest.mark.parametrize("name", ["log_loss", "brier_score", "accuracy"])
def test_the_standard_error_of_a_mean_is_the_usual_one(name, data):
    result = bootstrap_interval(name, data.labels, data.proba, n_resamples=1500, rng=0)
    if name == "log_loss":
        rows = -np.log(data.proba[np.arange(400), data.labels])
    elif name == "brier_score":
        rows = ((data.proba - np.eye(3)[data.labels]) ** 2).sum(axis=1)
    else:
        rows = (data.proba.argmax(axis=1) == data.labels).astype(float)
    assert result.estimate == pytest.approx(rows.mean())
    assert result.standard_error == pytest.approx(rows.std() / 20, rel=0.1)
    assert result.high - result.low == pytest.approx(2 * 1.96 * rows.std() / 20, rel=0.12)
    assert result.guarantee == ("finite-sample" if name == "accuracy" else "asymptotic")
    assert result.note == ""
    assert result.quantity == name


def test_debiased_errors_are_accepted_and_centred_on_their_estimate(data):
    metric = partial(expected_calibration_error, norm=2, debias=True, strategy="quantile")
    result = bootstrap_interval(metric, data.labels, data.proba, n_resamples=200, rng=0)
    assert result.low < result.estimate < result.high


def test_a_plug_in_error_in_disguise_is_called_heuristic():
    calibrated = datasets.noisy_simplex(400, 3, 0.0, rng=4)
    hidden = bootstrap_interval(
        lambda y, p: expected_calibration_error(y, p),
        calibrated.labels,
        calibrated.proba,
        n_resamples=300,
        rng=0,
    )
    assert hidden.guarantee == "heuristic"


def test_a_seed_gives_the_same_interval(data):
    first, again = (
        bootstrap_interval("log_loss", data.labels, data.proba, n_resamples=50, rng=2)
        for _ in range(2)
    )
    assert first == again


def test_one_row_varies_not_and_proves_nothing():
    result = bootstrap_interval(log_loss, [0], [[0.5, 0.5]], n_resamples=5, rng=0)
    assert result.low == result.high == pytest.approx(np.log(2))
    assert result.guarantee == "heuristic"
    assert result.note.startswith("all rows have the same value")


def test_few_rows_widen_the_interval_as_student_does(rng):
    proba, y = rng.dirichlet(np.ones(3), 10), rng.integers(3, size=10)
    result = bootstrap_interval("brier_score", y, proba, n_resamples=2000, rng=0)
    rows = ((proba - np.eye(3)[y]) ** 2).sum(axis=1)
    reach = 2.262 * rows.std(ddof=1) / np.sqrt(10)
    assert result.high - result.low == pytest.approx(2 * reach, rel=0.1)


def test_nonsense_is_rejected(data):
    with pytest.raises(ValueError, match="Unknown metric 'loss'"):
        bootstrap_interval("loss", data.labels, data.proba)
    with pytest.raises(ValueError, match="level must lie between"):
        bootstrap_interval("log_loss", data.labels, data.proba, level=2)


@pytest.mark.slow
def test_intervals_cover_the_mean_score():
    # Predictions of 0.8 that are correct in 70% of the rows: the Brier score of a row is 2 * 0.2^2
    # or 2 * 0.8^2.
    truth = 0.7 * 0.08 + 0.3 * 1.28
    covered = 0
    for seed in range(400):
        y = (np.random.default_rng(seed).random(100) < 0.7).astype(int)
        result = bootstrap_interval("brier_score", y, np.full(100, 0.8), n_resamples=150, rng=seed)
        covered += result.low <= truth <= result.high
    assert covered >= 0.92 * 400


def clustered(rng, n_groups, size):
    """Rows of patients whose predictions are all correct or all wrong."""
    is_right = np.repeat(rng.random(n_groups) < 0.7, size)
    proba = np.tile([0.3, 0.7], (n_groups * size, 1))
    return is_right.astype(int), proba, np.repeat(np.arange(n_groups), size)


def test_rows_of_a_group_are_drawn_together(rng):
    groups = np.array(["b", "a", "b", "c", "a"])
    for _ in range(20):
        drawn = RowDraws(5, groups).rows(rng)
        counts = np.bincount(drawn, minlength=5)
        assert counts[0] == counts[2]
        assert counts[1] == counts[4]
        assert counts[0] + counts[1] + counts[3] == 3


def test_groups_of_one_row_are_the_bootstrap_of_rows(rng):
    y, proba, _ = clustered(rng, 100, 1)
    options = {"n_resamples": 200, "rng": 0}
    alone = bootstrap_interval("brier_score", y, proba, groups=np.arange(100), **options)
    assert alone == bootstrap_interval("brier_score", y, proba, **options)


def test_dependent_rows_widen_the_interval_by_the_root_of_their_number(rng):
    y, proba, groups = clustered(rng, 60, 9)
    options = {"n_resamples": 400, "rng": 0}
    rows = bootstrap_interval("brier_score", y, proba, **options)
    patients = bootstrap_interval("brier_score", y, proba, groups=groups, **options)
    assert patients.standard_error / rows.standard_error == pytest.approx(3.0, rel=0.15)
    assert patients.guarantee == "asymptotic"


def test_few_groups_make_the_interval_heuristic_and_one_is_rejected(rng):
    y, proba, groups = clustered(rng, 10, 5)
    few = bootstrap_interval("brier_score", y, proba, groups=groups, n_resamples=50, rng=0)
    assert few.guarantee == "heuristic"
    with pytest.raises(ValueError, match="All rows belong to one group"):
        bootstrap_interval("brier_score", y, proba, groups=np.zeros(50))
    with pytest.raises(ValueError, match="groups has 3 rows"):
        bootstrap_interval("brier_score", y, proba, groups=[1, 2, 3])


@pytest.mark.slow
def test_the_cluster_bootstrap_covers_where_that_of_rows_does_not():
    """The standard error of a coverage of 0.95 from 400 samples is 0.011."""
    truth, inside = 2 * (0.7 * 0.3**2 + 0.3 * 0.7**2), {"rows": 0, "patients": 0}
    for seed in range(400):
        y, proba, groups = clustered(np.random.default_rng(seed), 60, 5)
        for name, own in (("rows", None), ("patients", groups)):
            result = bootstrap_interval(
                "brier_score", y, proba, groups=own, n_resamples=100, rng=seed
            )
            inside[name] += result.low <= truth <= result.high
    assert inside["patients"] >= 0.93 * 400
    assert inside["rows"] < 0.7 * 400


@pytest.mark.parametrize("name", ["log_loss", "brier_score"])
def test_a_sample_without_errors_is_as_wide_as_the_model_says(name):
    """Ten correct rows with probability 0.9: labels drawn from the model vary."""
    proba = np.tile([0.9, 0.1], (10, 1))
    result = bootstrap_interval(name, np.zeros(10, dtype=int), proba, n_resamples=50, rng=0)
    losses = {"log_loss": (-np.log(0.9), -np.log(0.1)), "brier_score": (0.02, 1.62)}[name]
    reach = 2.262 * (losses[1] - losses[0]) * np.sqrt(0.9 * 0.1 / 9)
    assert result.estimate == pytest.approx(losses[0])
    assert result.low == 0.0  # losses are not negative, and the reach is longer than the loss
    assert reach > result.estimate
    assert result.high == pytest.approx(result.estimate + model_spread(name, proba).ends(0.95)[1])
    assert result.high - result.estimate > 1.5 * reach
    assert result.guarantee == "heuristic"


def test_an_interval_is_never_shorter_than_its_skewness_asks_for():
    """With three confident errors in 60 rows, Hall's transformation gives the upper end."""
    proba, y = np.tile([0.95, 0.05], (60, 1)), np.repeat([1, 0], [3, 57])
    result = bootstrap_interval("log_loss", y, proba, n_resamples=200, rng=0)
    losses = -np.log(np.where(y == 0, 0.95, 0.05))
    own, actual = model_spread("log_loss", proba), spread_of(losses)
    assert own.error == pytest.approx(actual.error)
    assert result.high == pytest.approx(result.estimate + actual.ends(0.95)[1])


def test_few_groups_widen_the_interval_as_few_rows_do():
    y, proba = np.repeat([0, 1] * 4, 20), np.tile([0.3, 0.7], (160, 1))
    options = {"n_resamples": 200, "rng": 0}
    few = bootstrap_interval("brier_score", y, proba, groups=np.arange(160) // 20, **options)
    alone = bootstrap_interval("brier_score", y[::20], proba[::20], **options)
    assert (few.low, few.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("metric", ["log_loss", "brier_score"])
def test_an_interval_of_a_loss_is_not_negative(metric, rng):
    proba = rng.uniform(0.98, 0.99, 40)
    interval = bootstrap_interval(metric, np.ones(40, dtype=int), proba, n_resamples=99, rng=0)
    assert interval.low == 0.0
    assert interval.low < interval.estimate < interval.high
