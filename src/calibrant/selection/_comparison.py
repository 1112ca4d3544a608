"""Many calibrators on one or several data sets, compared by cross-validation."""

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
from calibrant.selection._table import markdown_table, plain

UNCALIBRATED = "uncalibrated"

_SPREAD_NOTE = "Metrics are of all held-out rows; ± is the standard deviation over folds."
_GAIN_NOTE = "Gain: reduction in log-loss compared with {first}."
_GROUP_NOTE = "The intervals of groups are not adjusted for the number of groups."

_BEST_OF_SEVERAL = (
    "The best of several methods looks better than it is. "
    "Evaluate it on rows that did not choose it."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ShortRepr):
    """Methods compared over sets of predictions; the first method is "uncalibrated", the scores as
    they are.

    Attributes
    ----------
    datasets, methods, metrics : tuples of str
    mean : array of shape (n_datasets, n_methods, n_metrics)
        Metrics of all held-out rows together.
    spread : array of shape (n_datasets, n_methods, n_metrics)
        Standard deviation over folds of metrics that are means over rows; NaN for others.
    ranks : array of shape (n_datasets, n_methods, n_metrics)
        Of the means; 1 is best, ties share their average.
    gains : dict of (dataset, method, score) -> Gain
        Paired gains over the scores as they are, in log-loss and Brier score.
    friedman : dict of metric -> FriedmanResult
        Where there are several datasets.
    critical_difference : float or None
        Of average ranks, all pairs (Nemenyi, 5%), where there are several datasets.
    greater_is_better : frozenset of str
        The metrics that are ranked downwards.
    differences : dict of (dataset, method, other, score) -> Gain
        What each method gains over each other; see `difference`.
    notes : tuple of str
        How maps of scores that come in parts differ from those of rows in memory.
    by_group : Comparison or None
        The same comparison within each group, if groups were passed; ``datasets`` are the groups.
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
    by_group: Comparison | None = None

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
            **({"groups": list(self.by_group._records("group"))} if self.by_group else {}),
        }

    def to_markdown(self, digits: int = 4) -> str:
        """A table per dataset and per group, and of average ranks if there are several datasets."""
        parts = [*self._tables(digits), self._note]
        if self.by_group is not None:
            parts += [*self.by_group._tables(digits), _GROUP_NOTE]
        if self.friedman:
            parts.append(self._rank_table())
        if len(self.methods) > 2:
            parts.append(_BEST_OF_SEVERAL)
        return "\n\n".join([*parts, *self.notes])

    @property
    def _note(self) -> str:
        """What the numbers of the tables are."""
        gain = _GAIN_NOTE.format(first=plain(self.methods[0]))
        return gain if np.isnan(self.spread).all() else f"{_SPREAD_NOTE} {gain}"

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        tables = [
            html_table(rows, header=head, title=name, note=self._note)
            for name, (head, rows) in zip(
                self.datasets, map(self._cells, range(len(self.datasets))), strict=True
            )
        ]
        groups = "" if self.by_group is None else self.by_group._repr_html_()
        ranks = f"<pre>{escape(self._rank_table())}</pre>" if self.friedman else ""
        return "".join([*tables, groups, ranks])

    def _records(self, kind: str = "dataset") -> Iterator[dict[str, Any]]:
        ranks = self.ranks
        for d, dataset in enumerate(self.datasets):
            for m, method in enumerate(self.methods):
                record: dict[str, Any] = {kind: dataset, "method": method}
                for q, metric in enumerate(self.metrics):
                    record[metric] = float(self.mean[d, m, q])
                    spread = float(self.spread[d, m, q])
                    record[f"{metric}_spread"] = None if np.isnan(spread) else spread
                    record[f"{metric}_rank"] = float(ranks[d, m, q])
                for score in SCORES:
                    gain = self.gains[dataset, method, score]
                    record |= {
                        f"{score}_gain": gain.gain,
                        f"{score}_gain_low": gain.low,
                        f"{score}_gain_high": gain.high,
                    }
                yield record

    def _tables(self, digits: int) -> list[str]:
        return [
            f"**{plain(name)}**\n\n{markdown_table(*self._cells(d, digits))}"
            for d, name in enumerate(self.datasets)
        ]

    def _cells(self, d: int, digits: int = 4) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the table of a dataset."""
        head = ["method", *self.metrics, "log-loss gain", "95% interval"]
        rows = []
        for m, method in enumerate(self.methods):
            gain = self.gains[self.datasets[d], method, "log_loss"]
            pairs = zip(self.mean[d, m].tolist(), self.spread[d, m].tolist(), strict=True)
            cells = [
                f"{mean:.{digits}f}" + ("" if np.isnan(spread) else f" ± {spread:.{digits}f}")
                for mean, spread in pairs
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
            f"{table}\n\nCritical difference of average ranks (Nemenyi, 5%): "
            f"{self.critical_difference:.2f}"
        )
