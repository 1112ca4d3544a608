"""Weights of a report: scaled to the effective number of rows."""

from __future__ import annotations

from calibrant._data.sample import Sample


def has_weights(sample: Sample) -> bool:
    """Whether any row of a sample counts for more or less than one."""
    return sample.is_weighted or sample.n_rows < sample.shape[0]


def weight_sentences(sample: Sample) -> tuple[str, ...]:
    """How the weights of a sample are used, and what they leave out."""
    if not has_weights(sample):
        return ()
    left_out = "No guarantee is given, because its proof counts rows without weights."
    if not sample.is_weighted:
        return (f"Rows of weight 0 are left out. {left_out}",)
    return (
        f"Rows have weights. Intervals and tests use the effective number of rows, "
        f"{sample.effective().total:,.0f} of {sample.n_rows:,}. {left_out}",
        "Accuracy, log-loss and Brier score have no interval and the kernel test is left out, "
        "because these draw rows one by one. If the weights are numbers of copies, repeat the "
        "rows instead.",
    )
