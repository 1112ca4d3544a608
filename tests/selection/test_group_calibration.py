"""`GroupCalibration`: effects of groups, shrunk toward the pooled calibrator."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import GroupCalibration, TemperatureScaling, load, save
from calibrant._kernels.simplex import softmax
from calibrant.io import RowBlocks
from calibrant.testing import check_calibrator

pd = pytest.importorskip("pandas")


def draw(rng, n_rows, offsets, slope=0.7):
    """Scores, labels and groups; the logits of a group are shifted by its offsets."""
    group = rng.integers(0, len(offsets), n_rows)
    u = rng.normal(scale=2.0, size=(n_rows, offsets.shape[1]))
    logits = slope * u + offsets[group]
    y = (logits + rng.gumbel(size=u.shape)).argmax(axis=1)
    return softmax(u), y, group, softmax(logits)


@pytest.fixture
def shifted(rng):
    offsets = rng.normal(scale=1.2, size=(4, 3))
    return draw(rng, 1200, offsets), draw(rng, 2000, offsets)


def excess(truth, proba):
    return float((truth * np.log(truth / proba)).sum(axis=1).mean())


def test_it_keeps_what_every_calibrator_keeps():
    check_calibrator(GroupCalibration(TemperatureScaling(prior_scale=0.25), cv=3))


def test_groups_that_differ_are_corrected(shifted):
    (p, y, group, _), (p_new, _, group_new, truth) = shifted
    model = GroupCalibration("structured-vector").fit(p, y, by=group)
    pooled = model.pooled_.predict_proba(p_new)
    assert excess(truth, model.predict_proba(p_new, by=group_new)) < 0.1 * excess(truth, pooled)
    assert model.gain_.low > 0
    assert model.training_.log_loss_after < model.pooled_.fit(p, y).training_.log_loss_after
    assert model.group_weights_.sum() == len(y)
    assert "4 by group" in model.explain()


def test_groups_that_do_not_differ_change_nothing_noticeable(rng):
    p, y, group, _ = draw(rng, 900, np.zeros((30, 3)))
    p_new, _, group_new, truth = draw(rng, 5000, np.zeros((30, 3)))
    model = GroupCalibration("structured-vector").fit(p, y, by=group)
    pooled = excess(truth, model.pooled_.predict_proba(p_new))
    assert excess(truth, model.predict_proba(p_new, by=group_new)) < pooled + 0.001


def test_an_unknown_or_missing_group_gets_the_pooled_calibrator(shifted):
    (p, y, group, _), _ = shifted
    model = GroupCalibration("temperature").fit(p, y, by=group)
    other = np.array([9.0, np.nan] * 3)
    np.testing.assert_array_equal(
        model.predict_proba(p[:6], by=other), model.pooled_.predict_proba(p[:6])
    )


def test_effects_of_several_columns_are_added_and_columns_are_matched_by_name(rng):
    offsets = rng.normal(size=(2, 3)), rng.normal(size=(3, 3))
    a, b = rng.integers(0, 2, 1500), rng.integers(0, 3, 1500)
    u = rng.normal(scale=2, size=(1500, 3))
    logits = u + offsets[0][a] + offsets[1][b]
    y = (logits + rng.gumbel(size=u.shape)).argmax(axis=1)
    frame = pd.DataFrame({"site": np.array(["x", "y"])[a], "age": b})
    model = GroupCalibration("temperature").fit(softmax(u), y, by=frame)
    proba = model.predict_proba(softmax(u), by=frame)
    assert excess(softmax(logits), proba) < 0.03
    assert model.by_ == ("site", "age")
    assert model.groups_["age"].tolist() == ["0", "1", "2"]
    swapped = frame[["age", "site"]].assign(other=1)
    np.testing.assert_array_equal(model.predict_proba(softmax(u), by=swapped), proba)
    with pytest.raises(ValueError, match="column 'site' is missing"):
        model.predict_proba(softmax(u), by=frame[["age"]].assign(other=1))


def test_a_strength_of_infinity_is_the_pooled_calibrator_or_common_effects(shifted):
    (p, y, group, _), _ = shifted
    model = GroupCalibration("temperature", strength=np.inf).fit(p, y, by=group)
    assert not model.effects_[:, 1:].any()
    model = GroupCalibration("temperature", strength=3.0).fit(p, y, by=group)
    assert model.strengths_.tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="strength"):
        GroupCalibration(strength=-1.0).fit(p, y, by=group)


def test_groups_must_be_passed_at_prediction_if_they_were_at_fit(shifted):
    (p, y, group, _), _ = shifted
    model = GroupCalibration("temperature").fit(p, y, by={"site": group})
    with pytest.raises(ValueError, match=r"by= is missing\. Pass by=frame\[\['site'\]\]"):
        model.predict_proba(p)
    with pytest.raises(ValueError, match="rows"):
        model.predict_proba(p, by=group[:-1])
    with pytest.raises(ValueError, match="rows"):
        GroupCalibration("temperature").fit(p, y, by=group[:-1])
    with pytest.raises(ValueError, match=r"Call predict_proba\(X\) without by"):
        GroupCalibration("temperature").fit(p, y).predict_proba(p, by=group)


def test_the_calibrator_of_one_group_needs_no_groups(shifted):
    (p, y, group, _), _ = shifted
    model = GroupCalibration("temperature").fit(p, y, by={"site": group})
    np.testing.assert_array_equal(
        model.for_group(2).predict_proba(p), model.predict_proba(p, by=np.full(len(p), 2))
    )
    np.testing.assert_array_equal(
        model.for_group({"site": 2}).predict(p), model.predict(p, by=np.full(len(p), 2))
    )
    np.testing.assert_array_equal(
        model.for_group().predict_proba(p), model.pooled_.predict_proba(p)
    )
    with pytest.raises(ValueError, match="by must be a dict with names among site"):
        model.for_group({"country": 2})


def test_weights_are_copies_and_the_order_of_rows_does_not_matter(shifted, rng):
    (p, y, group, _), _ = shifted
    p, y, group = p[:300], y[:300], group[:300]
    twice = np.repeat(np.arange(300), 2)
    order = rng.permutation(300)
    fits = [
        GroupCalibration("temperature").fit(p, y, np.full(300, 2.0), by=group),
        GroupCalibration("temperature").fit(p[twice], y[twice], by=group[twice]),
        GroupCalibration("temperature").fit(p[order], y[order], np.full(300, 2.0), by=group[order]),
    ]
    first, *others = (model.predict_proba(p, by=group) for model in fits)
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-6)


def test_a_saved_calibrator_predicts_the_same(shifted, tmp_path):
    (p, y, group, _), _ = shifted
    frame = pd.DataFrame({"site": group, "half": np.arange(len(y)) % 2 == 0})
    model = GroupCalibration().fit(p, y, by=frame)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    np.testing.assert_array_equal(
        loaded.predict_proba(p, by=frame), model.predict_proba(p, by=frame)
    )
    one = model.for_group({"site": 1})
    save(one, tmp_path / "one.json")
    np.testing.assert_array_equal(
        load(tmp_path / "one.json").predict_proba(p), one.predict_proba(p)
    )


def test_a_fit_to_chunks_reads_groups_with_them(shifted):
    (p, y, group, _), _ = shifted
    whole = GroupCalibration("temperature").fit(p, y, by=group)

    def read():
        for start in range(0, len(y), 250):
            yield p[start : start + 250], y[start : start + 250]

    blocks = RowBlocks(read)
    model = GroupCalibration("temperature").fit(blocks.scores, blocks.labels, by=group)
    proba = np.concatenate(list(model.predict_proba(blocks.scores, by=group)))
    np.testing.assert_allclose(proba, model.predict_proba(p, by=group), atol=1e-12)
    # Folds differ, so strengths and weights may differ a little.
    np.testing.assert_allclose(proba, whole.predict_proba(p, by=group), atol=0.03)


def test_a_fit_to_dask_arrays_reads_groups_with_them(shifted):
    da = pytest.importorskip("dask.array")
    (p, y, group, _), _ = shifted
    lazy = [da.from_array(array, chunks=(250, *array.shape[1:])) for array in (p, y, group)]
    model = GroupCalibration("temperature").fit(lazy[0], lazy[1], by=lazy[2])
    proba = model.predict_proba(lazy[0], by=lazy[2])
    assert proba.shape == p.shape
    np.testing.assert_allclose(proba.compute(), model.predict_proba(p, by=group), atol=1e-12)
    np.testing.assert_array_equal(
        model.predict(lazy[0], by=lazy[2]).compute(), model.predict(p, by=group)
    )


def test_two_classes_and_binary_calibrators(shifted, rng):
    p = rng.uniform(0.05, 0.95, 800)
    group = np.array(["a", "b"])[rng.integers(0, 2, 800)]
    y = (rng.uniform(size=800) < np.clip(p + np.where(group == "a", 0.2, -0.2), 0, 1)).astype(int)
    model = GroupCalibration(calibrant.IsotonicCalibration()).fit(p, y, by=group)
    proba = model.predict_proba(p, by=group)[:, 1]
    for name in "ab":
        rows = group == name
        assert abs(proba[rows].mean() - y[rows].mean()) < 0.04


@pytest.mark.parametrize("inputs", ["proba", "logits"])
def test_the_calibrator_of_one_group_can_be_exported(shifted, inputs):
    from calibrant.export import program

    (p, y, group, _), _ = shifted
    scores = p if inputs == "proba" else np.log(p)
    model = GroupCalibration("structured-vector", inputs=inputs).fit(scores, y, by=group)
    with pytest.raises(ValueError, match=r"call for_group first"):
        program(model)
    for one in (model.for_group(1), model.for_group()):
        np.testing.assert_allclose(program(one)(scores), one.predict_proba(scores), atol=1e-12)


def test_a_report_can_cross_fit_groups(shifted):
    from calibrant.report import summarize

    (p, y, group, _), _ = shifted
    options = {"by": {"site": group}, "n_resamples": 19, "cv": 2}
    content = summarize(y, p, calibrator=GroupCalibration("temperature"), **options)
    pooled = summarize(y, p, calibrator=TemperatureScaling(), **options)
    losses = [report.metrics[1].after.value for report in (content, pooled)]
    assert content.metrics[1].name == "log_loss"
    assert losses[0] < losses[1]


def test_the_calibrator_of_one_group_is_found_by_any_spelling_of_its_value(shifted):
    (p, y, group, _), (p_new, *_) = shifted
    dates = np.array(["2024-01", "2024-02", "2024-03", "2024-04"], dtype="M8[M]")
    by = {"code": group, "month": dates.astype("M8[ns]")[group]}
    model = GroupCalibration("temperature", cv=2).fit(p, y, by=by)
    expected = model.for_group({"code": "1", "month": "2024-02-01"}).predict_proba(p_new)
    assert not np.allclose(expected, model.pooled_.predict_proba(p_new))
    for value in (
        {"code": 1.0, "month": pd.Timestamp("2024-02-01")},
        {"code": 1, "month": dates[1].astype("M8[D]")},
    ):
        np.testing.assert_array_equal(model.for_group(value).predict_proba(p_new), expected)
    missing = model.for_group({"code": None, "month": np.datetime64("NaT")})
    np.testing.assert_array_equal(missing.predict_proba(p_new), model.pooled_.predict_proba(p_new))


def test_a_calibrator_without_groups_has_no_calibrator_of_a_group(shifted):
    (p, y, *_), _ = shifted
    model = GroupCalibration("temperature", cv=2).fit(p, y)
    with pytest.raises(ValueError, match=r"was fitted without by=, so it has no groups"):
        model.for_group("north")
    assert "calibrate" in calibrant.export.to_python(model)
