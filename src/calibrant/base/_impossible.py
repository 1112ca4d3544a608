"""A warning about rows whose true class has predicted probability zero."""

from __future__ import annotations

from calibrant._data.sample import Sample
from calibrant._validation import warn_data

_USUAL = 0.02
"""Share of rows whose true class may have probability zero without a warning. Random forests
predict zero for a few rows."""


def warn_impossible(owner: str, sample: Sample, inputs: str) -> None:
    """Warn if many true classes have probability zero, because the floor then affects the fit."""
    count, n_rows = sample.count_impossible(inputs), sample.shape[0]
    if count > (_USUAL * n_rows if inputs == "proba" else 0):
        warn_data(
            f"{owner}: the true class of {count:,} of {n_rows:,} rows has the score "
            f"{'zero' if inputs == 'proba' else '-inf'}. The floor eps replaces these scores, "
            "which pulls the fit toward less confident predictions. If you have only the top "
            "scores of each row, replace missing scores by the lowest known score of the row (see "
            "the notes of TemperatureScaling)."
        )
