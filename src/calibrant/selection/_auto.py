"""Stacked ensemble of calibrators, which needs no choice of a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.fold_plan import FoldPlan, plan_folds
from calibrant._data.sample import Sample
from calibrant._kernels.simplex import uniform_proba
from calibrant._output.numbers import format_number
from calibrant._output.progress import tracked
from calibrant._typing import BoolArray, FloatArray, LabelsLike
from calibrant._validation import check_fitted, check_number
from calibrant.base import Calibrator, Citation
from calibrant.base.fitted import FittedValue
from calibrant.base.references import WOLPERT_1992
from calibrant.inference import Gain
from calibrant.multiclass import Identity
from calibrant.reductions import MulticlassToBinary
from calibrant.selection._candidates import (
    calibrates_confidence,
    default_candidates,
    is_trusted,
    named_candidates,
)
from calibrant.selection._confidence_correction import (
    FEWEST_ROWS,
    corrected_likelihood,
    fit_correction,
    predict_ensemble,
)
from calibrant.selection._out_of_fold import (
    Effort,
    FoldFits,
    OutOfFold,
    fit_members,
    predict_held_out,
)
from calibrant.selection._weights import stack_gain, stack_weights
from calibrant.selection.methods import check_members, needs_rows

__all__ = ["AutoCalibration"]


class AutoCalibration(Calibrator):
    r"""Combine several calibrators by stacking, which rarely increases the log-loss.

    Use `AutoCalibration` if you do not want to choose a method. `AutoCalibration` works with 30 or
    more calibration rows, and with two classes or a thousand classes. The result is a
    weighted average of the calibrated probabilities.

    The weights maximize the out-of-fold log-likelihood, minus one standard error of the gain over
    the uncalibrated scores and their averaged temperature. From 300 rows on, one more member
    calibrates the confidence of the average with a spline.

    Parameters
    ----------
    candidates : dict of name -> calibrator, or list of calibrators or of their names, optional
        Calibrators to combine. The identity and the uniform forecast are always added. See Notes
        for the default candidates.
    cv : int, splitter or iterable of (train, test) rows, optional
        Folds. By default, there are 5 folds, or 20 folds for fewer than 100 rows. With
        ``fit(X, y, groups=...)``, rows of a group stay in one fold.
    random_state : int, optional
        Seed for the folds. None means 0, so repeated fits give the same result.
    n_jobs : int, optional
        Number of folds that are fitted in parallel.
    progress : bool, default False
        Whether to show a progress bar on a terminal.
    time_budget : float, optional
        Seconds after which no other candidate is started. Candidates are fitted in the given order,
        so the last candidates may be omitted. The result depends on the speed of the machine.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Attributes
    ----------
    names_ : tuple of str
        Names of the members: "identity", the candidates and "uniform".
    left_out_ : tuple of str
        Candidates that were not fitted because of ``time_budget``.
    weights_ : array of shape (n_members,)
        The weight of each member, including its weight inside the corrected average (see Notes).
        The weights sum to one.
    top_ : MulticlassToBinary or None
        The calibrator of the confidence (highest probability) of the corrected average, or None if
        the corrected average has no weight.
    top_weights_ : array of shape (n_members,)
        The part of ``weights_`` from the corrected average.
    members_ : dict of name -> fitted calibrator
        The members with a positive weight, without the uniform forecast.
    gain_ : Gain
        Cross-fitted reduction in log-loss compared with the uncalibrated scores, with its 95%
        confidence interval. The weights are also cross-fitted.
    losses_ : array of shape (n_members,)
        Cross-fitted log-loss of each member.

    See Also
    --------
    compare : Evaluate several calibrators on the same folds.
    CrossFitted : Average the fits of one calibrator over folds.
    BayesianTemperatureScaling : The averaged temperature.

    Notes
    -----
    Member j, fitted without the fold of row i, predicts the probability :math:`P_{ij}` for the true
    class of row i. Let :math:`c_i` be the weight of row i. Member 0 is the combination of the
    identity and `BayesianTemperatureScaling`. The share of each of these two calibrators is
    proportional to :math:`\exp(L - S \min(1, 2 n / K))`. Here, L is the total log-likelihood of the
    calibrator, and S is the standard error of its total gain over the identity. The weights
    maximize

    .. math:: \sum_i c_i \log (P w)_i + 2 \log w_0 - \sqrt{\sum_i c_i (g_i - \bar g)^2}, \quad
        g_i = \log \frac{(P w)_i}{P_{i0}}.

    The first term is stacking with the log-loss (Wolpert 1992; Breiman 1996; van der Laan, Polley &
    Hubbard 2007). The second term is a Dirichlet prior, which corresponds to two
    pseudo-observations. This prior keeps some weight on members with few parameters, which limits
    the log-loss of a row with an unexpected label. The third term is sample variance penalization
    (Maurer & Pontil 2009). The problem is concave if all :math:`c_i \ge 1`.

    An average of calibrated probabilities is not calibrated. From 300 rows on, the weights are
    therefore computed twice. The first weights v are computed for the members that do not calibrate
    the confidence. A spline h (`SplineCalibration`) of the confidence of the average
    :math:`\sum_j v_j\, g_j(p)` is fitted to its out-of-fold predictions. The probabilities of the
    other classes are rescaled. The corrected average has out-of-fold likelihoods from splines that
    are fitted to the other folds. These likelihoods are one more column of P. The result is
    :math:`\sum_j w_j\, g_j(p) + w_h\, h(\sum_j v_j\, g_j(p))` with the second weights w.

    The default candidates are `BayesianTemperatureScaling`, `StructuredScaling` ("vector"), and
    smoothed isotonic regression of the confidence. With at least one row per class and at most 300
    classes, smoothed isotonic regression per class and `StructuredScaling` ("matrix") are added.
    `DirichletCalibration` with ``lam=1e-4`` also needs 50 rows and at most 20 classes. The two
    matrix methods need :math:`n K^2 \le 2^{30}`. The limits on K only limit the run time.

    Each candidate is fitted once per fold, and each member with a positive weight is fitted once
    more. If :math:`n K \ge 2^{21}`, a single fold is held out, unless ``cv`` is a splitter. With a
    single row, the result is the identity.

    References
    ----------
    Wolpert (1992), Stacked generalization, doi:10.1016/S0893-6080(05)80023-1.

    Breiman (1996), Stacked regressions, doi:10.1007/BF00117832.

    van der Laan, Polley & Hubbard (2007), Super learner, doi:10.2202/1544-6115.1309.

    Maurer & Pontil (2009), Empirical Bernstein bounds and sample variance penalization,
    arXiv:0907.3740.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = AutoCalibration().fit(data.val_proba, data.val_labels)
    >>> round(float(model.weights_.sum()), 9), model.gain_.low > 0
    (1.0, True)
    """

    def __init__(
        self,
        candidates: Mapping[str, Any] | Sequence[Any] | None = None,
        cv: Any = None,
        random_state: int | None = None,
        *,
        n_jobs: int | None = None,
        progress: bool = False,
        time_budget: float | None = None,
        inputs: str = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.time_budget = time_budget
        self.inputs = inputs
        self.classes = classes

    gain_: Gain | None
    top_: MulticlassToBinary | None
    top_weights_: FloatArray
    left_out_: tuple[str, ...]
    _folds_by_row: ClassVar[bool] = True
    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "weights_": FittedValue(("M",), 0.0, 1.0),
        "top_weights_": FittedValue(("M",), 0.0, 1.0),
    }

    @property
    def citation(self) -> Citation:
        return Citation(
            "a stacked ensemble of {parts}, weighted by cross-fitted log-loss",
            (WOLPERT_1992,),
            tuple(self.members_.values()),
        )

    @property
    def needs_rows(self) -> bool:
        """Whether any candidate needs all rows in memory."""
        if self.candidates is None:
            return False
        return any(needs_rows(member) for member in named_candidates(self.candidates).values())

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        top = fitted.get("top_")
        if top is None:
            return
        is_calibrator = isinstance(top, MulticlassToBinary) and top.inputs == "proba"
        if not is_calibrator or top.n_classes_ != fitted.get("n_classes_"):
            raise ValueError("top_ must be a MulticlassToBinary of probabilities of all classes.")
        if not np.sum(fitted.get("top_weights_", 0.0)) > 0:
            raise ValueError("top_weights_ must have a positive sum if top_ is not None.")

    def _check_parameters(self, n_classes: int) -> None:
        if self.time_budget is not None:
            check_number(self.time_budget, "time_budget")
            if self.time_budget < 0:
                raise ValueError(
                    f"time_budget must not be negative, got {self.time_budget!r}. Pass None for no "
                    "limit."
                )

    def _check_sample(self, sample: Sample) -> None:
        if self.candidates is not None:
            check_members(named_candidates(self.candidates), sample)

    def _fit(self, sample: Sample) -> None:
        candidates = (
            default_candidates(sample.total, sample.n_columns)
            if self.candidates is None
            else named_candidates(self.candidates)
        )
        members = {
            name: set_up(member, self.inputs, sample.n_columns, self.classes_)
            for name, member in {"identity": Identity(), **candidates}.items()
        }
        is_large = sample.shape[0] * sample.n_columns >= _MANY_SCORES
        plan = plan_folds(self.cv, sample, self.random_state, one_fold=is_large)
        # Members that do not converge are evaluated by their held-out loss, without a warning.
        fits = self._weigh(members, plan, sample) if plan.n_folds else self._keep(members)
        # The last weight belongs to the uniform forecast, which needs no fit.
        shares = zip(self.names_[:-1], self.weights_[:-1].tolist(), strict=True)
        used = [name for name, share in shares if share > 0]
        for name in used:
            if name in fits and isinstance(members[name], Calibrator):
                members[name]._start_like(fits[name][0])
        rows = sample.present()
        work = (delayed(fit_on)(members[name], rows, self.inputs) for name in used)
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(work)
        shown = tracked(fitted, total=len(used), description="Fitting", progress=self.progress)
        self.members_ = dict(zip(used, shown, strict=True))

    def _keep(self, members: Mapping[str, Any]) -> FoldFits:
        """Keep the scores unchanged, because a single row cannot be cross-fitted."""
        self.left_out_ = ()
        self.names_ = (*members, "uniform")
        self._keep_uncorrected(np.eye(1, len(self.names_))[0])
        self.losses_, self.gain_ = np.full(len(self.names_), np.nan), None
        return {}

    def _weigh(self, members: Mapping[str, Any], plan: FoldPlan, sample: Sample) -> FoldFits:
        """Compute the weights, and return the fits of the folds."""
        effort = Effort(self.n_jobs, self.progress, self.time_budget)
        fits = fit_members(members, plan, self.inputs, effort)
        self.names_ = (*fits, "uniform")
        self.left_out_ = tuple(name for name in members if name not in fits)
        trusted = [is_trusted(members[name]) for name in fits]
        rows = predict_held_out(fits, trusted, plan, self.inputs, sample.n_columns)
        self.losses_ = -(rows.weight @ np.log(rows.likelihood)) / rows.weight.sum()
        if len(np.unique(rows.group)) > 1 and rows.weight.sum() >= FEWEST_ROWS:
            is_plain = [not calibrates_confidence(members[name]) for name in fits]
            rows = self._weigh_with_correction(rows, np.array([*is_plain, True]), fits, plan)
        else:  # a correction could not be evaluated, or would fit noise
            self._keep_uncorrected(stack_weights(rows))
        self.gain_ = stack_gain(rows, plan.ratios)
        return fits

    def _keep_uncorrected(self, weights: FloatArray) -> None:
        self.weights_, self.top_weights_, self.top_ = weights, np.zeros_like(weights), None

    def _weigh_with_correction(
        self, rows: OutOfFold, is_plain: BoolArray, fits: FoldFits, plan: FoldPlan
    ) -> OutOfFold:
        """Compute the weights with the corrected ensemble as one more member.

        Return the out-of-fold likelihoods of all members, including the corrected ensemble.

        The corrected ensemble consists of the plain members with a calibrated confidence.
        Calibrators of the confidence are not plain members, because their confidence is already
        calibrated.
        """
        first = np.zeros(len(is_plain))
        first[is_plain] = stack_weights(rows.select(is_plain))
        ensemble = predict_ensemble(fits, first, plan, self.inputs)
        rows = rows.add_member(corrected_likelihood(ensemble, rows.n_classes))
        weights = stack_weights(rows)
        self._keep_uncorrected(weights[:-1])
        if weights[-1] > 0:
            self.top_ = fit_correction(ensemble, rows.n_classes)
            self.top_weights_ = weights[-1] * first
            self.weights_ = self.weights_ + self.top_weights_
        return rows

    def _chunked_note(self) -> str:
        notes = ["Rows are assigned to folds by their row number."]
        notes += dict.fromkeys(
            member._chunked_note() for member in self.members_.values() if member._chunked_note()
        )
        return " ".join(notes)

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        if self.top_ is None:
            return self._average(scores, self.weights_)[0]
        share = self.top_weights_.sum()
        plain, ensemble = self._average(
            scores, self.weights_ - self.top_weights_, self.top_weights_ / share
        )
        plain += share * self.top_._proba_of(ensemble)
        return plain

    def _average(self, scores: FloatArray, *weights: FloatArray) -> list[FloatArray]:
        """Compute weighted averages of the members. Each member predicts once for all averages."""
        # The last weight belongs to the uniform forecast.
        totals = [shares[-1] * uniform_proba(scores) for shares in weights]
        for name, fitted in self.members_.items():
            proba, member = proba_of(fitted, scores, self.inputs), self.names_.index(name)
            for total, shares in zip(totals, weights, strict=True):
                total += shares[member] * proba
        return totals

    def explain(self) -> str:
        """Describe the fit, with the weight and the cross-fitted log-loss of each member."""
        check_fitted(self)
        members = sorted(zip(-self.weights_, self.names_, self.losses_, strict=True))
        lines = [
            f"  {name:<26} {-weight:6.3f}   {format_number(loss)}" for weight, name, loss in members
        ]
        return "\n".join(
            [
                self._description(),
                "Base calibrators in order of decreasing weight, with their cross-fitted log-loss:",
                *lines,
            ]
        )

    def _description(self) -> str:
        gain = self.gain_
        if gain is None:
            return "The scores are unchanged, because a single row cannot be cross-fitted."
        share = dict(zip(self.names_, self.weights_.tolist(), strict=True))
        identity, uniform = share.pop("identity"), share.pop("uniform")
        if identity > _ALONE:
            reason = "is better" if len(self.names_) > _N_ALWAYS else "was fitted"
            summary = f"The scores are unchanged, because no candidate {reason}: {gain.numbers}."
        else:
            summary = f"{gain.sentence()} {_describe_ensemble(share, identity, uniform)}"
        late = ""
        if self.left_out_:
            late = f" {', '.join(self.left_out_)} did not start within the time budget."
        return f"{summary}{self._describe_correction()}{late}"

    def _describe_correction(self) -> str:
        if self.top_ is None:
            return ""
        examples = self.top_.calibrators_[0]._describe_examples(_EXAMPLES)
        return (
            f" The confidence is corrected for {self.top_weights_.sum():.0%} of the weight: "
            f"{examples}."
        )


def _describe_ensemble(share: Mapping[str, float], identity: float, uniform: float) -> str:
    """Weights of the calibrators, of the uncalibrated scores and of the uniform forecast."""
    weights = sorted(((w, name) for name, w in share.items() if w >= _VISIBLE), reverse=True)
    parts = [f"{weight:.0%} {name}" for weight, name in weights]
    parts += [f"{identity:.0%} uncalibrated scores"] if identity >= _VISIBLE else []
    parts += [f"{uniform:.0%} uniform probabilities"] if uniform >= _VISIBLE else []
    return f"The result is a weighted average: {', '.join(parts)}."


_N_ALWAYS = 2
"""Number of members without candidates, which are the identity and the uniform forecast."""

_ALONE = 0.99
"""Weight of the identity above which the summary does not list other members."""

_EXAMPLES = (0.5, 0.7, 0.9)
"""Confidences whose correction the summary shows."""

_VISIBLE = 0.005
"""Smallest weight that the summary lists. Smaller weights would be rounded to 0%."""

_MANY_SCORES = 2**21
"""From this many scores on (20,000 rows with 100 classes), one fold determines the weights well."""
