"""Online recalibration: bounds for any sequence, following changes, states, one row at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibrant.monitoring import Expert, OnlineCalibration
from calibrant.monitoring._mixture import mix_rows


def experts_losses(log_f):
    return -log_f.sum(axis=0)


def losses_of_a_mixture(rng, share, n_rows, *, is_adversary):
    """Log-losses of a mixture and of its experts; an adversary takes the least likely class."""
    n_experts, weights = int(rng.integers(2, 7)), None
    weights, total, experts = np.full(n_experts, 1 / n_experts), 0.0, np.zeros(n_experts)
    for proba in rng.dirichlet(np.full(4, 0.3), (n_rows, n_experts)):
        y = int((weights @ proba).argmin()) if is_adversary else int(rng.integers(0, 4))
        log_f = np.log(proba[:, y] + 1e-12)
        loss, weights = mix_rows(weights, log_f[None], share)
        total, experts = total + loss, experts - log_f
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    return total, experts


@pytest.mark.parametrize("share", [0.0, 1 / 2000, 0.1])
@pytest.mark.parametrize(("is_adversary", "n_runs"), [(False, 1000), (True, 100)])
def test_the_regret_bounds_hold_on_random_and_adversarial_sequences(
    rng, share, is_adversary, n_runs
):
    for _ in range(n_runs):
        n_rows = int(rng.integers(1, 20))
        loss, experts = losses_of_a_mixture(rng, share, n_rows, is_adversary=is_adversary)
        bound = np.log(len(experts)) - (n_rows - 1) * np.log1p(-share)
        assert loss <= experts.min() + bound + 1e-9


def regret_to_an_adversary(rng, share, n_rows):
    """What a mixture that learns loses to the deployed forecast where each outcome is the class
    that it believes in least.
    """
    online = OnlineCalibration(share=share, classes=range(3))
    for row in rng.dirichlet(np.full(3, 0.5), n_rows):
        online.partial_fit([row], [online.predict_proba([row])[0].argmin()])
    return -online.saved_


def test_against_an_adversary_it_loses_at_most_its_bound_to_the_deployed_forecast(rng):
    for share in (0.0, 1 / 2000):
        bound = np.log(6) - 59 * np.log1p(-share)
        assert regret_to_an_adversary(rng, share, 60) <= bound + 1e-9


@pytest.mark.slow
def test_a_hundred_adversarial_sequences_keep_the_bound(rng):
    bound = np.log(6) - 24 * np.log1p(-1 / 2000)
    assert max(regret_to_an_adversary(rng, 1 / 2000, 25) for _ in range(100)) <= bound + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 1 / 2000])
def test_a_thousand_random_sequences_keep_the_bound(rng, share):
    for _ in range(1000):
        n_rows = int(rng.integers(1, 300))
        proba, y = rng.dirichlet(np.full(3, 0.5), n_rows), rng.integers(0, 3, n_rows)
        online = OnlineCalibration(share=share, classes=range(3)).fit(proba, y)
        assert online.bound_ == pytest.approx(np.log(6) - (n_rows - 1) * np.log1p(-share))
        assert -online.saved_ <= online.bound_ + 1e-9


def alternating(rng, n_batches, n_rows):
    """Batches of forecasts and outcomes whose temperature is 1 and 3 in turn."""
    for number in range(n_batches):
        z = rng.normal(0, 3, (n_rows, 3))
        proba, truth = (
            np.exp(u) / np.exp(u).sum(axis=1)[:, None] for u in (z, z / (1, 3)[number % 2])
        )
        yield proba, (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)


def log_loss(proba, y):
    return -np.log(proba[np.arange(len(y)), y]).sum()


@pytest.mark.parametrize("calibeat", [False, True])
def test_the_reported_loss_is_that_of_the_forecasts_issued_for_a_batch(rng, calibeat):
    online, issued, deployed = OnlineCalibration(classes=range(3), calibeat=calibeat), 0.0, 0.0
    for proba, y in alternating(rng, 6, 300):
        issued += log_loss(online.predict_proba(proba), y)
        deployed += log_loss(proba, y)
        online.partial_fit(proba, y)
    assert online.log_loss_ == pytest.approx(issued)
    assert online.saved_ == pytest.approx(deployed - issued)


def test_the_reported_loss_counts_issued_forecasts_whose_labels_are_late(rng):
    online, issued, waiting = OnlineCalibration(classes=range(3)), 0.0, None
    for proba, y in alternating(rng, 6, 100):
        forecast = online.predict_proba(proba)
        if waiting is not None:
            late, late_y, late_forecast = waiting
            issued += log_loss(late_forecast, late_y)
            online.partial_fit(late, late_y, issued=late_forecast)
        waiting = proba, y, forecast
    assert online.log_loss_ == pytest.approx(issued)


@pytest.mark.parametrize("share", [0.0, 1 / 2000, 0.1])
def test_forecasts_issued_in_batches_lose_at_most_the_bound_to_the_deployed_forecast(rng, share):
    online, sizes = OnlineCalibration(share=share, classes=range(3)), [1, 20, 5, 40, 1]
    for size in sizes * 4:
        proba = rng.dirichlet(np.full(3, 0.5), size)
        online.partial_fit(proba, online.predict_proba(proba).argmin(axis=1))
        assert -online.saved_ <= online.bound_ + 1e-9
    assert online.bound_ == pytest.approx(40 * np.log(6) - 267 * np.log1p(-share))


def test_batches_that_alternate_do_not_cost_the_mixture_more_than_the_deployed_forecast(rng):
    online = OnlineCalibration(classes=range(3))
    for proba, y in alternating(rng, 20, 500):
        online.partial_fit(proba, y)
    assert online.saved_ > 0


def test_issued_forecasts_have_a_row_per_label(stream):
    y, proba = stream(20)
    with pytest.raises(ValueError, match="rows"):
        OnlineCalibration().partial_fit(proba, y, issued=proba[:10])


def test_it_learns_the_temperature_of_an_overconfident_forecast(stream):
    y, proba = stream(3000, beta=0.5)
    online = OnlineCalibration().fit(proba, y)
    assert online.saved_ > 50
    y, proba = stream(2000, beta=0.5)
    loss = [-np.log(p[np.arange(2000), y]).mean() for p in (online.predict_proba(proba), proba)]
    assert loss[0] < loss[1] - 0.02


@pytest.mark.slow
def test_with_a_share_it_follows_a_change_better_than_without(stream):
    gained = []
    for _ in range(5):
        parts = [stream(1500, beta) for beta in (1.0, 0.5, 1.0, 2.0)]
        y, proba = (np.concatenate(column) for column in zip(*parts, strict=True))
        losses = [
            OnlineCalibration(share=share).fit(proba, y).log_loss_ for share in (1 / 2000, 0.0)
        ]
        gained.append(losses[1] - losses[0])
    assert np.mean(gained) > 0


def test_an_calibrated_forecast_costs_next_to_nothing(stream):
    y, proba = stream(4000)
    online = OnlineCalibration(share=0.0).fit(proba, y)
    assert -online.saved_ <= np.log(6) + 1e-9


def test_a_replay_of_one_row_is_a_batch_of_one_row(stream):
    y, proba = stream(1)
    batch, replay = (OnlineCalibration(classes=range(4)) for _ in range(2))
    later = batch.partial_fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(replay.fit(proba, y).predict_proba(proba), later, rtol=1e-12)
    assert replay.log_loss_ == pytest.approx(batch.log_loss_)


def test_one_row_at_a_time_as_river_does():
    online, row = OnlineCalibration(), {"cat": 0.9, "dog": 0.1}
    assert online.predict_proba_one(row) == row
    for label in ["cat", "dog"] * 40:
        online.learn_one(row, label)
    assert online.predict_proba_one(row)["cat"] < 0.75
    assert online.predict_one(row) == "cat"
    assert online.predict([[0.9, 0.1]]).tolist() == ["cat"]


def test_labels_that_were_given_are_the_only_ones():
    online = OnlineCalibration(classes=["cat", "dog"])
    with pytest.raises(ValueError, match="cow"):
        online.learn_one({"cat": 0.5, "cow": 0.5}, "cat")
    online.learn_one({"cat": 0.9, "dog": 0.1}, "cat")
    with pytest.raises(ValueError, match="must contain a score for each of the classes"):
        online.learn_one({"cat": 0.5, "cow": 0.5}, "cat")


def test_labels_join_as_they_are_met():
    online = OnlineCalibration()
    assert online.predict_proba_one({}) == {}
    assert online.predict_one({}) is None
    online.learn_one({}, "cat")
    online.learn_one({"cat": 1.0}, "cat")
    assert online.predict_proba_one({"cat": 1.0}) == {"cat": 1.0}
    for _ in range(30):
        online.learn_one({"cat": 0.6, "dog": 0.4}, "dog")
    before = online.predict_proba_one({"cat": 0.6, "dog": 0.4})
    online.learn_one({"cat": 0.5, "dog": 0.3, "cow": 0.2}, "cow")
    after = online.predict_proba_one({"cat": 0.6, "dog": 0.4})
    assert list(after) == ["cat", "dog", "cow"]
    assert after["dog"] == pytest.approx(before["dog"], abs=0.05)
    again = OnlineCalibration.from_json(online.to_json())
    again.learn_one({"cat": 0.5, "dog": 0.3, "hen": 0.2}, "hen")
    assert set(again.predict_proba_one({"hen": 1.0})) == {"cat", "dog", "cow", "hen"}


def test_a_label_without_a_logit_is_an_error():
    online = OnlineCalibration(inputs="logits").partial_fit([[2.0, 1.0]], ["a"], ["a", "b"])
    with pytest.raises(ValueError, match="must contain a score for each of the classes"):
        online.learn_one({"a": 0.3}, "a")


@pytest.mark.parametrize(("inputs", "expected"), [("proba", 0.75), ("logits", 0.5)])
def test_before_the_first_label_known_classes_have_their_scores(inputs, expected):
    online = OnlineCalibration(inputs=inputs, classes=["a", "b"])
    rows = [[0.75, 0.25]] if inputs == "proba" else [[3.0, 3.0]]
    np.testing.assert_allclose(online.predict_proba(rows)[0, 0], expected)
    assert online.predict(rows).tolist() == ["a"]
    with pytest.raises(ValueError, match="3 columns"):
        online.predict_proba([[0.2, 0.3, 0.5]])
    with pytest.raises(NotFittedError):
        OnlineCalibration(inputs=inputs).predict_proba(rows)


def test_logits_and_float32():
    online = OnlineCalibration(inputs="logits")
    rows = np.array([[2.0, 0.0, -1.0]] * 50, dtype=np.float32)
    out = online.partial_fit(rows, [0, 1] * 25).predict_proba(rows)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.sum(axis=1), 1.0, atol=1e-6)


def test_many_classes_keep_a_diagonal(rng):
    proba = rng.dirichlet(np.ones(60), 300)
    online = OnlineCalibration().partial_fit(proba, rng.integers(0, 60, 300))
    assert online.states_[0].information.shape == (61,)
    assert np.isfinite(online.predict_proba(proba)).all()


@pytest.mark.parametrize("calibeat", [False, True])
@pytest.mark.parametrize("n_classes", [3, 60])
def test_a_state_goes_on_where_it_was(stream, n_classes, calibeat):
    y, proba = stream(200, 0.7, n_classes)
    online = OnlineCalibration(calibeat=calibeat).partial_fit(proba, y)
    again = OnlineCalibration.from_json(online.to_json())
    assert again.partial_fit(proba, y).to_json() == online.partial_fit(proba, y).to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "x"},
        {"weights": [1] * 6},
        {"theta": [None] * 20},
        {"information": [0.0] * 80},
        {"experts": [["a", True]]},
        {"experts": 3},
        {"classes": None},
        {"share": 2},
        {"calibeat": 1},
    ],
    ids=str,
)
def test_a_hostile_state_is_a_value_error(stream, change):
    y, proba = stream(20, n_classes=3)
    state = json.loads(OnlineCalibration().partial_fit(proba, y).to_json())
    with pytest.raises(ValueError, match=r"state|JSON"):
        OnlineCalibration.from_json(json.dumps(state | change))


def test_it_is_an_estimator(stream):
    y, proba = stream(100)
    online = OnlineCalibration(experts=[Expert(0.9)], share=0.01)
    assert clone(online).get_params() == online.get_params()
    first = online.fit(proba, y).to_json()
    assert online.fit(proba, y).to_json() == first
    with pytest.raises(ValueError, match="share"):
        OnlineCalibration(share=1.0).fit(proba, y)
