"""Claims of chunked rows: sums are exact, summaries are within their bound."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant._data.chunked_sample import as_chunked_sample, reader_for
from calibrant.binning import bin_table
from calibrant.metrics.ks import claims_ks
from calibrant.notions import as_notion
from calibrant.notions._cells import ScoreCells, n_cells_of, note_on_cells
from parts import Slices


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.sampled_from([2**8, 2**13]))
def test_scores_of_a_cell_differ_by_less_than_the_bound(values, n_cells):
    score, cells = np.array(values), ScoreCells(n_cells)
    cell = cells.place(score)
    low, high = np.append(0.0, cells.ends)[cell], cells.ends[cell]
    assert ((score <= high) & ((score > low) | (cell == 0))).all()
    bound = 1.01 * 27.7 / n_cells * (score + 1e-6) * (1 - score + 1e-6)
    if n_cells == 2**13:
        assert (high - low <= bound).all()
    np.testing.assert_array_equal(cell, np.searchsorted(cells.ends, score))


@pytest.mark.parametrize("n_claims", [1, 10, 1000])
def test_the_note_on_cells_holds_for_all_cells(n_claims):
    note = note_on_cells(n_claims)
    width = float(re.search(r"less than (\S+) s", note)[1])
    most = float(re.search(r"at most (\S+)\. There", note)[1])
    ends = np.append(0.0, ScoreCells(n_cells_of(n_claims)).ends)
    low, high = ends[:-1], ends[1:]
    least = np.minimum(*((s + 1e-6) * (1 - s + 1e-6) for s in (low, high)))
    assert (high - low <= 1.005 * width * least).all()  # the note has three digits
    assert (high - low).max() <= 1.005 * most
    assert f"{n_cells_of(n_claims):,} cells" in note


def test_no_cell_lies_across_a_cut():
    cells, cuts = ScoreCells(2**8, np.array([0.2, 0.4])), np.array([0.2, np.nextafter(0.2, 1)])
    assert np.diff(cells.place(cuts)) == 1


def test_many_claims_have_fewer_cells():
    assert [n_cells_of(n) for n in (1, 6, 100, 10_000)] == [8192, 8192, 491, 256]


@pytest.fixture
def data(rng):
    proba = rng.dirichlet(np.full(4, 0.3), size=2000)
    y = (np.log(proba + 1e-9) * 0.7 + rng.gumbel(size=proba.shape)).argmax(axis=1)
    return proba, y


def parted(notion, proba, y, weight=None):
    source = Slices(proba, y, weight, size=300)
    return as_chunked_sample(source, reader_for(source, None, "proba")).claims(as_notion(notion))


@pytest.mark.parametrize("notion", ["confidence", "class-wise", "top-label", "within-top-2"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_sums_are_exact_and_summaries_close(notion, is_weighted, data, rng):
    proba, y = data
    weight = rng.integers(3, size=len(y)).astype(float) if is_weighted else np.ones(len(y))
    whole = as_notion(notion).claims(proba, y, weight)
    parts = parted(notion, proba, y, weight if is_weighted else None)
    assert parts.weight.sum() == weight.sum()
    for own, other in zip(
        vars(bin_table(whole)).values(), vars(bin_table(parts)).values(), strict=True
    ):
        if isinstance(own, np.ndarray):
            np.testing.assert_allclose(other, own, atol=1e-9)
    largest = max(
        np.bincount(ScoreCells(2**13).place(claim.score), claim.weight).max() / claim.weight.sum()
        for claim in whole
        if claim.weight.any()
    )
    exact, result = claims_ks(whole), claims_ks(parts)
    assert exact - largest <= result <= exact + 1e-12


def test_summaries_do_not_depend_on_the_parts(data):
    proba, y = data
    one = list(parted("class-wise", proba, y))
    source = Slices(proba, y, None, size=777)
    sample = as_chunked_sample(source, reader_for(source, None, "proba"))
    other = list(sample.claims(as_notion("class-wise")))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.weight, b.weight)
        np.testing.assert_allclose(a.score, b.score, atol=1e-15)


def test_rows_themselves_are_rejected(data):
    with pytest.raises(TypeError, match="needs all rows in memory"):
        parted("confidence", *data).select(slice(0, 3))
    with pytest.raises(TypeError, match="distinct scores of all rows"):
        bin_table(parted("confidence", *data), strategy="unique")
