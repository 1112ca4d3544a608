"""Content of a report: the numbers and sentences that all formats show."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from calibrant._output.results import ShortRepr
from calibrant.report._risk_content import RiskCoverage

SCHEMA = "calibrant.report/1"


@dataclass(frozen=True)
class Estimate:
    """A number with an optional confidence interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MetricRow:
    """A metric before and after calibration. ``better`` is "lower", "higher" or "neither"."""

    name: str
    title: str
    before: Estimate
    after: Estimate
    better: str
    note: str


@dataclass(frozen=True)
class Curve:
    """Bins of a reliability diagram: mean score, frequency with exact 95% interval, and rows.

    Empty bins are left out, and neighboring bins with few rows are merged. The frequency of a
    calibrated model lies between ``band_low`` and ``band_high`` with probability 95%.
    """

    score: tuple[float, ...]
    frequency: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: tuple[float, ...]
    band_low: tuple[float, ...] = ()
    band_high: tuple[float, ...] = ()

    def bins(self) -> Iterator[tuple[float, float, float, float, float]]:
        """Iterate over the bins, and yield the numbers of each bin."""
        return zip(self.score, self.frequency, self.low, self.high, self.count, strict=True)


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram of a type of calibration.

    ``column`` is the column of the class if the type of calibration has a diagram per class.
    ``question`` describes the diagram. ``rows_before`` and ``rows_after`` are numbers of rows per
    bin of equal width.
    """

    notion: str
    column: int | None
    question: str
    before: Curve
    after: Curve
    rows_before: tuple[float, ...] = ()
    rows_after: tuple[float, ...] = ()


@dataclass(frozen=True)
class Headline:
    """The figures at the top of the report. Pairs are before and after calibration.

    ``reduction`` is the reduction in log-loss with its confidence interval.
    """

    confidence: tuple[float, float]
    accuracy: tuple[float, float]
    log_loss: tuple[float, float]
    reduction: Estimate


@dataclass(frozen=True)
class KsGraph:
    """Cumulative confidence minus correctness, by share of rows in order of confidence."""

    before_error: float
    after_error: float
    share: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class ClassRow:
    """Rows of a class, rows predicted as this class, and ECEs before and after calibration.

    The top-label ECE is None if the class is never predicted.
    """

    column: int
    name: str
    rows: float
    predicted: float
    class_before: float
    class_after: float
    top_before: float | None
    top_after: float | None


METRIC_COLUMNS = ("Measure", "Before", "After", "Note")
CURVE_COLUMNS = ("Stage", "Mean probability", "Observed frequency", "Lower", "Upper", "Rows")
CLASS_COLUMNS = (
    *("Class", "Rows", "Predicted rows", "Class-wise ECE before", "Class-wise ECE after"),
    *("Top-label ECE before", "Top-label ECE after"),
)
TEST_COLUMNS = (
    *("Test", "Statistic before", "Expected before", "Statistic after", "Expected after"),
    *("p-value before", "p-value after", "Null hypothesis"),
)
GUARANTEE_COLUMNS = ("Predicted class", "Probability", "Lower", "Upper", "Rows")
"""Labels of the columns of tables, which `calibrant.report._glossary` explains."""


@dataclass(frozen=True)
class Decomposition:
    """Calibration and refinement parts of a proper score, before and after calibration."""

    score: str
    before: tuple[float, float]
    after: tuple[float, float]


@dataclass(frozen=True)
class CheckRow:
    """Result of a calibration test before and after calibration.

    ``expected`` is the mean of the statistic for a calibrated model. ``p_holm_before`` and
    ``p_holm_after`` are p-values adjusted for all tests of the report (Holm). After cross-fitting,
    ``guarantee_after`` is "heuristic", because the label of a row was used to fit the calibrators
    of other rows.
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
class DetectableNote:
    """Smallest overconfidence that a test of the report's rows detects with probability ``power``.

    ``gap`` is mean confidence minus accuracy. ``gap`` and ``temperature`` are None if no
    overconfidence is detected with this probability.
    """

    gap: float | None
    temperature: float | None
    power: float
    text: str


@dataclass(frozen=True)
class GuaranteeNote:
    """A guarantee, as a sentence and a table.

    ``bins`` has a row per reported probability: class, probability, rows, lower and upper bound.
    """

    method: str
    text: str
    bins: tuple[tuple[str, float, float, float, float], ...]


@dataclass(frozen=True)
class MapTable:
    """A table of parameters of the fitted calibrator."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class GroupCharts:
    """Gap and reliability curve of a group, before and after calibration."""

    name: str
    gap_before: Estimate
    gap_after: Estimate
    before: Curve
    after: Curve


@dataclass(frozen=True)
class GroupNote:
    """Table and charts of groups. ``text`` explains the table and states the result of the test."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    text: str = ""
    gap_title: str = ""
    charts: tuple[GroupCharts, ...] = ()


@dataclass(frozen=True)
class MapNote:
    """Description of the fitted calibrator in sentences and tables."""

    name: str
    text: str
    tables: tuple[MapTable, ...] = ()


@dataclass(frozen=True, repr=False)
class Report(ShortRepr):
    """Content of a report, returned by `calibrant.report.summarize`.

    Print `action` and `verdict`, or write the whole report with `save`. Notebooks display the
    report as a page.

    Attributes
    ----------
    action, advice : str
        Recommendation and its rating. The rating is "good" if the recommendation is clear, and
        "bad" if the calibrator increases log-loss. The rating is "mixed" if miscalibration may
        remain, or if more rows are needed.
    verdict : str
        Sentences about the effect of calibration on held-out rows.
    conclusion : str
        The effect of calibration on held-out rows: "good", "mixed" or "bad".
    headline : Headline
        Mean confidence, accuracy and log-loss, before and after calibration.
    metrics : tuple of MetricRow
        Metrics before and after calibration.
    tests : tuple of CheckRow
        Tests of calibration.
    detectable : DetectableNote
        The smallest error that the tests could have detected.
    selective : RiskCoverage or None
        Error rates of the most confident rows, with upper bounds. None if rows have weights.
    guarantee : GuaranteeNote or None
        Guarantee of top-label histogram binning. None if there are too few rows, or if rows have
        weights.
    map : MapNote
        Description of the fitted calibrator.
    how : tuple of str
        Sentences about the computation of the figures.
    code : str
        Python code that reproduces the figures.
    created, method, data_sha256 : str
        Date of the report, name of the method, and digest of the data file. The digest is empty
        without a file.

    See Also
    --------
    summarize : Compute a report.
    render : Write a report to a file.
    """

    name: str
    action: str
    advice: str
    verdict: str
    conclusion: str
    n_samples: float
    n_classes: int
    classes: tuple[str, ...]
    headline: Headline
    metrics: tuple[MetricRow, ...]
    reliability: tuple[Reliability, ...]
    ks: KsGraph
    per_class: tuple[ClassRow, ...]
    decomposition: Decomposition
    tests: tuple[CheckRow, ...]
    detectable: DetectableNote
    selective: RiskCoverage | None
    guarantee: GuaranteeNote | None
    map: MapNote
    warnings: tuple[str, ...]
    how: tuple[str, ...]
    code: str
    version: str
    groups: GroupNote | None = None
    is_weighted: bool = False
    created: str = ""
    method: str = ""
    data_sha256: str = ""

    def _repr_html_(self) -> str:
        # Imported here, because _html imports this module.
        from calibrant.report._html import to_html

        page = escape(to_html(self), quote=True)
        style = "width: 100%; height: 40em; border: 1px solid #ccc"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to an .html, .md or .json file."""
        # Imported here, because _render imports this module.
        from calibrant.report._render import render

        render(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary for JSON."""
        return {"schema": SCHEMA, **asdict(self)}
