"""Online recalibration by a mixture of experts, one of which is the deployed forecast."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import log, log1p
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calibrant._kernels.simplex import TINY, as_proba, log_losses, normalized
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, ScoresLike
from calibrant._validation import (
    LOGITS_HINT,
    as_array,
    check_classes,
    check_fitted,
    check_inputs,
    check_predictions,
    check_scores,
)
from calibrant.monitoring._experts import (
    ONLINE_EXPERTS,
    Expert,
    ExpertState,
    TopBins,
    as_u,
    evaluate_rows,
    experts_from_state,
    experts_to_state,
    learn,
)
from calibrant.monitoring._json import (
    as_numbers,
    read_classes,
    read_count,
    read_finite_numbers,
    read_number,
    read_state,
    read_value,
)
from calibrant.monitoring._mixture import mix_batch, mix_rows

SCHEMA = "calibrant.online-calibration/1"

LEARN_ROWS = 128
"""Number of rows after which the experts take a step."""


class OnlineCalibration(BaseEstimator):
    r"""Recalibrate a deployed model as labels arrive, and adapt to changes.

    Call `predict_proba` with the scores of the model, and `partial_fit` when labels arrive. The
    prediction is a mixture of the original scores and of several recalibrations that learn at
    different speeds. The log-loss of the predictions is never much higher than the log-loss of the
    original scores (see ``bound_``).

    Parameters
    ----------
    experts : sequence of Expert, optional
        Recalibrations that are mixed with the deployed forecast. By default, there are five
        experts.
    share : float
        Fraction of the total weight that is distributed evenly over the experts at every row. The
        fraction must be at least 0 and below 1. The mixture adapts to changes faster if the
        fraction is larger.
    calibeat : bool
        Whether to replace the confidence of a row by the accuracy of earlier rows in the same bin
        of confidence.
    inputs : {"proba", "logits"}
        Type of the scores.
    classes : array-like of shape (n_classes,), optional
        Labels of the score columns. With ``classes``, `predict_proba` can be called before the
        first label, and returns the original probabilities.

    Attributes
    ----------
    weights_ : array of shape (M,)
        Weights of the deployed forecast (first) and of the experts.
    n_rows_ : int
        Number of labeled rows so far.
    largest_batch_ : int
        Largest number of rows in a call of `partial_fit`.
    log_loss_, deployed_log_loss_ : float
        Total log-loss of the issued forecasts and of the deployed forecasts so far.
    saved_ : float
        ``deployed_log_loss_ - log_loss_``, in nats. The value is negative if the issued forecasts
        had the higher log-loss.
    bound_ : float
        Upper bound of ``-saved_`` in nats, which holds for any outcomes. See Notes.

    See Also
    --------
    CalibrationMonitor : Raise an alarm when a model loses its calibration.
    Expert : Parameters of a recalibration.

    Notes
    -----
    The prediction is a Bayesian mixture of experts :math:`q^m`. The first expert is the deployed
    forecast. Predictions and weights are

    .. math:: q_t = \sum_m w_m q^m_t, \qquad
       w_m \leftarrow (1 - \sigma) \, w_m q^m_t(y_t) / Z_t + \sigma / M ,

    where :math:`Z_t` makes the weights sum to 1. Because of the fixed share :math:`\sigma`
    (``share``), the mixture can adapt if the best expert changes. Experts are temperature scalings
    and temperature scalings with intercepts. The experts are fitted by Newton steps, in which older
    rows have less weight.

    The rows of one `partial_fit` are one batch. The issued forecasts of the batch are the output of
    `predict_proba` just before the call. The weights are then updated with the likelihoods of the
    rows of the batch. The likelihoods are raised to the power :math:`1 / d`, where :math:`d` is the
    size of the largest batch so far. The deployed forecast is one of the experts. For **any**
    sequence of outcomes, the total log-loss of the issued forecasts exceeds the total log-loss of
    every expert by at most

    .. math:: d \ln M + (n - 1) \ln \frac 1 {1 - \sigma} .

    The bound grows with the size of the batch, because the first d forecasts are issued before any
    label is known.

    If labels arrive after later forecasts were issued, pass the issued forecasts as ``issued``. In
    this case, ``log_loss_`` is correct, but the bound does not hold. If labels are k batches late,
    use k + 1 instances in turn. The sum of the bounds of all instances is then a valid bound.

    Experts take a step after every 128 rows of a batch, and at the end of the batch. The cost per
    row is O(K^2) for up to 50 classes, and O(K) for more classes. If decisions determine which
    labels are observed, the experts learn only from rows with labels.

    With ``calibeat``, the regret of the confidences in a bin of n rows is bounded for any sequence
    of outcomes. The bound requires labels that arrive row by row. Compared with the best constant
    confidence in hindsight, the regret is at most :math:`\ln n + \ln 40` nats (20 bins). In the
    Brier score, the regret is at most :math:`1 + \ln(n + 1)`. ``bound_`` holds for the mixture, and
    not for the recalibrated confidences.

    References
    ----------
    Foster & Hart (2023), "Calibeating": beating forecasters at their own game, arXiv:2209.04892;
    Herbster & Warmuth (1998), Tracking the best expert, doi:10.1023/A:1007424614876;
    Gupta & Ramdas (2023), Online Platt scaling with calibeating, arXiv:2305.00070;
    Weinberger & Ordentlich (2002), On delayed prediction of individual sequences,
    doi:10.1109/TIT.2002.1013136.

    Examples
    --------
    >>> online = OnlineCalibration()
    >>> online.fit([[0.9, 0.1]] * 200, [0, 1] * 100).predict_proba([[0.9, 0.1]]).round(1)
    array([[0.5, 0.5]])
    """

    states_: list[ExpertState]
    bins_: TopBins
    weights_: FloatArray
    largest_batch_: int

    def __init__(
        self,
        experts: Sequence[Expert] | None = None,
        share: float = 1 / 2000,
        *,
        calibeat: bool = False,
        inputs: str = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.experts = experts
        self.share = share
        self.calibeat = calibeat
        self.inputs = inputs
        self.classes = classes

    def partial_fit(
        self,
        X: ScoresLike,
        y: LabelsLike,
        classes: LabelsLike | None = None,
        *,
        issued: ScoresLike | None = None,
    ) -> OnlineCalibration:
        """Learn from a batch of scores and their labels, and return self.

        Parameters
        ----------
        X : array-like of shape (n, K)
            Scores of the deployed model.
        y : array-like of shape (n,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            Labels of the score columns. The first call uses this argument if the parameter
            ``classes`` is None.
        issued : array of shape (n, K), optional
            Probabilities that were issued for these rows, if the mixture has changed since then. By
            default, the output of ``predict_proba(X)`` before this call.
        """
        proba, codes = self._check_rows(X, y, classes)
        mixture, log_f = self._evaluate_batch(proba, codes)
        if issued is None:
            issued_proba = self._beat(mixture)
        else:
            issued_proba = check_predictions(y, issued, None, self.classes_)[0]
        if self.calibeat:
            self.bins_ = self.bins_.add_rows(mixture, codes)
        self._count(float(log_losses(issued_proba, codes).sum()), log_f)
        largest = max(self.largest_batch_, len(codes))
        self.weights_ = mix_batch(
            self.weights_, log_f, self.share, largest=largest, before=self.largest_batch_
        )
        self.largest_batch_ = largest
        for rows in _blocks(len(codes)):
            self._learn_experts(as_u(proba[rows]), codes[rows])
        return self

    def fit(self, X: ScoresLike, y: LabelsLike) -> OnlineCalibration:
        """Reset the estimator, and learn from these rows one by one, in their order.

        Returns self. ``log_loss_`` is the log-loss of the mixture if each label is known before the
        next forecast.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        proba, codes = self._check_rows(X, y, None)
        for rows in _blocks(len(codes)):
            if self.calibeat:
                self.bins_ = self.bins_.add_rows(self._mixture(proba[rows]), codes[rows])
            log_q = self._learn_experts(as_u(proba[rows]), codes[rows])
            log_f = np.column_stack([-log_losses(proba[rows], codes[rows]), *log_q])
            loss, self.weights_ = mix_rows(self.weights_, log_f, self.share)
            self._count(loss, log_f)
        return self

    def _check_rows(
        self, X: ScoresLike, y: LabelsLike, classes: LabelsLike | None
    ) -> tuple[FloatArray, IntArray]:
        """Return probabilities and column codes of rows. The first rows initialize the state."""
        column_labels = self.classes_ if hasattr(self, "classes_") else self.classes
        names = classes if column_labels is None else column_labels
        scores, codes, _, labels = check_predictions(
            y, X, None, names, inputs=self.inputs, hint=LOGITS_HINT
        )
        if not hasattr(self, "classes_"):
            self._start(labels)
        return normalized(as_proba(scores, self.inputs)), codes

    def _evaluate_batch(self, proba: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return forecasts of the mixture (n, K), and log-likelihoods of the experts (n, M)."""
        mixture, log_f = np.empty_like(proba), np.empty((len(y), len(self.weights_)))
        for rows in _blocks(len(y)):
            u = as_u(proba[rows])
            forecasts = [proba[rows], *(state.proba(u) for state in self.states_)]
            log_f[rows] = np.column_stack([-log_losses(q, y[rows]) for q in forecasts])
            mixture[rows] = normalized(
                sum(w * q for w, q in zip(self.weights_, forecasts, strict=True))
            )
        return mixture, log_f

    def _learn_experts(self, u: FloatArray, y: IntArray) -> list[FloatArray]:
        """Update every expert, and return the log-likelihoods of the rows before the update."""
        pairs = zip(self.experts_, self.states_, strict=True)
        results = [evaluate_rows(expert, state, u, y) for expert, state in pairs]
        self.states_ = [
            learn(expert, state, sums)
            for expert, state, (_, sums) in zip(self.experts_, self.states_, results, strict=True)
        ]
        return [np.log(np.maximum(q_true, TINY)) for q_true, _ in results]

    def _count(self, loss: float, log_f: FloatArray) -> None:
        self.log_loss_ += loss
        self.deployed_log_loss_ -= float(log_f[:, 0].sum())
        self.n_rows_ += len(log_f)

    def predict_proba(self, X: ScoresLike) -> FloatArray:
        """Return the probabilities of the current mixture, of shape (n, K).

        Before the first label, the method returns the original probabilities. This requires that
        ``classes`` was passed.
        """
        is_new = not hasattr(self, "classes_")
        if self.classes is None or not is_new:
            check_fitted(self)
        scores = check_scores(X, inputs=self.inputs)
        check_classes(self.classes if is_new else self.classes_, scores.shape[1])
        proba = as_proba(scores, self.inputs)
        if not is_new:
            proba = self._beat(self._mixture(proba))
        return proba.astype(scores.dtype, copy=False)

    def _mixture(self, proba: FloatArray) -> FloatArray:
        u = as_u(proba)
        mixture = self.weights_[0] * proba
        for weight, state in zip(self.weights_[1:], self.states_, strict=True):
            mixture = mixture + weight * state.proba(u)
        return normalized(mixture)

    def _beat(self, mixture: FloatArray) -> FloatArray:
        """Replace each confidence by the confidence of its bin, if ``calibeat`` is true."""
        is_learned = self.calibeat and self.n_rows_ > 0
        return self.bins_.recalibrate(mixture) if is_learned else mixture

    def predict(self, X: ScoresLike) -> AnyArray:
        """Return the most likely label of each row."""
        proba = self.predict_proba(X)
        names = check_classes(getattr(self, "classes_", self.classes), proba.shape[1])
        return names[proba.argmax(axis=1)]

    def learn_one(self, x: Mapping[Any, float], y: Any) -> OnlineCalibration:
        """Learn from one row, a dict of label to score, as in river. Returns self.

        Without ``classes``, unknown labels are added to the classes. A label without a score has
        probability 0.
        """
        self._add_labels([*x, y])
        if x and (self.classes is not None or hasattr(self, "classes_")):
            self.partial_fit([self._row(x)], [y])
        return self

    def predict_proba_one(self, x: Mapping[Any, float]) -> dict[Any, float]:
        """Return the probabilities of one row as a dict.

        Before the first label, the method returns the original probabilities.
        """
        names = self._names()
        if not x or (not names and len(x) == 1):  # a forecast needs two labels
            return dict(x)
        if not names:
            proba = as_proba(check_scores([list(x.values())], inputs=self.inputs), self.inputs)
            return dict(zip(x, proba[0].tolist(), strict=True))
        row = self.predict_proba([self._row(x)])[0]
        return dict(zip(names, row.tolist(), strict=True))

    def predict_one(self, x: Mapping[Any, float]) -> Any:
        """Return the most likely label of one row, or None if ``x`` is empty."""
        proba = self.predict_proba_one(x)
        return max(proba, key=lambda label: proba[label]) if proba else None

    def _add_labels(self, labels: list[Any]) -> None:
        """Initialize the classes with the given labels, or add new labels."""
        old_names = self._names()
        names = list(dict.fromkeys([*old_names, *labels]))
        # Do not start with a single label, because a forecast needs two classes.
        if self.classes is not None or len(names) in (len(old_names), 1):
            return
        classes = as_array(names)
        if old_names:
            self.classes_, self.n_classes_ = classes, len(names)
            self.states_ = [state.add_classes(len(names)) for state in self.states_]
        else:
            self._start(classes)

    def _names(self) -> list[Any]:
        """Return the class labels. Without ``classes``, the list is empty at first."""
        classes = getattr(self, "classes_", self.classes)
        return [] if classes is None else list(as_array(classes).tolist())

    def _row(self, x: Mapping[Any, float]) -> list[float]:
        names = self._names()
        missing = set(names) - set(x)
        if set(x) - set(names) or (missing and self.inputs != "proba"):
            raise ValueError(
                f"x must contain a score for each of the classes {names}, got scores of {list(x)}"
            )
        return [x.get(label, 0.0) for label in names]

    @property
    def saved_(self) -> float:
        """Reduction in total log-loss by the issued forecasts, in nats."""
        return self.deployed_log_loss_ - self.log_loss_

    @property
    def bound_(self) -> float:
        """Upper bound of ``-saved_`` for any outcomes, in nats."""
        shares = -max(self.n_rows_ - 1, 0) * log1p(-self.share)
        return self.largest_batch_ * log(len(self.weights_)) + shares

    def _start(self, classes: AnyArray) -> None:
        if not 0 <= self.share < 1:
            raise ValueError(
                f"share must be at least 0 and below 1, got {self.share!r}. Pass share=1 / 2000."
            )
        self.classes_, self.n_classes_ = classes, len(classes)
        experts = ONLINE_EXPERTS if self.experts is None else self.experts
        self.experts_ = [Expert(*expert) for expert in experts]
        self.states_ = [ExpertState.start(len(classes)) for _ in self.experts_]
        n_experts = 1 + len(self.experts_)
        self.weights_ = np.full(n_experts, 1.0 / n_experts)
        self.bins_ = TopBins.start()
        self.n_rows_, self.log_loss_, self.deployed_log_loss_ = 0, 0.0, 0.0
        self.largest_batch_ = 1

    def to_json(self) -> str:
        """Return the state as JSON text.

        The text has O(K^2) numbers per expert for up to 50 classes, O(K) numbers for more classes,
        and no rows.
        """
        check_fitted(self)
        return json.dumps(
            {
                "schema": SCHEMA,
                "share": self.share,
                "inputs": self.inputs,
                "classes": self.classes_.tolist(),
                "adds_classes": self.classes is None,
                "experts": [list(expert) for expert in self.experts_],
                **experts_to_state(self.states_),
                "weights": as_numbers(self.weights_),
                "n_rows": self.n_rows_,
                "largest_batch": self.largest_batch_,
                "log_loss": self.log_loss_,
                "deployed_log_loss": self.deployed_log_loss_,
                "calibeat": self.bins_.to_state() if self.calibeat else None,
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> OnlineCalibration:
        """Restore an estimator from the text of `to_json`. Other text raises ``ValueError``."""
        state = read_state(text, SCHEMA, "OnlineCalibration")
        classes, experts = read_classes(state), list(_read_experts(state))
        if classes is None:
            raise ValueError("'classes' in the state must be a list of labels")
        bins = read_value(state, "calibeat")
        online = cls(
            experts,
            read_number(state, "share", 0.0, 1.0),
            calibeat=bins is not None,
            inputs=check_inputs(read_value(state, "inputs")),
            classes=None if read_value(state, "adds_classes") is True else classes,
        )
        online._start(classes)
        if bins is not None:
            online.bins_ = TopBins.from_state(bins)
        online.states_ = experts_from_state(state, len(experts), len(classes))
        online.weights_ = read_finite_numbers(state, "weights", (1 + len(experts),), low=0.0)
        if abs(online.weights_.sum() - 1.0) > 1e-9:
            raise ValueError("'weights' in the state must sum to one")
        online.n_rows_ = read_count(state, "n_rows")
        online.largest_batch_ = max(1, read_count(state, "largest_batch"))
        online.log_loss_ = read_number(state, "log_loss", -1e15, 1e15)
        online.deployed_log_loss_ = read_number(state, "deployed_log_loss", -1e15, 1e15)
        return online


def _blocks(n_rows: int) -> Iterator[slice]:
    """Yield blocks of rows, within which the experts do not change."""
    return (slice(start, start + LEARN_ROWS) for start in range(0, n_rows, LEARN_ROWS))


def _read_experts(state: Mapping[str, Any]) -> Iterator[Expert]:
    values = read_value(state, "experts")
    if not isinstance(values, list) or len(values) > 1000:
        raise ValueError("'experts' in the state must be a list")
    for value in values:
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], bool):
            raise ValueError("an expert in the state must be a pair of a discount and a boolean")
        yield Expert(read_number({"discount": value[0]}, "discount", 0.0, 1.0), value[1])
