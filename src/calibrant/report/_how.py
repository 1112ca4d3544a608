"""How the numbers of a report were computed, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import __version__
from calibrant._data.sample import Sample
from calibrant.base import Calibrator
from calibrant.base._citation import methods_sentence, references_of
from calibrant.report._case import Case
from calibrant.report._weights import weight_sentences

_HEURISTIC = (
    "P-values after cross-fitting are heuristic, because the label of a row was used to fit the "
    "calibrators of other rows. Pass separate rows to fit on for exact p-values."
)

_GUARANTEE = (
    "The guarantee is that of top-label histogram binning of the same rows, not of the map above."
)


def how_sentences(case: Case, given: Sample) -> tuple[str, ...]:
    """How a report was computed; ``given`` is the sample with the weights of the user."""
    request = case.request
    sentences = (
        _how_fitted(case),
        f"Binned errors use {request.n_bins} bins of equal width, debiased ones quantile "
        "bins. Ties go to the lowest column.",
        _how_many_tested(case),
        f"Tests use {request.n_resamples:,} resamples. Seed {request.seed}. P-values are adjusted "
        "for the number of tests (Holm). The gain is paired over rows, its interval asymptotic.",
        "" if case.fits.is_held_out else _HEURISTIC,
        "Decomposition: the calibration part is the gain of cross-fitted structured scaling, and "
        "refinement is the rest.",
        "" if request.is_fitted else _GUARANTEE,
        _how_to_write(case.fits.model),
        *weight_sentences(given),
        case.fits.chunked_note,
        *_how_chunked(case),
        f"calibrant {__version__}, NumPy {np.__version__}.",
    )
    return tuple(filter(None, sentences))


def _how_fitted(case: Case) -> str:
    method, n_samples = case.request.method, case.findings.n_samples
    if case.request.is_fitted:
        return (
            f"{method} was fitted before this report, which evaluates it on {n_samples:,.0f} rows."
        )
    if case.fits.is_held_out:
        n_fitted = case.fits.class_weights.sum()
        return (
            f"{method} was fitted on {n_fitted:,.0f} calibration rows and evaluated on "
            f"{n_samples:,.0f} others."
        )
    return (
        f"{method} was cross-fitted in {case.fits.n_folds} folds: each of {n_samples:,.0f} "
        "rows is predicted by a fit on the other folds. The calibrator shown is fitted on all rows."
    )


def _how_many_tested(case: Case) -> str:
    n_tested = len(case.tested.y)
    if n_tested == len(case.drawn.y):
        return ""
    return f"Tests and decomposition look at {n_tested:,} of the rows, drawn at random."


def _how_to_write(model: Any) -> str:
    """What a paper would write; nothing about a classifier of another package."""
    if not isinstance(model, Calibrator):
        return ""
    references = " ".join(["", "References:", *cited]) if (cited := references_of(model)) else ""
    return f"To write about it: {methods_sentence(model)}{references}"


def _how_chunked(case: Case) -> tuple[str, ...]:
    """Which numbers are those of all rows, and which those of drawn rows."""
    if case.has_all_rows:
        return ()
    before, after = case.findings.cell_shares
    folds = "" if case.fits.is_held_out else " Folds take turns every 60 rows or so."
    return (
        "The rows were read in passes and not kept. Accuracy, log-loss, Brier score, binned errors "
        f"of equal width, the gain, the diagrams and the errors of classes are of all rows.{folds}",
        "The KS error and its graph are made of cells of scores: it is too small by at most the "
        f"share of the rows in the fullest one, {before:.1e} before and {after:.1e} after.",
        "Debiased errors, the guarantee, the two-bin and cutoff errors, and notes about ties and "
        f"certainty are of {len(case.drawn.y):,} rows, drawn at random; tests and decomposition of "
        "some of these.",
    )
