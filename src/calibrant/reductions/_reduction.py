"""Multiclass calibration by binary calibrators, which calibrate each claim on its own rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._data.read import as_chunked
from calibrant._data.sample import Sample
from calibrant._data.top_scores import TopScores
from calibrant._kernels import top_labels
from calibrant._kernels.blocks import CALL_BLOCK, READ_BLOCK
from calibrant._kernels.simplex import is_unit, normalized
from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike
from calibrant._validation import check_fitted
from calibrant.base import BaseBinaryCalibrator, Calibrator, Citation
from calibrant.base.fitted import FittedValue
from calibrant.base.references import GUPTA_RAMDAS_2022
from calibrant.binary.histogram import HistogramBinning
from calibrant.binning import Bins, bin_table
from calibrant.guarantees import Guarantee, check_deployed
from calibrant.notions import (
    Claim,
    ClaimBlock,
    Claims,
    Notion,
    as_notion,
    claim_of_cells,
    note_on_cells,
    select_top,
)
from calibrant.reductions._guarantee import FittedBins, check_guaranteed, reduction_guarantee

__all__ = ["MulticlassToBinary"]


class MulticlassToBinary(Calibrator):
    """Calibrate binary events of a multiclass problem with a binary calibrator.

    Use `MulticlassToBinary` to calibrate exactly the probabilities that your decisions use, such as
    the confidence, the probability of one class, or the three highest probabilities. ``notion``
    selects the events of these probabilities, and one clone of the calibrator is fitted to each
    event.

    Parameters
    ----------
    calibrator : binary calibrator
        Calibrator that is cloned and fitted to probabilities for each event. `HistogramBinning` may
        have one ``points_per_bin`` per class.
    notion : str, default "top-label"
        Type of calibration, which determines the events. See `calibrant.notions`.
    normalize : bool, default False
        Whether to divide the rows of `predict_proba` by their sum, for "class-wise" only. With
        other notions, rows always sum to one.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores that you pass to `fit` and to `predict_proba`.
    classes : array-like of labels, optional
        Labels of the columns. If None, integer labels are column numbers and other labels are
        sorted.

    Attributes
    ----------
    calibrators_ : list of calibrators
        The fitted calibrator of each event ("claim").
    claim_weights_ : array of shape (n_claims,)
        Sum of the weights of the rows of each claim.
    fallback_classes_ : array of labels
        Classes with too few rows for their own fit. These classes share a calibrator that is fitted
        to the rows of all classes. For its own fit, a class needs ``max(2, n_bins)`` rows with
        histogram binning, or ``points_per_bin`` rows if ``n_bins`` is None. With other calibrators,
        a class needs 2 rows.
    fallback_claims_ : array of int
        Indices of the claims that use the shared calibrator.
    is_weighted_ : bool
        Whether some rows had weights other than 0 and 1.
    bins_ : Bins
        The bins of histogram binning per claim. Pass the calibrator as ``bins=`` to evaluate other
        predictions in the same bins.

    See Also
    --------
    guarantee : Intervals for histogram binning that hold for every distribution.
    calibrant.notions : All types of calibration.

    Notes
    -----
    This is Algorithm 5 of Gupta & Ramdas (2022). Claim c has a score :math:`s_i` and an outcome
    :math:`o_i` for each of its rows. A clone :math:`h_c` of the calibrator is fitted to these rows.
    The calibrated score of a new row is :math:`h_c(s)`. The other algorithms of the paper
    correspond to the following calibrators, with a binary calibrator ``A`` and k points per bin:

    - Algorithm 1, confidence: ``MulticlassToBinary(A, notion="confidence")``
    - Algorithm 2, top-label: ``MulticlassToBinary(A, notion="top-label")``
    - Algorithm 3, class-wise: ``MulticlassToBinary(A, notion="class-wise")``
    - Algorithm 4, normalized: ``MulticlassToBinary(A, notion="class-wise", normalize=True)``
    - Algorithm 6, top-K-label: ``MulticlassToBinary(A, notion="top-3-label")``
    - Algorithm 7, top-K-confidence: ``MulticlassToBinary(A, notion="top-3-confidence")``
    - Algorithm 8, top-label histogram binning:
      ``MulticlassToBinary(HistogramBinning(points_per_bin=k))``
    - Algorithm 9, class-wise histogram binning:
      ``MulticlassToBinary(HistogramBinning(points_per_bin=[k_1, ..., k_L]), notion="class-wise")``

    `predict_claims` returns the calibrated probabilities of the claims, to which `guarantee`
    applies. For notions of ranks (confidence, top-label, rank-r, top-k), `predict_top` returns
    these probabilities with labels. `predict_proba` inserts these probabilities into rows:

    - "class-wise" inserts the probabilities unchanged, so rows need not sum to one. ``normalize``
      divides rows by their sum, and a row of zeros becomes uniform.
    - Other notions scale the probabilities down if their sum exceeds one, and rescale the rest of
      the row. "within-top-r" scales the top r entries. The entries of other classes stay below the
      entry of the top class if possible.

    `predict` returns the class with the highest entry of `predict_proba`. This class can differ
    from the class with the highest score before calibration. The two classes can differ if the
    calibrated probability of the top class is at most 1/K, or below the calibrated probability of
    another rank. For example, consider 10,000 rows of CIFAR-100 (ResNet-110). With a spline of the
    confidence, the predicted class changes in 2 rows. The predicted class changes in 143 rows with
    one spline per top label, and in no row with histogram binning. The accuracy is 0.7490 in all
    cases.

    A fit consists of one binary fit per claim, and needs memory for a few columns of scores.

    References
    ----------
    Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR,
    arXiv:2107.08353.

    Examples
    --------
    >>> from calibrant.binary import HistogramBinning
    >>> P = np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.9, 0.1, 0.0], [0.2, 0.6, 0.2]])
    >>> y = np.array([0, 0, 2, 1])
    >>> calibrator = MulticlassToBinary(HistogramBinning(n_bins=1), notion="top-label").fit(P, y)
    >>> calibrator.predict_top([[0.5, 0.3, 0.2]])
    (array([0]), array([0.66666667]))
    >>> calibrator.fallback_classes_
    array([1, 2])
    """

    # Every block calls the calibrator of each claim. Blocks may exceed the cache, because fewer
    # calls save more time than the cache does.
    _block_elements: ClassVar[int | None] = CALL_BLOCK

    def __init__(
        self,
        calibrator: BaseBinaryCalibrator,
        notion: str | Notion = "top-label",
        normalize: bool = False,
        *,
        inputs: str = "proba",
        classes: LabelsLike | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.notion = notion
        self.normalize = normalize
        self.inputs = inputs
        self.classes = classes

    @property
    def citation(self) -> Citation:
        return Citation(
            f"{{parts}} of the binary events of {as_notion(self.notion).name} calibration",
            (GUPTA_RAMDAS_2022,),
            (self.calibrator,),
        )

    def _check_parameters(self, n_classes: int) -> None:
        base = _check_base(self.calibrator)
        notion = as_notion(self.notion)
        notion.n_quantities(n_classes)
        base._check_for_claims(n_classes, by_class=notion.column_of(0, n_classes) is not None)

    @property
    def counts_rows(self) -> bool:
        """Whether a weight of 2 differs from a duplicated row for the inner calibrator."""
        return self.calibrator.counts_rows

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        return self.calibrator.check_exceptions

    form: ClassVar[str] = "proba"
    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "claim_weights_": FittedValue(("C",), 0.0)
    }
    _member_name: ClassVar[str] = "claims"

    def _members(self) -> Sequence[BaseBinaryCalibrator]:
        return self.calibrators_

    def _chunked_note(self) -> str:
        rows = self.claim_weights_
        if self.calibrator._is_exact_on_cells(float(self.class_weights_.sum()), rows):
            return ""
        return note_on_cells(len(rows))

    def _fit(self, sample: Sample) -> None:
        claims = sample.claims(self._bound, self.calibrator._cuts(sample.total))
        base = clone(self.calibrator)
        batches = self._count_claims(claims, base) or claims.batches(READ_BLOCK)
        fits = [fit for batch in batches for fit in self._fit_batch(batch, base)]
        self.calibrators_ = [fit.calibrator for fit in fits]
        self.claim_weights_ = np.array([fit.rows for fit in fits])
        self.fallback_claims_ = np.flatnonzero([fit.is_pooled for fit in fits])
        self.fallback_classes_ = self.classes_[np.unique(self.fallback_claims_ % claims.n_labels)]
        self.is_weighted_ = sample.is_weighted
        self.is_multilabel_ = sample.is_multilabel

    @property
    def _takes_multilabel(self) -> bool:
        # With one label, predict_proba would rescale the probabilities of the other labels.
        return as_notion(self.notion).claims_are_rows and not self.normalize

    @property
    def _bound(self) -> Notion:
        """The notion for the classes of the fit."""
        return as_notion(self.notion).bound(self.classes_)

    def _count_claims(
        self, claims: Claims, base: BaseBinaryCalibrator
    ) -> Iterator[list[Claim]] | None:
        """Return claims as counts per bin if the bins are known before the fit.

        If the bins depend on the data, return None.
        """
        if claims.n_labels > 1 or not is_unit(claims.weight):
            return None
        cuts = base._cuts(float(claims.weight.sum()))
        if cuts is None:
            return None
        table = bin_table(claims, n_bins=len(cuts))
        sums = zip(table.weight, table.score, table.outcome, strict=True)
        return ([claim_of_cells(index, cuts, *cells)] for index, cells in enumerate(sums))

    def _fit_batch(
        self, claims: Sequence[Claim], base: BaseBinaryCalibrator
    ) -> Iterator[_ClaimFit]:
        """Fit claims. Claims with too few rows share a pooled fit per quantity."""
        notion = self._bound
        clones = [
            base._for_claim(notion.column_of(claim.index, self.n_classes_), claim.index)
            for claim in claims
        ]
        rows = [float(claim.weight.sum()) for claim in claims]
        can_pool = len(claims) > 1 and notion.n_labels(self.n_classes_) > 1
        has_few_rows = [
            can_pool and n < calibrator._rows_needed()
            for calibrator, n in zip(clones, rows, strict=True)
        ]
        if any(has_few_rows):
            pooled = base._for_claim(None, _POOLED)
            pooled._fit_claims([pooled], [_pool(claims)])
        indices = [j for j, has_few in enumerate(has_few_rows) if not has_few]
        if indices:
            base._fit_claims([clones[j] for j in indices], [claims[j] for j in indices])
        for calibrator, n, has_few in zip(clones, rows, has_few_rows, strict=True):
            yield _ClaimFit(pooled if has_few else calibrator, n, has_few)

    def predict_claims(self, X: ScoresLike) -> FloatArray:
        """Predict the calibrated probabilities of the claims, to which the guarantee applies.

        Parameters
        ----------
        X : array-like of shape (n, K)
            Scores of the same type as in `fit`.

        Returns
        -------
        array of shape (n, n_columns)
            One column for "confidence", "top-label", "rank-r", "within-top-r" and "class-k", and k
            columns for "top-k-confidence" and "top-k-label". "class-wise" has K columns, and its
            rows need not sum to one. The dtype is always float64, because float32 would merge bins
            that differ by ``delta``.

        See Also
        --------
        predict_top : The calibrated probabilities with their labels.
        guarantee : Intervals of the true probabilities.
        """
        check_fitted(self)
        notion = self._bound
        shape = (notion.n_quantities(self.n_classes_),)

        def of_rows(scores: FloatArray) -> FloatArray:
            return self._calibrate(notion.select(self._transform(scores)))

        def of_top(top: TopScores) -> FloatArray:
            return self._calibrate(select_top(notion, top))

        return self._predict_new(X, self.predict_claims, of_rows, of_top, shape, np.float64)

    def predict_top(self, X: ScoresLike) -> tuple[AnyArray, FloatArray]:
        """Predict labels and their calibrated probabilities.

        The method predicts the labels with the highest scores before calibration.

        Parameters
        ----------
        X : array-like of shape (n, K)
            Scores of the same type as in `fit`.

        Returns
        -------
        labels, probabilities : arrays of shape (n,), or (n, k) for "top-k-confidence" and
        "top-k-label"
            The labels of the claims and their probabilities. For "class-wise", "class-k" and
            "within-top-r", the class with the highest score and its entry in `predict_proba`.

        See Also
        --------
        predict_claims : The probabilities without labels.
        """
        check_fitted(self)
        n_columns = self._bound.n_quantities(self.n_classes_) if self._bound.reports_labels else 1
        chunked = as_chunked(X)
        if chunked is not None:
            return _map_top(self, chunked, (n_columns,) if n_columns > 1 else ())
        # Store column codes and probabilities in one float array, so one pass over X is enough.
        top = self._predict_new(
            X, self.predict_top, self._top_of, self._top_of_top, (2 * n_columns,), np.float64
        )
        labels, claims = self.classes_[top[:, :n_columns].astype(np.intp)], top[:, n_columns:]
        return (labels, claims) if n_columns > 1 else (labels[:, 0], claims[:, 0])

    def _top_of(self, scores: FloatArray) -> FloatArray:
        """Return column codes and probabilities of the reported labels in one array."""
        notion, proba = self._bound, self._transform(scores)
        if notion.reports_labels:
            block = notion.select(proba)
            return np.hstack([block.labels(), self._calibrate(block)])
        codes = top_labels(proba, 1)
        return np.hstack([codes, np.take_along_axis(self._proba_of(scores), codes, axis=1)])

    def _top_of_top(self, top: TopScores) -> FloatArray:
        block = select_top(self._bound, top)
        return np.hstack([block.labels(), self._calibrate(block)])

    def _description(self) -> str:
        n_pooled = len(self.fallback_classes_)
        pooled = ""
        if n_pooled:
            pooled = (
                f" {n_pooled} {'class has' if n_pooled == 1 else 'classes have'} too few rows and "
                f"{'uses' if n_pooled == 1 else 'share'} a calibrator that is fitted to all labels."
            )
        notion, n_claims = as_notion(self.notion).name, len(self.calibrators_)
        events = f"the binary event of {notion} calibration"
        if n_claims > 1:
            events = f"each of the {n_claims} binary events of {notion} calibration"
        return f"{type(self.calibrator).__name__} is fitted to {events}.{pooled}"

    def _proba_of(self, scores: FloatArray) -> FloatArray:
        """Return rows of probabilities, into which the notion inserts the calibrated claims."""
        notion, proba = self._bound, self._transform(scores)
        block = notion.select(proba)
        rows = notion.fill(proba, block._replace(score=self._calibrate(block)))
        return normalized(rows) if self.normalize and notion.claims_are_rows else rows

    @property
    def _is_normalized(self) -> bool:
        return self.normalize and self._bound.claims_are_rows

    def _calibrate(self, block: ClaimBlock) -> FloatArray:
        """Return the calibrated scores of a block of claims, (m, J)."""
        score = np.minimum(block.score, 1.0)  # rounding can make sums of a row exceed one
        # With one claim per column, one call predicts all columns.
        if len(self.calibrators_) == score.shape[1]:
            return self.calibrators_[0]._predict_claims(self.calibrators_, score)
        out = np.empty(score.shape)
        for quantity in range(score.shape[1]):
            for claim, rows in self._claims_in(block, quantity):
                out[rows, quantity] = self.calibrators_[claim]._predict_claim(score[rows, quantity])
        return out

    def _claims_in(self, block: ClaimBlock, quantity: int) -> Iterator[tuple[int, Any]]:
        """Yield the claims of a quantity that occur in a block, with their rows."""
        n_labels = self._bound.n_labels(self.n_classes_)
        if n_labels == 1:
            yield quantity, slice(None)
            return
        label = block.labels()[:, quantity]
        for code in np.unique(label).tolist():
            yield quantity * n_labels + code, np.flatnonzero(label == code)

    @property
    def bins_(self) -> Bins:
        fitted = [c for c in self.calibrators_ if isinstance(c, HistogramBinning)]
        if not fitted:
            raise AttributeError(
                f"{type(self.calibrator).__name__} has no bins, so the attribute bins_ does not "
                "exist. Use MulticlassToBinary(HistogramBinning())."
            )
        return Bins(tuple(c.edges_ for c in fitted))

    def guarantee(self, alpha: float | Sequence[float] = 0.05) -> Guarantee:
        r"""Return distribution-free bounds for `predict_claims` on new data.

        Parameters
        ----------
        alpha : float, or one per class (class-wise) or rank, default 0.05
            Maximum probability that the guarantee fails. If you pass several values, their sum is
            this probability.

        Returns
        -------
        Guarantee
            Bounds of the calibration error, and a confidence interval for the true probability of
            each bin.

        Raises
        ------
        ValueError
            If there is no guarantee. Calibrators other than histogram binning have no guarantee.
            There is also no guarantee with ``boundary="include"``, with weighted rows, or if no
            claim has two points per bin. The same is true if `CalibratedClassifier` fitted the
            calibrator on scores of models other than the model that predicts.

        See Also
        --------
        calibrant.binary.HistogramBinning : The calibrator that has a guarantee.

        Notes
        -----
        Let k be the number of points per bin, n the number of rows and :math:`\delta` the parameter
        ``delta`` of the histogram binning. The bounds are (Theorems 1 and 2)

        .. math:: \text{marginal} = \sqrt{\tfrac{\log(2/\alpha)}{2(k-1)}} + \delta, \quad
            \text{conditional} = \sqrt{\tfrac{\log(2n/(k\alpha))}{2(k-1)}} + \delta, \quad
            \text{expected ECE} = \sqrt{\tfrac{1}{2k}} + \delta .

        The intervals per bin are exact Clopper-Pearson intervals. Several classes or ranks share
        alpha (union bound).

        Two assumptions cannot be verified from the data. The calibration rows must be independent
        of each other, and the model must not have been trained or selected on them. The guarantee
        covers `predict_top` only for notions of ranks. With other notions, `predict_top` selects a
        class by its score, and the guarantee does not account for this selection.
        """
        check_fitted(self)
        check_deployed(self.out_of_fold_)
        base = check_guaranteed(self.calibrator, is_weighted=self.is_weighted_)
        fitted = [c for c in self.calibrators_ if isinstance(c, HistogramBinning)]
        bins = FittedBins(
            self._bound,
            self.classes_,
            fitted,
            self.claim_weights_,
            self.fallback_claims_,
        )
        return reduction_guarantee(bins, alpha, base.delta, is_normalized=self._is_normalized)


# Index of the pooled claim of a quantity. Seeds depend on the index, and no claim has the index -1.
_POOLED = -1


class _ClaimFit(NamedTuple):
    """A fitted claim, with its calibrator, its number of rows, and whether the fit is pooled."""

    calibrator: BaseBinaryCalibrator
    rows: float
    is_pooled: bool


def _check_base(base: Any) -> BaseBinaryCalibrator:
    """Return the inner calibrator, or raise if it cannot be fitted to claims."""
    if not isinstance(base, BaseBinaryCalibrator):
        raise TypeError(
            f"calibrator must be a binary calibrator such as HistogramBinning(), got "
            f"{type(base).__name__}. Fit a calibrator of whole vectors directly: "
            f"{type(base).__name__}().fit(X, y)."
        )
    if base.inputs != "proba" or base.classes is not None:
        raise ValueError(
            f"The inner calibrator {base!r} must not set inputs or classes, because it is fitted "
            "to probabilities and outcomes. Pass inputs and classes to "
            f"MulticlassToBinary({type(base).__name__}(), inputs=..., classes=...)."
        )
    return base


def _map_top(model: MulticlassToBinary, chunked: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return chunked labels and claims. Chunks are read once for the labels and once for claims."""
    labels = chunked.map(partial(_top_item, model, 0), shape, model.classes_.dtype)
    return labels, chunked.map(partial(_top_item, model, 1), shape, np.float64)


def _top_item(model: MulticlassToBinary, item: int, X: Any) -> AnyArray:
    return model.predict_top(X)[item]


def _pool(claims: Sequence[Claim]) -> Claim:
    """Combine the rows of all claims in one claim."""
    score, outcome, weight = (
        np.concatenate([getattr(c, name) for c in claims])
        for name in ("score", "outcome", "weight")
    )
    ends = [claim.ends for claim in claims if claim.ends is not None]
    cells = np.concatenate(ends) if ends else None
    is_weighted = any(claim.is_counted_weighted for claim in claims)
    rows = [claim.cell_rows for claim in claims if claim.cell_rows is not None]
    counts = _pool_rows(cells, claims) if rows and cells is not None else None
    return Claim(_POOLED, slice(None), score, outcome, weight, cells, is_weighted, counts)


def _pool_rows(ends: FloatArray, claims: Sequence[Claim]) -> FloatArray:
    """Return the number of rows in the cell of each entry, over all claims."""
    values, place = np.unique(ends, return_inverse=True)
    total = np.zeros(len(values))
    for claim in claims:
        if claim.ends is not None and claim.cell_rows is not None and len(claim.ends):
            cells, first = np.unique(claim.ends, return_index=True)
            total[np.searchsorted(values, cells)] += claim.cell_rows[first]
    return total[place]
