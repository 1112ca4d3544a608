"""MetricAccumulator: batches, merging, JSON, and the limit of kept confidences."""

from __future__ import annotations

import json
import pickle
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import Evaluation, MetricAccumulator, evaluate, metrics
from calibrant._kernels import top_labels


@pytest.fixture
def data(rng):
    logits = rng.normal(scale=2, size=(500, 4))
    return rng.integers(4, size=500), logits, rng.integers(0, 3, size=500)


@pytest.mark.parametrize("inputs", ["proba", "logits"])
def test_parts_accumulate_to_the_whole(data, inputs):
    y, logits, weight = data
    scores = softmax(logits, axis=1) if inputs == "proba" else logits
    accumulator = MetricAccumulator(inputs=inputs)
    for part in np.array_split(np.arange(500), 7):
        assert accumulator.update(y[part], scores[part], weight[part]) is accumulator
    whole = evaluate(y, scores, inputs=inputs, sample_weight=weight).to_dict()
    result = accumulator.compute()
    assert isinstance(result, Evaluation)
    assert result.to_dict() == pytest.approx(whole, abs=1e-12)


def test_ks_is_exact_up_to_the_budget_and_not_there_beyond_it(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    exact = metrics.ks_error(y, proba)
    for keep_top, ks in ((500, pytest.approx(exact, abs=1e-15)), (499, None), (0, None)):
        accumulator = MetricAccumulator(keep_top=keep_top)
        accumulator.update(y[:300], proba[:300]).update(y[300:], proba[300:])
        assert accumulator.compute().ks == ks
        again = MetricAccumulator.from_json(accumulator.to_json())
        assert again.compute() == accumulator.compute()
    assert "not computed" in str(accumulator.compute())


def test_what_is_lost_beyond_the_budget_stays_lost(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    accumulator = MetricAccumulator(keep_top=100).update(y[:200], proba[:200])
    assert accumulator.merge(MetricAccumulator().update(y[:5], proba[:5])).compute().ks is None
    kept = MetricAccumulator().update(y[:5], proba[:5])
    assert kept.merge(accumulator).compute().ks is None


def test_logits_and_probabilities_merge(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    accumulator = MetricAccumulator(inputs="logits").update(y[:200], logits[:200])
    accumulator.merge(MetricAccumulator().update(y[200:], proba[200:]))
    whole = evaluate(y, proba).to_dict()
    assert accumulator.compute().to_dict() == pytest.approx(whole, abs=1e-12)


def test_the_top_label_is_selected_once_a_block(data, monkeypatch):
    y, logits, _ = data
    calls = []

    def counted(block, n_ranks):
        calls.append(len(block))
        return top_labels(block, n_ranks)

    monkeypatch.setattr("calibrant.metrics._sums.top_labels", counted)
    monkeypatch.setattr("calibrant.notions._kinds.top_labels", counted)
    evaluate(y, logits, inputs="logits")
    assert calls == [500]


def test_more_rows_need_no_more_memory_where_no_top_scores_are_kept(rng):
    y, proba = rng.integers(3, size=200_000), rng.dirichlet(np.ones(3), 200_000)
    # The first update starts the thread pool, which needs memory.
    accumulator = MetricAccumulator(keep_top=0).update(y, proba)
    tracemalloc.start()
    accumulator.update(y, proba)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 50_000


def test_merging_is_updating_and_survives_json(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    left, right = (
        MetricAccumulator(10).update(y[:200], proba[:200]),
        MetricAccumulator(10).update(y[200:], proba[200:]),
    )
    again = MetricAccumulator.from_json(left.to_json()).merge(
        MetricAccumulator.from_json(right.to_json())
    )
    assert again.compute() == left.merge(right).compute()
    empty = MetricAccumulator(10)
    assert MetricAccumulator.from_json(empty.to_json()).merge(left).compute() == left.compute()


def test_text_labels_in_parts_need_classes():
    accumulator = MetricAccumulator(classes=["no", "yes"])
    accumulator.update(["yes"], [[0.1, 0.9]]).update(["no"], [[0.8, 0.2]])
    assert accumulator.compute().accuracy == 1.0
    assert (
        MetricAccumulator.from_json(accumulator.to_json())
        .update(["no"], [[0.8, 0.2]])
        .compute()
        .n_samples
        == 3
    )


def test_the_state_has_the_size_of_the_table_not_of_the_data(rng):
    small, large = MetricAccumulator(keep_top=0), MetricAccumulator(keep_top=0)
    small.update(rng.integers(3, size=1000), rng.dirichlet(np.ones(3), 1000))
    for _ in range(20):
        large.update(rng.integers(3, size=1000), rng.dirichlet(np.ones(3), 1000))
    assert len(large.to_json()) < 1.2 * len(small.to_json())


def test_what_does_not_belong_together_is_rejected():
    accumulator = MetricAccumulator().update([0], [[0.5, 0.5]])
    with pytest.raises(
        ValueError, match="The scores have 3 columns, but earlier rows had 2 classes"
    ):
        accumulator.update([0], [[0.5, 0.3, 0.2]])
    with pytest.raises(ValueError, match="same n_bins can be merged, got 15 and 10"):
        accumulator.merge(MetricAccumulator(10))
    with pytest.raises(ValueError, match="Only accumulators with the same classes"):
        accumulator.merge(MetricAccumulator(classes=["a", "b"]))
    with pytest.raises(ValueError, match="keep_top must be an integer of at least 0"):
        MetricAccumulator(keep_top=-1)
    with pytest.raises(ValueError, match="inputs must be"):
        MetricAccumulator(inputs="odds")
    with pytest.raises(ValueError, match=r"Call update\(y_true, y_prob\)"):
        MetricAccumulator().compute()


def damaged(**changes):
    state = json.loads(MetricAccumulator().update([0], [[0.5, 0.5]]).to_json())
    return json.dumps({**state, **changes})


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "{",
            "null",
            "[" * 100_000,
            damaged(schema="other"),
            damaged(n_bins=0),
            damaged(n_bins=10),
        ),
        *(
            damaged(inputs="odds"),
            damaged(keep_top=-1),
            damaged(tops={"score": "AAAA", "hit": "", "weight": None}),
            damaged(tops={"score": "!", "hit": "", "weight": None}),
            damaged(tables={"confidence": []}),
            damaged(log_loss="x"),
            damaged(confidence={"weight": 1, "evil": 2}),
        ),
        damaged(
            tables={
                "confidence": [[[float("nan")] * 15]] * 3,
                "class-wise": [[[0.0] * 15] * 2] * 3,
                "top-label": [],
            }
        ),
    ],
)
def test_a_damaged_state_is_a_clear_error(text):
    with pytest.raises(ValueError, match="The text is not the JSON of a MetricAccumulator"):
        MetricAccumulator.from_json(text)


def test_updates_of_several_threads_are_all_counted(rng):
    proba = rng.dirichlet(np.ones(3), 20)
    labels = rng.integers(0, 3, 20)
    accumulator = MetricAccumulator()

    def update(_):
        for _ in range(20):
            accumulator.update(labels, proba)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads interrupt each other often
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(update, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert accumulator.compute().n_samples == 8 * 20 * 20
    assert pickle.loads(pickle.dumps(accumulator)).compute() == accumulator.compute()
