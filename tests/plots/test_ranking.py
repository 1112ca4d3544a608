from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import draw_labels
from calibrant.inference import critical_difference, friedman_test
from calibrant.metrics import brier_score, log_loss
from calibrant.plots import CriticalDifferenceDisplay


def test_ranks_and_difference_are_those_of_inference(rng):
    scores = rng.normal(size=(12, 4))
    display = CriticalDifferenceDisplay.from_scores(scores, list("abcd"), method="nemenyi").plot()
    result = friedman_test(scores)
    np.testing.assert_allclose(display.average_ranks, result.average_ranks)
    assert display.critical_difference == critical_difference(4, 12, method="nemenyi")
    assert display.p_value == result.p_value


def test_groups_are_the_largest_sets_within_the_difference():
    display = CriticalDifferenceDisplay([3.0, 1.0, 1.5, 2.4, 5.0], list("abcde"), 1.4)
    assert display.groups == [(1.0, 2.4), (2.4, 3.0)]


def test_a_group_inside_another_is_not_drawn():
    assert CriticalDifferenceDisplay([1.0, 1.2, 1.4], list("abc"), 1.0).groups == [(1.0, 1.4)]


def test_methods_that_all_differ_make_no_group():
    assert CriticalDifferenceDisplay([1.0, 2.0, 3.0], list("abc"), 0.5).groups == []


def test_published_ranks_of_naive_bayes_leave_dirichlet_alone():
    # Kull 2019, supplement: average ranks of Table 4; Dirichlet L2 is significantly better than all
    # others (Figure 5a)
    ranks = [1.05, 3.40, 3.40, 3.95, 4.40, 5.53, 6.28]
    display = CriticalDifferenceDisplay(ranks, list("abcdefg"), critical_difference(7, 20))
    assert min(first for first, _ in display.groups) == 3.40


def test_every_name_is_written_with_its_rank():
    display = CriticalDifferenceDisplay([2.0, 1.0, 3.0], ["two", "one", "three"], 0.5).plot()
    texts = {t.get_text() for t in display.ax_.texts}
    assert {"one  1.00", "two  2.00", "3.00  three"} <= texts


def test_lines_stand_at_the_ranks():
    display = CriticalDifferenceDisplay([2.0, 1.0, 3.0], ["two", "one", "three"], 0.5).plot()
    feet = [line.get_xdata()[0] for line in display.ax_.lines if len(line.get_xdata()) == 3]
    assert sorted(feet) == [1.0, 2.0, 3.0]


def test_predictions_are_evaluated_by_the_metric(rng):
    truth, methods = {}, {"sharp": {}, "flat": {}}
    for name in ("x", "y", "z"):
        proba = rng.dirichlet([0.3, 0.3], 100)
        truth[name] = draw_labels(proba, rng=rng)
        methods["sharp"][name] = proba
        methods["flat"][name] = np.full((100, 2), 0.5)
    for metric in (log_loss, brier_score):
        display = CriticalDifferenceDisplay.from_predictions(truth, methods, metric=metric)
        assert display.average_ranks == [1.0, 2.0]
        assert display.names == ["sharp", "flat"]


def test_names_must_fit_the_ranks():
    with pytest.raises(
        ValueError, match="names must have one entry for each of the 2 methods, got 1"
    ):
        CriticalDifferenceDisplay([1.0, 2.0], ["a"], 1.0)
