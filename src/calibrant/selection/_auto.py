"""Calibration without choosing a method: methods stacked so that the result rarely harms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.folds import Fold, as_folds
from calibrant._data.sample import ArraySample, RowBlock, Sample
from calibrant._output.progress import tracked
from calibrant._typing import FloatArray, IntArray, LabelsLike
from calibrant._validation import check_fitted
from calibrant.base import Calibrator
from calibrant.base._citation import Citation
from calibrant.base._fitted import FittedValue
from calibrant.base._references import WOLPERT_1992
from calibrant.binary import IsotonicCalibration
from calibrant.inference._gain import Gain
from calibrant.multiclass import (
    BayesianTemperatureScaling,
    DirichletCalibration,
    Identity,
    StructuredScaling,
    TemperatureScaling,
)
from calibrant.reductions import MulticlassToBinary
from calibrant.selection._methods import by_name
from calibrant.selection._parted import judges_of, sum_type, weigh_parts
from calibrant.selection._pool import (
    MANY_CLASSES,
    Effort,
    Maps,
    Pool,
    cautious_weights,
    fit_members,
    is_thin,
    judged_rows,
    pool_gain,
    pool_members,
    stacked_proba,
)
from calibrant.selection._top import StackedRows, correct_top

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
    _folds_by_row: ClassVar[bool] = True

    # Files of version 0.1.0 have none of these.
    top_: MulticlassToBinary | None = None
    top_gain_: Gain | None = None
    left_out_: tuple[str, ...] = ()

    @property
    def citation(self) -> Citation:
        return Citation(
            "a stack of {parts}, weighted by cross-fitted log-loss",
            (WOLPERT_1992,),
            tuple(self.members_.values()),
        )

    @property
    def fitted_values(self) -> Mapping[str, FittedValue]:
        return {"weights_": FittedValue(("M",), 0.0, 1.0)}

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        top = fitted.get("top_")
        if top is None:
            return
        is_map = isinstance(top, MulticlassToBinary) and top.inputs == "proba"
        if not is_map or top.n_classes_ != fitted.get("n_classes_"):
            raise ValueError("top_ must be a map of the probabilities of as many classes")

    def _fit(self, sample: Sample) -> None:
        if sample.is_chunked:
            self._fit_parted(sample)
            return
        rows_ = sample.rows("AutoCalibration")
        scores, y, weight, groups = np.asarray(rows_.u), rows_.y, rows_.weight, rows_.groups
        n_classes = scores.shape[1]
        if self.candidates is None:
            chosen = candidates_for(ArraySample(scores, y, weight))
        else:
            chosen = named_candidates(self.candidates)
        members = {
            name: set_up(made, self.inputs, n_classes)
            for name, made in {"identity": Identity(), **chosen}.items()
        }
        folds = as_folds(self.cv, scores, y, weight, self.random_state, groups)
        if scores.size >= _MANY_SCORES and isinstance(self.cv, int | np.integer | None):
            folds = folds[:1]
        # Members that do not converge are judged by their loss on other rows, and not warned of.
        is_settled = self._is_settled(ArraySample(scores, y, weight))
        maps = self._weigh(members, scores, y, folds, is_settled=is_settled)
        present = np.flatnonzero(weight)
        rows = scores[present], y[present], weight[present]
        own = None if groups is None else groups[present]
        # The last weight is that of the uniform forecast, which needs no fit.
        shares = zip(self.names_[:-1], self.weights_[:-1].tolist(), strict=True)
        used = [name for name, share in shares if share > 0]
        for name in used:
            if name in maps and isinstance(members[name], Calibrator):
                members[name]._start_like(maps[name][0])
        work = (delayed(fit_on)(members[name], *rows, self.inputs, own) for name in used)
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(work)
        shown = tracked(fitted, total=len(used), description="Fitting", progress=self.progress)
        self.members_ = dict(zip(used, shown, strict=True))

    def _fit_parted(self, sample: Sample) -> None:
        n_classes = sample.shape[1]
        if self.candidates is None:
            chosen = sum_type(candidates_for(sample))
        else:
            chosen = named_candidates(self.candidates)
        members = {
            name: set_up(made, self.inputs, n_classes)
            for name, made in {"identity": Identity(), **chosen}.items()
        }
        self.top_, self.top_gain_, self.left_out_ = None, None, ()
        judges = judges_of(self.cv, sample, is_one=sample.shape[0] * n_classes >= _MANY_SCORES)
        is_settled = self._is_settled(sample)
        found = weigh_parts(members, sample, self.inputs, judges, is_settled=is_settled)
        self.names_ = (*members, "uniform")
        self.weights_, self.losses_, self.gain_ = found
        shares = zip(self.names_[:-1], self.weights_[:-1].tolist(), strict=True)
        self.members_ = {
            name: members[name]._fit_checked(sample) for name, share in shares if share > 0
        }

    def _is_settled(self, sample: Sample) -> bool:
        """Whether one of `default_candidates`, which have priors, has all of the weight."""
        return self.candidates is None and is_thin(sample.total, sample.shape[1])

    def _chunked_note(self) -> str:
        said = "The top probability of the stack is not corrected."
        if self.candidates is None:
            said = f"The members are sums over rows, and no isotonic maps among them. {said}"
        told = dict.fromkeys(fitted._chunked_note() for fitted in self.members_.values())
        return " ".join([said, *filter(None, told)])

    def _weigh(
        self,
        members: Mapping[str, Any],
        scores: FloatArray,
        y: IntArray,
        folds: Sequence[Fold],
        *,
        is_settled: bool,
    ) -> Maps:
        """Find the weights; what was fitted for them."""
        self.top_, self.top_gain_, self.left_out_ = None, None, ()
        if not folds:
            self.names_ = (*members, "uniform")
            self.weights_ = np.eye(1, len(self.names_))[0]
            self.losses_, self.gain_ = np.full(len(self.names_), np.nan), None
            return {}
        effort = Effort(self.n_jobs, self.progress, self.time_budget)
        maps = fit_members(members, scores, y, folds, self.inputs, effort)
        self.names_ = (*maps, "uniform")
        self.left_out_ = tuple(name for name in members if name not in maps)
        pool = pool_members(maps, scores, y, folds, self.inputs)
        if len(maps) > 1:
            pool = pool._replace(is_settled=is_settled)
        self.weights_ = cautious_weights(pool)
        self.losses_ = -(pool.weight @ np.log(pool.likelihood)) / pool.weight.sum()
        self.gain_ = pool_gain(pool, folds)
        if not pool.is_settled:  # a prior has said how far few rows are believed
            self._correct_top(maps, pool, scores, y, folds)
        return maps

    def _correct_top(
        self, maps: Maps, pool: Pool, scores: FloatArray, y: IntArray, folds: Sequence[Fold]
    ) -> None:
        proba = stacked_proba(maps, self.weights_, scores, folds, self.inputs)
        rows = StackedRows(proba, y[judged_rows(folds)], pool.weight, pool.fold)
        found = correct_top(rows, folds)
        if found is not None:
            self.top_, self.top_gain_ = found

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

_MATRIX_WORK = 2**30
"""Rows times squared classes of a pass over the data: about a second, and a fit takes dozens, in
every fold."""

_CONFUSED_CLASSES = range(3, 21)
_CONFUSED_ROWS = 100
_ERRORS_PER_CLASS = 3
"""So many classes, and at least so many rows, and errors a class, tell which class is taken for
which: a matrix that is hardly held at all is then worth up to 0.2 nats more than one that is held
to a temperature. With fewer errors it learns them by heart."""

_MANY_SCORES = 2**21
"""From so many scores on, 20,000 rows of 100 classes, one fold is enough to weigh members on."""

_ROWS_PER_CLASS = 10
"""Below, an isotonic map has no more than a step or two to learn from."""

_ERRORS_OF_CURVES = 8
"""Below, what an isotonic map learns is that no high score was ever wrong."""


def candidates_for(sample: Sample) -> dict[str, Any]:
    """What `AutoCalibration` stacks by default of these rows."""
    return default_candidates(sample.total, sample.shape[1], float(sample.sum(_weigh_errors)))


def _weigh_errors(block: RowBlock) -> float:
    """The weight of rows whose highest score is not that of what happened."""
    return float(block.weight @ (block.u.argmax(axis=1) != block.y))


def default_candidates(n_samples: float, n_classes: int, n_errors: float) -> dict[str, Any]:
    """What `AutoCalibration` stacks by default for so many rows and classes, and rows on which the
    highest score is not that of what happened.
    """
    if is_thin(n_samples, n_classes):
        alone: dict[str, Any] = {"temperature": BayesianTemperatureScaling()}
        if n_classes <= n_samples <= _MATRIX_WORK / n_classes**2:
            alone["structured-matrix"] = StructuredScaling("matrix")
        return alone
    prior_scale = 1.0 if n_classes >= MANY_CLASSES else 0.25
    chosen: dict[str, Any] = {"temperature": TemperatureScaling(prior_scale=prior_scale)}
    chosen["structured-vector"] = StructuredScaling("vector")
    if n_samples * n_classes**2 <= _MATRIX_WORK:
        chosen["structured-matrix"] = StructuredScaling("matrix")
        if _tells_confusions(n_samples, n_classes, n_errors):
            chosen["dirichlet"] = DirichletCalibration(lam=1e-4)
        else:
            chosen["structured-matrix-centred"] = StructuredScaling(
                "matrix", centre=True, prior_scale=0.25
            )
    if n_samples >= _ROWS_PER_CLASS * n_classes and n_errors >= _ERRORS_OF_CURVES:
        chosen["isotonic"] = IsotonicCalibration("linear", smoothing=1.0)
    return chosen


def _tells_confusions(n_samples: float, n_classes: int, n_errors: float) -> bool:
    is_enough = n_samples >= _CONFUSED_ROWS and n_errors >= _ERRORS_PER_CLASS * n_classes
    return n_classes in _CONFUSED_CLASSES and is_enough


def named_candidates(candidates: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Candidates by name; those of a list are named after their class."""
    chosen = by_name(candidates)
    taken = {"identity", "uniform"} & set(chosen)
    if taken:
        raise ValueError(
            f"{', '.join(sorted(taken))} is always a member: give the candidate another name, or "
            f"leave it out"
        )
    return chosen
