"""The best few classes of each row, each test after its promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import (
    HistogramBinning,
    MulticlassToBinary,
    TemperatureScaling,
    TopScores,
    evaluate,
    load,
    metrics,
    save,
)
from calibrant._simplex import log_softmax, top_labels
from calibrant.cli import run
from calibrant.exceptions import DataWarning

M = 20
NOTIONS = ("confidence", "top-label", "rank-2", "within-top-5", "top-3-label")


def best(log_proba, m=M, **options):
    labels = top_labels(log_proba, m)
    known = np.take_along_axis(log_proba, labels, axis=1)
    return TopScores(labels, known, log_proba.shape[1], **options)


def log_rest(log_proba, m=M):
    """The mass of the others as a service would give it, without cancellation."""
    return np.logaddexp.reduce(np.sort(log_proba, axis=1)[:, :-m], axis=1)


@pytest.fixture(
    scope="module", params=["cifar100_resnet50_gupta", "imagenet1k_effnetlite0_sample1000"]
)
def real(request, real_data):
    data = real_data(request.param)
    start = "val_" if "val_logits" in data else ""
    log_proba = log_softmax(data[f"{start}logits"][:1000])
    return log_proba, data[f"{start}labels"][:1000]


@pytest.fixture
def small(rng):
    """Six classes, of which the truth was drawn."""
    log_proba = log_softmax(2 * rng.normal(size=(400, 6)))
    draws = log_proba + rng.gumbel(size=log_proba.shape)
    return log_proba, draws.argmax(axis=1)


@pytest.mark.parametrize("notion", NOTIONS)
def test_t1_errors_of_the_top_twenty_are_those_of_whole_rows(real, notion):
    log_proba, y = real
    options = {"inputs": "log_proba", "notion": notion}
    dense = metrics.expected_calibration_error(y, log_proba, **options)
    top = metrics.expected_calibration_error(y, best(log_proba), notion=notion)
    assert top == pytest.approx(dense, abs=1e-12)
    assert metrics.ks_error(y, best(log_proba), notion=notion) == pytest.approx(
        metrics.ks_error(y, log_proba, **options), abs=1e-12
    )


def test_t2_the_evaluation_of_the_top_twenty_is_that_of_whole_rows_where_it_is_defined(real):
    log_proba, y = real
    whole, top = evaluate(y, log_proba, inputs="log_proba"), evaluate(y, best(log_proba))
    shared = set(whole.to_dict()) & set(top.to_dict())
    assert shared >= {"accuracy", "conf_ece", "tl_ece", "mce", "ks", "sharpness"}
    for name in shared:
        assert getattr(top, name) == pytest.approx(getattr(whole, name), abs=1e-12), name
    assert top.log_loss_low <= whole.log_loss <= top.log_loss_high
    assert top.within_known == np.mean((best(log_proba).labels == y[:, None]).any(axis=1))
    assert "log-loss, at most" in str(top)
    assert "log-loss, at most" in top._repr_html_()


def test_t3_with_all_classes_known_the_temperature_is_that_of_whole_rows(small):
    log_proba, y = small
    dense = TemperatureScaling(inputs="log_proba").fit(log_proba, y)
    top = TemperatureScaling().fit(best(log_proba, 6), y)
    assert top.temperature_ == pytest.approx(dense.temperature_, rel=1e-9)
    predicted = top.predict_proba(best(log_proba, 6))
    whole = np.sort(dense.predict_proba(log_proba), axis=1)[:, ::-1]
    assert np.allclose(predicted.proba, whole, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("cifar100_resnet50_gupta", 2e-3), ("imagenet1k_effnetlite0_sample1000", 5e-3)],
)
def test_t4_the_temperature_of_the_top_twenty_is_near_that_of_whole_rows(real_data, name, bound):
    """Even with the true tail it would be 1.9e-3 and 2.5e-3 away: of a truth that was cut off it
    is not known which of the others it was.
    """
    data = real_data(name)
    start = "val_" if "val_logits" in data else ""
    log_proba, y = log_softmax(data[f"{start}logits"][:3000]), data[f"{start}labels"][:3000]
    dense = TemperatureScaling(inputs="log_proba").fit(log_proba, y)
    top = TemperatureScaling().fit(best(log_proba, rest=log_rest(log_proba)), y)
    assert top.temperature_ == pytest.approx(dense.temperature_, abs=bound)


def test_t5_rows_of_a_power_law_have_the_temperature_of_whole_rows_within_a_thousandth(rng):
    """The tail is what the fit takes it for, and every truth is known."""
    power = rng.uniform(1.2, 2.5, size=(2000, 1))
    log_proba = log_softmax(-power * np.log(np.arange(1, 501) + 0.0))
    y = np.minimum(rng.geometric(0.5, size=2000) - 1, M - 1)
    dense = TemperatureScaling(inputs="log_proba").fit(log_proba, y)
    top = TemperatureScaling().fit(best(log_proba, rest=log_rest(log_proba)), y)
    assert top.temperature_ == pytest.approx(dense.temperature_, abs=1e-3)


def test_t6_calibrated_top_scores_keep_their_classes_and_make_one_with_the_rest(small):
    log_proba, y = small
    top = best(log_proba, 3)
    model = TemperatureScaling().fit(top, y)
    after = model.predict_proba(top)
    assert (after.labels == top.labels).all()
    assert np.allclose(after.proba.sum(axis=1) + after.rest, 1.0)
    assert (model.predict(top) == top.labels[:, 0]).all()
    assert repr(after) == "TopScores(400 rows, 3 of 6 classes, rest known)"


def test_t7_a_reduction_of_top_scores_is_that_of_whole_rows_with_its_guarantee(small):
    log_proba, y = small
    for notion in ("confidence", "top-label", "within-top-2"):
        dense = MulticlassToBinary(HistogramBinning(n_bins=4), notion, inputs="log_proba")
        top = MulticlassToBinary(HistogramBinning(n_bins=4), notion)
        dense.fit(log_proba, y)
        top.fit(best(log_proba, 3), y)
        expected = dense.predict_claims(log_proba)
        assert np.allclose(top.predict_claims(best(log_proba, 3)), expected, atol=1e-12)
        assert str(top.guarantee()) == str(dense.guarantee())
    labels, claims = (
        MulticlassToBinary(HistogramBinning(n_bins=4))
        .fit(best(log_proba, 3), y)
        .predict_top(best(log_proba, 3))
    )
    assert (labels == log_proba.argmax(axis=1)).all()
    assert claims.shape == labels.shape


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (lambda y, top: metrics.log_loss(y, top), "log_loss_bounds"),
        (lambda y, top: metrics.brier_score(y, top), "all 6 classes"),
        (lambda y, top: evaluate(y, top, by=y), "all 6 classes"),
        (
            lambda y, top: MulticlassToBinary(HistogramBinning(n_bins=2)).fit(top, y).predict(top),
            "whole rows",
        ),
    ],
)
def test_t8_what_needs_whole_rows_is_refused_with_the_reason(small, use, reason):
    with pytest.raises(TypeError, match=reason):
        use(small[1], best(small[0], 3))


@pytest.mark.parametrize(
    ("notion", "reason"), [("class-wise", "given classes"), ("rank-4", "3 are known")]
)
def test_t9_notions_beyond_the_known_classes_are_refused(small, notion, reason):
    with pytest.raises(ValueError, match=reason):
        metrics.expected_calibration_error(small[1], best(small[0], 3), notion=notion)


def test_t10_with_an_unknown_rest_the_temperature_is_of_rows_whose_truth_is_known(small):
    log_proba, y = small
    top = best(log_proba, 3, rest="unknown")
    inside = (top.labels == y[:, None]).any(axis=1)
    with pytest.warns(DataWarning, match="cut off"):
        model = TemperatureScaling().fit(top, y)
    known = np.flatnonzero(inside)
    place = (top.labels == y[:, None]).argmax(axis=1)[known]
    alone = TemperatureScaling(inputs="logits").fit(top.log_proba[known], place)
    assert model.temperature_ == pytest.approx(alone.temperature_, rel=1e-9)
    assert model.predict_proba(top).log_rest is None
    with pytest.raises(ValueError, match="up to a constant"):
        evaluate(y, top)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([[0, 1]], [[-1.0]], 3), "must agree"),
        (([[0, 0]], [[-1.0, -2.0]], 3), "twice"),
        (([[0, 1]], [[2.0, 1.0]], 3), "rest='unknown'"),
        (([[0, 1]], [[np.nan, -1.0]], 3), "nan"),
        (([[0, 1]], [[-np.inf, -np.inf]], 3), "all -inf"),
        (([[0, 1]], [-1.0, -2.0], 3), "shape"),
        (([[0, 1]], [[-1.0, -2.0]]), "how many classes"),
        (([[0, 1]], [[-1.0, -2.0]], 1), "at least 2"),
    ],
)
def test_t11_top_scores_that_cannot_be_are_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        TopScores(*arguments)


@pytest.mark.parametrize(
    ("rest", "reason"), [("none", "one of"), ([-1.0, -1.0], "shape"), ([-0.1], "make one")]
)
def test_t12_a_rest_that_cannot_be_is_refused(rest, reason):
    with pytest.raises(ValueError, match=reason):
        TopScores([[0, 1]], [[-1.0, -2.0]], 3, rest=rest)


def test_t13_names_of_classes_are_those_of_truths(tmp_path):
    top = TopScores([["b", "a"]] * 4, np.log([[0.6, 0.3]] * 4), classes=["a", "b", "c"])
    model = TemperatureScaling(prior_scale=1.0).fit(top, ["b", "a", "b", "c"])
    assert model.predict(top).tolist() == ["b"] * 4
    save(model, tmp_path / "model.json")
    assert load(tmp_path / "model.json").temperature_ == model.temperature_
    with pytest.raises(ValueError, match="one place"):
        TemperatureScaling(classes=["x", "y", "z"]).fit(top, ["x", "y", "x", "z"])
    with pytest.raises(ValueError, match="fitted with 3"):
        model.predict(TopScores([[0, 1]], np.log([[0.6, 0.3]]), 4))


def test_t14_the_bounds_of_the_log_loss_are_those_of_the_worst_and_the_best_tail():
    """Of three classes 0.5, 0.3, 0.2 the first is known: the truth has between 0 and 0.5."""
    top = TopScores([[0]], np.log([[0.5]]), 3)
    low, high = metrics.log_loss_bounds([2], top)
    assert low == pytest.approx(np.log(2))
    assert high == pytest.approx(-np.log(1e-12))
    narrow = metrics.log_loss_bounds([2], TopScores([[0]], np.log([[0.35]]), 3))
    assert narrow == pytest.approx((-np.log(0.35), -np.log(0.3)))


@pytest.fixture
def top_csv(small, tmp_path):
    log_proba, y = small
    top, path = best(log_proba, 3), tmp_path / "top.csv"
    names = ",".join(f"top{r}_label,top{r}_logprob" for r in (1, 2, 3))
    rows = [
        ",".join([str(y[i]), *(f"{c},{top.log_proba[i, r]:.17g}" for r, c in enumerate(codes))])
        for i, codes in enumerate(top.labels)
    ]
    path.write_text("\n".join([f"y,{names}", *rows]) + "\n")
    return path, y, top


def test_t15_the_command_line_reads_columns_of_the_best_classes(top_csv, capsys):
    path, y, top = top_csv
    assert run(["evaluate", str(path), "--n-classes", "6", "--json", "-q"]) == 0
    shown = json.loads(capsys.readouterr().out)
    expected = evaluate(y, top).to_dict()
    assert shown == pytest.approx(expected, abs=1e-12)


def test_t16_the_command_line_fits_a_temperature_to_the_best_classes(top_csv, tmp_path, capsys):
    path, y, top = top_csv
    model = tmp_path / "model.json"
    arguments = [str(path), "--n-classes", "6", "-o", str(model), "-q"]
    assert run(["fit", *arguments, "-m", "temperature", "--json"]) == 0
    assert load(model).temperature_ == pytest.approx(
        TemperatureScaling().fit(top, y).temperature_, rel=1e-9
    )
    assert run(["fit", *arguments, "-m", "auto"]) == 2
    assert "-m temperature" in capsys.readouterr().err
    assert run(["evaluate", str(path), "-q"]) == 2
    assert "--n-classes" in capsys.readouterr().err


def test_t17_the_how_to_runs():
    page = Path(__file__).resolve().parents[2] / "docs" / "howto-top-scores.md"
    code = page.read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(code.replace("print(evaluate(y, top))", "shown = str(evaluate(y, top))"), names)
    assert names["claims"].shape == (4, 1)
    assert names["low"] <= names["high"]
