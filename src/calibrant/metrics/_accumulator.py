"""The thirteen numbers of a set of predictions, in one pass, mergeable."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from calibrant._blocks import BLOCK_ELEMENTS, row_blocks
from calibrant._simplex import EPS, finite_logits, log_floored, log_softmax, true_class
from calibrant._typing import FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_classes, check_count, check_predictions
from calibrant.binning import BinTable, UniformBins, bin_table
from calibrant.metrics._confidence import ConfidenceSums
from calibrant.notions import as_notion

SCHEMA = "calibrant.metric-accumulator/1"

_TITLES = {
    "n_samples": "rows",
    "n_classes": "classes",
    "accuracy": "accuracy",
    "log_loss": "log-loss",
    "brier_score": "Brier score",
    "conf_ece": "ECE, confidence",
    "cw_ece": "ECE, class-wise",
    "tl_ece": "ECE, top-label",
    "mce": "largest gap (MCE)",
    "ks": "KS error",
    "overconfidence": "overconfidence",
    "underconfidence": "underconfidence",
    "sharpness": "sharpness",
}


@dataclass(frozen=True)
class Evaluation:
    """How good and how honest predictions are: unrounded numbers; ``str()`` is a table.

    ``mce`` is the largest gap of the confidence bins; ``ks`` (confidence) is None where it was not
    computed, because it needs all scores at once. ``n_samples`` is the sum of the weights.
    """

    n_samples: float
    n_classes: int
    accuracy: float
    log_loss: float
    brier_score: float
    conf_ece: float
    cw_ece: float
    tl_ece: float
    mce: float
    ks: float | None
    overconfidence: float
    underconfidence: float
    sharpness: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain numbers."""
        return asdict(self)

    def __str__(self) -> str:
        width = max(map(len, _TITLES.values()))
        lines = []
        for entry in fields(self):
            value = getattr(self, entry.name)
            shown = (
                "not computed"
                if value is None
                else f"{value:,.0f}"
                if entry.name.startswith("n_")
                else f"{value:.5f}"
            )
            lines.append(f"{_TITLES[entry.name]:<{width}}  {shown:>12}")
        return "\n".join(lines)


class MetricAccumulator:
    """Evaluation of data that arrives in parts: feed blocks, merge across machines, compute at the
    end.

    Memory is O(bins x claims) whatever the number of rows; the result is that of
    `calibrant.evaluate` on all rows, except that ``ks``, which needs all scores at once, is None.

    Parameters
    ----------
    n_bins : int
    classes : labels of the columns, optional

    Examples
    --------
    >>> a = MetricAccumulator().update([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    >>> b = MetricAccumulator().update([1], [[0.6, 0.4]])
    >>> round(a.merge(b).compute().accuracy, 3)
    0.667
    """

    def __init__(self, n_bins: int = 15, classes: LabelsLike | None = None) -> None:
        self.n_bins = check_count(n_bins, "n_bins")
        self.classes = classes
        self._tables: dict[str, BinTable] | None = None
        self._confidence = ConfidenceSums()
        self._log_loss = 0.0
        self._brier = 0.0

    def update(
        self, y: LabelsLike, p: ScoresLike, sample_weight: WeightsLike | None = None
    ) -> MetricAccumulator:
        """Add rows of probabilities; returns self."""
        proba, codes, weight, _ = check_predictions(y, p, sample_weight, self.classes)
        self._check_n_classes(proba.shape[1])
        self._add(proba, codes, weight, log_floored(true_class(proba, codes), EPS))
        return self

    def _update_logits(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> None:
        """Add a block of checked logits; their log-loss needs no floor."""
        log_proba = log_softmax(finite_logits(logits))
        self._add(np.exp(log_proba), codes, weight, true_class(log_proba, codes))

    def _add(
        self, proba: FloatArray, y: IntArray, weight: FloatArray, log_true: FloatArray
    ) -> None:
        tables = {}
        for name in ("confidence", "class-wise", "top-label"):
            claims = as_notion(name).claims(proba, y, weight)
            tables[name] = bin_table(claims, bins=UniformBins(self.n_bins))
        confidence = as_notion("confidence").select(proba, y)
        self._confidence += ConfidenceSums.of_block(confidence, np.asarray(weight))
        self._log_loss -= float(weight @ log_true)
        # sum_k (p_k - 1[y = k])^2 = |p|^2 - 2 p_y + 1
        square = np.einsum("ij,ij->i", proba, proba, dtype=np.float64)
        self._brier += float(weight @ (square - 2.0 * true_class(proba, y) + 1.0))
        self._tables = (
            tables if self._tables is None else {k: self._tables[k] + t for k, t in tables.items()}
        )

    def merge(self, other: MetricAccumulator) -> MetricAccumulator:
        """Add what another accumulator has seen; returns self."""
        if other.n_bins != self.n_bins:
            raise ValueError(
                f"accumulators merge only with the same n_bins; got {self.n_bins} and "
                f"{other.n_bins}"
            )
        if _as_list(self.classes) != _as_list(other.classes):
            raise ValueError("accumulators merge only with the same classes")
        if other._tables is not None:
            self._check_n_classes(other._tables["class-wise"].n_claims)
            mine = self._tables
            self._tables = (
                dict(other._tables)
                if mine is None
                else {k: mine[k] + t for k, t in other._tables.items()}
            )
        self._confidence += other._confidence
        self._log_loss += other._log_loss
        self._brier += other._brier
        return self

    def compute(self) -> Evaluation:
        """The evaluation of all rows seen."""
        if self._tables is None:
            raise ValueError("nothing to evaluate: call update(y, p) first")
        sums, n_classes = self._confidence, self._tables["class-wise"].n_claims
        return Evaluation(
            n_samples=_whole(sums.weight),
            n_classes=n_classes,
            accuracy=sums.accuracy,
            log_loss=self._log_loss / sums.weight,
            brier_score=self._brier / sums.weight,
            conf_ece=self._tables["confidence"].error(),
            cw_ece=self._tables["class-wise"].error(),
            tl_ece=self._tables["top-label"].error(),
            mce=self._tables["confidence"].error(norm=np.inf),
            ks=None,
            overconfidence=sums.overconfidence,
            underconfidence=sums.underconfidence,
            sharpness=sums.sharpness(n_classes),
        )

    def _check_n_classes(self, n_classes: int) -> None:
        check_classes(self.classes, n_classes)
        if self._tables is not None and self._tables["class-wise"].n_claims != n_classes:
            raise ValueError(
                f"expected {self._tables['class-wise'].n_claims} classes as before, got {n_classes}"
            )

    def to_json(self) -> str:
        """The state as JSON text, for another process or a later day."""
        tables = self._tables or {}
        return json.dumps(
            {
                "schema": SCHEMA,
                "n_bins": self.n_bins,
                "classes": _as_list(self.classes),
                "confidence": asdict(self._confidence),
                "log_loss": self._log_loss,
                "brier": self._brier,
                "tables": {
                    k: [t.weight.tolist(), t.score.tolist(), t.outcome.tolist()]
                    for k, t in tables.items()
                },
            }
        )

    @classmethod
    def from_json(cls, text: str) -> MetricAccumulator:
        """The accumulator that `to_json` wrote; anything else is a ``ValueError``."""
        try:
            state = json.loads(text)
            if state["schema"] != SCHEMA:
                raise ValueError(f"schema is {state['schema']!r}, expected {SCHEMA!r}")
            return cls._from_state(state)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not the JSON of a MetricAccumulator: {error}") from None

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> MetricAccumulator:
        made = cls(state["n_bins"], state["classes"])
        made._confidence = ConfidenceSums(**{k: float(v) for k, v in state["confidence"].items()})
        made._log_loss, made._brier = float(state["log_loss"]), float(state["brier"])
        if not state["tables"]:
            return made
        arrays = {
            k: np.array(state["tables"][k], dtype=np.float64)
            for k in ("confidence", "class-wise", "top-label")
        }
        n_classes = arrays["class-wise"].shape[1]
        made._tables = {}
        for name, array in arrays.items():
            notion = as_notion(name)
            quantities, labels = notion.n_quantities(n_classes), notion.n_labels(n_classes)
            if array.shape != (3, quantities * labels, made.n_bins) or not np.isfinite(array).all():
                raise ValueError(f"table {name!r} is damaged")
            made._tables[name] = BinTable(
                array[0], array[1], array[2], quantities, labels, UniformBins(made.n_bins)
            )
        made._check_n_classes(n_classes)
        return made


def accumulate(
    scores: FloatArray, y: IntArray, weight: FloatArray, inputs: str, n_bins: int
) -> MetricAccumulator:
    """An accumulator that has seen all rows of checked scores, block by block."""
    made = MetricAccumulator(n_bins)
    elements = max(8 * BLOCK_ELEMENTS, 8 * scores.shape[1] * n_bins)
    for rows in row_blocks(*scores.shape, elements=elements):
        if inputs == "logits":
            made._update_logits(scores[rows], y[rows], weight[rows])
        else:
            made._add(
                scores[rows],
                y[rows],
                weight[rows],
                log_floored(true_class(scores[rows], y[rows]), EPS),
            )
    return made


def _as_list(classes: LabelsLike | None) -> list[Any] | None:
    return None if classes is None else np.asarray(classes).tolist()


def _whole(value: float) -> float:
    """An int where the sum of weights is one."""
    return int(value) if value == int(value) else value
