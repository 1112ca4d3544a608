"""Row weights of a report, which are scaled to the effective number of rows."""

from __future__ import annotations

from calibrant._data.sample import Sample


def has_weights(sample: Sample) -> bool:
    """Return whether any row of a sample has a weight other than 1."""
    return sample.is_weighted or sample.n_rows < sample.shape[0]


def weight_sentences(sample: Sample) -> tuple[str, ...]:
    """Describe how the weights of a sample are used, and which results are not available."""
    if not has_weights(sample):
        return ()
    no_guarantee = "There is no guarantee, because its proof requires rows without weights."
    if not sample.is_weighted:
        return (f"Rows with weight 0 are ignored. {no_guarantee}",)
    return (
        "Rows have weights. Confidence intervals and tests use the effective number of rows, "
        f"{sample.effective().total:,.0f} of {sample.n_rows:,}. {no_guarantee}",
        "Accuracy, log-loss and Brier score have no confidence interval and there is no kernel "
        "test, because these methods resample single rows. If the weights are numbers of copies, "
        "repeat the rows instead.",
    )
