"""Reports of rows that come in parts, more than memory holds: sums over all of them, and for what
needs the rows themselves some that are drawn.

Of all rows: accuracy, log-loss and Brier score with their intervals, binned errors of equal width,
the gain, the diagrams and the errors of classes. The KS error and its graph are made of cells of
scores (`calibrant.notions._cells`). Debiased errors, tests, the decomposition, the other measures,
the guarantee and remarks about ties are those of the rows that are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from calibrant._blocks import FILE_ELEMENTS, PREDICT_ELEMENTS, row_blocks, sum_in_pairs
from calibrant._crossfit.members import set_up
from calibrant._crossfit.scores import SCORES
from calibrant._data.chunked_sample import as_chunked_sample, reader_for
from calibrant._data.chunks import ChunkSource
from calibrant._data.sample import ArraySample, Sample
from calibrant._simplex import as_proba
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import Predictions, check_classes, check_count, check_weight
from calibrant.base._outcome import convergence_note
from calibrant.base._training import summarize_training
from calibrant.evaluation import Evaluation, MetricAccumulator
from calibrant.guarantees import clopper_pearson
from calibrant.inference._confidence_gap import gap_interval
from calibrant.inference._gain import Gain, summed_gain
from calibrant.inference._results import Interval
from calibrant.metrics._ks import KsPath, ks_path
from calibrant.notions import as_notion
from calibrant.report._charts import NOTIONS, Tables, class_rows, ks_graph, reliability
from calibrant.report._content import Estimate, MetricRow, Report
from calibrant.report._summarise import (
    Case,
    Findings,
    Request,
    compose,
    guarantee_note,
    mean_row_of,
    names_of,
)
from calibrant.selection._parted import Judges, judged_proba, runs_of, trains_of

_DRAWN_ELEMENTS = FILE_ELEMENTS
"""Scores of the rows that are drawn: as many as a block of a file holds."""

_LEVEL = 0.95


class _Judged(NamedTuple):
    """How the rows of a part are judged: maps of each fold, and the rows that are drawn."""

    maps: Sequence[Any]
    judges: Judges
    inputs: str
    n_bins: int
    drawn: IntArray

    def before(self, part: ArraySample) -> ArraySample:
        """Probabilities as they are."""
        return ArraySample(as_proba(part.u[:], self.inputs), part.y, part.weight, part.start)

    def after(self, part: ArraySample) -> ArraySample:
        """Probabilities by maps that have not seen the rows."""
        proba = judged_proba(self.maps, self.judges, self.inputs, part)
        return ArraySample(proba, part.y, part.weight, part.start)

    def sums(self, part: ArraySample) -> tuple[Any, ...]:
        """All that is added up, and the rows that are drawn: scores, probabilities before and
        after, and column codes.
        """
        blocks = row_blocks(*part.shape, elements=PREDICT_ELEMENTS)
        found: tuple[Any, ...] = sum_in_pairs(self._sums_of(part, rows) for rows in blocks)
        return found

    def _sums_of(self, whole: ArraySample, rows: slice) -> tuple[Any, ...]:
        scores, y, weight, start = whole.block(rows)
        part = ArraySample(scores, y, weight, whole.start + start)
        both = [self.before(part).u[:], self.after(part).u[:]]
        losses = np.array([[rule.losses(p, y) for p in both] for rule in SCORES.values()])
        drawn = self._drawn_of(part)
        return (
            *(self._accumulated(p, part) for p in both),
            self._fold_sums(losses[0, 0] - losses[0, 1], part),  # of the first score, log-loss
            np.stack([losses.sum(axis=2), (losses**2).sum(axis=2)]),
            np.array([_gap_sums(p, y) for p in both]),
            [(scores[drawn], *(p[drawn] for p in both), y[drawn])],
        )

    def _accumulated(self, proba: FloatArray, part: ArraySample) -> Any:
        accumulator = MetricAccumulator(self.n_bins, keep_top=0)
        return accumulator._update_checked(ArraySample(proba, part.y, part.weight))._sums

    def _fold_sums(self, gains: FloatArray, part: ArraySample) -> FloatArray:
        """Rows of each fold, and sums of the squares of their gains, (2, J)."""
        fold, each = self.judges.fold(part), (np.ones(len(gains)), gains**2)
        return np.stack([np.bincount(fold, one, self.judges.n_folds) for one in each])

    def _drawn_of(self, part: ArraySample) -> IntArray:
        """Rows of a part that are drawn."""
        first, last = np.searchsorted(self.drawn, [part.start, part.start + len(part.y)])
        return self.drawn[first:last] - part.start


def _gap_sums(proba: FloatArray, y: IntArray) -> FloatArray:
    """Sums of confidence minus outcome, of its square, and of the variance that is expected."""
    top = proba.max(axis=1)
    difference = top - (proba.argmax(axis=1) == y)
    return np.array([difference.sum(), difference @ difference, top @ (1 - top)])


def summarise_parts(parts: ChunkSource, asked: Request) -> Report:
    """The report of rows that come in parts, cross-fitted by the number of the row: row i is judged
    in fold ``i // 60 mod cv``, where there are enough rows.
    """
    made = set_up(asked.made, asked.inputs, parts.n_columns)
    asked = asked._replace(made=made, cv=check_count(asked.cv, "cv", minimum=2))
    if made.needs_rows:
        raise TypeError(f"{type(made).__name__} needs all rows in memory")
    reader = reader_for(parts, asked.classes, asked.inputs)
    sample = as_chunked_sample(parts, reader)
    if sample.is_weighted or sample.n_rows < sample.shape[0]:
        raise TypeError("a report of rows with weights needs them in memory: gather the parts")
    labels = check_classes(reader.classes, reader.n_classes)
    model = clone(made)._fit_checked(sample)
    judged = _judge(sample, asked)
    *sums, kept = sample.sum_chunks(judged.sums)
    scores, before, after, y = map(np.concatenate, zip(*kept, strict=True))
    rows = Predictions(scores, y, check_weight(None, len(y)), labels)
    model.training_ = summarize_training(
        ArraySample(scores, y, rows.weight), asked.inputs, model._log_true_of
    )
    seen = sample.class_weights
    remarks = _remarks(type(made).__name__, model, judged.maps)
    drawn = (y, rows.weight, before, after)
    case = Case(*drawn, model, (), asked.cv, seen, (seen, seen), remarks, is_held_out=False)
    paths = [_confidence_path(sample.rescored(of)) for of in (judged.before, judged.after)]
    names = names_of(labels)
    return compose(
        case,
        _findings(sums, paths, sample, names),
        asked,
        names,
        guarantee=guarantee_note(rows, asked.inputs),
        how=_how(model, len(y), paths),
    )


def _judge(sample: Sample, asked: Request) -> _Judged:
    """Maps of each fold, and how they judge."""
    judges = runs_of(sample, asked.cv)
    trains = trains_of(sample, judges)
    maps = [clone(asked.made)._fit_checked(train) for train in trains]
    return _Judged(maps, judges, asked.inputs, asked.n_bins, _draw_rows(sample, asked.seed))


def _draw_rows(sample: Sample, seed: int) -> IntArray:
    """The numbers of rows that are kept, in their order."""
    n_rows, n_classes = sample.shape
    most = max(1, _DRAWN_ELEMENTS // n_classes)
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


def _remarks(owner: str, model: Any, maps: Sequence[Any]) -> tuple[str, ...]:
    notes = convergence_note(owner, [model]), convergence_note(owner, maps, "folds")
    return tuple(note for note in notes if note)


class _Path(NamedTuple):
    """The KS graph by cells, and the share of the rows in the fullest of them."""

    path: KsPath
    fullest: float


def _confidence_path(sample: Sample) -> _Path:
    claim = next(iter(sample.claims(as_notion("confidence"))))
    _, cell = np.unique(np.asarray(claim.ends), return_inverse=True)
    return _Path(ks_path(claim), float(np.bincount(cell, claim.weight).max() / sample.total))


def _findings(
    sums: Sequence[Any], paths: Sequence[_Path], sample: Sample, names: Sequence[str]
) -> Findings:
    *accumulated, folds, spread, gaps = sums
    total = sample.total
    tables = [_tables(one) for one in accumulated]
    evaluations = tuple(
        _evaluation(one, path.path.error) for one, path in zip(accumulated, paths, strict=True)
    )
    return Findings(
        n_samples=total,
        evaluations=evaluations,
        gain=_gain(folds, spread[0, 0], total),
        gaps=tuple(_gap(one, total) for one in gaps.tolist()),
        means=(_accuracy_row(evaluations, total), *_score_rows(spread, total)),
        reliability=reliability(tables, names),
        ks=ks_graph([path.path for path in paths]),
        per_class=class_rows(tables, sample.class_weights, names),
    )


def _tables(sums: Any) -> Tables:
    return dict(zip(NOTIONS, (sums.confidence, sums.top_label, sums.class_wise), strict=True))


def _evaluation(sums: Any, ks: float) -> Evaluation:
    accumulator = MetricAccumulator(sums.confidence.n_bins, keep_top=0)
    accumulator._add(sums)
    return replace(accumulator.compute(), ks=ks)


def _gain(folds: FloatArray, losses: FloatArray, total: float) -> Gain:
    """Of log-loss."""
    weight, square = folds
    before, after = losses.tolist()
    return summed_gain(total, (before, after), square.sum(), weight / (total - weight))


def _gap(sums: Sequence[float], total: float) -> Interval:
    first, second, own = sums
    gap = first / total
    spread = max(0.0, second - total * gap**2) / (total - 1)
    return gap_interval(total, gap, spread, own / total, _LEVEL)


def _accuracy_row(evaluations: Sequence[Evaluation], total: float) -> MetricRow:
    estimates = []
    for one in evaluations:
        hits = np.array([round(one.accuracy * total)])
        low, high = clopper_pearson(hits, np.array([total]), 1 - _LEVEL)
        estimates.append(Estimate(one.accuracy, float(low[0]), float(high[0])))
    return mean_row_of("accuracy", estimates, "exact interval")


def _score_rows(spread: FloatArray, total: float) -> list[MetricRow]:
    """Means of losses over all rows, with the interval of a normal mean: (2, scores, 2) are their
    first and second moments, before and after.
    """
    mean = spread[0] / total
    error = np.sqrt(np.maximum(spread[1] / total - mean**2, 0.0) / (total - 1))
    reach = ndtri((1 + _LEVEL) / 2) * error
    return [
        mean_row_of(
            name,
            [Estimate(m, m - r, m + r) for m, r in zip(means, reaches, strict=True)],
            "interval of a mean of so many rows",
        )
        for name, means, reaches in zip(SCORES, mean.tolist(), reach.tolist(), strict=True)
    ]


def _how(model: Any, n_drawn: int, paths: Sequence[_Path]) -> tuple[str, ...]:
    before, after = (path.fullest for path in paths)
    own = model._chunked_note()
    return (
        *([own] if own else []),
        "The rows were read in passes and not kept. Accuracy, log-loss, Brier score, binned errors "
        "of equal width, the gain, the diagrams and the errors of classes are of all rows. Folds "
        "take turns every 60 rows or so.",
        "The KS error and its graph are made of cells of scores: it is too small by at most the "
        f"share of the rows in the fullest one, {before:.1e} before and {after:.1e} after.",
        "Debiased errors, the guarantee, the two-bin and cutoff errors, and remarks about ties and "
        f"certainty are of {n_drawn:,} rows, drawn at random; tests and decomposition of some of "
        "these.",
    )
