"""Run folders of HELM."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import llm
from llm_logs import helm_instance, write_helm


def test_helm_folder(tmp_path, rng):
    confidence = rng.uniform(0.25, 1, 50)
    instances = [helm_instance(f"id{i}", float(i % 3 == 0), p) for i, p in enumerate(confidence)]
    instances += [helm_instance("id50", 1.0), helm_instance("id51", 1.0, 0.5, {"name": "typos"})]
    folder = write_helm(tmp_path / "mmlu", instances, own={"ece_10_bin": 0.25})
    run = llm.read(folder)["mmlu:subject=anatomy,model=m"]
    assert run.source == "max_prob"
    np.testing.assert_array_equal(run.confidence, confidence)
    assert run.correct.tolist() == [i % 3 == 0 for i in range(50)]
    assert run.n_missing == 1
    assert run.skipped == {"perturbed instance": 1}
    assert run.figures["ece_10_bin"] == 0.25


def test_other_files_of_these_names_are_rejected(tmp_path):
    folder = write_helm(tmp_path / "mmlu", [helm_instance("a", 1.0, 0.5)])
    (folder / "stats.json").write_text("5")
    with pytest.raises(ValueError, match="not a list of statistics"):
        llm.read(folder)
    (folder / "per_instance_stats.json").write_text('[{"stats": [{"name": "max_prob"}]}]')
    (folder / "stats.json").unlink()
    with pytest.raises(ValueError, match=r"can be evaluated \(without exact_match: 1\)"):
        llm.read(folder)
