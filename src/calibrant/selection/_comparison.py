"""Result of a comparison of calibrators or models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import scipy

from calibrant._crossfit.scores import SCORES
from calibrant._output.numbers import format_number
from calibrant._output.results import ShortRepr, html_table
from calibrant._typing import FloatArray
from calibrant._validation import (
    unknown_name,
)
from calibrant.inference import FriedmanResult, Gain
from calibrant.selection._table import markdown_table, plain

UNCALIBRATED = "uncalibrated"

_SPREAD_NOTE = "Metrics are computed on all held-out rows; ± is the standard deviation over folds."
_GAIN_NOTE = "Gain is the reduction in log-loss compared with {first}."
_GROUP_NOTE = "The intervals of groups are not adjusted for the number of groups."

_BEST_OF_SEVERAL = (
    "The best of several methods looks better than it is. "
    "Evaluate the selected method on rows that were not used for the selection."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ShortRepr):
    """Comparison of methods over one or several data sets, returned by `compare`.

    ``str()`` is a table. The first method is "uncalibrated", or the first model of
    `compare_models`.

    Attributes
    ----------
    datasets, methods, metrics : tuples of str
        Names of the data sets, methods and metrics.
    mean : array of shape (n_datasets, n_methods, n_metrics)
        Metrics of all held-out rows.
    spread : array of shape (n_datasets, n_methods, n_metrics)
        Standard deviation of the metrics over folds. The value is NaN for metrics that are not
        means over rows.
    ranks : array of shape (n_datasets, n_methods, n_metrics)
        Ranks of the methods. Rank 1 is best, and tied methods get their average rank.
    gains : dict of (dataset, method, score) -> Gain
        Paired gains over the first method in log-loss and Brier score.
    friedman : dict of metric -> FriedmanResult
        Friedman's test for each metric, if there are several data sets.
    critical_difference : float or None
        Critical difference of average ranks for all pairs of methods (Nemenyi, 5%), if there are
        several data sets.
    greater_is_better : frozenset of str
        Metrics for which higher values are better.
    differences : dict of (dataset, method, other, score) -> Gain
        Gain of each method over each other method, see `difference`.
    notes : tuple of str
        Sentences about differences between fits to chunked data and fits to rows in memory.
    by_group : Comparison or None
        The comparison within each group, if ``by`` was passed. The attribute ``datasets`` of this
        comparison contains the groups.

    See Also
    --------
    compare : Compare calibrators.
    compare_models : Compare the probabilities of several models.
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
        # Ranks count from the smallest value, so metrics for which higher is better are negated.
        sign = np.array([-1.0 if name in self.greater_is_better else 1.0 for name in self.metrics])
        return np.asarray(scipy.stats.rankdata(sign * self.mean, axis=1))

    @property
    def best(self) -> str:
        """Method with the best average rank in the first metric.

        If methods tie, the first of these methods is returned. The method was chosen on these rows,
        so its results are slightly optimistic. Use `difference` to test whether the method is
        better than another method.
        """
        return self.methods[int(self.ranks[:, :, 0].mean(axis=0).argmin())]

    def difference(
        self, method: str, other: str, *, score: str = "log_loss", dataset: str | None = None
    ) -> Gain:
        """Return the gain of ``method`` over ``other`` in a proper score, with its paired interval.

        Parameters
        ----------
        method, other : str
            Names of the methods.
        score : {"log_loss", "brier_score"}, default "log_loss"
            The proper score.
        dataset : str, optional
            Name of the data set. By default, the first data set.

        Returns
        -------
        Gain
            Paired gain, which is positive if ``method`` has the lower score.
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
        """Return a pandas DataFrame with one row per data set and method."""
        import pandas

        return pandas.DataFrame(list(self._records())).set_index(["dataset", "method"])

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values, for example for JSON."""
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

    def to_markdown(self, digits: int = 3) -> str:
        """Return Markdown tables per data set and group, and of average ranks over data sets.

        ``digits`` is the number of significant digits.
        """
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
        """Explain the numbers of the tables."""
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

    def _cells(self, d: int, digits: int = 3) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table of a data set."""
        head = ["method", *self.metrics, "log-loss gain", "95% CI"]
        rows = []
        for m, method in enumerate(self.methods):
            gain = self.gains[self.datasets[d], method, "log_loss"]
            pairs = zip(self.mean[d, m].tolist(), self.spread[d, m].tolist(), strict=True)
            cells = [
                " ± ".join(format_number(value, digits=digits) for value in pair if value == value)
                for pair in pairs
            ]
            gain_cell, *ends = (
                format_number(value, digits=digits, signed=True)
                for value in (gain.gain, gain.low, gain.high)
            )
            # The first method is the reference and has no gain over itself.
            gain_cells = [gain_cell, " to ".join(ends)] if m else ["", ""]
            rows.append([method, *cells, *gain_cells])
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
