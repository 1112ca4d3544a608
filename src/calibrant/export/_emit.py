"""From fitted calibrators to programs: one function for each class of calibrators, by its public
fitted attributes.

A function takes the builder, the fitted calibrator and the number of the value that holds the
scores, and gives the number of the value that holds the probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from calibrant import binary
from calibrant._kernels.simplex import TINY, log_of, log_softmax, normalized
from calibrant._validation import check_fitted
from calibrant.base import BaseBinaryCalibrator, BaseCalibrator, Calibrator
from calibrant.classifier import CalibratedClassifier
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
from calibrant.selection import AutoCalibration, CrossFitted

Emit = Callable[[Builder, Any, int], int]
Function = TypeVar("Function", bound=Emit)

_ROUND_OFF = 1e-9
"""Largest difference between a program and its calibrator on the probe rows."""

_LAST_BITS = 1e-13
"""Largest relative difference of the same score between runtimes."""

_emitters: dict[type, Emit] = {}


def register(cls: type) -> Callable[[Function], Function]:
    """Say how fitted calibrators of a class become programs; for classes of other packages too.

    Parameters
    ----------
    cls : class of calibrators
        This class and no other: a subclass may compute something else.

    Returns
    -------
    decorator of a function ``(build, calibrator, scores) -> value``
        ``build.append(op, args, constants)`` adds an operation of `calibrant.export.OPS` and
        returns the number of its value. ``scores`` is the number of the scores, and the function
        returns the number of the probabilities. For binary calibrators, scores and probabilities
        are one column.

    See Also
    --------
    program : The operations of a fitted calibrator.

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
    calibrator : fitted calibrator
        A calibrator of this package or of a registered class. A `Program` is returned unchanged.

    Returns
    -------
    Program

    Raises
    ------
    TypeError
        If the argument is not a calibrator, or its class is not registered.
    ValueError
        If no short program exists, as for Monte Carlo predictions and canonical binning.

    See Also
    --------
    register : Register the operations of a new calibrator.
    to_onnx : Export to an ONNX file.

    Notes
    -----
    The program is run on a few rows and compared with the calibrator before it is returned.

    Examples
    --------
    >>> from calibrant import IsotonicCalibration
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.9], [0, 1, 0, 1])
    >>> program(model)([0.2, 0.95])[:, 1].tolist()
    [0.5, 1.0]
    """
    if isinstance(calibrator, Program):
        return calibrator
    if isinstance(calibrator, CalibratedClassifier):
        raise TypeError(
            "A CalibratedClassifier contains classifiers, which cannot be exported. Export "
            "model.calibrator_, or call to_onnx(model, path, model=[...]) with the ONNX files of "
            "its estimators_."
        )
    if not isinstance(calibrator, Calibrator):
        raise TypeError(
            f"{type(calibrator).__name__} is not a calibrator. Pass a fitted calibrator, for "
            "example TemperatureScaling().fit(P, y)."
        )
    check_fitted(calibrator)
    scores = Value(Builder(calibrator.n_classes_), 0)
    result = finish(calibrator, emit(calibrator, scores), calibrator.inputs)
    _check_agrees(result, calibrator)
    return result


def program_of_odds(calibrator: Calibrator) -> Program:
    """The program of a calibrator of two classes that treats the second score as log-odds.

    The decision function of a binary classifier is log-odds. Converters write it next to a zero, or
    next to its negative. In the latter case, the difference of two logits would be twice as large.
    """
    scores = Value(Builder(2), 0)
    odds = scores.column(1)
    return finish(calibrator, emit(calibrator, stack([scores.fill(0.0), odds])), "logits")


def finish(calibrator: Calibrator, proba: Value, inputs: str) -> Program:
    """The program that computes these probabilities."""
    proba.build.last(proba.number)
    classes = plain_labels(calibrator.classes_)
    return proba.build.program(inputs, classes, type(calibrator).__name__)


def _check_agrees(result: Program, calibrator: Calibrator) -> None:
    rows = _probe_rows(calibrator.inputs, result.n_classes)
    error = float(np.abs(result.run(rows) - calibrator._proba_of(rows)).max())
    if not error <= _ROUND_OFF:
        raise ValueError(
            f"The program of {type(calibrator).__name__} differs from its predictions by "
            f"{error:.3g}. Correct the function that was registered for it with "
            "calibrant.export.register."
        )


def _probe_rows(inputs: str, n_classes: int) -> Any:
    """A few rows for the comparison: uniform, certain, and in between, each class on top."""
    ramp = np.arange(1.0, n_classes + 1.0)
    decided = np.eye(n_classes)[: min(n_classes, 50)]
    rows = np.vstack([np.ones((1, n_classes)), ramp, ramp[::-1], decided, 0.5 * decided + 0.1])
    if inputs == "proba":
        return normalized(rows)
    logits = np.vstack([np.log(rows + 1e-4), log_of(decided)])
    return logits if inputs == "logits" else log_softmax(logits)


def emit(calibrator: Any, scores: Value) -> Value:
    """The probabilities (n, K) of a calibrator of vectors, its own or inside another."""
    if isinstance(calibrator, BaseBinaryCalibrator):
        positive = emit_inner(calibrator, _claim_scores(calibrator, scores))
        return stack([1.0 - positive, positive])
    return emit_inner(calibrator, scores)


def emit_inner(calibrator: Any, score: Value) -> Value:
    """The result of the function that is registered for a calibrator.

    A binary calibrator turns a score or log-odds, in the form that it uses, into a probability.
    """
    function = _emitters.get(type(calibrator))
    if function is None:
        raise TypeError(
            f"{type(calibrator).__name__} cannot be exported, because it has no program. Register "
            "a function for it with calibrant.export.register."
        )
    return Value(score.build, function(score.build, calibrator, score.number))


def emits(*classes: type) -> Callable[[Callable[[Any, Value], Value]], None]:
    """Register a function of a calibrator and the value of its scores for some classes."""

    def keep(function: Callable[[Any, Value], Value]) -> None:
        def emit_number(build: Builder, calibrator: Any, scores: int) -> int:
            return function(calibrator, Value(build, scores)).number

        for cls in classes:
            register(cls)(emit_number)

    return keep


# The inner forms.


def as_proba(scores: Value, inputs: str) -> Value:
    """Probabilities of scores; those of -inf are zero."""
    return scores if inputs == "proba" else scores.apply("softmax")


def _finite(scores: Value, eps: float) -> Value:
    """Logits without -inf."""
    return scores.apply("finite", eps=float(eps))


def _clip(value: Value, eps: float) -> Value:
    return value.clip(float(eps), float(1.0 - eps))


def transform_claim(calibrator: Any, score: Value) -> Value:
    """The score of one claim, transformed to the form that its calibrator uses."""
    if calibrator.form == "score":
        return score
    return _clip(score, calibrator.eps).apply("log_odds")


def _claim_scores(calibrator: Any, scores: Value) -> Value:
    """The two columns of a binary problem as one score in the form that its calibrator uses."""
    if calibrator.inputs == "proba":
        return transform_claim(calibrator, scores.column(1))
    is_odds = calibrator.form == "log_odds"
    logits = _finite(scores, calibrator.eps) if is_odds else scores
    first, second = logits.column(0), logits.column(1)
    odds = second - first
    return odds if is_odds else odds.apply("expit")


def transform(calibrator: BaseCalibrator, scores: Value) -> Value:
    """Scores, transformed to the form that a calibrator of whole vectors uses."""
    if calibrator.form == "proba":
        return as_proba(scores, calibrator.inputs)
    if calibrator.inputs == "proba":
        return _clip(scores, calibrator.eps).apply("log")
    logits = _finite(scores, calibrator.eps)
    if calibrator.form == "log_softmax":
        return logits.apply("log_softmax")
    return logits.apply("center") if calibrator._is_centered else logits


# Whole vectors.


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
    """The softmax of an affine map; a vector of coefficients is a diagonal matrix."""
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
            "GaussianProcessCalibration averages random draws and cannot be exported. Fit with "
            "n_samples=0 to export the mean."
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


# One claim. The score has the form that the calibrator expects.


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
    """Bin edges, shifted by a relative 1e-13.

    Edges are calibration scores. If scores are computed (from logits, or as sums), runtimes differ
    in the last bit, and a row of the calibration data would change bins.
    """
    sign = 1.0 if side == "left" else -1.0
    between = np.diff(edges) / 2.0
    room = np.append(between, np.inf) if side == "left" else np.append(np.inf, between)
    return edges + sign * np.minimum(_LAST_BITS * np.abs(edges), room)


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
                f"The member {type(member).__name__} is not a calibrator of this package and "
                "cannot be exported. Fit with calibrators of calibrant only."
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
    return mix(
        [*members, emit(model.top_, rows)],
        [*rest[places], share],
        float(rest[-1] / model.n_classes_),
    )
