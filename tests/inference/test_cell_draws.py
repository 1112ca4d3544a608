"""The consistency test of chunked rows, compared with that of rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.chunked_sample import as_chunked_sample, reader_for
from calibrant.binning import UniformBins
from calibrant.inference import consistency_test
from calibrant.inference._cell_draws import ChunkDraws
from calibrant.io import RowBlocks
from calibrant.notions import as_notion
from parts import Slices

da = pytest.importorskip("dask.array")


@pytest.fixture
def data(rng):
    proba = rng.dirichlet([0.5, 1, 1], size=1500)
    y = (np.log(proba) + rng.gumbel(size=proba.shape)).argmax(axis=1)
    return y, proba, da.from_array(y, chunks=400), da.from_array(proba, chunks=(400, 3))


@pytest.mark.parametrize("metric", ["conf_ece", "tl_ece", "mce"])
def test_the_test_of_chunks_is_that_of_the_array(metric, data):
    y, proba, labels, chunks = data
    whole = consistency_test(y, proba, metric, 2000, rng=0)
    parts = consistency_test(labels, chunks, metric, 2000, rng=1)
    assert parts.statistic == pytest.approx(whole.statistic, abs=1e-12)
    assert parts.expected == pytest.approx(whole.expected, rel=0.03)
    assert parts.p_value == pytest.approx(whole.p_value, abs=0.05)  # draws differ
    assert (parts.n_samples, parts.guarantee) == (1500, "asymptotic")


@pytest.mark.parametrize(("metric", "notion"), [("cw_ece", None), ("conf_ece", "top-2-confidence")])
def test_labels_are_drawn_where_the_rows_are(metric, notion, data):
    y, proba, labels, chunks = data
    whole = consistency_test(y, proba, metric, 2000, notion=notion, rng=0)
    parts = consistency_test(labels, chunks, metric, 2000, notion=notion, rng=1)
    assert parts.statistic == pytest.approx(whole.statistic, abs=1e-12)
    assert parts.expected == pytest.approx(whole.expected, rel=0.02)
    assert parts.p_value == pytest.approx(whole.p_value, abs=0.05)  # draws differ
    assert (parts.n_samples, parts.guarantee) == (1500, "exact")
    assert parts.null == whole.null
    assert parts == consistency_test(labels, chunks, metric, 2000, notion=notion, rng=1)


def test_counts_of_drawn_labels_have_the_mean_and_the_variance_of_their_law(data):
    y, proba, _, _ = data
    source, bins, n_draws = Slices(proba, y, size=400), UniformBins(5), 20_000
    sample = as_chunked_sample(source, reader_for(source, None, "proba"))
    draws = ChunkDraws(as_notion("class-wise"), sample, bins)
    counts = draws.counts(np.random.default_rng(0), n_draws).reshape(n_draws, 3, 5)
    place = bins.assign(proba)
    for k in range(3):
        p = proba[:, k]
        mean, variance = (np.bincount(place[:, k], of, 5) for of in (p, p * (1 - p)))
        assert (np.abs(counts[:, k].mean(axis=0) - mean) < 5 * np.sqrt(variance / n_draws)).all()
        np.testing.assert_allclose(counts[:, k].var(axis=0), variance, rtol=0.06)


def test_a_class_that_is_miscalibrated_is_found_in_parts(data):
    y, proba, _, _ = data
    sharper = proba**1.5 / (proba**1.5).sum(axis=1, keepdims=True)
    blocks = RowBlocks(
        lambda: ((sharper[i : i + 200], y[i : i + 200]) for i in range(0, 1500, 200))
    )
    assert consistency_test(blocks.labels, blocks.scores, "cw_ece", 200, rng=0).p_value < 0.01


def test_what_would_need_rows_is_rejected(data):
    _, _, labels, chunks = data
    with pytest.raises(TypeError, match=r"equal-width bins.*y_prob\.compute\(\)"):
        consistency_test(labels, chunks, "ks_error", 10)
    with pytest.raises(TypeError, match="does not accept weights"):
        consistency_test(labels, chunks, "conf_ece", 10, sample_weight=np.full(1500, 2.0))
