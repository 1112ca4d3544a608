"""Programs of claims: every notion that fills rows."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant.notions import ClaimBlock, Notion
from exported import fitted

NOTIONS = [
    *("confidence", "top-label", "class-wise", "class-1", "rank-2", "within-top-2"),
    *("top-2-confidence", "top-3-label"),
]


@pytest.mark.parametrize("notion", NOTIONS)
def test_rows_carry_the_claims_of_every_notion(notion):
    lifted = calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=4), notion=notion)
    model, scores = fitted(lifted, 3)
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


def test_a_notion_that_does_not_is_refused():
    lifted = calibrant.MulticlassToBinary(calibrant.PlattScaling(), notion=Even())
    model, _ = fitted(lifted, 4)
    with pytest.raises(ValueError, match="which columns"):
        export.program(model)
