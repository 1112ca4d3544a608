"""Linear pools of calibrators: their probabilities out of fold, and cautious weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_clone, proba_blocks, proba_of
from calibrant._crossfit.scores import likelihood_losses
from calibrant._data.fold_plan import FoldPlan, HeldOut
from calibrant._kernels.simplex import EPS, true_class
from calibrant._optim.mixture import mixture_weights
from calibrant._output.progress import tracked
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.inference import Gain, paired_gain
from calibrant.selection._confidence_correction import StackedRows


class Pool(NamedTuple):
    """Probabilities that members gave to what happened, by maps that had not seen it; the first
    member is the identity and the last one the uniform forecast.

    A row of weight 2 may be here twice, judged by two folds.
    """

    likelihood: FloatArray
    weight: FloatArray
    fold: IntArray
    is_wrong: BoolArray
    """Rows whose highest score is not that of what happened."""
    is_spread: bool = True
    """Whether the uniform forecast may have a weight."""
    is_settled: bool = False
    """Whether one member has all of the weight: the second, because its own prior is caution
    enough, or a later one that is better beyond doubt."""

    def of_rows(self, rows: BoolArray) -> Pool:
        """The same members, judged on some of the rows."""
        return self._replace(
            likelihood=self.likelihood[rows],
            weight=self.weight[rows],
            fold=self.fold[rows],
            is_wrong=self.is_wrong[rows],
        )


Maps = Mapping[str, Sequence[Any]]
"""Members by name, each with a fitted map per fold."""


class Effort(NamedTuple):
    """How members are fitted: folds at the same time, whether a bar shows it, and seconds after
    which no other member is begun.
    """

    n_jobs: int | None = None
    progress: bool = False
    time_budget: float | None = None


def fit_members(
    members: Mapping[str, Any],
    plan: FoldPlan,
    inputs: str,
    effort: Effort = Effort(),  # noqa: B008  # it is not changed
) -> Maps:
    """One fit of every member per fold, on the rows that are not held out; of the first member in
    any case, and of those that are started in time.
    """
    start = monotonic()
    maps: dict[str, Sequence[Any]] = {}
    listed = tracked(
        members.items(),
        total=len(members),
        description="Cross-fitting",
        progress=effort.progress,
    )
    for name, member in listed:
        is_late = effort.time_budget is not None and monotonic() - start >= effort.time_budget
        if not (maps and is_late):
            first = fit_clone(member, plan.train(0), inputs)
            work = (
                delayed(fit_clone)(member, plan.train(fold), inputs, first)
                for fold in range(1, plan.n_folds)
            )
            maps[name] = [first, *Parallel(n_jobs=effort.n_jobs)(work)]
    return maps


def pool_members(maps: Maps, plan: FoldPlan, inputs: str, *, is_spread: bool = True) -> Pool:
    """What every member predicts for the true classes of held-out rows, which are gathered."""
    chunks = plan.sum_held_out(partial(_likelihoods, tuple(maps.values()), inputs))
    likelihood, weight, group, is_wrong = map(np.concatenate, zip(*chunks, strict=True))
    return Pool(likelihood, weight, group, is_wrong, is_spread)


def _likelihoods(
    maps: Sequence[Sequence[Any]], inputs: str, held_out: HeldOut
) -> list[tuple[FloatArray, FloatArray, IntArray, BoolArray]]:
    """Probabilities of the true classes by each member and by the uniform forecast, floored as in
    the log-loss; weights, groups, and whether the highest score is that of another class.
    """
    rows, scores = held_out.rows, held_out.rows.u[:]
    columns = [_true_proba(fits[held_out.fold], scores, rows.y, inputs) for fits in maps]
    likelihood = np.column_stack([*columns, np.full(len(scores), 1.0 / scores.shape[1])])
    return [(likelihood, rows.weight, held_out.group, scores.argmax(axis=1) != rows.y)]


def _true_proba(fitted: Any, scores: FloatArray, y: IntArray, inputs: str) -> FloatArray:
    blocks = [
        np.maximum(true_class(proba, y[rows]), EPS)
        for rows, proba in proba_blocks(fitted, scores, inputs)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0)


def stacked_rows(maps: Maps, weights: FloatArray, plan: FoldPlan, inputs: str) -> StackedRows:
    """What the weighted stack predicts for held-out rows."""
    shares = zip(weights[:-1].tolist(), maps.values(), strict=True)
    used = [(weight, fits) for weight, fits in shares if weight > 0]
    chunks = plan.sum_held_out(partial(_stack, used, float(weights[-1]), inputs))
    return StackedRows(*map(np.concatenate, zip(*chunks, strict=True)))


def _stack(
    used: Sequence[tuple[float, Sequence[Any]]], even: float, inputs: str, held_out: HeldOut
) -> list[StackedRows]:
    rows, scores = held_out.rows, held_out.rows.u[:]
    proba = np.full(scores.shape, even / scores.shape[1])
    for weight, fits in used:
        proba += weight * proba_of(fits[held_out.fold], scores, inputs)
    return [StackedRows.of_proba(proba, rows.y, rows.weight, held_out.group)]


MANY_CLASSES = 50
"""From here on a row tells so much about a temperature that it needs no narrow prior, and so little
about everything else that `is_thin` asks for four rows a class."""


def is_thin(n_samples: float, n_classes: int) -> bool:
    """Whether many classes have fewer than four rows each: a temperature can be learned from them,
    but not what single classes need, nor how much probability to spread over all of them.
    """
    return n_classes >= MANY_CLASSES and n_samples < 4 * n_classes


FEW_ERRORS = 4.0
"""Up to so many rows on which the scores were wrong, caution counts in full: they are all that
tells how confident is too confident."""


BEYOND_DOUBT = float(np.log(1e6))
"""Log-likelihood that a stack must gain on other folds for caution to end: a million to one."""

_FAR = 2.0
"""Standard errors of a gain from which on caution is as small as errors allow: one is enough."""

_COST_OF_A_MEMBER = 4.0
"""What fitting the weight of a member to other rows may cost in log-likelihood: one half is
usual."""


def cautious_weights(pool: Pool, start: FloatArray | None = None) -> FloatArray:
    r"""Weights of the members: of highest out-of-fold likelihood, with `caution`. The search begins
    at ``start``. Where the pool is settled, one member has all of it.

    They maximise :math:`\sum_i c_i \log \sum_j w_j P_{ij} + \kappa \log w_1`: the fraction
    :math:`\kappa` of a row, which only the identity (member 1) foresaw (others gave it 1e-6, for
    arithmetic's sake). Then the uniform forecast (the last) gives :math:`\kappa / n` of its weight
    to the identity: a single surprise is no reason to spread probability over all classes.
    """
    if pool.is_settled:
        return _one_weight(pool)
    n_samples, kappa = float(pool.weight.sum()), caution(pool, start)
    weights = _best_weights(pool, kappa, start)
    returned = min(weights[-1], kappa / n_samples)
    weights[-1] -= returned
    weights[0] += returned
    return weights


def _one_weight(pool: Pool) -> FloatArray:
    """All for the second member, or for one after it that gains two standard errors over it."""
    n_members, chosen = pool.likelihood.shape[1], 1
    for member in range(2, n_members - 1):
        gain = np.log(pool.likelihood[:, member] / pool.likelihood[:, chosen])
        if _gained(gain, pool.weight).in_errors > _FAR:
            chosen = member
    return np.eye(1, n_members, chosen)[0]


def _best_weights(pool: Pool, kappa: float, start: FloatArray | None = None) -> FloatArray:
    """Weights of highest likelihood, with the fraction ``kappa`` of a row for the identity, sought
    from ``start``.
    """
    n_members = pool.likelihood.shape[1] - (not pool.is_spread)
    likelihood = pool.likelihood[:, :n_members]
    prior = np.where(np.arange(n_members) == 0, 1.0, 1e-6)[None, :]
    solution = mixture_weights(
        np.vstack([likelihood, prior]),
        np.append(pool.weight, kappa),
        start=None if start is None else start[:n_members],
    )
    weights = np.zeros(pool.likelihood.shape[1])
    weights[:n_members] = solution.parameters
    return weights


def caution(pool: Pool, start: FloatArray | None = None) -> float:
    r"""How much of a row the caution of the weights is worth, in [0, 1].

    :math:`\max((4 / e)^2, 1 - z)` within these limits: all of it up to four rows on which the
    scores were wrong (e is their weight), and where the best weights do not gain on other folds
    than their own; little where they gain more than a standard error there (z) and many rows were
    wrong. None where they gain so much that a million to one speaks against the identity.
    """
    return caution_of(float(pool.weight @ pool.is_wrong), _gain_on_others(pool, start))


class GainOnOthers(NamedTuple):
    """What weights gain over the identity on other folds than their own: log-likelihood in all,
    and in standard errors.
    """

    total: float
    in_errors: float


def caution_of(n_wrong: float, gained: GainOnOthers) -> float:
    """`caution` by the weight of the rows on which the scores were wrong."""
    if gained.total >= BEYOND_DOUBT:
        return 0.0
    few = (FEW_ERRORS / max(n_wrong, FEW_ERRORS)) ** 2
    return few if few == 1.0 else float(np.clip(1.0 - gained.in_errors, few, 1.0))


def _gain_on_others(pool: Pool, best: FloatArray | None) -> GainOnOthers:
    """Cross-fitted gain of the best weights over the identity; none where one fold is all there is.
    Where weights of all rows gain by far more, or less, than fitting them to fewer rows could cost,
    theirs is told, which leads to the same caution.
    """
    numbers = np.unique(pool.fold)
    if len(numbers) > 1:
        if best is None:
            best = mixture_weights(pool.likelihood, pool.weight).parameters
        gain = np.log(pool.likelihood @ best / pool.likelihood[:, 0])
        cost = _COST_OF_A_MEMBER * len(best)
        most, least = _gained(gain, pool.weight), _gained(gain, pool.weight, cost)
        is_told = least.total >= BEYOND_DOUBT or most.total < BEYOND_DOUBT
        if is_told and least.in_errors >= _FAR:
            return least
    gain = np.zeros(len(pool.weight))
    for number in numbers:
        held = pool.fold == number
        if not held.all():
            best = _best_weights(pool.of_rows(~held), 0.0, best)
            gain[held] = np.log(pool.likelihood[held] @ best / pool.likelihood[held, 0])
    return _gained(gain, pool.weight)


def _gained(gain: FloatArray, weight: FloatArray, cost: float = 0.0) -> GainOnOthers:
    """The sum of the gains of rows, less a cost, and in its standard errors."""
    n_samples, total = float(weight.sum()), float(weight @ gain)
    variance = float(weight @ (gain - total / n_samples) ** 2)
    net = total - cost
    return GainOnOthers(net, net / float(np.sqrt(variance)) if variance > 0 else 0.0)


def pool_gain(pool: Pool, ratios: FloatArray) -> Gain:
    """Log-loss gain of the pool; the weights, too, have not seen the rows that they are judged
    on.
    """
    after, weights = np.empty(len(pool.weight)), None
    for number in np.unique(pool.fold):
        held = pool.fold == number
        others = pool.of_rows(~held)
        weights = (
            cautious_weights(others, weights)
            if len(others.weight)
            else np.eye(1, pool.likelihood.shape[1])[0]
        )
        after[held] = likelihood_losses(pool.likelihood[held] @ weights)
    before = likelihood_losses(pool.likelihood[:, 0])
    return paired_gain(before, after, pool.weight, ratios, score="log_loss")
