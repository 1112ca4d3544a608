"""Calibration of groups of rows, with information from all groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._crossfit.members import fit_clone, fit_folds, proba_of, set_up
from calibrant._data.fold_plan import FoldPlan, plan_folds
from calibrant._data.group_columns import GroupLevels, as_columns, group_name
from calibrant._data.read import as_chunked
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.simplex import (
    EPS,
    log_clipped,
    log_of,
    log_true_class,
    score_logits,
    softmax_in_place,
)
from calibrant._optim.group_effects import effect_logits
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import (
    as_array,
    check_fitted,
    check_number,
    check_same_length,
    shortened,
    warn_other_order,
)
from calibrant.base import Calibrator, Citation, _frames
from calibrant.base.fitted import FittedValue
from calibrant.base.new_scores import check_new_scores
from calibrant.base.references import WOLPERT_1992
from calibrant.inference import Gain
from calibrant.selection._group_fits import (
    STRENGTHS,
    CellRule,
    Chosen,
    Stage,
    choose_strength,
    held_out_rows,
    one_stage,
    two_stages,
)
from calibrant.selection._out_of_fold import OutOfFold
from calibrant.selection._weights import stack_gain, stack_weights
from calibrant.selection.methods import as_calibrator, check_members, needs_rows

__all__ = ["GroupCalibration"]

_MANY_SCORES = 2**21
"""From this many scores on, one fold determines strengths and weights well."""


_N_ERRORS = 0.0
"""Standard errors that the stack subtracts from a gain. The strengths are chosen on held-out rows
already, so effects that would increase the log-loss are shrunk to zero before the weighting."""


class GroupCalibration(Calibrator):
    r"""Calibrate groups of rows, such as countries, without a separate fit for each.

    Pass the groups as ``by=`` to `fit` and to `predict_proba`. The calibration of small groups
    stays close to the calibrator of all rows (the pooled calibrator). Large groups get a separate
    correction if the data support such a correction. Groups without calibration rows are calibrated
    by the pooled calibrator.

    Parameters
    ----------
    calibrator : calibrator or str, optional
        The pooled calibrator or its name. The default is `AutoCalibration`.
    strength : float, optional
        Strength of the penalty on group effects. If infinite, all group effects are zero. By
        default, the strength is chosen by held-out log-loss, separately for the two fits in Notes.
    cv : int, splitter or iterable of (train, test) rows
        Folds. With ``fit(X, y, groups=...)``, rows of a group stay in one fold.
    random_state : int, optional
        Seed for the folds. None means 0, so a second fit gives the same result.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Attributes
    ----------
    pooled_ : fitted calibrator
        The calibrator of all rows.
    by_ : tuple of str
        Names of the columns that define the groups.
    groups_ : dict of name -> array of str
        Names of the groups of each column.
    group_weights_ : array of shape (n_groups,)
        Sum of the weights of the rows of each group, column by column.
    weights_ : array of shape (3,)
        Weights of the pooled calibrator, of the one-stage fit and of the two-stage fit.
    strengths_ : array of shape (2,)
        Strengths of the one-stage fit and of the two-stage fit.
    effects_ : array of shape (2, 1 + n_groups, 1 + K)
        Effects of all rows (first) and of each group, for the one-stage and the two-stage fit.
        Effects are the change of the slope, and an offset for each class.
    gain_ : Gain or None
        Cross-fitted reduction in log-loss compared with the pooled calibrator.

    See Also
    --------
    evaluate : Evaluate groups with ``by=``.
    AutoCalibration : The default pooled calibrator.

    Notes
    -----
    Row i has logits :math:`u_i` and groups :math:`G(i)`, one for each column of ``by``. Its
    calibrated logits are

    .. math:: z_i = \Bigl(1 + a + \sum_{g \in G(i)} a_g\Bigr) u_i + b + \sum_{g \in G(i)} b_g .

    The effects minimize the log-loss plus :math:`\frac s2 \sum_g (a_g^2 + |b_g|^2)`. At the
    optimum, the sum of (outcome - probability) over a group is :math:`s\, b_g` for each class.
    Apart from the shrinkage, each group is therefore calibrated on average (low-degree
    multicalibration, Gopalan et al. 2022). There are two fits. The one-stage fit uses the logits of
    the scores. The two-stage fit uses logarithms of out-of-fold predictions by the pooled
    calibrator, with a = 0 and b = 0. The result is a weighted average of the pooled calibrator and
    both fits. The weights of this average maximize the out-of-fold log-likelihood, with two
    pseudo-observations that favor the pooled calibrator. Rows without a known group are calibrated
    by the pooled calibrator.

    Candidates for the strength are infinity, 100, 30, 10, 3, 1, 0.3 and 0.1. The strength s
    corresponds to a normal prior with standard deviation :math:`s^{-1/2}` on each effect. If the
    number of combinations of groups times :math:`(K + 1)^2` exceeds :math:`2^{25}`, groups have
    slopes but no offsets. A Newton step takes one pass over the data and :math:`O(n K^2)` time. If
    :math:`n K \ge 2^{21}`, a single fold is held out, unless ``cv`` is a splitter.

    Calibration within groups does not imply equal error rates of groups. In general, the two goals
    are incompatible (Kleinberg, Mullainathan & Raghavan 2016).

    References
    ----------
    Gopalan, Kim, Singhal & Zhao (2022), Low-degree multicalibration, arXiv:2203.01255.

    Kleinberg, Mullainathan & Raghavan (2016), Inherent trade-offs in the fair determination of risk
    scores, arXiv:1609.05807.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> site = np.arange(600) % 3
    >>> model = GroupCalibration("temperature").fit(data.val_proba, data.val_labels, by=site)
    >>> model.predict_proba(data.test_proba, by=site).shape
    (600, 10)
    """

    def __init__(
        self,
        calibrator: Any = None,
        strength: float | None = None,
        cv: Any = 5,
        *,
        random_state: int | None = None,
        inputs: str = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.strength = strength
        self.cv = cv
        self.random_state = random_state
        self.inputs = inputs
        self.classes = classes

    # With metadata routing, groups reach the calibrator inside a `CalibratedClassifier`.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"by": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"by": True}
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = {"by": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"by": True}

    gain_: Gain | None
    by_: tuple[str, ...]
    groups_: dict[str, AnyArray]
    group_: dict[str, str] | None = None
    """The group of all rows, set by `for_group`."""

    _folds_by_row: ClassVar[bool] = True
    _uses_columns: ClassVar[bool] = True
    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "weights_": FittedValue((3,), 0.0, 1.0),
        "strengths_": FittedValue((2,), 0.0, is_finite=False),
        "group_weights_": FittedValue(("G",), 0.0),
        "effects_": FittedValue((2, "M", "D")),
    }

    @property
    def citation(self) -> Citation:
        return Citation(
            "effects of groups, shrunk toward {parts}", (WOLPERT_1992,), (self.pooled_,)
        )

    @property
    def needs_rows(self) -> bool:
        """Whether the pooled calibrator needs all rows in memory."""
        return needs_rows(self._pooled_calibrator())

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        """Checks that the pooled calibrator does not pass, with the reasons."""
        return getattr(self._pooled_calibrator(), "check_exceptions", {})

    def _pooled_calibrator(self) -> Any:
        return as_calibrator("auto" if self.calibrator is None else self.calibrator)

    def _check_parameters(self, n_classes: int) -> None:
        if self.strength is not None and self.strength != np.inf:
            check_number(self.strength, "strength", is_positive=True)

    def _check_sample(self, sample: Sample) -> None:
        member = self._pooled_calibrator()
        check_members({type(member).__name__: member}, sample)

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        groups = fitted.get("groups_")
        effects, n_classes = np.asarray(fitted.get("effects_")), fitted.get("n_classes_")
        if not isinstance(groups, dict) or tuple(groups) != fitted.get("by_"):
            raise ValueError("groups_ must have one entry for each column of by_.")
        n_groups = sum(map(len, groups.values()))
        if effects.shape[1] != n_groups + 1 or effects.shape[2] not in (1, (n_classes or 0) + 1):
            raise ValueError("effects_ must have one row per group, and one column per effect.")

    def fit(
        self,
        X: ScoresLike,
        y: LabelsLike,
        sample_weight: WeightsLike | None = None,
        groups: LabelsLike | None = None,
        *,
        by: Any = None,
        verbose: bool = False,
    ) -> Self:
        """Fit the pooled calibrator and the group effects.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores, as in other calibrators.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights. A weight of 2 is equivalent to duplicating the row.
        groups : array-like of shape (n_samples,), optional
            Rows that stay in one fold, such as rows of one patient. These groups have no effects.
        by : array-like of shape (n_samples,), dict or data frame, optional
            One column or several columns that define groups of rows. The effects of several columns
            are added. For chunked scores, pass dask columns with the same chunks, or arrays.
            Without ``by``, only the pooled calibrator is fitted.
        verbose : bool
            Whether to print the number of passes over chunked scores.

        Returns
        -------
        self
        """
        warn_other_order(y, by, what="labels and groups")
        columns = {} if by is None else as_columns(by)
        values = tuple(columns.values())
        self._fit_rows(X, y, sample_weight, groups, values, verbose=verbose)
        return self._name_columns(tuple(columns))

    def _name_columns(self, names: tuple[str, ...]) -> Self:
        """Set the names of the group columns after a fit."""
        self.groups_ = dict(zip(names, self.groups_.values(), strict=True))
        self.by_ = names
        return self

    def _fit(self, sample: Sample) -> None:
        rows = sample.memory_rows()
        if rows is not None:
            for column in sample.columns:
                check_same_length(y=rows.y, by=column)
        classes = self.classes_
        member = set_up(self._pooled_calibrator(), self.inputs, sample.n_columns, classes)
        if self.calibrator is None:
            member.set_params(random_state=self.random_state)
        is_large = sample.shape[0] * sample.n_columns >= _MANY_SCORES
        plan = plan_folds(self.cv, sample, self.random_state, one_fold=is_large)
        levels = GroupLevels.of(sample)
        has_effects = levels.n_groups > 0 and plan.n_folds > 0
        fits = fit_folds(member, plan, self.inputs) if has_effects else []
        start = fits[0] if fits else None
        self.pooled_ = fit_clone(member, sample.present(), self.inputs, start)
        self._keep_pooled(levels, sample.n_columns)
        if has_effects:
            self._fit_groups(sample, levels, plan, fits)

    def _keep_pooled(self, levels: GroupLevels, n_classes: int) -> None:
        """Set the fitted attributes of a fit without group effects."""
        self.group_ = None
        self.by_ = tuple(f"group_{number}" for number in range(len(levels.names)))
        self.groups_ = dict(zip(self.by_, levels.names, strict=True))
        self.group_weights_ = np.zeros(levels.n_groups)
        self.weights_ = np.array([1.0, 0.0, 0.0])
        self.strengths_ = np.array([np.inf, np.inf])
        self.effects_ = np.zeros((2, 1 + levels.n_groups, 1 + n_classes))
        self.gain_ = None

    def _fit_groups(
        self, sample: Sample, levels: GroupLevels, plan: FoldPlan, fits: Sequence[Any]
    ) -> None:
        """Choose strengths and weights on the folds, then fit the effects to all rows."""
        rule = CellRule.of(sample, levels)
        stages = one_stage(plan, rule, self.inputs), two_stages(plan, rule, fits, self.inputs)
        weight, group = held_out_rows(stages[1], plan.n_folds)
        strengths = STRENGTHS if self.strength is None else (self.strength,)
        chosen = [choose_strength(stage, strengths, plan.n_folds, weight) for stage in stages]
        self.strengths_ = np.array([choice.strength for choice in chosen])
        pooled = choose_strength(stages[1], (np.inf,), plan.n_folds, weight)
        likelihood = np.column_stack([choice.likelihood for choice in (pooled, *chosen)])
        is_trusted = np.array([True, False, False])
        rows = OutOfFold(likelihood, weight, group, is_trusted, sample.n_columns)
        self.weights_ = stack_weights(rows, _N_ERRORS)
        self.gain_ = stack_gain(rows, plan.ratios, _N_ERRORS)
        # Without effects, the calibrator of two stages equals the pooled calibrator.
        if np.isinf(self.strengths_[1]):
            self.weights_ = np.array([self.weights_[0] + self.weights_[2], self.weights_[1], 0.0])
        self._fit_effects(stages, chosen)
        self.group_weights_ = _group_weights(stages[1], levels)

    def _fit_effects(self, stages: Sequence[Stage], chosen: Sequence[Chosen]) -> None:
        """Fit the effects of the stages with a positive weight to all rows."""
        n_groups = stages[1].cells.shape[1]
        effects = np.zeros((2, 1 + n_groups, stages[1].n_effects))
        for number, (stage, choice) in enumerate(zip(stages, chosen, strict=True)):
            if self.weights_[1 + number] > 0:
                found = stage.fit(choice.strength, start=choice.start)
                effects[number, -len(found) :] = found
        self.effects_ = effects

    def _levels(self) -> GroupLevels:
        return GroupLevels(tuple(self.groups_.values()))

    def _columns_of(self, by: Any) -> tuple[Any, ...]:
        """Return the group columns of new rows, in the order of the fit."""
        check_fitted(self)
        if by is None:
            if self.by_ and self.group_ is None:
                raise ValueError(
                    f"This calibrator was fitted with the group columns {', '.join(self.by_)}, but "
                    f"by= is missing. Pass by=frame[{list(self.by_)!r}], or call for_group first."
                )
            return ()
        if self.group_ is not None or not self.by_:
            raise ValueError(
                "by= does not apply to a calibrator without groups, or with a single group. Call "
                "predict_proba(X) without by."
            )
        columns = as_columns(by)
        if len(self.by_) == 1 and len(columns) == 1:
            return tuple(columns.values())
        absent = [name for name in self.by_ if name not in columns]
        if absent:
            raise ValueError(
                f"by has the columns {shortened(list(columns))}, but column {absent[0]!r} is "
                f"missing. Pass by=frame[{list(self.by_)!r}]."
            )
        return tuple(columns[name] for name in self.by_)

    def for_group(self, by: Any = None) -> Self:
        """Return the calibrator of one group, which can be used without ``by`` and exported.

        Parameters
        ----------
        by : value, or dict of column name -> value, optional
            The group. Columns that are not in the dict have no effect. Values without calibration
            rows have no effect. If None, the result is the pooled calibrator.

        Returns
        -------
        GroupCalibration
            A copy of the calibrator for the given group.

        Examples
        --------
        >>> p, y, site = [0.2, 0.7, 0.4, 0.9] * 9, [0, 1, 0, 1, 1, 0] * 6, ["a", "b"] * 18
        >>> model = GroupCalibration("temperature", cv=2).fit(p, y, by=site)
        >>> model.for_group("a").predict_proba([0.3]).shape
        (1, 2)
        """
        check_fitted(self)
        values = by if isinstance(by, Mapping) else dict.fromkeys(self.by_[: by is not None], by)
        is_empty = by is None or (isinstance(by, Mapping) and not by)
        if not self.by_ and not is_empty:
            raise ValueError(
                "This calibrator was fitted without by=, so it has no groups. Call "
                "predict_proba(X) without for_group."
            )
        unknown = [name for name in values if name not in self.by_]
        if unknown or (by is not None and not isinstance(by, Mapping) and len(self.by_) != 1):
            raise ValueError(
                f"by must be a dict with names among {', '.join(self.by_)}, got {by!r}. For "
                f"example, pass by={{{self.by_[0]!r}: value}}."
            )
        selected = copy(self)
        names = {name: group_name(value) for name, value in values.items()}
        selected.group_ = {name: text for name, text in names.items() if text is not None}
        return selected

    def predict_proba(self, X: ScoresLike, *, by: Any = None) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the same kind as in `fit`.
        by : array-like of shape (n_samples,), dict or data frame
            Group columns of the rows. Columns of a dict or frame are matched by name.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Calibrated probabilities. For other inputs than arrays, the type of the result is the
            same as in other calibrators.
        """
        out = self._predict_with(X, by, self._proba_of)
        return _frames.wrapped(out, X, self.classes_, self._output)

    def predict_log_proba(self, X: ScoresLike, *, by: Any = None) -> Any:
        """Return the logarithms of `predict_proba`, with -inf for a probability of zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the same kind as in `fit`.
        by : array-like of shape (n_samples,), dict or data frame
            Group columns of the rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        out = self._predict_with(X, by, self._log_proba_of)
        return _frames.wrapped(out, X, self.classes_, self._output)

    def predict(self, X: ScoresLike, *, by: Any = None) -> Any:
        """Return the label with the highest probability. Ties go to the first column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the same kind as in `fit`.
        by : array-like of shape (n_samples,), dict or data frame
            Group columns of the rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_fitted(self)
        return self._predict_with(X, by, self._labels_of, (), self.classes_.dtype)

    def _predict_with(
        self,
        X: ScoresLike,
        by: Any,
        of_rows: Any,
        shape: tuple[int, ...] | None = None,
        dtype: Any = None,
    ) -> Any:
        columns = self._columns_of(by)
        if columns and as_chunked(X) is None:
            check_same_length(X=as_array(X), by=columns[0])
        # Chunks are checked when they are read, by the public methods of this class.
        of_chunk = partial(_predict_chunk, self, of_rows.__name__)
        return self._predict_new(X, of_chunk, of_rows, self._proba_of_top, shape, dtype, columns)

    def _log_true_of(self, scores: FloatArray, y: IntArray, *columns: AnyArray) -> FloatArray:
        return log_true_class(self._proba_of(scores, *columns), y, "proba")

    def _log_proba_of(self, scores: FloatArray, *columns: AnyArray) -> FloatArray:
        return log_of(self._proba_of(scores, *columns))

    def _labels_of(self, scores: FloatArray, *columns: AnyArray) -> AnyArray:
        return self.classes_[self._proba_of(scores, *columns).argmax(axis=1)]

    def _proba_of(self, scores: FloatArray, *columns: AnyArray) -> FloatArray:
        """Return the calibrated probabilities of a block of scores with its group columns."""
        pooled = proba_of(self.pooled_, scores, self.inputs)
        if self.weights_[0] == 1.0:
            return pooled
        codes = self._codes(columns, len(scores))
        known = np.flatnonzero((codes >= 0).any(axis=1))
        if not known.size:
            return pooled
        out = pooled.copy()
        logits = score_logits(scores[known], self.inputs), log_clipped(pooled[known], EPS)
        mixed = self.weights_[0] * pooled[known]
        for weight, u, effects in zip(self.weights_[1:], logits, self.effects_, strict=True):
            if weight > 0:
                of_rows = effects[0] + sum(
                    np.where(code[:, None] >= 0, effects[code + 1], 0.0) for code in codes[known].T
                )
                mixed += weight * softmax_in_place(effect_logits(u, of_rows))
        out[known] = mixed
        return out

    def _codes(self, columns: Sequence[AnyArray], n_rows: int) -> IntArray:
        """Return the group numbers of rows, (n, columns), with -1 for groups without an effect."""
        if self.group_ is not None:
            values = [self.group_.get(name) for name in self.by_]
            columns = [np.array([value], dtype=object) for value in values]
            return np.repeat(self._levels().codes(columns), n_rows, axis=0)
        if not columns:
            self._columns_of(None)
        return self._levels().codes(columns[: len(self.by_)])

    def _group_effects(self) -> FloatArray | None:
        """Return the effects of the group of `for_group`, (2, effects), or None without effects."""
        if not self.by_ or self.weights_[0] == 1.0:
            return None
        codes = self._codes((), 1)[0]
        known = codes[codes >= 0]
        if not known.size:
            return None
        effects: FloatArray = self.effects_[:, 0] + self.effects_[:, known + 1].sum(axis=1)
        return effects

    def _plain(self) -> Self:
        return self if self.group_ is not None else self.for_group(self._first_groups())

    def _first_groups(self) -> dict[str, str]:
        return {name: str(names[0]) for name, names in self.groups_.items() if len(names)}

    def _chunked_note(self) -> str:
        note = self.pooled_._chunked_note() if isinstance(self.pooled_, Calibrator) else ""
        return " ".join(
            dict.fromkeys(filter(None, ["Rows are assigned to folds by their row number.", note]))
        )

    _member_name: ClassVar[str] = "calibrators"

    def _members(self) -> Sequence[Any]:
        return [self.pooled_]

    def _description(self) -> str:
        if not self.by_:
            return "No groups were passed, so the pooled calibrator is applied to all rows."
        n_groups = ", ".join(f"{len(names)} by {name}" for name, names in self.groups_.items())
        if self.weights_[0] == 1.0 or self.gain_ is None:
            return f"Groups: {n_groups}. The groups do not differ enough for separate corrections."
        shares = ", ".join(
            f"{weight:.0%} {name}"
            for weight, name in zip(self.weights_, _STAGES, strict=True)
            if weight >= _VISIBLE
        )
        return f"Groups: {n_groups}. Weights: {shares}. Compared with the pooled calibrator: " + (
            f"{self.gain_.sentence()}"
        )


_STAGES = ("pooled calibrator", "one-stage effects", "two-stage effects")

_VISIBLE = 0.005
"""The summary does not list smaller weights, which would be rounded to 0%."""


def _group_weights(stage: Stage, levels: GroupLevels) -> FloatArray:
    """Sum of the weights of the rows of each group."""
    n_cells = stage.cells.shape[0]
    return stage.cells.spread(stage.rows.sum_chunks(partial(_cell_weights, n_cells)))


def _cell_weights(n_cells: int, chunk: ArraySample) -> FloatArray:
    return np.bincount(chunk.columns[0], chunk.weight, n_cells)


def _predict_chunk(
    model: GroupCalibration, method: str, scores: Any, *columns: AnyArray
) -> AnyArray:
    """Predict a chunk that is read later.

    This code is a function instead of a method, so it can be pickled.
    """
    checked = check_new_scores(model, scores)
    out: AnyArray = getattr(model, method)(checked, *columns)
    return out
