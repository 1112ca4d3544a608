"""A warning about rows whose true class was predicted to be impossible."""

from __future__ import annotations

from calibrant._data.sample import Sample
from calibrant._validation import warn_data

_USUAL = 0.02
"""Share of rows whose true class may have probability zero without a warning: the votes of a forest
are zero now and then."""


def warn_impossible(owner: str, sample: Sample, inputs: str) -> None:
    """Warn if many rows give their true class the probability zero, because the floor of scores
    then decides the fit.
    """
    count, n_rows = sample.count_impossible(inputs), sample.shape[0]
    if count > (_USUAL * n_rows if inputs == "proba" else 0):
        warn_data(
            f"{owner}: {count:,} of {n_rows:,} rows have a true class of score "
            f"{'zero' if inputs == 'proba' else '-inf'}, which is taken as the probability eps and "
            "makes the fit cautious; where scores were cut off (the best five tokens, say), put "
            "the least score of the row that is known in the place of what is not, as the notes "
            "of TemperatureScaling show"
        )
