"""Read files of real predictions: NPZ files with scores and labels, with or without a split."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LEFT_OUT = ("features_", "cifar10lt_")
"""Files of features, and a file whose two parts differ in class frequencies."""

MIN_TEST_ROWS = 500


class Rows(NamedTuple):
    """Scores and labels."""

    scores: Any
    labels: Any


def load(path: Path) -> tuple[str, Rows, Rows | None]:
    """Type of scores, rows to calibrate on and, if the file has a split, its test rows."""
    with np.load(path, allow_pickle=False) as file:
        data = {name: file[name] for name in file.files}
    if "val_logits" in data:
        return (
            "logits",
            Rows(data["val_logits"], data["val_labels"]),
            Rows(data["test_logits"], data["test_labels"]),
        )
    inputs = "logits" if "logits" in data else "proba"
    return inputs, Rows(data["logits" if inputs == "logits" else "probs"], data["labels"]), None
