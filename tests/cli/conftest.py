"""Files that several tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import calibrant

NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def outcome_files(tmp_path, monkeypatch, rng):
    """Scores, labels and groups of validation.csv and test.csv."""
    monkeypatch.chdir(tmp_path)
    files = {}
    for name in ("validation", "test"):
        proba = rng.dirichlet(np.full(3, 0.5), 400)
        softer = proba**0.5 / (proba**0.5).sum(axis=1, keepdims=True)
        labels = NAMES[calibrant.datasets.draw_labels(softer, rng=rng)]
        sites = np.array(["north", "south"])[rng.integers(0, 2, 400)]
        rows = zip(proba.tolist(), labels, sites, strict=True)
        lines = [f"{','.join(map(repr, row))},{label},{site}" for row, label, site in rows]
        text = "\n".join(["prob_cat,prob_dog,prob_owl,outcome,site", *lines])
        Path(f"{name}.csv").write_text(text + "\n")
        files[name] = proba, labels, sites
    return files
