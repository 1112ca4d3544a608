"""Many calibrators on one or many sets of predictions, by honest cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import scipy

from calibrant._crossfit.scores import SCORES
from calibrant._output.results import ShortRepr, html_table
from calibrant._typing import FloatArray
from calibrant._validation import (
    unknown_name,
)
from calibrant.inference import FriedmanResult, Gain
from calibrant.selection._table import markdown_table

UNCALIBRATED = "uncalibrated"

SPREAD_NOTE = "±: standard deviation over the folds. Gains are over the scores as they are."

_BEST_OF_SEVERAL = (
    "The best of several methods looks better than it is: judge it on rows that did not choose it."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ShortRepr):
    """Methods compared over sets of predictions; the first method is "uncalibrated", the scores as
    they are.

    Attributes
    ----------
    datasets, methods, metrics : tuples of str
    mean, spread : arrays of shape (n_datasets, n_methods, n_metrics)
        Mean and standard deviation of a metric over the folds, each judged by a map that was fitted
        on the others.
    ranks : array of shape (n_datasets, n_methods, n_metrics)
        Of the means; 1 is best, ties share their average.
    gains : dict of (dataset, method, score) -> Gain
        Paired gains over the scores as they are, in log-loss and Brier score.
    friedman : dict of metric -> FriedmanResult
        Where there are several datasets.
    critical_difference : float or None
        Of average ranks, all pairs (Nemenyi, 5 %), where there are several datasets.
    greater_is_better : frozenset of str
        The metrics that are ranked downwards.
    differences : dict of (dataset, method, other, score) -> Gain
        What each method gains over each other; see `difference`.
    notes : tuple of str
        How maps of scores that come in parts differ from those of rows in memory.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    mean: FloatArray
    spread: FloatArray
    gains: dict[tuple[str, str, str], Gain]
    friedman: dict[str, FriedmanResult]
    critical_difference: float | None
    greater_is_better: frozenset[str] = frozenset()
    differences: dict[tuple[str, str, str, str], Gain] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> FloatArray:
        sign = np.array([-1.0 if name in self.greater_is_better else 1.0 for name in self.metrics])
        return np.asarray(scipy.stats.rankdata(sign * self.mean, axis=1))

    @property
    def best(self) -> str:
        """The method of the best average rank in the first metric; of ties the first named.

        It was chosen by these rows, so that its own figures look a little too good; `difference`
        says whether it is better than another.
        """
        return self.methods[int(self.ranks[:, :, 0].mean(axis=0).argmin())]

    def difference(
        self, method: str, other: str, *, score: str = "log_loss", dataset: str | None = None
    ) -> Gain:
        """What ``method`` gains over ``other`` in a proper score, paired over rows, with the
        interval of `Gain`; of the first dataset unless one is named.
        """
        name = self.datasets[0] if dataset is None else dataset
        for value, valid, kind in (
            (method, self.methods, "method"),
            (other, self.methods, "method"),
            (score, tuple(SCORES), "score"),
            (name, self.datasets, "dataset"),
        ):
            if value not in valid:
                raise ValueError(unknown_name(kind, value, valid))
        return self.differences[name, method, other, score]

    def to_frame(self) -> Any:
        """A pandas frame with one row per dataset and method."""
        import pandas

        return pandas.DataFrame(list(self._records())).set_index(["dataset", "method"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "datasets": list(self.datasets),
            "methods": list(self.methods),
            "metrics": list(self.metrics),
            "results": list(self._records()),
            "friedman": {name: result.to_dict() for name, result in self.friedman.items()},
            "critical_difference": self.critical_difference,
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def to_markdown(self, digits: int = 4) -> str:
        """A table per dataset, and of average ranks where there are several."""
        parts = [self._dataset_table(d, digits) for d in range(len(self.datasets))]
        if self.friedman:
            parts.append(self._rank_table())
        if len(self.methods) > 2:
            parts.append(_BEST_OF_SEVERAL)
        return "\n\n".join([*parts, *self.notes])

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        tables = [
            html_table(rows, header=head, title=name, note=SPREAD_NOTE)
            for name, (head, rows) in zip(
                self.datasets, map(self._cells, range(len(self.datasets))), strict=True
            )
        ]
        ranks = f"<pre>{escape(self._rank_table())}</pre>" if self.friedman else ""
        return "".join([*tables, ranks])

    def _records(self) -> Iterator[dict[str, Any]]:
        ranks = self.ranks
        for d, dataset in enumerate(self.datasets):
            for m, method in enumerate(self.methods):
                record: dict[str, Any] = {"dataset": dataset, "method": method}
                for q, metric in enumerate(self.metrics):
                    record[metric] = float(self.mean[d, m, q])
                    record[f"{metric}_spread"] = float(self.spread[d, m, q])
                    record[f"{metric}_rank"] = float(ranks[d, m, q])
                for score in SCORES:
                    gain = self.gains[dataset, method, score]
                    record |= {
                        f"{score}_gain": gain.gain,
                        f"{score}_gain_low": gain.low,
                        f"{score}_gain_high": gain.high,
                    }
                yield record

    def _dataset_table(self, d: int, digits: int) -> str:
        return f"**{self.datasets[d]}**\n\n{markdown_table(*self._cells(d, digits))}"

    def _cells(self, d: int, digits: int = 4) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the table of a dataset."""
        head = ["method", *self.metrics, "log-loss gain", "95 % interval"]
        rows = []
        for m, method in enumerate(self.methods):
            gain = self.gains[self.datasets[d], method, "log_loss"]
            cells = [
                f"{self.mean[d, m, q]:.{digits}f} ± {self.spread[d, m, q]:.{digits}f}"
                for q in range(len(self.metrics))
            ]
            interval = f"{gain.low:+.{digits}f} to {gain.high:+.{digits}f}"
            # The first method is the scores as they are, which gain nothing over themselves.
            gained = [f"{gain.gain:+.{digits}f}", interval] if m else ["", ""]
            rows.append([method, *cells, *gained])
        return head, rows

    def _rank_table(self) -> str:
        average = self.ranks.mean(axis=0)
        rows = [
            [name, *(f"{rank:.2f}" for rank in average[m])] for m, name in enumerate(self.methods)
        ]
        tests = [f"{self.friedman[q].p_value:.2g}" for q in self.metrics]
        table = markdown_table(
            ["average rank", *self.metrics], [*rows, ["Friedman p-value", *tests]]
        )
        return (
            f"{table}\n\nCritical difference of average ranks (Nemenyi, 5 %): "
            f"{self.critical_difference:.2f}"
        )
