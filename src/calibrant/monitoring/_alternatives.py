"""Alternatives to the deployed forecast, and the factors by which rows change the evidence.

The factor f of an alternative on a row is at least 0. If the deployed forecast p is calibrated, the
mean of f given the past is at most 1. A large product of factors is therefore evidence against
calibration. A floor on p before a logarithm or a quotient can only decrease the mean of f.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.blocks import READ_BLOCK
from calibrant._kernels.simplex import EPS, TINY, row_max, row_sum, true_class
from calibrant._typing import FloatArray, Inputs, IntArray
from calibrant._validation import check_count, check_inputs, check_option
from calibrant.monitoring._evidence import GapSums, Layout, make_layout, sum_gaps
from calibrant.monitoring._experts import (
    EXPERTS,
    ExpertState,
    ExpertSums,
    as_u,
    evaluate_rows,
    learn,
)
from calibrant.notions import ClaimBlock, Notion, as_notion

TILTS = np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
"""Changes of the log-odds of a claim, each of which is an alternative."""

SCALES = 2.0 ** np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
"""Inverse temperatures, each of which is an alternative."""

FRACTIONS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Largest fractions of the evidence that one row can remove, each of which is an alternative."""

_BLOCK_ROWS, _LEARN_ROWS = 512, 256
"""Maximum number of rows of a block, without and with experts."""

_MAX_HORIZON = 10**15
"""Largest horizon, because `_json` rejects larger numbers in a state."""

_MAX_NUMBER = 1e300
"""Largest accepted value of a parameter."""


@dataclass(frozen=True)
class Rule:
    """Checked parameters of a `CalibrationMonitor`."""

    false_alarm: float
    horizon: int
    tolerance: float
    notions: tuple[Notion, ...]
    mode: str
    arl: float | None
    lag: int
    inputs: Inputs
    relative_tolerance: float | None = None

    @property
    def is_detector(self) -> bool:
        return self.mode == "detector"

    @property
    def learns(self) -> bool:
        """Whether recalibrations by experts are alternatives.

        Experts are not used with a tolerance, because a likelihood ratio is evidence only against
        exact calibration. Experts are not used with a lag, because labels arrive too late to learn
        from them.
        """
        return not self.tolerance and self.lag == 1

    @property
    def threshold(self) -> float:
        """Log e-value that raises an alarm.

        With a lag, the rows of the horizon are divided among several streams. The sum of the bounds
        of these streams is the bound of a single stream. In a test, each stream gets an equal share
        of ``false_alarm``. For several streams, only ``P(alarm within n) <= n / A`` is known, so
        the mean run length is at least A / 2. A given average run length therefore needs twice the
        threshold.
        """
        if not self.is_detector:
            return log(self.lag / self.false_alarm)
        if self.arl is None:
            return log(self.horizon / self.false_alarm)
        return log(self.arl if self.lag == 1 else 2.0 * self.arl)

    def to_state(self) -> dict[str, Any]:
        """The parameters as plain values, which `make_rule` accepts."""
        plain = ("false_alarm", "horizon", "tolerance", "mode", "arl", "lag", "inputs")
        values = {name: getattr(self, name) for name in (*plain, "relative_tolerance")}
        return {**values, "notions": [notion.name for notion in self.notions]}


def make_rule(
    *,
    false_alarm: Any,
    horizon: Any,
    tolerance: Any,
    notions: Any,
    mode: Any,
    arl: Any,
    lag: Any,
    inputs: Any,
    relative_tolerance: Any = None,
) -> Rule:
    """Check the parameters of a monitor."""
    if not (_is_number(false_alarm) and 0.0 < false_alarm < 1.0):
        raise ValueError(
            f"false_alarm must lie between 0 and 1, got {false_alarm!r}. Pass false_alarm=0.05."
        )
    if not (_is_number(tolerance) and 0.0 <= tolerance < 0.5):
        raise ValueError(
            f"tolerance must be at least 0 and below 0.5, got {tolerance!r}. Pass tolerance=0.02."
        )
    _check_relative_tolerance(relative_tolerance, tolerance)
    if check_count(horizon, "horizon") > _MAX_HORIZON:
        raise ValueError(f"horizon must be at most {_MAX_HORIZON:,} rows, got {horizon:,}")
    if arl is not None and not (_is_number(arl) and 1.0 < arl <= 1e100):
        raise ValueError(
            f"arl must be a number of rows above 1, or None, got {arl!r}. Pass arl=1e6."
        )
    names = (notions,) if isinstance(notions, str | Notion) else tuple(notions)
    if not names:
        raise ValueError(
            "notions must not be empty. Pass at least one notion, such as notions=['confidence']."
        )
    return Rule(
        float(false_alarm),
        int(horizon),
        float(tolerance),
        tuple(as_notion(notion) for notion in names),
        check_option(mode, "mode", ("detector", "test")),
        None if arl is None else float(arl),
        check_count(lag, "lag"),
        check_inputs(inputs),
        None if relative_tolerance is None else float(relative_tolerance),
    )


def _check_relative_tolerance(relative: Any, tolerance: float) -> None:
    if relative is None or (_is_number(relative) and tolerance and 0.0 < relative <= 1.0):
        return
    raise ValueError(
        f"relative_tolerance must lie between 0 and 1 and needs a positive tolerance, got "
        f"relative_tolerance={relative!r} and tolerance={tolerance!r}. Pass "
        "relative_tolerance=0.5 and tolerance=0.02."
    )


def _is_number(value: Any) -> bool:
    # math.isfinite is not used, because it fails for integers that are too large for a float.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _MAX_NUMBER


class Family(ABC):
    """Alternatives of one kind.

    Each of the ``n_claims`` claims has ``n_alternatives`` alternatives.

    ``share`` is the weight of the family relative to other families. ``prior`` (n_alternatives,)
    contains the weights of the alternatives of a claim, which are the same for all claims.
    """

    name: str
    n_alternatives: int
    share: float = 1.0
    prior: FloatArray

    @abstractmethod
    def n_claims(self, n_classes: int) -> int:
        """Number of claims."""

    @abstractmethod
    def factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        """Factor of every alternative on every row, (n, n_claims, n_alternatives)."""

    def weight(self, n_classes: int) -> FloatArray:
        """Weights of all alternatives, (n_claims * n_alternatives,), with the sum ``share``."""
        n_claims = self.n_claims(n_classes)
        return self.share * np.tile(self.prior / n_claims, n_claims)


def _small_change_prior(change: FloatArray) -> FloatArray:
    """Return weights that are inversely proportional to the size of a change.

    Small changes need the most rows to be detected, so a low weight would delay their detection
    most.
    """
    weight = 1.0 / np.abs(change)
    return weight / weight.sum()


class TemperatureFamily(Family):
    r"""Forecasts at another temperature, with :math:`f = p_y^{\beta - 1} / \sum_k p_k^\beta`.

    The family has twice the weight of other families, because a wrong temperature is the most
    common miscalibration. Rows are divided by their maximum before powers are taken, so no power
    overflows.
    """

    name = "temperature"
    n_alternatives = len(SCALES)
    share = 2.0
    prior = _small_change_prior(np.log2(SCALES))

    def n_claims(self, n_classes: int) -> int:
        return 1

    def factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        p = np.maximum(proba, EPS)
        top = row_max(p)
        p /= top[:, None]
        p_true = true_class(p, y) * top
        out = np.empty((len(y), 1, self.n_alternatives))
        for j, power in enumerate(_powers(p)):
            out[:, 0, j] = true_class(power, y) / (p_true * row_sum(power))
        return out


def _powers(p: FloatArray) -> tuple[FloatArray, ...]:
    """``p ** SCALES``. Half of the powers are roots and squares, which take less time than exp."""
    u = np.log(p)
    second, third, fourth = (np.exp(beta * u) for beta in SCALES[1:4])
    return np.sqrt(p), second, third, fourth, second * second, p * p


class ClaimFamily(Family):
    r"""Alternatives for the claims of a notion, with score s and outcome o.

    Without a tolerance, an alternative multiplies the odds of the claim by :math:`e^\delta`. Its
    likelihood ratio is :math:`f = e^{\delta o} / (1 + s (e^\delta - 1))`.

    With a tolerance :math:`\epsilon`, the alternatives are deviations of the probability by more
    than the tolerance. The factors are

    .. math:: 1 - \lambda \frac{o - s + \epsilon}{1 - s + \epsilon} \quad \text{(s is too high)},
       \qquad 1 + \lambda \frac{o - s - \epsilon}{s + \epsilon} \quad \text{(s is too low)} .

    Both factors have a mean of at most 1 as long as :math:`|P(o = 1) - s| \le \epsilon`. With a
    relative tolerance :math:`\rho`, :math:`\epsilon` is at most :math:`\rho s`.
    """

    def __init__(
        self, notion: str | Notion, tolerance: float = 0.0, relative: float | None = None
    ) -> None:
        self.notion = as_notion(notion)
        self.name = self.notion.name
        self.tolerance, self.relative = tolerance, relative
        n_alternatives = 2 * len(FRACTIONS) if tolerance else len(TILTS)
        even = np.full(n_alternatives, 1.0 / n_alternatives)
        self.n_alternatives = n_alternatives
        self.prior = even if tolerance else _small_change_prior(TILTS)

    def n_claims(self, n_classes: int) -> int:
        return self.notion.n_quantities(n_classes) * self.notion.n_labels(n_classes)

    def factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        return self.claim_factors(self.notion.select(proba, y), proba.shape[1])

    def claim_factors(self, block: ClaimBlock, n_classes: int) -> FloatArray:
        """Factors of claims that the notion has selected."""
        if self.tolerance:
            factors = _tolerance_factors(block, self.tolerance, self.relative)
        else:
            factors = _odds_factors(block)
        n_labels = self.notion.n_labels(n_classes)
        return factors if n_labels == 1 else spread_by_label(factors, block.labels(), n_labels)


def _tolerance_factors(block: ClaimBlock, tolerance: float, relative: float | None) -> FloatArray:
    """Return the factors for gaps beyond the tolerance.

    Factors below 1 do not depend on the score.
    """
    score, hit = block.score, block.hit
    share = np.inf if relative is None else relative
    eps = np.minimum(tolerance, share * np.maximum(score, EPS))
    if_miss = (score - eps) / (1.0 - score + eps)
    score_hit, eps_hit = score.reshape(-1)[hit], eps.reshape(-1)[hit]
    if_hit = (1.0 - score_hit - eps_hit) / (score_hit + eps_hit)
    n = len(FRACTIONS)
    out = np.empty((*score.shape, 2 * n))
    np.multiply(if_miss[:, :, None], FRACTIONS, out=out[:, :, :n])
    out[:, :, :n] += 1.0
    out[:, :, n:] = 1.0 - FRACTIONS
    flat = out.reshape(-1, 2 * n)
    flat[hit, :n] = 1.0 - FRACTIONS
    flat[hit, n:] = 1.0 + FRACTIONS * if_hit[:, None]
    return out


def _odds_factors(block: ClaimBlock) -> FloatArray:
    out = block.score[:, :, None] * np.expm1(TILTS)
    out += 1.0
    np.reciprocal(out, out=out)
    out.reshape(-1, len(TILTS))[block.hit] *= np.exp(TILTS)
    return out


def spread_by_label(factors: FloatArray, label: IntArray, n_labels: int) -> FloatArray:
    """Reshape (n, J, ...) to (n, J L, ...). The factor is 1 for claims about other labels."""
    n_rows, n_quantities = label.shape
    out = np.ones((n_rows, n_quantities * n_labels, *factors.shape[2:]))
    index = label + np.arange(n_quantities) * n_labels
    out[np.arange(n_rows)[:, None], index] = factors
    return out


class Rows(NamedTuple):
    """Checked rows: probabilities that sum to 1, column codes, and weights of at most 1.

    ``weight`` is None if all weights are 1.
    """

    proba: FloatArray
    y: IntArray
    weight: FloatArray | None = None

    def take(self, rows: slice | IntArray) -> Rows:
        """Select rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.proba[rows], self.y[rows], weight)

    def blocks(self, size: int) -> Iterator[Rows]:
        """Yield blocks of at most ``size`` rows, in order."""
        for start in range(0, len(self.y), size):
            yield self.take(slice(start, start + size))


class BlockSums(NamedTuple):
    """Factors (n, J) of a block of rows, sums of gaps, and sums from which the experts learn."""

    factors: FloatArray
    gaps: GapSums
    expert_sums: tuple[ExpertSums, ...]


class Members:
    """All alternatives of a `Rule`, for a given number of classes."""

    def __init__(self, rule: Rule, n_classes: int) -> None:
        self.rule, self.n_classes = rule, n_classes
        tolerances = rule.tolerance, rule.relative_tolerance
        self.claims = [ClaimFamily(notion, *tolerances) for notion in rule.notions]
        exact: list[Family] = [] if rule.tolerance else [TemperatureFamily()]
        self.families: list[Family] = [*self.claims, *exact]
        self.experts = EXPERTS if rule.learns else ()
        weights = [family.weight(n_classes) for family in self.families]
        if self.experts:
            weights.append(np.full(len(self.experts), 1.0 / len(self.experts)))
        self.layout: Layout = make_layout(weights, rule.lag, rule.is_detector)
        self.claim_ends = np.cumsum([family.n_claims(n_classes) for family in self.claims])

    @property
    def n_claims(self) -> int:
        return int(self.claim_ends[-1])

    @property
    def block_rows(self) -> int:
        """Number of rows of a block, within which the experts do not change."""
        # Blocks are shorter for many alternatives, so the factors stay in the cache.
        most = _LEARN_ROWS if self.experts else _BLOCK_ROWS
        return int(np.clip(2 * READ_BLOCK // self.layout.n_members, 16, most))

    def start_experts(self) -> tuple[ExpertState, ...]:
        """Return the experts before the first row."""
        return tuple(ExpertState.start(self.n_classes) for _ in self.experts)

    def claim_slice(self, index: int) -> slice:
        """Positions of the claims of one notion among all claims."""
        return slice(int(self.claim_ends[index - 1]) if index else 0, int(self.claim_ends[index]))

    def evaluate_block(
        self, rows: Rows, gap: FloatArray, experts: tuple[ExpertState, ...]
    ) -> BlockSums:
        """Compute the factors and sums of rows. ``gap`` (C,) are the mean gaps before these rows.

        The weight of a row is the exponent of its factors. With a weight of at most 1, the mean of
        a factor stays at most 1 (Jensen).
        """
        proba, y, weight = rows
        factors = np.empty((len(y), self.layout.n_members))
        gaps = self._evaluate_claims(rows, gap, factors)
        for index in range(len(self.claims), len(self.families)):
            family_factors = self.families[index].factors(proba, y)
            factors[:, self.layout.family(index)] = family_factors.reshape(len(y), -1)
        expert_sums = self._evaluate_experts(rows, experts, factors)
        if weight is not None:
            factors **= weight[:, None]
        return BlockSums(factors, gaps, expert_sums)

    def _evaluate_claims(self, rows: Rows, gap: FloatArray, factors: FloatArray) -> GapSums:
        """Fill the first columns of ``factors`` with factors of claims, and return sums of gaps."""
        gaps = []
        for index, family in enumerate(self.claims):
            block = family.notion.select(rows.proba, rows.y)
            claim_factors = family.claim_factors(block, self.n_classes)
            factors[:, self.layout.family(index)] = claim_factors.reshape(len(rows.y), -1)
            n_labels = family.notion.n_labels(self.n_classes)
            gaps.append(sum_gaps(block, gap[self.claim_slice(index)], n_labels, rows.weight))
        return GapSums.concatenate(gaps)

    def _evaluate_experts(
        self, rows: Rows, experts: tuple[ExpertState, ...], factors: FloatArray
    ) -> tuple[ExpertSums, ...]:
        """Fill the last columns of ``factors`` with factors of the experts, and return their sums.

        The experts have not yet learned from these rows, because a factor must not depend on its
        own label.
        """
        if not experts:
            return ()
        u = as_u(rows.proba)
        deployed = np.maximum(true_class(rows.proba, rows.y), EPS)
        sums = []
        for column, (expert, state) in enumerate(
            zip(self.experts, experts, strict=True), start=factors.shape[1] - len(experts)
        ):
            p_true, expert_sums = evaluate_rows(expert, state, u, rows.y)
            factors[:, column] = np.maximum(p_true, TINY) / deployed
            sums.append(expert_sums)
        return tuple(sums)

    def learn(
        self, experts: tuple[ExpertState, ...], sums: tuple[ExpertSums, ...]
    ) -> tuple[ExpertState, ...]:
        """Return the experts after a step on the rows of ``sums``."""
        return tuple(map(learn, self.experts, experts, sums))
