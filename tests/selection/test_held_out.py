"""Metrics of held-out rows, of all folds together and per group."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant import compare, evaluate


def test_calibration_errors_are_those_of_all_held_out_rows(models):
    y, proba = models
    result = compare(y, proba["sharp"], methods=["temperature"], metrics=["conf_ece", "ks"])
    expected = evaluate(y, proba["sharp"])
    np.testing.assert_allclose(result.mean[0, 0], [expected.conf_ece, expected.ks], atol=1e-12)
    assert np.isnan(result.spread).all()
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_table_of_a_comparison_explains_its_numbers(models):
    y, proba = models
    text = str(compare(y, proba["sharp"], methods=["temperature"]))
    assert "± is the standard deviation over folds" in text
    assert "all held-out rows" in text


def test_groups_of_a_comparison_are_evaluated_out_of_fold(models):
    y, proba = models
    site = np.where(np.arange(800) % 4 == 0, "north", "south")
    result = compare(y, proba["sharp"], methods=["temperature"], by={"site": site})
    assert result.by_group.datasets == ("north", "south")
    north = evaluate(y[site == "north"], proba["sharp"][site == "north"])
    place = result.metrics.index("conf_ece")
    assert result.by_group.mean[0, 0, place] == pytest.approx(north.conf_ece)
    total = sum(
        gain.gain * count
        for gain, count in zip(
            (result.by_group.gains[name, "temperature", "log_loss"] for name in ("north", "south")),
            (200, 600),
            strict=True,
        )
    )
    assert total / 800 == pytest.approx(result.gains["data", "temperature", "log_loss"].gain)
    assert "**north**" in str(result)
    assert [record["group"] for record in result.to_dict()["groups"]][::2] == ["north", "south"]


@pytest.mark.parametrize("size", [800, 100])
def test_groups_of_chunks_add_up_to_all_rows(models, size):
    dask = pytest.importorskip("dask.array")
    y, proba = models
    scores = dask.from_array(proba["sharp"], chunks=(size, 3))
    labels = dask.from_array(y, chunks=size)
    result = compare(labels, scores, methods=["temperature"], by=np.arange(800) % 2)
    losses = result.by_group.mean[:, :, result.metrics.index("log_loss")]
    np.testing.assert_allclose(losses.mean(axis=0), result.mean[0, :, 0], atol=1e-12)
    first = evaluate(y[::2], proba["sharp"][::2])
    assert result.by_group.mean[0, 0, 3] == pytest.approx(first.conf_ece)


def test_groups_of_another_length_and_of_several_data_sets_are_errors(models):
    y, proba = models
    with pytest.raises(ValueError, match="by has 3 rows"):
        compare(y, proba["soft"], by=[1, 2, 3])
    with pytest.raises(ValueError, match="one data set"):
        compare({"a": y}, {"a": proba["soft"]}, by=y)
