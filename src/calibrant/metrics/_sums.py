"""Sums over rows for an evaluation. The sums can be added and serialized."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels import entries, packed_pairs, top_labels
from calibrant._kernels.simplex import brier_scores, is_unit, log_softmax, log_true_class
from calibrant._typing import AnyArray, BoolArray, FloatArray, IntArray
from calibrant.binning import BinTable, UniformBins, bin_table
from calibrant.metrics._confidence import ConfidenceSums
from calibrant.metrics.ks import claims_ks, packed_ks
from calibrant.notions import as_notion


class TopPart(NamedTuple):
    """Confidences, correctness and weights of some predictions, (m,) each."""

    score: FloatArray
    hit: BoolArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class KeptScores:
    """Confidences of all rows, or of none if there are more than ``limit`` rows."""

    limit: int | None
    parts: tuple[TopPart, ...] = ()
    is_complete: bool = True

    def __add__(self, other: KeptScores) -> KeptScores:
        parts = (*self.parts, *other.parts)
        n_rows = sum(len(part.score) for part in parts)
        is_complete = self.is_complete and other.is_complete
        # The KS error needs all rows, so keep no rows if some are missing or if there are too many.
        if not is_complete or (self.limit is not None and n_rows > self.limit):
            return KeptScores(self.limit, (), is_complete=False)
        return KeptScores(self.limit, parts)

    def joined(self) -> TopPart:
        """Concatenate all rows."""
        return TopPart(*map(np.concatenate, zip(*self.parts, strict=True)))

    @property
    def weight(self) -> FloatArray:
        """Weights of all rows. Unit weights take no memory."""
        weights = [part.weight for part in self.parts]
        if all(map(is_unit, weights)):
            return np.broadcast_to(np.float64(1.0), (sum(map(len, weights)),))
        return np.concatenate(weights)

    def ks(self) -> float | None:
        """Compute the KS error of the confidence, or return None if there were too many rows."""
        if not self.parts:
            return None
        if is_unit(self.weight):
            return packed_ks(self._packed())
        score, hit, weight = self.joined()
        label = np.ones((len(score), 1), dtype=np.intp)
        claims = as_notion("confidence").reported(
            score[:, None], label, hit.astype(np.intp), weight, n_classes=2
        )
        return claims_ks(claims)

    def _packed(self) -> AnyArray:
        """Pack scores and outcomes of all rows into 8 bytes per row."""
        sizes = [len(part.score) for part in self.parts]
        key, stop = np.empty(sum(sizes), dtype=np.uint64), 0
        for part, size in zip(self.parts, sizes, strict=True):
            start, stop = stop, stop + size
            key[start:stop] = packed_pairs(part.score, part.hit)
        return key


@dataclass(frozen=True, eq=False)
class EvaluationSums:
    """Sums over rows for an `Evaluation`. ``a + b`` contains the sums over the rows of a and b."""

    confidence: BinTable
    class_wise: BinTable
    top_label: BinTable
    top: ConfidenceSums
    log_loss: float
    brier: float
    tops: KeptScores

    @classmethod
    def of_block(
        cls, scores: FloatArray, y: IntArray, weight: FloatArray, rule: SumRule
    ) -> EvaluationSums:
        """Compute the sums of a block of checked scores."""
        proba, log_true = _proba_and_log_true(scores, y, rule.inputs)
        label = top_labels(proba, 1)
        score, bins = entries(proba, label), UniformBins(rule.n_bins)
        reported = (score, label, y, weight, proba.shape[1])
        confidence = as_notion("confidence").reported(*reported)
        return cls(
            confidence=bin_table(confidence, bins=bins),
            class_wise=bin_table(as_notion("class-wise").claims(proba, y, weight), bins=bins),
            top_label=bin_table(as_notion("top-label").reported(*reported), bins=bins),
            top=ConfidenceSums.of_block(confidence.select(slice(None)), weight),
            log_loss=-float(weight @ log_true),
            brier=float(weight @ brier_scores(proba, y)),
            tops=rule.tops(score[:, 0], label[:, 0] == y, weight),
        )

    def __add__(self, other: EvaluationSums) -> EvaluationSums:
        names = [entry.name for entry in fields(self)]
        return EvaluationSums(*(getattr(self, name) + getattr(other, name) for name in names))


class SumRule(NamedTuple):
    """Options that determine how `EvaluationSums` are computed."""

    inputs: str
    n_bins: int
    keep_top: int | None

    def tops(self, score: FloatArray, hit: BoolArray, weight: FloatArray) -> KeptScores:
        """Return the confidences of a block, or an empty incomplete set if ``keep_top`` is 0."""
        if self.keep_top == 0:
            return KeptScores(0, (), is_complete=False)
        return KeptScores(self.keep_top, (TopPart(score, hit, weight),))


def _proba_and_log_true(
    scores: FloatArray, y: IntArray, inputs: str
) -> tuple[FloatArray, FloatArray]:
    """Return probabilities, and the floored log-probabilities of the true classes."""
    if inputs == "proba":
        return scores, log_true_class(scores, y, inputs)
    log_proba = log_softmax(scores)
    return np.exp(log_proba), log_true_class(log_proba, y, inputs)


_TABLES = {"confidence": "confidence", "class-wise": "class_wise", "top-label": "top_label"}
"""Types of calibration, and the fields of `EvaluationSums` with their tables."""


def state_of(sums: EvaluationSums | None) -> dict[str, Any]:
    """Return sums as values that JSON can represent exactly."""
    if sums is None:
        return {"tables": {}}
    tables = {notion: getattr(sums, field) for notion, field in _TABLES.items()}
    return {
        "confidence": asdict(sums.top),
        "log_loss": sums.log_loss,
        "brier": sums.brier,
        "tables": {
            notion: [table.weight.tolist(), table.score.tolist(), table.outcome.tolist()]
            for notion, table in tables.items()
        },
        "tops": _packed(sums.tops),
    }


def sums_of(state: dict[str, Any], n_bins: int, keep_top: int | None) -> EvaluationSums:
    """Restore sums from the values of `state_of`."""
    n_classes = len(state["tables"]["class-wise"][0])
    tables = {
        field: _table(state["tables"][notion], notion, n_classes, n_bins)
        for notion, field in _TABLES.items()
    }
    return EvaluationSums(
        **tables,
        top=ConfidenceSums(**{k: float(v) for k, v in state["confidence"].items()}),
        log_loss=float(state["log_loss"]),
        brier=float(state["brier"]),
        tops=KeptScores(keep_top) + _unpacked(state.get("tops")),
    )


def _table(values: Any, name: str, n_classes: int, n_bins: int) -> BinTable:
    array, notion = np.array(values, dtype=np.float64), as_notion(name)
    quantities, labels = notion.n_quantities(n_classes), notion.n_labels(n_classes)
    if array.shape != (3, quantities * labels, n_bins) or not np.isfinite(array).all():
        raise ValueError(f"the table {name!r} is damaged")
    return BinTable(array[0], array[1], array[2], quantities, labels, UniformBins(n_bins))


def _packed(tops: KeptScores) -> dict[str, Any] | None:
    """Encode confidences as base64 of little-endian bytes, or None if there were too many rows."""
    if not tops.is_complete:
        return None
    score, hit, weight = tops.joined()
    return {
        "score": _as_text(score.astype("<f8")),
        "hit": _as_text(hit),
        "weight": None if (weight == 1).all() else _as_text(weight.astype("<f8")),
    }


def _unpacked(packed: dict[str, str] | None) -> KeptScores:
    if packed is None:
        return KeptScores(None, (), is_complete=False)
    score, hit = _from_text(packed["score"], "<f8"), _from_text(packed["hit"], "?")
    weight = np.broadcast_to(np.float64(1.0), score.shape)
    if packed["weight"] is not None:
        weight = _from_text(packed["weight"], "<f8")
    if not len(score) == len(hit) == len(weight) or not np.isfinite(score).all():
        raise ValueError("the confidences are damaged")
    return KeptScores(None, (TopPart(score, hit, weight),))


def _as_text(values: Any) -> str:
    return b64encode(values.tobytes()).decode("ascii")


def _from_text(text: str, dtype: str) -> Any:
    return np.frombuffer(b64decode(text, validate=True), dtype=dtype)
