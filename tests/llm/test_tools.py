"""Comparison with the tools themselves: their writers and their metrics.

The tools are large and not installed with the package, so the tests are skipped without them.
"""

from __future__ import annotations

import json
import os
import warnings

import numpy as np
import pytest

from calibrant import llm
from calibrant.llm._figures import helm_ece, hle_error


def module(name):
    """A module of a tool; skips the test if it cannot be imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, exc_type=ImportError)


def toy_task(folder, docs):
    """A multiple-choice task of lm-evaluation-harness that reads a local file."""
    task = module("lm_eval.api.task")
    path = folder / "docs.json"
    path.write_text("\n".join(json.dumps(doc) for doc in docs))
    os.environ["HF_DATASETS_CACHE"] = str(folder / "cache")
    names = ["acc", "acc_norm", "acc_bytes", "acc_mutual_info"]
    return task.ConfigurableTask(
        config={
            "task": "toy",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(path)}},
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": "question",
            "doc_to_choice": "choices",
            "doc_to_target": "label",
            "metric_list": [
                {"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names
            ],
        }
    )


def harness_sample(task, number, doc, rng):
    """A sample as the evaluator of the harness builds it, with its own metrics."""
    requests = task.construct_requests(doc=doc, ctx=doc["question"], metadata=("toy", number, 1))
    results = [(float(rng.normal(-20, 8)), False) for _ in requests]
    metrics = task.process_results(doc, results)
    return metrics, {
        "doc_id": number,
        "doc": doc,
        "target": task.doc_to_target(doc),
        "arguments": [request.args for request in requests],
        "resps": [[result] for result in results],
        "filtered_resps": results,
        "filter": "none",
        "metrics": list(metrics),
        "doc_hash": "",
        "prompt_hash": "",
        "target_hash": "",
        **metrics,
    }


@pytest.mark.filterwarnings("ignore")
def test_accuracies_of_lm_eval_are_equal_in_every_row(tmp_path, rng):
    tracker = module("lm_eval.loggers.evaluation_tracker")
    docs = []
    for number in range(60):
        size = int(rng.integers(2, 6))
        choices = [f"{'äö' * int(rng.integers(1, 9))}{number}{i}" for i in range(size)]
        docs.append({"question": "Q?", "choices": choices, "label": int(rng.integers(size))})
    task = toy_task(tmp_path, docs)
    pairs = [harness_sample(task, i, doc, rng) for i, doc in enumerate(docs)]
    writer = tracker.EvaluationTracker(output_path=str(tmp_path / "results"))
    writer.general_config_tracker.model_name_sanitized = "model"
    writer.date_id = "2026-11-01T10-20-30.123456"
    writer.save_results_samples("toy", [sample for _, sample in pairs])
    readings = {"sum": "acc", "char": "acc_norm", "byte": "acc_bytes", "mutual": "acc_mutual_info"}
    for reading, name in readings.items():
        run = llm.read(tmp_path / "results", reading=reading)["toy"]
        assert run.correct.tolist() == [metrics[name] == 1.0 for metrics, _ in pairs]
        assert run.figures[name] == pytest.approx(np.mean([metrics[name] for metrics, _ in pairs]))


@pytest.mark.filterwarnings("ignore")
def test_logs_of_inspect_and_its_calibration_error(tmp_path, rng):
    log, model = module("inspect_ai.log"), module("inspect_ai.model")
    scorer, hle = module("inspect_ai.scorer"), module("inspect_evals.hle.metrics")
    samples, scores = [], []
    for number in range(250):
        value = {"score": "C" if rng.random() < 0.4 else "I", "confidence": int(rng.integers(101))}
        if number % 50 == 0:
            value["score"] = float("nan")
        score = scorer.Score(value=value, answer="A")
        scores.append(scorer.SampleScore(score=score))
        samples.append(
            log.EvalSample(
                id=number,
                epoch=1,
                input="Q?",
                target="A",
                scores={"judge": score},
                output=model.ModelOutput.from_content("model", "an answer"),
            )
        )
    spec = log.EvalSpec(
        created="2026-11-01T10:20:30+00:00",
        task="hle",
        model="model",
        dataset=log.EvalDataset(name="hle"),
        config=log.EvalConfig(),
    )
    path = tmp_path / "log.eval"
    log.write_eval_log(
        log.EvalLog(version=2, status="success", eval=spec, samples=samples), str(path)
    )
    run = llm.read(path)["hle"]
    scored = [s.score.value for s in scores if isinstance(s.score.value["score"], str)]
    assert run.correct.tolist() == [value["score"] == "C" for value in scored]
    np.testing.assert_allclose(run.confidence, [value["confidence"] / 100 for value in scored])
    assert run.skipped["unscored"] == 5
    assert run.figures["hle/cerr"] == pytest.approx(hle.cerr()(scores), abs=1e-12)


def cais_error(confidence, correct, beta=100):
    """The published definition of Humanity's Last Exam, which leaves out the last bin."""
    order = np.argsort(confidence)
    confidence, correct = confidence[order], correct[order]
    bins = [[i * beta, (i + 1) * beta] for i in range(len(confidence) // beta)]
    bins[-1] = [bins[-1][0], len(confidence)]
    total = 0.0
    for low, high in bins[:-1]:
        gap = np.abs(np.nanmean(confidence[low:high]) - np.nanmean(correct[low:high]))
        total += (high - low) / len(confidence) * np.square(gap)
    return np.sqrt(total)


def test_error_of_the_authors_of_hle(rng):
    confidence = rng.integers(0, 101, 730) / 100
    correct = rng.random(730) < confidence / 2
    expected = cais_error(confidence, correct)
    assert hle_error(correct, confidence, drops_last=True) == pytest.approx(expected, abs=1e-12)
    assert hle_error(correct, confidence) > expected + 0.05


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_rows", [7, 11, 300, 1003])
def test_error_of_helm(rng, n_rows):
    confidence = rng.beta(5, 1.5, n_rows).round(2 if n_rows == 1003 else 12)
    correct = rng.random(n_rows) < confidence**2
    # HELM's ece_10_bin is this function of its dependency, uncertainty-calibration.
    expected = module("calibration").get_ece_em(confidence, correct.astype(int), num_bins=10)
    assert helm_ece(correct, confidence) == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_stored_figures_of_helm(rng):
    metrics = module("helm.benchmark.metrics.basic_metrics")
    statistic = module("helm.benchmark.metrics.statistic")
    names = module("helm.benchmark.metrics.metric_name")
    confidence, correct = rng.uniform(0.2, 1, 400), rng.random(400) < 0.6

    def stats_of(values):
        return [statistic.Stat(names.MetricName(key)).add(value) for key, value in values.items()]

    rows = {
        str(i): stats_of({"max_prob": p, "exact_match": float(c), "logprob": -1.0})
        for i, (p, c) in enumerate(zip(confidence, correct, strict=True))
    }
    computed = {stat.name.name: stat.mean for stat in metrics.compute_calibration_metrics(rows)}
    assert helm_ece(correct, confidence) == pytest.approx(computed["ece_10_bin"], abs=1e-12)
