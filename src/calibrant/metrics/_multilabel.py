"""Evaluation of multilabel predictions: one binary problem per label."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._data.multilabel import MultilabelSample
from calibrant._data.sample import ArraySample
from calibrant._output.numbers import format_number
from calibrant._output.results import as_frame, html_table
from calibrant._typing import AnyArray
from calibrant._validation import shortened
from calibrant.metrics._accumulator import MetricAccumulator
from calibrant.metrics.ks import claims_ks
from calibrant.notions import as_notion

_HEADER = ("label", "frequency", "mean", "accuracy", "log-loss", "Brier", "ECE", "KS")


@dataclass(frozen=True)
class LabelEvaluation:
    """Metrics of the binary problem of one label.

    Attributes
    ----------
    name : str
        Name of the label.
    frequency, mean_probability : float
        Share of the rows with the label, and mean predicted probability.
    accuracy : float
        Share of correct predictions if a probability above 0.5 predicts the label.
    log_loss, brier_score : float
        Proper scores of the binary problem, as in `evaluate`.
    ece, ks : float
        Expected calibration error and KS error of the probability of the label.

    See Also
    --------
    MultilabelEvaluation : Metrics of all labels.
    """

    name: str
    frequency: float
    mean_probability: float
    accuracy: float
    log_loss: float
    brier_score: float
    ece: float
    ks: float


@dataclass(frozen=True, repr=False)
class MultilabelEvaluation:
    """Metrics of multilabel predictions.

    `evaluate` returns this object for ``y_true`` of shape (n, K). ``str()`` returns a table.
    Attributes such as ``log_loss`` are means over labels.

    Attributes
    ----------
    n_samples : float
        Sum of the weights.
    labels : tuple of LabelEvaluation
        Metrics of each label.

    See Also
    --------
    evaluate : Evaluate predictions.
    """

    n_samples: float
    labels: tuple[LabelEvaluation, ...]

    def __getitem__(self, name: Any) -> LabelEvaluation:
        """Return the metrics of a label by its name."""
        for label in self.labels:
            if label.name == str(name):
                return label
        names = [label.name for label in self.labels]
        raise KeyError(f"There is no label {name!r}. The labels are {shortened(names, show=repr)}.")

    def _mean(self, name: str) -> float:
        return float(np.mean([getattr(label, name) for label in self.labels]))

    @property
    def accuracy(self) -> float:
        """Mean accuracy of the labels (1 minus the Hamming loss)."""
        return self._mean("accuracy")

    @property
    def log_loss(self) -> float:
        """Mean log-loss of the labels."""
        return self._mean("log_loss")

    @property
    def brier_score(self) -> float:
        """Mean Brier score of the labels."""
        return self._mean("brier_score")

    @property
    def cw_ece(self) -> float:
        """Mean ECE of the labels (class-wise ECE)."""
        return self._mean("ece")

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as plain numbers and strings, for example for JSON."""
        means = ("accuracy", "log_loss", "brier_score", "cw_ece")
        return {
            "n_samples": self.n_samples,
            **{name: getattr(self, name) for name in means},
            "labels": [asdict(label) for label in self.labels],
        }

    def to_frame(self) -> Any:
        """Return a pandas frame with one row per label."""
        return as_frame(*(asdict(label) for label in self.labels)).set_index("name")

    def rows(self) -> list[list[str]]:
        """Return the table, one row per label."""
        return [
            [label.name, *map(format_number, list(asdict(label).values())[1:])]
            for label in self.labels
        ]

    def __repr__(self) -> str:
        loss = format_number(self.log_loss)
        return f"<MultilabelEvaluation: {len(self.labels)} labels, log-loss {loss}>"

    def _repr_html_(self) -> str:
        return html_table(self.rows(), header=list(_HEADER), note=self._note())

    def _note(self) -> str:
        return (
            f"Means over labels: log-loss {format_number(self.log_loss)}, Brier score "
            f"{format_number(self.brier_score)}, class-wise ECE {format_number(self.cw_ece)}."
        )

    def __str__(self) -> str:
        lines = [list(_HEADER), *self.rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*texts, self._note()])


def evaluate_labels(sample: MultilabelSample, names: AnyArray, n_bins: int) -> MultilabelEvaluation:
    """Evaluate every label as a binary problem."""
    labels = tuple(
        _evaluate_label(str(name), _binary_rows(sample, k), n_bins)
        for k, name in enumerate(np.asarray(names).tolist())
    )
    return MultilabelEvaluation(sample.total, labels)


def _binary_rows(sample: MultilabelSample, column: int) -> ArraySample:
    """Return the rows of the binary problem of a label."""
    score = np.asarray(sample.u[:], dtype=np.float64)[:, column]
    proba = np.column_stack([1.0 - score, score])
    return ArraySample(proba, sample.y[:, column].astype(np.intp), sample.weight)


def _evaluate_label(name: str, rows: ArraySample, n_bins: int) -> LabelEvaluation:
    accumulator = MetricAccumulator(n_bins, keep_top=0)._update_checked(rows)
    result, sums = accumulator.compute(), accumulator._sums
    assert sums is not None
    mean, frequency = accumulator.mean_score(1)
    return LabelEvaluation(
        name=name,
        frequency=frequency,
        mean_probability=mean,
        accuracy=result.accuracy,
        log_loss=result.log_loss,
        brier_score=result.brier_score,
        ece=float(sums.class_wise.claim_errors[1]),
        ks=claims_ks(rows.claims(as_notion("class-1"))),
    )
