"""Run folders of HELM: ``per_instance_stats.json``, next to ``run_spec.json`` and ``stats.json``.

HELM computes the statistics ``max_prob`` and ``exact_match`` for classification tasks. ``max_prob``
is the probability of the predicted reference, normalized over references. ``exact_match`` is 1 if
this reference is correct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.llm._collect import AnswerRows
from calibrant.llm._figures import helm_ece
from calibrant.llm._files import as_float, read_document
from calibrant.llm._run import Run

FILE_NAME = "per_instance_stats.json"

_STORED_NAMES = ("ece_10_bin", "platt_ece_10_bin")
"""Names of figures in ``stats.json``. HELM fits and evaluates the second figure on the same rows.
"""


def read_folder(path: Path) -> Run:
    """Read the file ``per_instance_stats.json`` of a run folder."""
    entries = read_document(path)
    if not isinstance(entries, list):
        raise ValueError(f"{path} is not a list of instances, so it is not a HELM file.")
    rows = AnswerRows()
    for number, entry in enumerate(entries):
        _add(rows, entry, f"{path}, instance {number}")
    run = rows.build(_task(path), "max_prob", str(path))
    figures = _stored_figures(path.parent / "stats.json")
    if len(run):
        figures = {"ece_10_bin (from the rows)": helm_ece(run.correct, run.confidence), **figures}
    return replace(run, figures=figures)


def _add(rows: AnswerRows, entry: Any, place: str) -> None:
    stats = _stats_of(entry, place)
    if isinstance(entry.get("perturbation"), Mapping):
        rows.skipped["perturbed instance"] += 1
    elif stats.get("exact_match") is None:
        rows.skipped["without exact_match"] += 1
    else:
        # exact_match is a share if an instance has several predictions. As in HELM, int()
        # truncates this share to 0 or 1.
        correct = int(as_float(stats["exact_match"], place, "exact_match")) == 1
        rows.add(correct, _confidence(stats, place))


def _confidence(stats: Mapping[str, Any], place: str) -> float | None:
    value = stats.get("max_prob")
    if value is None:
        return None
    confidence = as_float(value, place, "max_prob")
    if not 0 <= confidence <= 1 + 1e-6:
        raise ValueError(f"{place}: max_prob is {confidence}, but must be between 0 and 1.")
    return min(confidence, 1.0)


def _stats_of(entry: Any, place: str) -> dict[str, Any]:
    """Return the mean of each statistic of an instance, by its name."""
    stats = entry.get("stats") if isinstance(entry, Mapping) else None
    if not isinstance(stats, list):
        raise ValueError(f"{place} has no list 'stats', so this is not a HELM file.")
    objects = (stat for stat in stats if isinstance(stat, Mapping))
    names = ((stat.get("name"), stat.get("mean")) for stat in objects)
    return {str(name.get("name")): mean for name, mean in names if isinstance(name, Mapping)}


def _task(path: Path) -> str:
    spec = path.parent / "run_spec.json"
    if spec.is_file():
        document = read_document(spec)
        if isinstance(document, Mapping) and isinstance(document.get("name"), str):
            return str(document["name"])
    return path.parent.name


def _stored_figures(path: Path) -> dict[str, float]:
    """Read the calibration figures that HELM stored for the whole run, without perturbations."""
    if not path.is_file():
        return {}
    figures: dict[str, float] = {}
    stats = read_document(path)
    if not isinstance(stats, list):
        raise ValueError(f"{path} is not a list of statistics, so it is not a HELM file.")
    for stat in stats:
        name = stat.get("name") if isinstance(stat, Mapping) else None
        if not isinstance(name, Mapping) or isinstance(name.get("perturbation"), Mapping):
            continue
        if name.get("name") in _STORED_NAMES:
            mean = as_float(stat.get("mean"), str(path), str(name["name"]))
            figures.setdefault(str(name["name"]), mean)
    return figures
