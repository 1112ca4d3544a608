"""Describe in sentences how the numbers of a report were computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import __version__
from calibrant._data.sample import Sample
from calibrant.base import Calibrator
from calibrant.base._citation import methods_text, references_of
from calibrant.report._case import Case
from calibrant.report._weights import weight_sentences

_HEURISTIC = (
    "P-values after cross-fitting are heuristic, because the label of a row was used to fit the "
    "calibrators of other rows. Fit on separate rows to get valid p-values."
)

_GUARANTEE = (
    "The guarantee is about top-label histogram binning on the same rows, not about the calibrator "
    "of this report."
)


def how_sentences(case: Case, original: Sample, *, has_guarantee: bool) -> tuple[str, ...]:
    """Describe how a report was computed.

    ``original`` is the sample with the weights that the user passed.
    """
    request = case.request
    sentences = (
        _how_fitted(case),
        f"ECE and MCE use {request.n_bins} bins of equal width, and L2 errors use quantile bins. "
        "If several classes share the highest probability, the predicted class is the one in the "
        "leftmost column.",
        _how_many_tested(case),
        f"Tests use {request.n_resamples:,} resamples with seed {request.seed}. P-values are "
        "adjusted for the number of tests (Holm). The reduction in log-loss is the mean of paired "
        "differences over rows. The confidence interval of the reduction is asymptotic.",
        "" if case.fits.is_held_out else _HEURISTIC,
        "The calibration part of the log-loss is the reduction by a cross-fitted calibrator "
        "(structured scaling). Refinement is the remaining log-loss.",
        _GUARANTEE if has_guarantee else "",
        _how_to_write(case.fits.model),
        *weight_sentences(original),
        case.fits.chunked_note,
        *_how_chunked(case),
        f"calibrant {__version__}, NumPy {np.__version__}.",
    )
    return tuple(filter(None, sentences))


def _how_fitted(case: Case) -> str:
    method, n_samples = case.request.method, case.findings.n_samples
    if case.request.is_fitted:
        return (
            f"The method {method} was fitted before this report and is evaluated on "
            f"{n_samples:,.0f} rows. The figures are held-out only if the method was not fitted on "
            "these rows."
        )
    if case.fits.is_held_out:
        n_fitted = case.fits.class_weights.sum()
        return (
            f"The method {method} was fitted on {n_fitted:,.0f} calibration rows. All figures are "
            f"for {n_samples:,.0f} other rows."
        )
    return (
        f"The method {method} was cross-fitted with {case.fits.n_folds} folds. All figures are for "
        f"held-out predictions. Each fold of the {n_samples:,.0f} rows was predicted by a "
        f"calibrator that was fitted on the other folds. The calibrator that this report describes "
        f"was fitted on all rows."
    )


def _how_many_tested(case: Case) -> str:
    n_tested = len(case.tested.y)
    if n_tested == len(case.drawn.y):
        return ""
    return (
        "The tests, the decomposition, the two-bin error, the cutoff error and the guaranteed "
        f"shares of answered rows use {n_tested:,} rows, drawn at random."
    )


def _how_to_write(model: Any) -> str:
    """Return a paragraph for a paper, or an empty string for a calibrator of another package."""
    if not isinstance(model, Calibrator):
        return ""
    references = " ".join(["", "References:", *cited]) if (cited := references_of(model)) else ""
    return f"Text for a paper: {methods_text(model)}{references}"


def _how_chunked(case: Case) -> tuple[str, ...]:
    """State which figures use all rows, and which figures use drawn rows."""
    if case.has_all_rows:
        return ()
    before, after = case.findings.cell_shares
    folds = (
        ""
        if case.fits.is_held_out
        else " Each fold consists of blocks of about 60 consecutive rows."
    )
    return (
        "The rows were read in several passes and not kept in memory. Accuracy, log-loss, Brier "
        "score, ECE, MCE, the reduction in log-loss, the reliability diagrams and the errors of "
        f"classes use all rows.{folds}",
        "The KS error is computed from counts of rows in cells of similar confidence. The "
        f"KS error is too small by at most {before:.1e} before and {after:.1e} after calibration. "
        "These numbers are the largest shares of rows in a cell.",
        "L2 errors, the guarantee, risk and coverage, and warnings about ties and zero "
        f"probabilities use {len(case.drawn.y):,} rows, drawn at random. The tests, the "
        "decomposition, the two-bin error, the cutoff error and the guaranteed shares of answered "
        "rows use some of these rows.",
    )
