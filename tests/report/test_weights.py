"""Weights of a report: the effective number of rows."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant._data.read import as_sample
from calibrant.report import summarize
from calibrant.report._weights import has_weights, weight_sentences

PROBA = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])


def sample_of(weight, columns=()):
    return as_sample(PROBA, [0, 1, 1], weight, columns=columns)[0]


@pytest.mark.parametrize(
    ("weight", "expected"), [(None, False), ([1, 0, 1], True), ([1, 1, 2], True)]
)
def test_a_row_of_weight_zero_is_a_weight_too(weight, expected):
    assert has_weights(sample_of(weight)) == expected


def test_the_sentences_name_the_effective_rows_and_what_is_left_out():
    assert weight_sentences(sample_of(None)) == ()
    assert "weight 0 are ignored" in weight_sentences(sample_of([1, 0, 1]))[0]
    both = weight_sentences(sample_of([1, 0, 3]))
    assert "2 of 2" in both[0]  # (1 + 3)^2 / (1 + 9) = 1.6
    assert "there is no kernel test" in both[1]


def test_weights_of_any_scale_give_the_same_report(data):
    proba, labels = data
    options = {"calibrator": calibrant.TemperatureScaling(), "n_resamples": 19}
    plain = summarize(labels, proba, **options)
    scaled = summarize(
        labels, proba, sample_weight=np.full(len(labels), 1 / len(labels)), **options
    )
    assert scaled.verdict == plain.verdict
    assert scaled.n_samples == pytest.approx(plain.n_samples)


def test_columns_stay_with_rows_whose_weights_are_scaled():
    rows = sample_of([1, 0, 3], (np.array(["a", "b", "c"]),)).effective()
    assert rows.columns[0].tolist() == ["a", "b", "c"]
    assert rows.total == pytest.approx(1.6)
