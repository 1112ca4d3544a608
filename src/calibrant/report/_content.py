"""What a report says: plain numbers and sentences, the one thing that all its forms are rendered
from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from calibrant._output.results import ShortRepr

SCHEMA = "calibrant.report/1"


@dataclass(frozen=True)
class Estimate:
    """A number, with its interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MetricRow:
    """One line of the table of before and after. ``better`` is "lower", "higher" or "neither"."""

    name: str
    title: str
    before: Estimate
    after: Estimate
    better: str
    note: str


@dataclass(frozen=True)
class Curve:
    """Bins of a claim: mean score, frequency, its exact 95 % interval, and rows. Empty bins are
    left out.
    """

    score: tuple[float, ...]
    frequency: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: tuple[float, ...]

    def bins(self) -> Iterator[tuple[float, float, float, float, float]]:
        """The numbers of each bin."""
        return zip(self.score, self.frequency, self.low, self.high, self.count, strict=True)


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: of ``notion``, and where it has a claim per class, of the class of
    column ``column``; ``question`` is what is asked of it.
    """

    notion: str
    column: int | None
    question: str
    before: Curve
    after: Curve


@dataclass(frozen=True)
class KsGraph:
    """Cumulative score minus cumulative outcome over the share of rows, ordered by score."""

    before_error: float
    after_error: float
    share: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class ClassRow:
    """A class: rows, rows predicted as it, and its calibration errors before and after."""

    column: int
    name: str
    rows: float
    predicted: float
    class_before: float
    class_after: float
    top_before: float
    top_after: float


CLASS_TITLES = (
    *("class", "rows", "predicted"),
    *("class-wise before", "after", "top-label before", "after"),
)
"""Titles of the columns of a table of classes."""


@dataclass(frozen=True)
class Decomposition:
    """A proper score as calibration plus refinement, before and after."""

    score: str
    before: tuple[float, float]
    after: tuple[float, float]


@dataclass(frozen=True)
class CheckRow:
    """A test of calibration, before and after; ``expected`` is the mean of its statistic for a
    calibrated model, ``p_holm`` the p-value adjusted for all tests of the report (Holm). After
    cross-fitting ``guarantee_after`` is "heuristic": the labels of a row have fitted the maps of
    others.
    """

    name: str
    title: str
    null: str
    guarantee: str
    statistic_before: float
    statistic_after: float
    expected_before: float | None
    expected_after: float | None
    p_before: float
    p_after: float
    guarantee_after: str = ""
    p_holm_before: float = 1.0
    p_holm_after: float = 1.0


@dataclass(frozen=True)
class GuaranteeNote:
    """What is guaranteed, in words, and for each reported probability: claim, value, rows, low,
    high.
    """

    method: str
    text: str
    bins: tuple[tuple[str, float, float, float, float], ...]


@dataclass(frozen=True)
class MapTable:
    """A table of the fitted map."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class MapNote:
    """The fitted map, in words and numbers."""

    name: str
    text: str
    tables: tuple[MapTable, ...] = ()


@dataclass(frozen=True, repr=False)
class Report(ShortRepr):
    """Everything that a report says; see `calibrant.report.summarize`. ``action`` is what to do and
    ``advice`` how sure that is, ``judgement`` what the gain of the method says: "good", "mixed" or
    "bad".
    """

    name: str
    action: str
    advice: str
    verdict: str
    judgement: str
    n_samples: float
    n_classes: int
    classes: tuple[str, ...]
    metrics: tuple[MetricRow, ...]
    reliability: tuple[Reliability, ...]
    ks: KsGraph
    per_class: tuple[ClassRow, ...]
    decomposition: Decomposition
    tests: tuple[CheckRow, ...]
    guarantee: GuaranteeNote | None
    map: MapNote
    warnings: tuple[str, ...]
    how: tuple[str, ...]
    code: str
    version: str
    groups: MapTable | None = None
    is_weighted: bool = False

    def _repr_html_(self) -> str:
        from calibrant.report._html import to_html  # which draws what is defined here

        page = escape(to_html(self), quote=True)
        style = "width: 100%; height: 40em; border: 1px solid #ccc"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, as `render` does: .html, .md or .json."""
        from calibrant.report._render import render  # which writes what is defined here

        render(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries, for JSON."""
        return {"schema": SCHEMA, **asdict(self)}
