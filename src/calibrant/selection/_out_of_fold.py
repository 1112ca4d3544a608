"""Fits and out-of-fold likelihoods of the base calibrators of a stacked ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_clone, proba_blocks
from calibrant._data.fold_plan import FoldPlan, HeldOut
from calibrant._kernels.simplex import EPS, true_class, uniform_proba
from calibrant._output.progress import tracked
from calibrant._typing import BoolArray, FloatArray, IntArray


class OutOfFold(NamedTuple):
    """Out-of-fold likelihoods (n, J), which are probabilities of the true class of held-out rows.

    The first base calibrator is the identity. A row with weight 2 that is held out in two folds has
    two entries with weight 1.
    """

    likelihood: FloatArray
    weight: FloatArray
    group: IntArray
    """Weights that are evaluated on the rows of a group can be fitted on the other groups."""
    is_trusted: BoolArray
    """Base calibrators (J,) that enter the ensemble as one member, including the identity."""
    n_classes: int

    def subset(self, rows: BoolArray) -> OutOfFold:
        """Select rows."""
        return self._replace(
            likelihood=self.likelihood[rows], weight=self.weight[rows], group=self.group[rows]
        )

    def select(self, members: BoolArray) -> OutOfFold:
        """Select base calibrators."""
        return self._replace(
            likelihood=self.likelihood[:, members], is_trusted=self.is_trusted[members]
        )

    def add_member(self, likelihood: FloatArray) -> OutOfFold:
        """Add a base calibrator that is not trusted."""
        return self._replace(
            likelihood=np.column_stack([self.likelihood, likelihood]),
            is_trusted=np.append(self.is_trusted, False),
        )


FoldFits = Mapping[str, Sequence[Any]]
"""Base calibrators by name, each with one fit per fold."""


class Effort(NamedTuple):
    """Number of parallel jobs, whether to show a progress bar, and the time budget.

    After ``time_budget`` seconds, no other base calibrator is started.
    """

    n_jobs: int | None = None
    progress: bool = False
    time_budget: float | None = None


def fit_members(
    members: Mapping[str, Any],
    plan: FoldPlan,
    inputs: str,
    effort: Effort = Effort(),  # noqa: B008  # it is not changed
) -> FoldFits:
    """Fit each base calibrator once per fold, on the rows that are not held out.

    The first base calibrator is always fitted. The other base calibrators are fitted only if their
    fits can start within the time budget.
    """
    start = monotonic()
    fits: dict[str, Sequence[Any]] = {}
    listed = tracked(
        members.items(),
        total=len(members),
        description="Cross-fitting",
        progress=effort.progress,
    )
    for name, member in listed:
        is_late = effort.time_budget is not None and monotonic() - start >= effort.time_budget
        if not (fits and is_late):
            # The first fit runs alone, because the other fits start at its optimum.
            first = fit_clone(member, plan.train(0), inputs)
            work = (
                delayed(fit_clone)(member, plan.train(fold), inputs, first)
                for fold in range(1, plan.n_folds)
            )
            fits[name] = [first, *Parallel(n_jobs=effort.n_jobs)(work)]
    return fits


def predict_held_out(
    fits: FoldFits, is_trusted: Sequence[bool], plan: FoldPlan, inputs: str, n_classes: int
) -> OutOfFold:
    """Return out-of-fold likelihoods of all base calibrators and of the uniform forecast."""
    chunks = plan.sum_held_out(partial(_likelihoods, tuple(fits.values()), inputs))
    likelihood, weight, group = map(np.concatenate, zip(*chunks, strict=True))
    return OutOfFold(likelihood, weight, group, np.array([*is_trusted, False]), n_classes)


def _likelihoods(
    fits: Sequence[Sequence[Any]], inputs: str, held_out: HeldOut
) -> list[tuple[FloatArray, FloatArray, IntArray]]:
    """Likelihoods, weights and groups of the held-out rows of a fold.

    The last column of the likelihoods belongs to the uniform forecast.
    """
    rows, scores = held_out.rows, held_out.rows.u[:]
    columns = [_true_proba(folds[held_out.fold], scores, rows.y, inputs) for folds in fits]
    likelihood = np.column_stack([*columns, true_class(uniform_proba(scores), rows.y)])
    return [(likelihood, rows.weight, held_out.group)]


def _true_proba(fitted: Any, scores: FloatArray, y: IntArray, inputs: str) -> FloatArray:
    """Return the probabilities of the true classes, floored as in the log-loss."""
    blocks = [
        np.maximum(true_class(proba, y[rows]), EPS)
        for rows, proba in proba_blocks(fitted, scores, inputs)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0)
