"""Comparison of the probabilities of several models on the same rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import compare, compare_models, evaluate


def test_figures_of_models_are_those_of_their_evaluations(models):
    y, proba = models
    result = compare_models(y, proba)
    assert result.methods == ("soft", "sharp")
    for place, table in enumerate(proba.values()):
        expected = evaluate(y, table)
        actual = dict(zip(result.metrics, result.mean[0, place], strict=True))
        assert actual == pytest.approx({name: getattr(expected, name) for name in actual})


def test_the_difference_of_two_models_has_an_interval(models):
    y, proba = models
    gain = compare_models(y, proba).difference("soft", "sharp")
    rows = np.arange(len(y))
    losses = [-np.log(table[rows, y]) for table in proba.values()]
    assert gain.gain == pytest.approx(np.mean(losses[1] - losses[0]))
    assert gain.low > 0  # the overconfident model is worse
    assert gain.interval == "paired"
    assert gain.standard_error == pytest.approx(np.std(losses[1] - losses[0], ddof=1) / 800**0.5)


def test_two_equal_models_do_not_differ(models):
    y, proba = models
    gain = compare_models(y, {"a": proba["soft"], "b": proba["soft"]}).difference("a", "b")
    assert gain.gain == 0.0
    assert gain.low < 0 < gain.high


def test_the_table_names_the_reference(models):
    text = str(compare_models(*models))
    assert "compared with soft" in text
    assert "±" not in text


def test_models_of_other_rows_and_single_models_are_errors(models):
    y, proba = models
    with pytest.raises(ValueError, match="svc has 3 rows, but there are 800 labels"):
        compare_models(y, {"nb": proba["soft"], "svc": proba["soft"][:3]})
    with pytest.raises(ValueError, match="at least two models"):
        compare_models(y, {"nb": proba["soft"]})
    with pytest.raises(ValueError, match=r"calibrant\.compare_models"):
        compare(y, proba)
