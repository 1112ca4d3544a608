"""Calibration without choosing a method: methods stacked so that the result rarely harms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.fold_plan import FoldPlan, plan_folds
from calibrant._data.sample import Sample
from calibrant._output.progress import tracked
from calibrant._typing import FloatArray, LabelsLike
from calibrant._validation import check_fitted, check_number
from calibrant.base import Calibrator, Citation
from calibrant.base.fitted import FittedValue
from calibrant.base.references import WOLPERT_1992
from calibrant.inference import Gain
from calibrant.multiclass import (
    Identity,
)
from calibrant.reductions import MulticlassToBinary
from calibrant.selection._candidates import candidates_for, named_candidates
from calibrant.selection._confidence_correction import correct_confidence
from calibrant.selection._pool import (
    Effort,
    Maps,
    cautious_weights,
    fit_members,
    is_thin,
    pool_gain,
    pool_members,
    stacked_rows,
)
from calibrant.selection.methods import check_members, needs_rows

__all__ = ["AutoCalibration"]


class AutoCalibration(Calibrator):
    r"""Stack calibrators so that the result rarely harms: :math:`\sum_j w_j\, g_j(p)`.

    Every candidate is cross-fitted; the weights, on the simplex, maximise the likelihood of the
    probabilities that the candidates gave to rows that they had not seen. The identity and the
    uniform forecast are always among them. Caution keeps the result near the identity where rows
    tell too little: up to a row more that only the identity foresaw, and 1/n taken off the weight
    of the uniform forecast; all of that where the scores were wrong on four rows or fewer or where
    the stack does not gain out of fold, and less, down to :math:`(4 / e)^2` of e wrong rows, where
    it gains a standard error; none where it gains :math:`\log 10^6` in log-likelihood out of fold,
    a million to one against the identity. Then the candidates are fitted on all rows.

    Last the top probability is made honest: a mixture of it as it is and of maps of it, by beta
    calibration and a spline, is fitted on what the stack gave to rows that it had not seen, and
    kept where it lowers the log-loss of yet other rows by more than half a standard error. The
    other classes share what is left.

    Parameters
    ----------
    candidates : dict of name -> calibrator, or list of calibrators or of their names, optional
        By default temperature scaling with a prior, structured vector scaling, structured matrix
        scaling, Dirichlet calibration (or structured matrix scaling of row-centred scores), and
        smoothed isotonic regression per class; see Notes for when.
    cv : int, splitter or iterable of (train, test) rows, optional
        By default 5 folds, 20 of fewer than 100 rows. With ``fit(X, y, groups=...)`` a number of
        folds deals whole groups, a splitter is given them.
    random_state : int, optional
        Decides the folds; None is 0, so that a refit gives the same result.
    n_jobs : int, optional
        Folds fitted at the same time.
    progress : bool
        Show a bar of the members, on a terminal.
    time_budget : float, optional
        Seconds after which no other candidate is begun; those that were not are left out, in the
        order in which they are given. What is fitted then depends on the speed of the machine.
    inputs : {"proba", "logits", "log_proba"}
    classes : labels of the columns, optional

    Attributes
    ----------
    names_ : tuple of str
        The members: "identity", the candidates, "uniform".
    left_out_ : tuple of str
        Candidates that the time was too short for.
    weights_ : array of shape (n_members,)
    members_ : dict of name -> fitted calibrator
        Those with a weight above zero, but for the uniform forecast.
    gain_ : Gain
        Cross-fitted log-loss gain of the stack over the scores as they are, with its 95 % interval.
        The weights were cross-fitted for it as well.
    losses_ : array of shape (n_members,)
        Cross-fitted log-loss of every member.
    top_ : MulticlassToBinary or None
        The map of the top probability of the stack, where there is one.
    top_gain_ : Gain or None
        Cross-fitted log-loss gain of that map over the stack.

    Notes
    -----
    By default, with n the sum of the weights: the prior of the temperature is wide (1) from 50
    classes on, where every row tells much about it, and narrow (0.25) below. Below four rows a
    class of 50 or more classes one member has all of the weight: `BayesianTemperatureScaling`,
    whose prior is caution enough, or, with a row a class, structured matrix scaling, where it gains
    two standard errors over that out of fold. The matrix members take part up to n K^2 = 2^30
    (time): structured matrix scaling, and beside it Dirichlet calibration that is hardly
    regularised, with 3 to 20 classes, 100 rows or more, and at least 3 rows a class on which the
    highest score is not that of what happened, which tell what is taken for what; elsewhere
    structured matrix scaling of row-centred scores. Isotonic takes part where there are at least 10
    rows a class on average, and 8 on which the highest score is not that of what happened. A single
    row gives the identity.
    Costs J fits of every candidate, and one more of those with a weight. From n K = 2^21 on one of
    the J folds judges, where ``cv`` is no splitter: a fifth of so many rows is plenty for a handful
    of weights.

    On 22 files of real predictions, on which it was also designed, with five draws of 30 to 1,000
    calibration rows each (docs/do-no-harm.md), it raised the test log-loss by more than 0.005 in
    0.9 % of 545 cases, by 0.055 at worst (30 rows, 100 classes) and by 0.009 from 50 rows on; rules
    chosen without the file that judges them harm more often (docs/caution.md). That is no law. In
    940 cases of 20 other data sets and 5 classifiers a version that knew no correction of the top
    probability did so in 3.2 % (5 % of those with 30 rows, 6 % with 60, 4 % with 120, none from 250
    rows on), by 0.064 at worst; scores that are calibrated already suffer most often.

    References
    ----------
    Wolpert (1992), Stacked generalization, doi:10.1016/S0893-6080(05)80023-1; Kim et al. (2020),
    arXiv:1806.01412 (the weights).

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
    top_gain_: Gain | None
    left_out_: tuple[str, ...]
    _folds_by_row: ClassVar[bool] = True
    fitted_values: ClassVar[Mapping[str, FittedValue]] = {"weights_": FittedValue(("M",), 0.0, 1.0)}

    @property
    def citation(self) -> Citation:
        return Citation(
            "a stack of {parts}, weighted by cross-fitted log-loss",
            (WOLPERT_1992,),
            tuple(self.members_.values()),
        )

    @property
    def needs_rows(self) -> bool:
        """Whether any candidate does."""
        if self.candidates is None:
            return False
        return any(needs_rows(member) for member in named_candidates(self.candidates).values())

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        top = fitted.get("top_")
        if top is None:
            return
        is_map = isinstance(top, MulticlassToBinary) and top.inputs == "proba"
        if not is_map or top.n_classes_ != fitted.get("n_classes_"):
            raise ValueError("top_ must be a map of the probabilities of as many classes")

    def _check_parameters(self, n_classes: int) -> None:
        if self.time_budget is not None:
            check_number(self.time_budget, "time_budget")

    def _check_sample(self, sample: Sample) -> None:
        if self.candidates is not None:
            check_members(named_candidates(self.candidates), sample)

    def _fit(self, sample: Sample) -> None:
        candidates = (
            candidates_for(sample) if self.candidates is None else named_candidates(self.candidates)
        )
        members = {
            name: set_up(member, self.inputs, sample.n_columns)
            for name, member in {"identity": Identity(), **candidates}.items()
        }
        is_large = sample.shape[0] * sample.n_columns >= _MANY_SCORES
        plan = plan_folds(self.cv, sample, self.random_state, one_fold=is_large)
        # Members that do not converge are evaluated by their held-out loss, without a warning.
        maps = self._weigh(members, sample, plan) if plan.n_folds else self._keep(members)
        # The last weight is that of the uniform forecast, which needs no fit.
        shares = zip(self.names_[:-1], self.weights_[:-1].tolist(), strict=True)
        used = [name for name, share in shares if share > 0]
        for name in used:
            if name in maps and isinstance(members[name], Calibrator):
                members[name]._start_like(maps[name][0])
        rows = sample.present()
        work = (delayed(fit_on)(members[name], rows, self.inputs) for name in used)
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(work)
        shown = tracked(fitted, total=len(used), description="Fitting", progress=self.progress)
        self.members_ = dict(zip(used, shown, strict=True))

    def _keep(self, members: Mapping[str, Any]) -> Maps:
        """Keep the scores as they are: one row cannot be cross-fitted."""
        self.top_, self.top_gain_, self.left_out_ = None, None, ()
        self.names_ = (*members, "uniform")
        self.weights_ = np.eye(1, len(self.names_))[0]
        self.losses_, self.gain_ = np.full(len(self.names_), np.nan), None
        return {}

    def _weigh(self, members: Mapping[str, Any], sample: Sample, plan: FoldPlan) -> Maps:
        """Find the weights; what was fitted for them."""
        effort = Effort(self.n_jobs, self.progress, self.time_budget)
        maps = fit_members(members, plan, self.inputs, effort)
        self.names_ = (*maps, "uniform")
        self.left_out_ = tuple(name for name in members if name not in maps)
        is_few = is_thin(sample.total, sample.n_columns)
        pool = pool_members(maps, plan, self.inputs, is_spread=not is_few)
        # Default candidates have priors of their own, so one of them may have all of the weight.
        if self.candidates is None and is_few and len(maps) > 1:
            pool = pool._replace(is_settled=True)
        self.weights_ = cautious_weights(pool)
        self.losses_ = -(pool.weight @ np.log(pool.likelihood)) / pool.weight.sum()
        self.gain_ = pool_gain(pool, plan.ratios)
        self.top_, self.top_gain_ = None, None
        if not pool.is_settled:
            rows = stacked_rows(maps, self.weights_, plan, self.inputs)
            correction = correct_confidence(rows, sample.n_columns, plan.ratios)
            if correction is not None:
                self.top_, self.top_gain_ = correction
        return maps

    def _chunked_note(self) -> str:
        notes = ["Rows are assigned to folds by their number."]
        notes += dict.fromkeys(
            member._chunked_note() for member in self.members_.values() if member._chunked_note()
        )
        return " ".join(notes)

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        total = np.full(scores.shape, self.weights_[-1] / self.n_classes_)
        for name, fitted in self.members_.items():
            total += self.weights_[self.names_.index(name)] * proba_of(fitted, scores, self.inputs)
        return total if self.top_ is None else self.top_._proba_of(total)

    def explain(self) -> str:
        """What was chosen, and why, in words, with the weights and losses of all members."""
        check_fitted(self)
        members = sorted(zip(-self.weights_, self.names_, self.losses_, strict=True))
        lines = [f"  {name:<26} {-weight:6.3f}   {loss:.5f}" for weight, name, loss in members]
        return "\n".join(
            [self._words(), "Members by weight, with their cross-fitted log-loss:", *lines]
        )

    def _words(self) -> str:
        gain = self.gain_
        if gain is None:
            return "One row cannot be cross-fitted: the scores are left as they are."
        share = dict(zip(self.names_, self.weights_.tolist(), strict=True))
        own, even = share.pop("identity"), share.pop("uniform")
        if own > _ALONE:
            said = f"The scores are left as they are, no candidate is better: {gain.numbers}."
        else:
            said = f"{gain.sentence()} {_words_of_stack(share, own, even)}"
        late = f" There was no time for {', '.join(self.left_out_)}." if self.left_out_ else ""
        return f"{said}{self._words_of_top()}{late}"

    def _words_of_top(self) -> str:
        if self.top_ is None or self.top_gain_ is None:
            return ""
        said = self.top_.calibrators_[0]._words_at(_EXAMPLES)
        return f" Last, the top probability is corrected: {said}; {self.top_gain_.numbers}."


def _words_of_stack(share: Mapping[str, float], own: float, even: float) -> str:
    """What a stack is made of: maps, the scores as they are, what is spread over the classes."""
    maps = sorted(((w, name) for name, w in share.items() if w >= _WORTH_SAYING), reverse=True)
    said = [f"{weight:.0%} {name}" for weight, name in maps]
    said += [f"{own:.0%} the scores as they are"] if own >= _WORTH_SAYING else []
    said += [f"{even:.0%} spread evenly over the classes"] if even >= _WORTH_SAYING else []
    return f"The probabilities are a mixture: {', '.join(said)}."


_ALONE = 0.99
"""Share of the identity above which nothing else is worth a word."""

_EXAMPLES = (0.5, 0.7, 0.9)
"""Top probabilities by which their correction is explained."""

_WORTH_SAYING = 0.005
"""Weights below are not worth a word."""

_MANY_SCORES = 2**21
"""From so many scores on, 20,000 rows of 100 classes, one fold is enough to weigh members on."""
