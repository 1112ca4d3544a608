"""Programs of claims: every notion that fills rows."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant.notions import ClaimBlock, NamedClassNotion, Notion, RankNotion
from exported import fitted

NOTIONS = [
    *("confidence", "top-label", "class-wise", "class-1", "rank-2", "within-top-2"),
    *("top-2-confidence", "top-3-label", "cumulative", "at-most-0", "at-most-1"),
]


@pytest.mark.parametrize("notion", NOTIONS)
def test_rows_carry_the_claims_of_every_notion(notion):
    lifted = calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=4), notion=notion)
    model, scores = fitted(lifted, 3)
    assert np.array_equal(export.program(model)(scores), model.predict_proba(scores))


@pytest.mark.parametrize("n_classes", [2, 12])
def test_running_sums_are_exported_for_any_number_of_classes(n_classes):
    lifted = calibrant.MulticlassToBinary(calibrant.VennAbers(), notion="cumulative")
    model, scores = fitted(lifted, n_classes)
    assert np.array_equal(export.program(model)(scores), model.predict_proba(scores))


def test_the_class_of_a_name_is_found_among_the_classes():
    scores = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])
    base = calibrant.PlattScaling()
    model = calibrant.MulticlassToBinary(
        base, NamedClassNotion("owl"), classes=["cat", "elk", "owl"]
    )
    model.fit(scores, ["cat", "owl", "owl", "elk"])
    assert np.array_equal(export.program(model)(scores), model.predict_proba(scores))


class Even(Notion):
    name = "even"

    def n_quantities(self, n_classes):
        return 1

    def select(self, proba, y=None):
        hit = [] if y is None else np.flatnonzero(y % 2 == 0)
        score = proba[:, ::2].sum(axis=1, keepdims=True)
        return ClaimBlock(score, None, np.asarray(hit, dtype=np.intp))


class NamedEven(Even):
    def members(self, quantity, n_classes):
        return range(0, n_classes, 2)


def test_a_notion_that_names_its_columns_is_exported():
    lifted = calibrant.MulticlassToBinary(calibrant.PlattScaling(), notion=NamedEven())
    model, scores = fitted(lifted, 4)
    assert np.abs(export.program(model)(scores) - model.predict_proba(scores)).max() <= 1e-15


class TopTwo(Notion):
    """The two highest scores, one claim each, told by their ranks."""

    name, keeps_top = "top-two", True

    def n_quantities(self, n_classes):
        return 2

    def ranks_of(self, quantity, n_classes):
        return range(quantity + 1, quantity + 2)

    def select(self, proba, y=None):
        label = np.argsort(-proba, axis=1, kind="stable")[:, :2]
        hit = [] if y is None else np.flatnonzero(label == y[:, None])
        score = np.take_along_axis(proba, label, axis=1)
        return ClaimBlock(score, label, np.asarray(hit, dtype=np.intp))


class Ends(Notion):
    """The first class and the last, one claim each, told by their columns."""

    name = "ends"

    def n_quantities(self, n_classes):
        return 2

    def column_of(self, claim, n_classes):
        return claim * (n_classes - 1)

    def select(self, proba, y=None):
        label = np.broadcast_to([0, proba.shape[1] - 1], (len(proba), 2))
        hit = [] if y is None else np.flatnonzero(label == y[:, None])
        score = np.take_along_axis(proba, label, axis=1)
        return ClaimBlock(score, label, np.asarray(hit, dtype=np.intp))


@pytest.mark.parametrize("notion", [TopTwo(), Ends()], ids=lambda n: n.name)
def test_a_notion_of_ones_own_that_tells_ranks_or_columns_is_exported(notion):
    lifted = calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=4), notion=notion)
    model, scores = fitted(lifted, 4)
    assert np.array_equal(export.program(model)(scores), model.predict_proba(scores))


def test_ranks_that_one_tells_are_filled_as_ours():
    base = calibrant.HistogramBinning(n_bins=4)
    own, scores = fitted(calibrant.MulticlassToBinary(base, notion=TopTwo()), 4)
    ours, _ = fitted(calibrant.MulticlassToBinary(base, notion="top-2-confidence"), 4)
    assert np.array_equal(own.predict_proba(scores), ours.predict_proba(scores))


@pytest.mark.filterwarnings("ignore:predict_proba returns the scores unchanged")
def test_a_notion_that_does_not_is_rejected():
    lifted = calibrant.MulticlassToBinary(calibrant.PlattScaling(), notion=Even())
    model, _ = fitted(lifted, 4)
    with pytest.raises(
        ValueError, match=r"must define members\(\) with each column in at most one claim"
    ):
        export.program(model)


class FilledEven(NamedEven):
    """Has a way of its own to fill rows."""

    def fill(self, proba, claims):
        return np.array(proba)


class OneEven(NamedEven):
    """Names columns that are not those of its score."""

    def members(self, quantity, n_classes):
        return [0]


class LastRank(RankNotion):
    """A subclass may select something else."""

    def select(self, proba, y=None):
        return super().select(1.0 - proba, y)


@pytest.mark.parametrize("notion", [FilledEven(), OneEven(), LastRank()], ids=lambda n: n.name)
def test_a_notion_that_fills_rows_in_its_own_way_is_rejected(notion):
    lifted = calibrant.MulticlassToBinary(calibrant.PlattScaling(), notion=notion)
    model, _ = fitted(lifted, 4)
    with pytest.raises(ValueError, match="or fit with notion='class-wise'"):
        export.program(model)
