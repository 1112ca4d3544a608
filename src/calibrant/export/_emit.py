"""From fitted calibrators to programs: one function for each class of calibrators, by its public
fitted attributes.

A function takes the builder, the fitted calibrator and the number of the value that holds the
scores, and gives the number of the value that holds the probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from calibrant import binary
from calibrant._kernels.simplex import TINY, log_of, log_softmax, normalized
from calibrant._validation import check_fitted
from calibrant.base import BaseBinaryCalibrator, BaseCalibrator, Calibrator
from calibrant.classifier import CalibratedClassifier
from calibrant.export._program import Builder, Program, plain_labels
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
        ``build.append(op, args, constants)`` adds an operation of `calibrant.export.OPS` and gives
        the number of its value; ``scores`` is the number of the scores, and the function returns
        that of the probabilities. For binary calibrators ``scores`` is one column, the score of
        the claim, and so is what is returned.

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
    """What a fitted calibrator computes, as a list of operations.

    Parameters
    ----------
    calibrator : fitted calibrator
        Of this package, or of a class that was given to `register`; a `Program` is returned as it
        is.

    Returns
    -------
    Program

    Raises
    ------
    TypeError
        For what is no calibrator, or of an unknown class.
    ValueError
        For what no short program computes: Monte-Carlo predictions, and canonical binning.

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
            "a CalibratedClassifier holds classifiers that have their own way out: export its "
            "calibrator_, or give it to to_onnx with the files of its estimators_ as model=[...]"
        )
    if not isinstance(calibrator, Calibrator):
        raise TypeError(
            f"a {type(calibrator).__name__} is no calibrator: export takes a fitted one such as "
            f"TemperatureScaling().fit(P, y)"
        )
    check_fitted(calibrator)
    build = Builder(calibrator.n_classes_)
    build.last(emit(build, calibrator, 0))
    classes = plain_labels(calibrator.classes_)
    result = build.program(calibrator.inputs, classes, type(calibrator).__name__)
    _check_agrees(result, calibrator)
    return result


def program_of_odds(calibrator: Calibrator) -> Program:
    """The program of a calibrator of two classes that takes the second score for the log-odds.

    That is what a decision function of two classes is; converters write it beside a zero, or
    beside its opposite, which taken for two logits would be twice as far apart.
    """
    build = Builder(2)
    odds = build.append("columns", (0,), {"columns": np.array([1])})
    zero = build.append("constant", (0,), {"values": np.zeros(1)})
    build.last(emit(build, calibrator, build.append("stack", (zero, odds))))
    return build.program("logits", plain_labels(calibrator.classes_), type(calibrator).__name__)


def _check_agrees(result: Program, calibrator: Calibrator) -> None:
    rows = _probe_rows(calibrator.inputs, result.n_classes)
    error = float(np.abs(result.run(rows) - calibrator._proba_of(rows)).max())
    if not error <= _ROUND_OFF:
        raise ValueError(
            f"the program of {type(calibrator).__name__} differs from its predictions by "
            f"{error:.3g}: the function that was registered for it computes something else"
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


def emit(build: Builder, calibrator: Any, scores: int) -> int:
    """The probabilities (n, K) of a calibrator of vectors, its own or inside another."""
    if isinstance(calibrator, BaseBinaryCalibrator):
        positive = emit_claim(build, calibrator, _claim_scores(build, calibrator, scores))
        complement = {"factor": _array(-1.0), "offset": _array(1.0)}
        negative = build.append("scale", (positive,), complement)
        return build.append("stack", (negative, positive))
    return _emitter(calibrator)(build, calibrator, scores)


def emit_claim(build: Builder, calibrator: Any, score: int) -> int:
    """The probability (n, 1) of a binary calibrator, of a score or log-odds as it wants them."""
    return _emitter(calibrator)(build, calibrator, score)


def _emitter(calibrator: Any) -> Emit:
    function = _emitters.get(type(calibrator))
    if function is None:
        raise TypeError(
            f"there is no program for {type(calibrator).__name__}: register a function for it with "
            f"calibrant.export.register"
        )
    return function


def _array(*values: float) -> Any:
    return np.array(values)


# The inner forms.


def finite(build: Builder, scores: int, eps: float) -> int:
    """Logits without -inf."""
    return build.append("finite", (scores,), {"eps": float(eps)})


def as_proba(build: Builder, scores: int, inputs: str) -> int:
    """Probabilities of scores; those of -inf are zero."""
    return scores if inputs == "proba" else build.append("softmax", (scores,))


def _clip(build: Builder, value: int, eps: float) -> int:
    return build.append("clip", (value,), {"low": float(eps), "high": float(1.0 - eps)})


def transform_claim(build: Builder, calibrator: Any, score: int) -> int:
    """The score of one claim, transformed to the form that its calibrator uses."""
    if calibrator.form == "score":
        return score
    return build.append("log_odds", (_clip(build, score, calibrator.eps),))


def _claim_scores(build: Builder, calibrator: Any, scores: int) -> int:
    """The two columns of a binary problem as one score in the form that its calibrator uses."""
    if calibrator.inputs == "proba":
        score = build.append("columns", (scores,), {"columns": np.array([1])})
        return transform_claim(build, calibrator, score)
    is_odds = calibrator.form == "log_odds"
    odds = _difference(build, finite(build, scores, calibrator.eps) if is_odds else scores)
    return odds if is_odds else build.append("expit", (odds,))


def _difference(build: Builder, scores: int) -> int:
    """Column 1 minus column 0, which may be infinite."""
    first, second = (build.append("columns", (scores,), {"columns": np.array([k])}) for k in (0, 1))
    minus = build.append("scale", (first,), {"factor": _array(-1.0), "offset": _array(0.0)})
    return build.append("add", (second, minus))


def transform(build: Builder, calibrator: BaseCalibrator, scores: int) -> int:
    """Scores, transformed to the form that a calibrator of whole vectors uses."""
    if calibrator.form == "proba":
        return as_proba(build, scores, calibrator.inputs)
    if calibrator.inputs == "proba":
        return build.append("log", (_clip(build, scores, calibrator.eps),))
    logits = finite(build, scores, calibrator.eps)
    if calibrator.form == "log_softmax":
        return build.append("log_softmax", (logits,))
    return build.append("center", (logits,)) if calibrator._is_centred else logits


# Whole vectors.


@register(Identity)
def _identity(build: Builder, model: Identity, scores: int) -> int:
    return as_proba(build, scores, model.inputs)


def _apply_temperature(build: Builder, u: int, temperature: float, op: str = "softmax") -> int:
    return build.append(op, (build.append("divide", (u,), {"by": temperature}),))


@register(TemperatureScaling)
def _temperature(build: Builder, model: TemperatureScaling, scores: int) -> int:
    u = transform(build, model, scores)
    return _apply_temperature(build, u, model.temperature_)


@register(EnsembleTemperatureScaling)
def _ensemble(build: Builder, model: EnsembleTemperatureScaling, scores: int) -> int:
    u = transform(build, model, scores)
    scaled, raw, uniform = model.weights_.tolist()
    members = [_apply_temperature(build, u, model.temperature_)]
    members += [build.append("softmax", (u,))] if raw > 0 else []
    weights = np.array([scaled, raw][: len(members)])
    constants = {"weights": weights, "constant": uniform / model.n_classes_}
    return build.append("mix", members, constants)


@register(BayesianTemperatureScaling)
def _bayesian(build: Builder, model: BayesianTemperatureScaling, scores: int) -> int:
    u = transform(build, model, scores)
    members = [
        _apply_temperature(build, u, temperature) for temperature in model.temperatures_.tolist()
    ]
    return build.append("mix", members, {"weights": model.weights_, "constant": 0.0})


def _affine_softmax(build: Builder, u: int, coef: Any, intercept: Any) -> int:
    """The softmax of an affine map; a vector of coefficients is a diagonal matrix."""
    op, name = ("scale", "factor") if coef.ndim == 1 else ("affine", "coef")
    logits = build.append(op, (u,), {name: coef, "offset": intercept})
    return build.append("softmax", (logits,))


@register(VectorScaling)
@register(MatrixScaling)
@register(DirichletCalibration)
def _affine(build: Builder, model: Any, scores: int) -> int:
    return _affine_softmax(build, transform(build, model, scores), model.coef_, model.intercept_)


@register(StructuredScaling)
def _structured(build: Builder, model: StructuredScaling, scores: int) -> int:
    u = transform(build, model, scores)
    proba = _apply_temperature(build, u, model.temperature_)
    share = model.smoothing_
    mixture = {"factor": _array(1.0 - share), "offset": _array(share / model.n_classes_)}
    log_q = build.append("log", (build.append("scale", (proba,), mixture),))
    log_q = build.append("center", (log_q,)) if model.centre else log_q
    return _affine_softmax(build, log_q, model.coef_, model.intercept_)


@register(GaussianProcessCalibration)
def _gaussian_process(build: Builder, model: GaussianProcessCalibration, scores: int) -> int:
    if len(model.draws_):
        raise ValueError(
            "predictions of GaussianProcessCalibration are averages of random draws, which no "
            "short program makes: fit with n_samples=0 to export the mean"
        )
    u = transform(build, model, scores)
    low, high = model.score_range_.tolist()
    at = build.append("clip", (u,), {"low": low, "high": high}) if model.monotone else u
    kernel = Kernel(model.kernel_variance_, model.lengthscale_, model.noise_)
    heights = InducingInputs(kernel, model.inducing_inputs_).weights(model.inducing_mean_)
    constants = {
        "centers": model.inducing_inputs_,
        "heights": heights * kernel.variance,
        "width": float(kernel.lengthscale),
    }
    latent = build.append("add", (u, build.append("bumps", (at,), constants)))
    proba = build.append("softmax", (latent,))
    return build.append("clip", (proba,), {"low": TINY, "high": 1.0})


@register(CanonicalBinning)
def _canonical(build: Builder, model: CanonicalBinning, scores: int) -> int:
    raise ValueError(
        "bins of whole probability vectors make no short program: export MulticlassToBinary("
        'HistogramBinning(), notion="top-label") or StructuredScaling() instead'
    )


# One claim. The score is in the form that the calibrator wants.


@register(binary.PlattScaling)
def _platt(build: Builder, model: binary.PlattScaling, score: int) -> int:
    line = {"factor": _array(model.coef_), "offset": _array(model.intercept_)}
    return build.append("expit", (build.append("scale", (score,), line),))


@register(binary.BetaCalibration)
def _beta(build: Builder, model: binary.BetaCalibration, score: int) -> int:
    minus = build.append("scale", (score,), {"factor": _array(-1.0), "offset": _array(0.0)})
    logs = [build.append("log_expit", (value,)) for value in (score, minus)]
    weights = {"weights": np.array([model.a_, -model.b_]), "constant": 0.0}
    line = {"factor": _array(1.0), "offset": _array(model.c_)}
    odds = build.append("scale", (build.append("mix", logs, weights),), line)
    return build.append("expit", (odds,))


def _step(build: Builder, score: int, edges: Any, values: Any, side: str = "left") -> int:
    if not build.is_exact(score):
        edges = _shift_edges(edges, side)
    return build.append("step", (score,), {"edges": edges, "values": values, "side": side})


def _shift_edges(edges: Any, side: str) -> Any:
    """Bin edges, shifted by a relative 1e-13.

    Edges are calibration scores. If scores are computed (from logits, or as sums), runtimes differ
    in the last bit, and a row of the calibration data would change bins.
    """
    sign = 1.0 if side == "left" else -1.0
    between = np.diff(edges) / 2.0
    room = np.append(between, np.inf) if side == "left" else np.append(np.inf, between)
    return edges + sign * np.minimum(_LAST_BITS * np.abs(edges), room)


@register(binary.HistogramBinning)
@register(binary.BayesianBinning)
def _bins(build: Builder, model: Any, score: int) -> int:
    return _step(build, score, model.edges_[:-1], model.values_)


@register(binary.IsotonicCalibration)
def _isotonic(build: Builder, model: binary.IsotonicCalibration, score: int) -> int:
    if model.interpolation == "linear":
        points = {"x": model.centres_, "y": model.values_}
        return build.append("interpolate", (score,), points)
    return _bins(build, model, score)


@register(binary.SplineCalibration)
def _spline(build: Builder, model: binary.SplineCalibration, score: int) -> int:
    return build.append("interpolate", (score,), {"x": model.scores_, "y": model.values_})


@register(binary.VennAbers)
def _venn_abers(build: Builder, model: binary.VennAbers, score: int) -> int:
    low = _step(build, score, model.scores_, np.append(0.0, model.p0_), "right")
    high = _step(build, score, model.scores_, np.append(model.p1_, 1.0))
    rest = build.append("scale", (low,), {"factor": _array(-1.0), "offset": _array(1.0)})
    return build.append("quotient", (high, build.append("add", (rest, high))))


# Composites.


def _check_members(members: Sequence[Any]) -> None:
    for member in members:
        if not isinstance(member, Calibrator):
            raise TypeError(
                f"a member is a {type(member).__name__}, which is no calibrator of this package "
                f"and has no program"
            )


@register(CrossFitted)
def _cross_fitted(build: Builder, model: CrossFitted, scores: int) -> int:
    _check_members(model.calibrators_)
    members = [emit(build, member, scores) for member in model.calibrators_]
    total = build.append("mix", members, {"weights": np.ones(len(members)), "constant": 0.0})
    return build.append("divide", (total,), {"by": float(len(members))})


@register(AutoCalibration)
def _auto(build: Builder, model: AutoCalibration, scores: int) -> int:
    _check_members(list(model.members_.values()))
    uniform = float(model.weights_[-1] / model.n_classes_)
    if not model.members_:
        return build.append("constant", (scores,), {"values": np.full(model.n_classes_, uniform)})
    members = [emit(build, member, scores) for member in model.members_.values()]
    weights = np.array([model.weights_[model.names_.index(name)] for name in model.members_])
    rows = build.append("mix", members, {"weights": weights, "constant": uniform})
    return rows if model.top_ is None else emit(build, model.top_, rows)
