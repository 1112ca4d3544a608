"""Online recalibration: bounds for any sequence, following changes, states, one row at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

from calibrant.monitoring import Expert, OnlineCalibration
from calibrant.monitoring._online import mix_rows


def experts_losses(log_f):
    return -log_f.sum(axis=0)


@pytest.mark.parametrize("share", [0.0, 1 / 2000, 0.1])
def test_d_the_regret_bounds_hold_on_random_and_adversarial_sequences(rng, share):
    for trial in range(100):
        n_rows, n_experts = int(rng.integers(1, 60)), int(rng.integers(2, 7))
        proba = rng.dirichlet(np.full(4, 0.3), (n_rows, n_experts))
        worst = proba.mean(axis=1).argmin(axis=1)  # what an adversary takes
        y = rng.integers(0, 4, n_rows) if trial % 10 else worst
        log_f = np.log(proba[np.arange(n_rows), :, y] + 1e-12)
        loss, weights = mix_rows(np.full(n_experts, 1 / n_experts), log_f, share)
        bound = np.log(n_experts) - (n_rows - 1) * np.log1p(-share)
        assert loss <= experts_losses(log_f).min() + bound + 1e-9
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)


def test_d_against_an_adversary_it_loses_at_most_its_bound_to_the_deployed_forecast(rng):
    for _ in range(2):
        online = OnlineCalibration()
        proba = rng.dirichlet(np.full(3, 0.5), 120)
        online.partial_fit(proba[:1], proba[:1].argmin(axis=1))
        for row in proba[1:]:
            online.partial_fit([row], online.predict_proba([row]).argmin(axis=1))
        assert -online.saved_ <= np.log(5) - 119 * np.log1p(-1 / 2000) + 1e-9


def test_it_learns_the_temperature_of_an_overconfident_forecast(stream):
    y, proba = stream(3000, beta=0.5)
    online = OnlineCalibration().partial_fit(proba, y)
    assert online.saved_ > 50
    y, proba = stream(2000, beta=0.5)
    loss = [-np.log(p[np.arange(2000), y]).mean() for p in (online.predict_proba(proba), proba)]
    assert loss[0] < loss[1] - 0.02


@pytest.mark.slow
def test_d_with_a_share_it_follows_a_change_better_than_without(stream):
    gained = []
    for _ in range(5):
        parts = [stream(1500, beta) for beta in (1.0, 0.5, 1.0, 2.0)]
        y, proba = (np.concatenate(column) for column in zip(*parts, strict=True))
        losses = [
            OnlineCalibration(share=share).partial_fit(proba, y).log_loss_
            for share in (1 / 2000, 0.0)
        ]
        gained.append(losses[1] - losses[0])
    assert np.mean(gained) > 0


def test_an_honest_forecast_costs_next_to_nothing(stream):
    y, proba = stream(4000)
    online = OnlineCalibration(share=0.0).partial_fit(proba, y)
    assert -online.saved_ <= np.log(5) + 1e-9


def test_rows_of_two_calls_are_those_of_one_up_to_the_blocks(stream):
    y, proba = stream(512)
    one = OnlineCalibration().partial_fit(proba, y)
    two = OnlineCalibration().partial_fit(proba[:256], y[:256]).partial_fit(proba[256:], y[256:])
    np.testing.assert_allclose(one.predict_proba(proba), two.predict_proba(proba), atol=1e-12)


def test_one_row_at_a_time_as_river_does():
    online, row = OnlineCalibration(), {"cat": 0.9, "dog": 0.1}
    assert online.predict_proba_one(row) == row
    for label in ["cat", "dog"] * 40:
        online.learn_one(row, label)
    assert online.predict_proba_one(row)["cat"] < 0.75
    assert online.predict([[0.9, 0.1]]).tolist() == ["cat"]
    with pytest.raises(ValueError, match="expected a score for each"):
        online.learn_one({"cat": 0.5, "cow": 0.5}, "cat")


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


@pytest.mark.parametrize("n_classes", [3, 60])
def test_a_state_goes_on_where_it_was(stream, n_classes):
    y, proba = stream(200, 0.7, n_classes)
    online = OnlineCalibration().partial_fit(proba, y)
    again = OnlineCalibration.from_json(online.to_json())
    assert again.partial_fit(proba, y).to_json() == online.partial_fit(proba, y).to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "x"},
        {"weights": [1, 1, 1, 1, 1]},
        {"theta": [None] * 16},
        {"information": [0.0] * 64},
        {"experts": [["a", True]]},
        {"experts": 3},
        {"classes": None},
        {"share": 2},
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
