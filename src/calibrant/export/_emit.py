"""Convert fitted calibrators to programs, with one function for each class of calibrators.

A function with the decorator ``@emits(Class)`` takes the fitted calibrator and its scores as a
`Value`, and returns the probabilities as a `Value`. The function reads only public fitted
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from calibrant import binary
from calibrant._kernels.simplex import EPS, TINY, log_of, log_softmax, normalized
from calibrant._validation import check_fitted
from calibrant.base import BaseBinaryCalibrator, BaseCalibrator, Calibrator
from calibrant.classifier import CalibratedClassifier
from calibrant.export._decisions import DECISIONS, decision_program
from calibrant.export._program import Builder, Program, plain_labels
from calibrant.export._values import Value, mix, stack
from calibrant.multiclass import (
    BayesianTemperatureScaling,
    CanonicalBinning,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GaussianProcessCalibration,
    Identity,
    MatrixScaling,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.multiclass._gp.kernel import InducingInputs, Kernel
from calibrant.selection import AutoCalibration, CrossFitted, GroupCalibration

Emit = Callable[[Builder, Any, int], int]
Function = TypeVar("Function", bound=Emit)

_ROUND_OFF = 1e-9
"""Largest difference between a program and its calibrator on the probe rows."""

_LAST_BITS = 1e-13
"""Largest relative difference between the results of two runtimes for the same score."""

_emitters: dict[type, Emit] = {}


def register(cls: type) -> Callable[[Function], Function]:
    """Register the function that converts the fitted calibrators of a class to programs.

    Use this decorator to export calibrators that are not part of this package.

    Parameters
    ----------
    cls : class of calibrators
        The class. Subclasses are not included, because they may compute something else.

    Returns
    -------
    decorator of a function ``(build, calibrator, scores) -> value``
        ``build.append(op, args, constants)`` adds an operation of `calibrant.export.OPS` and
        returns the number of its value. ``scores`` is the number of the scores, and the function
        returns the number of the probabilities. For binary calibrators, scores and probabilities
        are one column.

    See Also
    --------
    program : Convert a fitted calibrator to a list of operations.

    Examples
    --------
    >>> from calibrant import Identity
    >>> class Flat(Identity):
    ...     def _proba_of(self, scores):
    ...         return np.full(scores.shape, 1.0 / scores.shape[1])
    >>> @register(Flat)
    ... def emit_flat(build, calibrator, scores):
    ...     uniform = np.full(calibrator.n_classes_, 1 / calibrator.n_classes_)
    ...     return build.append("constant", (scores,), {"values": uniform})
    >>> program(Flat().fit([[0.9, 0.1]], [0]))([[0.3, 0.7]]).tolist()
    [[0.5, 0.5]]
    """

    def keep(function: Function) -> Function:
        _emitters[cls] = function
        return function

    return keep


def program(calibrator: Any) -> Program:
    """Describe the computation of a fitted calibrator as a list of operations.

    Parameters
    ----------
    calibrator : fitted calibrator or decision
        A calibrator of this package or of a registered class, or a rule of `calibrant.decisions`
        whose decisions become named outputs of the program. A `Program` is returned unchanged.

    Returns
    -------
    Program
        The operations. Call the program with scores to get calibrated probabilities.

    Raises
    ------
    TypeError
        If the argument is not a calibrator, or its class is not registered.
    ValueError
        If the calibrator cannot be exported, for example with Monte Carlo predictions or canonical
        binning.

    See Also
    --------
    register : Register the function that converts a new class of calibrators.
    to_onnx : Export to an ONNX file.

    Notes
    -----
    This function checks on a few rows that the program agrees with the calibrator.

    Examples
    --------
    >>> from calibrant import IsotonicCalibration
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.9], [0, 1, 0, 1])
    >>> program(model)([0.2, 0.95])[:, 1].tolist()
    [0.5, 1.0]
    """
    if isinstance(calibrator, Program):
        return calibrator
    if isinstance(calibrator, DECISIONS):
        return decision_program(calibrator, emit)
    _check_calibrator(calibrator)
    check_fitted(calibrator)
    scores = Value(Builder(calibrator.n_classes_), 0)
    result = finish(calibrator, emit(calibrator, scores), calibrator.inputs)
    _check_agrees(result, calibrator)
    return result


def _check_calibrator(model: Any) -> None:
    if isinstance(model, CalibratedClassifier):
        raise TypeError(
            "A CalibratedClassifier contains classifiers, which cannot be exported. Export "
            "model.calibrator_, or call to_onnx(model, path, model=[...]) with the ONNX files of "
            "its estimators_."
        )
    if not isinstance(model, Calibrator):
        raise TypeError(
            f"{type(model).__name__} is not a calibrator. Pass a fitted calibrator, for example "
            "TemperatureScaling().fit(P, y)."
        )


def program_of_odds(calibrator: Calibrator) -> Program:
    """Return the program of a binary calibrator that treats the second score as log-odds.

    The decision function z of a binary classifier is log-odds. Converters write z as the columns
    (0, z) or (-z, z). In the latter case, the difference of the two columns would be 2z.
    """
    scores = Value(Builder(2), 0)
    odds = scores.column(1)
    return finish(calibrator, emit(calibrator, stack([scores.fill(0.0), odds])), "logits")


def finish(calibrator: Calibrator, proba: Value, inputs: str) -> Program:
    """Return the program that computes these probabilities."""
    proba.build.last(proba.number)
    classes = plain_labels(calibrator.classes_)
    return proba.build.program(inputs, classes, type(calibrator).__name__)


def _check_agrees(result: Program, calibrator: Calibrator) -> None:
    rows = _probe_rows(calibrator.inputs, result.n_classes)
    error = float(np.abs(result.run(rows) - calibrator._proba_of(rows)).max())
    if not error <= _ROUND_OFF:
        raise ValueError(
            f"The exported program of {type(calibrator).__name__} differs from the predictions of "
            f"{type(calibrator).__name__} by {error:.3g}, but at most {_ROUND_OFF:g} is allowed. "
            "Correct the function that you registered with calibrant.export.register."
        )


def _probe_rows(inputs: str, n_classes: int) -> Any:
    """Return uniform, certain and intermediate rows, with each class on top in some of them."""
    ramp = np.arange(1.0, n_classes + 1.0)
    decided = np.eye(n_classes)[: min(n_classes, 50)]
    rows = np.vstack([np.ones((1, n_classes)), ramp, ramp[::-1], decided, 0.5 * decided + 0.1])
    if inputs == "proba":
        return normalized(rows)
    logits = np.vstack([np.log(rows + 1e-4), log_of(decided)])
    return logits if inputs == "logits" else log_softmax(logits)


def emit(calibrator: Any, scores: Value) -> Value:
    """Return the probabilities (n, K) of a calibrator, which may be a member of a composite."""
    if isinstance(calibrator, BaseBinaryCalibrator):
        positive = emit_inner(calibrator, _claim_scores(calibrator, scores))
        return stack([1.0 - positive, positive])
    return emit_inner(calibrator, scores)


def emit_inner(calibrator: Any, score: Value) -> Value:
    """Call the function that is registered for a calibrator.

    The score of a binary calibrator is one column in the form that the calibrator uses.
    """
    function = _emitters.get(type(calibrator))
    if function is None:
        raise TypeError(
            f"{type(calibrator).__name__} cannot be exported, because no function is registered "
            "for this class. Register a function with "
            "calibrant.export.register."
        )
    return Value(score.build, function(score.build, calibrator, score.number))


def emits(*classes: type) -> Callable[[Callable[[Any, Value], Value]], None]:
    """Register a function ``(calibrator, scores) -> probabilities`` for several classes."""

    def keep(function: Callable[[Any, Value], Value]) -> None:
        def emit_number(build: Builder, calibrator: Any, scores: int) -> int:
            return function(calibrator, Value(build, scores)).number

        for cls in classes:
            register(cls)(emit_number)

    return keep


# Transform scores to the form that a calibrator uses.


def as_proba(scores: Value, inputs: str) -> Value:
    """Convert scores to probabilities. A score of -inf becomes zero."""
    return scores if inputs == "proba" else scores.apply("softmax")


def _finite(scores: Value, eps: float) -> Value:
    """Replace -inf in logits by a finite number."""
    return scores.apply("finite", eps=float(eps))


def _clip(value: Value, eps: float) -> Value:
    return value.clip(float(eps), float(1.0 - eps))


def transform_claim(calibrator: Any, score: Value) -> Value:
    """Transform the score of one claim to the form that its calibrator uses."""
    if calibrator.form == "score":
        return score
    return _clip(score, calibrator.eps).apply("log_odds")


def _claim_scores(calibrator: Any, scores: Value) -> Value:
    """Combine the two columns of a binary problem to one score in the form of its calibrator."""
    if calibrator.inputs == "proba":
        return transform_claim(calibrator, scores.column(1))
    is_odds = calibrator.form == "log_odds"
    logits = _finite(scores, calibrator.eps) if is_odds else scores
    first, second = logits.column(0), logits.column(1)
    odds = second - first
    return odds if is_odds else odds.apply("expit")


def transform(calibrator: BaseCalibrator, scores: Value) -> Value:
    """Transform scores to the form that a calibrator of whole vectors uses."""
    if calibrator.form == "proba":
        return as_proba(scores, calibrator.inputs)
    if calibrator.inputs == "proba":
        return _clip(scores, calibrator.eps).apply("log")
    logits = _finite(scores, calibrator.eps)
    if calibrator.form == "log_softmax":
        return logits.apply("log_softmax")
    return logits.apply("center") if calibrator._is_centered else logits


# Calibrators of whole vectors.


@emits(Identity)
def _identity(model: Identity, scores: Value) -> Value:
    return as_proba(scores, model.inputs)


@emits(TemperatureScaling)
def _temperature(model: TemperatureScaling, scores: Value) -> Value:
    return (transform(model, scores) / model.temperature_).apply("softmax")


@emits(EnsembleTemperatureScaling)
def _ensemble(model: EnsembleTemperatureScaling, scores: Value) -> Value:
    u = transform(model, scores)
    scaled, raw, uniform = model.weights_.tolist()
    members = [(u / model.temperature_).apply("softmax")]
    members += [u.apply("softmax")] if raw > 0 else []
    return mix(members, [scaled, raw][: len(members)], uniform / model.n_classes_)


@emits(BayesianTemperatureScaling)
def _bayesian(model: BayesianTemperatureScaling, scores: Value) -> Value:
    u = transform(model, scores)
    members = [(u / value).apply("softmax") for value in model.temperatures_.tolist()]
    return mix(members, model.weights_)


def _affine_softmax(u: Value, coef: Any, intercept: Any) -> Value:
    """Apply an affine function and a softmax. Vector coefficients represent a diagonal matrix."""
    op, name = ("scale", "factor") if coef.ndim == 1 else ("affine", "coef")
    return u.apply(op, **{name: coef, "offset": intercept}).apply("softmax")


@emits(VectorScaling, MatrixScaling, DirichletCalibration)
def _affine(model: Any, scores: Value) -> Value:
    return _affine_softmax(transform(model, scores), model.coef_, model.intercept_)


@emits(StructuredScaling)
def _structured(model: StructuredScaling, scores: Value) -> Value:
    proba = (transform(model, scores) / model.temperature_).apply("softmax")
    share = model.smoothing_
    log_q = proba.scale(1.0 - share, share / model.n_classes_).apply("log")
    log_q = log_q.apply("center") if model.center else log_q
    return _affine_softmax(log_q, model.coef_, model.intercept_)


@emits(GaussianProcessCalibration)
def _gaussian_process(model: GaussianProcessCalibration, scores: Value) -> Value:
    if len(model.draws_):
        raise ValueError(
            "GaussianProcessCalibration with random draws cannot be exported. Fit with "
            "n_samples=0, which predicts from the latent mean."
        )
    u = transform(model, scores)
    at = u.clip(*model.score_range_.tolist()) if model.monotone else u
    kernel = Kernel(model.kernel_variance_, model.lengthscale_, model.noise_)
    heights = InducingInputs(kernel, model.inducing_inputs_).weights(model.inducing_mean_)
    bumps = at.apply(
        "bumps",
        centers=model.inducing_inputs_,
        heights=heights * kernel.variance,
        width=float(kernel.lengthscale),
    )
    return (u + bumps).apply("softmax").clip(TINY, 1.0)


@emits(CanonicalBinning)
def _canonical(model: CanonicalBinning, scores: Value) -> Value:
    raise ValueError(
        "CanonicalBinning cannot be exported. Use MulticlassToBinary(HistogramBinning(), "
        'notion="top-label") or StructuredScaling() instead.'
    )


# Calibrators of one claim. The score has the form that the calibrator uses.


@emits(binary.PlattScaling)
def _platt(model: binary.PlattScaling, score: Value) -> Value:
    return score.scale(model.coef_, model.intercept_).apply("expit")


@emits(binary.BetaCalibration)
def _beta(model: binary.BetaCalibration, score: Value) -> Value:
    minus = score * -1.0
    logs = [value.apply("log_expit") for value in (score, minus)]
    return mix(logs, [model.a_, -model.b_]).scale(1.0, model.c_).apply("expit")


def _step(score: Value, edges: Any, values: Any, side: str = "left") -> Value:
    if not score.build.is_exact(score.number):
        edges = _shift_edges(edges, side)
    return score.apply("step", edges=edges, values=values, side=side)


def _shift_edges(edges: Any, side: str) -> Any:
    """Shift bin edges by a relative 1e-13.

    Edges are calibration scores. If scores are computed from logits or as sums, runtimes differ in
    the last bit. Without the shift, a calibration row on an edge could change bins.
    """
    sign = 1.0 if side == "left" else -1.0
    between = np.diff(edges) / 2.0
    limit = np.append(between, np.inf) if side == "left" else np.append(np.inf, between)
    return edges + sign * np.minimum(_LAST_BITS * np.abs(edges), limit)


@emits(binary.HistogramBinning, binary.BayesianBinning)
def _bins(model: Any, score: Value) -> Value:
    return _step(score, model.edges_[:-1], model.values_)


@emits(binary.IsotonicCalibration)
def _isotonic(model: binary.IsotonicCalibration, score: Value) -> Value:
    if model.interpolation == "linear":
        return score.apply("interpolate", x=model.centers_, y=model.values_)
    return _step(score, model.edges_[:-1], model.values_)


@emits(binary.SplineCalibration)
def _spline(model: binary.SplineCalibration, score: Value) -> Value:
    return score.apply("interpolate", x=model.scores_, y=model.values_)


@emits(binary.VennAbers)
def _venn_abers(model: binary.VennAbers, score: Value) -> Value:
    low = _step(score, model.scores_, np.append(0.0, model.p0_), "right")
    high = _step(score, model.scores_, np.append(model.p1_, 1.0))
    return high / (1.0 - low + high)


# Composites.


def _emit_members(members: Iterable[Any], scores: Value) -> list[Value]:
    members = list(members)
    for member in members:
        if not isinstance(member, Calibrator):
            raise TypeError(
                f"The member {type(member).__name__} is not a Calibrant calibrator, so it cannot "
                "be exported. Fit with Calibrant calibrators only."
            )
    return [emit(member, scores) for member in members]


@emits(CrossFitted)
def _cross_fitted(model: CrossFitted, scores: Value) -> Value:
    members = _emit_members(model.calibrators_, scores)
    return mix(members, np.ones(len(members))) / len(members)


@emits(AutoCalibration)
def _auto(model: AutoCalibration, scores: Value) -> Value:
    members = _emit_members(model.members_.values(), scores)
    uniform = float(model.weights_[-1] / model.n_classes_)
    if not members:
        return scores.fill(*np.full(model.n_classes_, uniform))
    places = [model.names_.index(name) for name in model.members_]
    if model.top_ is None:
        return mix(members, model.weights_[places], uniform)
    share = float(model.top_weights_.sum())
    ensemble, rest = model.top_weights_ / share, model.weights_ - model.top_weights_
    rows = mix(members, ensemble[places], float(ensemble[-1] / model.n_classes_))
    members = [*members, emit(model.top_, rows)]
    return mix(members, [*rest[places], share], float(rest[-1] / model.n_classes_))


@emits(GroupCalibration)
def _group(model: GroupCalibration, scores: Value) -> Value:
    effects = model._group_effects()
    pooled = emit(model.pooled_, scores)
    if effects is None:
        return pooled
    raw = _clip(scores, EPS).apply("log") if model.inputs == "proba" else _finite(scores, EPS)
    stages = raw, _clip(pooled, EPS).apply("log")
    shares = [(1 + number, model.weights_[1 + number]) for number in range(2)]
    members = [
        _affine_softmax(stage, *_slope_and_offsets(effects[number - 1], model.n_classes_))
        for stage, (number, share) in zip(stages, shares, strict=True)
        if share > 0
    ]
    weights = [model.weights_[0], *(share for _, share in shares if share > 0)]
    return mix([pooled, *members], weights)


def _slope_and_offsets(effects: Any, n_classes: int) -> tuple[Any, Any]:
    """Factors and offsets of the logits of one group. Offsets that were not fitted are zero."""
    offsets = effects[1:] if len(effects) > 1 else np.zeros(n_classes)
    return np.full(n_classes, 1.0 + effects[0]), offsets
