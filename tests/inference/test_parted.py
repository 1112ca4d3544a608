"""The consistency test of rows that come in parts, beside that of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference import consistency_test

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


def test_what_would_need_rows_is_refused(data):
    _, _, labels, chunks = data
    with pytest.raises(TypeError, match="several claims about a row"):
        consistency_test(labels, chunks, "cw_ece", 10)
    with pytest.raises(TypeError, match="bins of equal width"):
        consistency_test(labels, chunks, "ks_error", 10)
    with pytest.raises(TypeError, match="takes no weights"):
        consistency_test(labels, chunks, "conf_ece", 10, sample_weight=np.full(1500, 2.0))
