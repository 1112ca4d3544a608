"""Intermediate results of a report: options, fits, findings and rows for tests."""

from __future__ import annotations

from typing import NamedTuple

from calibrant.report._findings import Findings
from calibrant.report._fits import Fits
from calibrant.report._request import Request
from calibrant.report._rows import DrawnRows, ReportRows

_TESTED_ROWS = 20_000
"""Maximum number of rows for tests and the decomposition. These rows suffice to detect relevant
errors, and the cost of tests grows faster than the number of rows."""

_TESTED_WEIGHTED_ROWS = 5000
"""Maximum number of weighted rows for tests. The calibration error of weighted rows is computed
again for every resample."""


class Case(NamedTuple):
    """Intermediate results, from which the sections of a report are computed."""

    request: Request
    names: tuple[str, ...]
    rows: ReportRows
    fits: Fits
    findings: Findings
    drawn: DrawnRows
    """The rows that are in memory: all rows, or some rows that were drawn from chunks."""
    tested: DrawnRows
    """The rows that tests and the decomposition use."""

    @property
    def has_all_rows(self) -> bool:
        """Whether all rows are in memory."""
        return self.rows.places is None

    @property
    def is_part_tested(self) -> bool:
        """Whether tests use only some of the rows."""
        n_tested, n_drawn = len(self.tested.y), len(self.drawn.y)
        return n_tested < n_drawn or n_drawn < self.rows.sample.n_rows


def rows_to_test(drawn: DrawnRows, seed: int) -> DrawnRows:
    """Return the drawn rows, or a random subset if tests of all rows would take too long."""
    is_weighted = drawn.sample_weight is not None
    return drawn.draw(_TESTED_WEIGHTED_ROWS if is_weighted else _TESTED_ROWS, seed)
