from __future__ import annotations

import numpy as np
import pytest

from calibrant import GroupCalibration, evaluate
from calibrant.datasets import draw_labels
from calibrant.exceptions import DataWarning
from calibrant.guarantees import clopper_pearson
from calibrant.io import Chunk, RowBlocks, ScoreChunks

P = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
Y = np.array([0, 1, 1, 1])


@pytest.fixture
def data(rng):
    """Calibrated probabilities of four classes and their labels."""
    proba = rng.dirichlet(np.ones(4), 900)
    return draw_labels(proba, rng=1), proba


def test_every_group_has_the_evaluation_of_its_rows(data):
    y, p = data
    group = np.repeat(["a", "b", "c"], 300)
    result = evaluate(y, p, by=group)
    assert [part.name for part in result] == ["a", "b", "c"]
    expected = evaluate(y[300:600], p[300:600]).to_dict()
    assert result["b"].evaluation.to_dict() == pytest.approx(expected, abs=1e-12)
    assert result.overall == evaluate(y, p)


def test_logits_and_weights_go_to_the_groups(data):
    y, p = data
    weight = np.arange(900) % 3
    result = evaluate(y, np.log(p), inputs="logits", sample_weight=weight, by=y > 1)
    rows = y > 1
    assert result[True].evaluation.accuracy == pytest.approx(
        evaluate(y[rows], p[rows], sample_weight=weight[rows]).accuracy
    )


def test_the_gap_is_mean_confidence_minus_accuracy_and_its_interval_that_of_the_accuracy():
    three = np.column_stack([P, np.zeros(len(P))])  # a third class that never occurs
    result = evaluate(Y, three, by=["a", "a", "b", "b"], level=0.9)
    low, high = clopper_pearson(np.array([1.0]), np.array([2.0]), 0.05)  # 0.1 over two groups
    group = result["b"]
    assert group.gap == pytest.approx(0.65 - 0.5)
    assert (group.accuracy_low, group.accuracy_high) == pytest.approx((low[0], high[0]))
    assert (group.gap_low, group.gap_high) == pytest.approx((0.65 - high[0], 0.65 - low[0]))


def test_groups_with_too_few_rows_are_named():
    result = evaluate(Y, P, by=["a", "a", "b", "b"])
    assert result.too_small == ("a", "b")
    assert result["a"].finding == "too few rows"
    assert str(result).endswith("These groups have too few rows to detect a gap of 0.1: a, b.")


def test_a_group_that_is_wrong_is_found(data):
    y, p = data
    group = np.repeat(["honest", "sure"], [600, 300])
    sharp = p.copy()
    sharp[600:] = p[600:] ** 4 / (p[600:] ** 4).sum(axis=1, keepdims=True)
    result = evaluate(y, sharp, by=group)
    assert result.miscalibrated == ("sure",)
    assert [part.finding for part in result] == ["no gap detected", "overconfident"]
    assert repr(result) == "<GroupedEvaluation by group: 2 groups, 1 miscalibrated, 0 too small>"


def test_several_columns_make_a_group_of_every_combination_that_occurs(data):
    columns = {"site": np.repeat(["x", "y"], 450), "sex": np.tile(["f", "m", "m"], 300)}
    result = evaluate(*data, by=columns)
    assert result.by == ("site", "sex")
    assert [part.name for part in result] == [
        "site=x, sex=f",
        "site=x, sex=m",
        "site=y, sex=f",
        "site=y, sex=m",
    ]
    assert sum(part.evaluation.n_samples for part in result) == 900


def test_frames_and_series_bring_their_names(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"site": np.repeat(["x", "y"], 450)})
    for by in (frame, frame["site"]):
        assert evaluate(*data, by=by).by == ("site",)
    polars = pytest.importorskip("polars")
    assert evaluate(*data, by=polars.DataFrame({"site": ["x"] * 900})).by == ("site",)


@pytest.mark.parametrize("none", [None, float("nan")])
def test_rows_without_a_group_are_a_group(none):
    result = evaluate(Y, P, by=np.array(["a", none, "a", none], dtype=object))
    assert [part.name for part in result] == ["a", "missing"]


def test_values_that_read_alike_stay_apart():
    result = evaluate(Y, P, by=np.array([1, "1", "missing", None], dtype=object))
    assert [part.name for part in result] == ["1", "'1'", "'missing'", "missing"]


def test_months_come_in_their_order_and_days_without_hours():
    months = np.array(["2026-10", "2026-09", "NaT", "2026-10"], dtype="datetime64[M]")
    names = [part.name for part in evaluate(Y, P, by=months)]
    assert names == ["2026-09", "2026-10", "missing"]
    names = [part.name for part in evaluate(Y, P, by=months.astype("datetime64[ns]"))]
    assert names == ["2026-09-01", "2026-10-01", "missing"]


def test_a_column_of_too_many_values_is_rejected_with_the_way_to_cut_it(data):
    with pytest.raises(
        ValueError,
        match=r"900 different values, but at most 200 are allowed\. Bin the values.*"
        r"datetime64\[M\]",
    ):
        evaluate(*data, by=np.arange(900))


def test_a_table_of_groups_is_rejected_with_the_way_to_name_them():
    with pytest.raises(ValueError, match="To combine several columns, pass a dict"):
        evaluate(Y, P, by=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="by has no columns"):
        evaluate(Y, P, by={})


def test_lengths_and_levels_are_checked():
    with pytest.raises(ValueError, match="by 'group' has 3 rows"):
        evaluate(Y, P, by=[1, 2, 3])
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        evaluate(Y, P, by=[1, 1, 2, 2], level=95)


def test_an_unknown_group_is_an_error_that_names_those_there_are():
    with pytest.raises(KeyError, match=r"There is no group 'z'\. The groups are 'a', 'b'"):
        _ = evaluate(Y, P, by=["a", "a", "b", "b"])["z"]


def test_everything_is_there_as_plain_values():
    plain = evaluate(Y, P, by=["a", "a", "b", "b"]).to_dict()
    assert plain["by"] == ["group"]
    assert [group["group"] for group in plain["groups"]] == ["a", "b"]
    assert plain["groups"][0]["finding"] == "too few rows"


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [40, 400])
def test_the_intervals_of_ten_groups_hold_together(n_rows):
    held = []
    for seed in range(300):
        proba = np.random.default_rng(seed).dirichlet(np.ones(3), n_rows)
        labels = draw_labels(proba, rng=seed)
        result = evaluate(labels, proba, by=np.arange(n_rows) % 10)
        held.append(all(group.gap_low <= 0 <= group.gap_high for group in result))
    assert np.mean(held) >= 0.95


def parted(scores, y, weight=None, size=170):
    def read():
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            yield scores[rows], y[rows], None if weight is None else weight[rows]

    return RowBlocks(read)


MONTHS = np.array(["2026-01", "2026-02", "NaT"], dtype="datetime64[M]")


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("is_dask", [False, True])
def test_groups_of_parts_are_those_of_rows_in_memory(is_dask, is_weighted, rng):
    scores = 2 * rng.normal(size=(1000, 3))
    y = (0.6 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    weight = rng.integers(1, 4, size=1000).astype(float) if is_weighted else None
    sites = np.array(["b", "a", "c"], dtype=object)[rng.integers(3, size=1000)]
    sites[rng.random(1000) < 0.02] = None
    sites[900:] = "late"  # a group without rows in the first chunks
    by = {"site": sites, "month": MONTHS[rng.integers(3, size=1000)]}
    whole = evaluate(y, scores, inputs="logits", by=by, sample_weight=weight)
    if is_dask:
        da = pytest.importorskip("dask.array")
        data = (da.from_array(y, chunks=300), da.from_array(scores, chunks=(170, 3)))
        own = None if weight is None else da.from_array(weight, chunks=1000)
        by = {name: da.from_array(column, chunks=400) for name, column in by.items()}
    else:
        blocks = parted(scores, y, weight)
        data, own = (blocks.labels, blocks.scores), blocks.weight
    result = evaluate(*data, inputs="logits", by=by, sample_weight=own)
    assert result.by == whole.by
    assert [group.name for group in result] == [group.name for group in whole]
    assert result.miscalibrated == whole.miscalibrated
    for one, other in zip((*result, result.overall), (*whole, whole.overall), strict=True):
        own, theirs = one.to_dict(), other.to_dict()
        assert (own.pop("ks"), theirs.pop("ks") is None) == (None, False)
        for name in ("gain", "gain_low", "gain_high"):  # recalibration needs all rows in memory
            assert name not in own
            theirs.pop(name, None)
        assert own == pytest.approx(theirs, abs=1e-9)


def test_groups_of_parts_may_be_one_array_and_must_be_as_long_as_the_scores(rng):
    scores, y = rng.dirichlet([1, 1, 1], size=400), rng.integers(3, size=400)
    blocks, by = parted(scores, y), rng.integers(2, size=400)
    result = evaluate(blocks.labels, blocks.scores, by=by)
    assert (result.by, [group.name for group in result]) == (("group",), ["0", "1"])
    with pytest.raises(
        ValueError, match="one entry per row of scores, but there are 399 entries and 400 rows"
    ):
        evaluate(blocks.labels, blocks.scores, by=by[:-1])
    with pytest.raises(ValueError, match="level must lie"):
        evaluate(blocks.labels, blocks.scores, by=by, level=2)
    with pytest.raises(ValueError, match=r"but at most 200 are allowed\. Bin the values first"):
        evaluate(blocks.labels, blocks.scores, by=np.arange(400))


def test_groups_of_parts_that_something_else_holds_are_rejected():
    class Two(ScoreChunks):
        n_columns = 2

        def map_chunks(self, function):
            return [function(Chunk([[0.9, 0.1]], [k], None, k)) for k in (0, 1)]

    with pytest.raises(TypeError, match="groups of these chunks are unknown"):
        evaluate(None, Two(), by=[0, 1])


def test_groups_of_a_binary_problem_are_compared_by_the_probability_of_the_second_class():
    """Probabilities of one group are 20 points too low; its mean confidence equals its accuracy."""
    score = np.repeat([0.3, 0.7], 1000)
    low = np.concatenate([np.repeat([1, 0], 500), np.repeat([1, 0], [900, 100])])
    right = np.concatenate([np.repeat([1, 0], [300, 700]), np.repeat([1, 0], [700, 300])])
    groups = evaluate(
        np.concatenate([low, right]),
        np.concatenate([score, score]),
        by=np.repeat(["women", "men"], 2000),
    )
    assert groups["women"].gap == pytest.approx(-0.2)
    assert groups["women"].finding == "probabilities too low"
    assert groups["men"].gap == pytest.approx(0.0, abs=1e-12)
    assert groups.miscalibrated == ("women",)
    assert "second class minus its frequency" in groups.note()


def shifted_labels(rng, proba, group):
    """Labels that are calibrated, except that group 1 has class 0 more often."""
    is_moved = (group == 1) & (rng.uniform(size=len(group)) < 0.4)
    return np.where(is_moved, 0, draw_labels(proba, rng=rng))


def test_one_test_shows_whether_any_group_differs(rng):
    proba = rng.dirichlet(np.ones(3), 1200)
    group = rng.integers(0, 4, 1200)
    result = evaluate(shifted_labels(rng, proba, group), proba, by=group)
    assert result.difference.p_value == pytest.approx(0.001)
    assert "The calibration of the groups differs (p = 0.00100)." in str(result)
    same = evaluate(draw_labels(proba, rng=rng), proba, by=group)
    assert same.difference.p_value > 0.05
    assert "No difference between the groups was detected" in str(same)
    assert same.to_dict()["difference"]["n_resamples"] == 999
    assert evaluate(draw_labels(proba, rng=rng), proba, by=group * 0).difference is None


def test_a_common_error_is_no_difference_between_groups(rng):
    proba = rng.dirichlet(np.ones(3), 1200)
    softer = proba**0.5 / (proba**0.5).sum(axis=1, keepdims=True)
    result = evaluate(draw_labels(softer, rng=rng), proba, by=rng.integers(0, 4, 1200))
    assert result.difference.p_value > 0.05
    assert all(group.gain.value > 0 for group in result)


def test_recalibration_improves_the_group_that_differs(rng):
    proba = rng.dirichlet(np.ones(3), 2400)
    group = rng.integers(0, 4, 2400)
    result = evaluate(shifted_labels(rng, proba, group), proba, by=group)
    gains = {part.name: part.gain for part in result}
    assert gains["1"].low > 0
    assert gains["1"].value > 4 * max(abs(gains[name].value) for name in "023")
    assert result["1"].to_dict()["gain_low"] == gains["1"].low


def test_many_classes_are_compared_by_slopes(rng):
    proba = rng.dirichlet(np.full(60, 0.2), 400)
    result = evaluate(draw_labels(proba, rng=rng), proba, by=np.arange(400) % 2)
    assert 0 < result.difference.p_value <= 1


def test_groups_below_a_size_are_suppressed(rng):
    pytest.importorskip("pandas")
    proba = rng.dirichlet(np.ones(3), 300)
    group = np.where(np.arange(300) < 20, "rare", "common")
    result = evaluate(draw_labels(proba, rng=rng), proba, by=group, min_rows=30)
    assert [part.name for part in result] == ["common"]
    assert result.suppressed == ("rare",)
    assert "The table omits 1 group with too few rows." in str(result)
    assert len(result.to_frame()) == 1


def test_groups_in_another_order_than_the_labels_are_reported(rng):
    pd = pytest.importorskip("pandas")
    y, p = pd.Series([0, 1] * 30), rng.uniform(size=60)
    site = pd.Series(["a", "b"] * 30, name="site")[::-1]
    with pytest.warns(DataWarning, match="labels and groups contain the same"):
        evaluate(y, p, by=site)
    with pytest.warns(DataWarning, match="labels and groups contain the same"):
        GroupCalibration("temperature", cv=2).fit(p, y, by=site)


def test_weights_do_not_make_a_group_larger_than_its_number_of_rows(rng):
    y, p = rng.integers(0, 2, 60), rng.uniform(size=60)
    group = np.where(np.arange(60) < 4, "few", "many")
    for weight in (np.full(60, 100.0), np.full(60, 0.1), rng.uniform(1.0, 50.0, 60)):
        result = evaluate(y, p, by=group, sample_weight=weight, min_rows=5)
        assert result.suppressed == ("few",)
        assert evaluate(y, p, by=group, sample_weight=weight, min_rows=1).suppressed == ()
    assert evaluate(y, p, by=group, sample_weight=np.full(60, 0.1), min_rows=4).suppressed == ()


def test_a_result_without_any_visible_group_is_empty(rng):
    result = evaluate(rng.integers(0, 2, 30), rng.uniform(size=30), by=[0, 1] * 15, min_rows=99)
    assert list(result) == []
    assert "omits 2 groups" in str(result)
    assert "jointly" not in str(result)
    pytest.importorskip("pandas")
    assert len(result.to_frame()) == 0


@pytest.mark.parametrize("min_rows", [None, "10", np.nan])
def test_the_minimum_number_of_rows_is_checked(min_rows, rng):
    with pytest.raises(ValueError, match="min_rows must be a finite number"):
        evaluate(rng.integers(0, 2, 30), rng.uniform(size=30), by=[0, 1] * 15, min_rows=min_rows)
