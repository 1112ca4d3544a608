"""`RiskMonitor`: its evidence, its alarms, and the certificate that it revokes."""

import numpy as np
import pytest

import calibrant
from calibrant.decisions import SelectiveClassifier
from calibrant.guarantees import Certificate
from calibrant.monitoring import RiskMonitor

CERTIFICATE = Certificate(500, 0.05, 0.1, "2026-11-18", "ab")


def test_the_evidence_is_the_mean_of_likelihood_ratios(rng):
    errors = rng.random(200) < 0.1
    ratios = [
        np.prod(np.where(errors, q / 0.05, (1 - q) / 0.95))
        for q in 0.05 * np.array([1.25, 1.5, 2, 3, 5])
    ]
    step = RiskMonitor(0.05).update_losses(errors)
    assert step.evidence == pytest.approx(np.mean(ratios))
    assert step.mean_loss == errors.mean()


def test_updates_in_parts_are_one_update(rng):
    errors = rng.random(300) < 0.08
    whole, parts = RiskMonitor(0.05), RiskMonitor(0.05)
    expected = whole.update_losses(errors)
    for part in np.array_split(errors, 7):
        step = parts.update_losses(part)
    assert step.nats == pytest.approx(expected.nats)
    assert step.n_seen == expected.n_seen == 300


def test_a_guarantee_that_holds_rarely_raises_an_alarm(rng):
    alarms = [RiskMonitor(0.05).update_losses(rng.random(3000) < 0.05).alarm for _ in range(300)]
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize(("rate", "median"), [(0.075, 470), (0.1, 160), (0.15, 49)])
def test_a_broken_guarantee_is_detected_after_few_rows(rng, rate, median):
    delays = []
    for _ in range(200):
        monitor, errors = RiskMonitor(0.05), rng.random(6000) < rate
        logs = np.cumsum(np.where(errors[:, None], monitor._gains, monitor._costs), axis=0)
        crossed = np.logaddexp.reduce(logs, axis=1) - np.log(5) >= monitor.threshold
        delays.append(np.argmax(crossed) if crossed.any() else 6000)
    assert np.median(delays) == pytest.approx(median, rel=0.35)


def test_losses_between_0_and_1_are_valid_evidence():
    # The factor of a loss is convex in the loss, so it is below the mean of its ends.
    monitor = RiskMonitor(0.2, largest_loss=2.0)
    for loss in np.linspace(0, 2, 9):
        factors = np.exp(loss / 2 * monitor._gains + (1 - loss / 2) * monitor._costs)
        ends = loss / 2 * np.exp(monitor._gains) + (1 - loss / 2) * np.exp(monitor._costs)
        assert (factors <= ends + 1e-12).all()
    assert monitor.update_losses([0.0, 2.0]).mean_loss == 1.0


def test_only_answered_rows_count():
    step = RiskMonitor(0.05).update(["a", "b", "a"], ["a", "a", ""], [True, True, False])
    assert (step.n_seen, step.mean_loss) == (2, 0.5)


def test_labels_that_cannot_be_compared_raise_an_error_instead_of_an_alarm():
    monitor = RiskMonitor(0.05)
    with pytest.raises(ValueError, match="predicted contains text, but y contains int64 values"):
        monitor.update([1, 2], ["1", "2"])
    with pytest.raises(ValueError, match="The label of row 0 and 1 more is missing"):
        monitor.update([np.nan, np.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match="The prediction of row 1 is missing"):
        monitor.update(["a", "b"], ["a", None])
    assert monitor.n_seen == 0
    assert monitor.update([1, 2], np.array([1, "unknown"], object), [True, False]).mean_loss == 0


@pytest.mark.parametrize("answered", [["True", "False"], [0.3, 1.0], [np.nan, 1.0], [0, 5]])
def test_answered_must_be_true_or_false(answered):
    with pytest.raises(ValueError, match="answered must be True or False for each row"):
        RiskMonitor(0.05).update([1, 2], [1, 2], answered)


def test_an_alarm_revokes_the_certificate():
    monitor = RiskMonitor(certificate=CERTIFICATE)
    assert monitor.update_losses(np.zeros(50)).alarm is False
    assert monitor.certificate.valid
    step = monitor.update_losses(np.ones(20), when="week 2")
    assert step.alarm
    assert not monitor.certificate.valid
    assert "detected after 70 answers (week 2)" in monitor.certificate.revoked
    assert str(step).startswith("Alarm: the guarantee no longer holds.")
    assert monitor.update_losses(np.zeros(5)).alarm


def test_a_revoked_model_says_so_after_saving(rng, tmp_path):
    proba = rng.dirichlet(np.full(3, 0.2), size=600)
    labels = (rng.random((600, 1)) > np.cumsum(proba, axis=1)).sum(axis=1).clip(max=2)
    model = SelectiveClassifier(risk=0.1).fit(proba, labels)
    monitor = RiskMonitor(certificate=model.certificate_)
    monitor.update((model.predict(proba) + 1) % 3, model.predict(proba), model.answers(proba))
    model.revoke(monitor.certificate.revoked)
    calibrant.save(model, tmp_path / "model.json")
    loaded = calibrant.load(tmp_path / "model.json")
    assert not loaded.certificate_.valid
    assert str(loaded.guarantee()).startswith("This guarantee was revoked: the answers exceed")


def test_a_state_is_the_same_after_loading(rng):
    monitor = RiskMonitor(certificate=CERTIFICATE)
    monitor.update_losses(rng.random(100) < 0.2)
    again = RiskMonitor.from_json(monitor.to_json())
    errors = rng.random(100) < 0.05
    assert again.update_losses(errors) == monitor.update_losses(errors)
    assert again.certificate == monitor.certificate


@pytest.mark.parametrize(
    "change", ['"risk": 0.05', '"n_seen": 0', '"largest_loss": 1.0', '"certificate": null']
)
def test_damaged_states_are_rejected(change):
    text = RiskMonitor(0.05).to_json()
    assert change in text
    with pytest.raises(ValueError, match=r"state|risk"):
        RiskMonitor.from_json(text.replace(change, change.split(":")[0] + ': {"a": 1}'))


def test_bad_arguments_are_rejected():
    with pytest.raises(ValueError, match="needs a risk or a certificate"):
        RiskMonitor()
    with pytest.raises(ValueError, match="alpha must be a number between 0 and 1"):
        RiskMonitor(0.1, alpha=1)
    with pytest.raises(ValueError, match="risk must be below largest_loss=1, got"):
        RiskMonitor(1.5)
    with pytest.raises(ValueError, match="losses must be numbers of shape"):
        RiskMonitor(0.1).update_losses([2.0])
    with pytest.raises(ValueError, match="same number of rows"):
        RiskMonitor(0.1).update([1], [1, 2])


def test_large_risks_have_alternatives_below_one():
    step = RiskMonitor(0.5).update_losses(np.ones(100))
    assert step.alarm
    assert RiskMonitor(0.5).update([], []).n_seen == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"risk": 0.05, "largest_loss": 0}, ValueError, "largest_loss must be"),
        ({"risk": 0}, ValueError, "risk must be"),
        ({"risk": 2.0}, ValueError, "risk must be below largest_loss=1, got 2. Pass the largest"),
        ({"risk": "0.1"}, ValueError, "risk must be"),
        ({"certificate": "abc"}, TypeError, "Pass certificate=model.certificate_"),
    ],
)
def test_bad_parameters_are_rejected(arguments, error, message):
    with pytest.raises(error, match=message):
        RiskMonitor(**arguments)


def test_a_state_without_its_alarm_is_rejected():
    text = RiskMonitor(0.05).to_json()
    with pytest.raises(ValueError, match="'alarm' is missing"):
        RiskMonitor.from_json(text.replace('"alarm"', '"alarms"'))
    with pytest.raises(ValueError, match="'alarm' in the state must be true or false"):
        RiskMonitor.from_json(text.replace('"alarm": false', '"alarm": "no"'))
