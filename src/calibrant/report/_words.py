"""Sentences that several forms of a report share."""

from __future__ import annotations

from calibrant.report._content import Report

NO_GUARANTEE = (
    "There are too few calibration rows for a distribution-free guarantee: 50 rows a bin are "
    "needed."
)


def facts(report: Report) -> str:
    """What was judged."""
    return f"{report.n_samples:,} rows, {report.n_classes} classes"


def ks_sentence(report: Report) -> str:
    """The KS graph in words."""
    return (
        f"KS error {report.ks.before_error:.4f} before and {report.ks.after_error:.4f} after "
        f"calibration."
    )


def decomposition_sentence(report: Report) -> str:
    """The decomposition in words."""
    pairs = (("before", report.decomposition.before), ("after", report.decomposition.after))
    said = [
        f"{when} {c + r:.4f} = calibration {c:.4f} + refinement {r:.4f}" for when, (c, r) in pairs
    ]
    return f"Log-loss {said[0]}; {said[1]}."
