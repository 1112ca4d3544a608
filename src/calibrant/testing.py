"""Checks for calibrators of this package and of other packages.

A calibrator alone cannot pass ``check_estimator`` of scikit-learn, because this function passes
features that are not probabilities. The checks of this module pass probabilities. To run the checks
of scikit-learn, put the calibrator inside a `CalibratedClassifier`.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._kernels.simplex import log_of
from calibrant._typing import FloatArray, IntArray
from calibrant.base import BaseBinaryCalibrator
from calibrant.exceptions import ConvergenceWarning, DataWarning, NotFittedError

__all__ = ["CHECKS", "check_calibrator", "declared_exceptions", "make_data"]

_ATOL = 1e-6
"""Tolerance of iterative fits. If the order of operations changes, fits agree up to about their
gradient tolerance."""


def check_calibrator(calibrator: Any) -> None:
    """Run all checks of this module on an unfitted calibrator.

    The first check that fails raises an ``AssertionError``. If a calibrator cannot pass a check,
    set the class attribute or property ``check_exceptions = {"check_name": "reason"}`` to skip the
    check. If a weight of 2 is not equivalent to duplicating the row, set ``counts_rows = True``
    instead.

    Parameters
    ----------
    calibrator : calibrator
        An unfitted calibrator, which is cloned for each check.

    See Also
    --------
    make_data : Data that the checks use.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> check_calibrator(TemperatureScaling())
    """
    excused = declared_exceptions(calibrator)
    for name, check in CHECKS.items():
        if name not in excused:
            with warnings.catch_warnings():
                # Some checks use separable data on purpose, so ignore the warnings about them.
                warnings.simplefilter("ignore", ConvergenceWarning)
                check(clone(calibrator))


def declared_exceptions(calibrator: Any) -> dict[str, str]:
    """Return the names of checks that a calibrator cannot pass, with the reasons.

    See Also
    --------
    check_calibrator : Run all other checks.
    """
    excused = dict(getattr(calibrator, "check_exceptions", {}))
    if getattr(calibrator, "counts_rows", False):
        excused[check_weights_are_copies.__name__] = "the method counts rows"
    return excused


def make_data(calibrator: Any, n_samples: int = 120, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """Return overconfident scores, and labels that a calibrator accepts.

    The scores have the type and the number of classes that the calibrator accepts.

    Parameters
    ----------
    calibrator : calibrator
        The calibrator.
    n_samples : int, default 120
        Number of rows.
    seed : int, default 0
        Random seed.

    Returns
    -------
    scores, labels : arrays of shape (n, K) and (n,)
        Scores of the type ``calibrator.inputs``, and column codes.

    See Also
    --------
    check_calibrator : Run all checks.

    Examples
    --------
    >>> from calibrant import PlattScaling
    >>> X, y = make_data(PlattScaling())
    >>> X.shape, y.shape
    ((120, 2), (120,))
    """
    generator = np.random.default_rng(seed)
    n_classes = 2 if isinstance(calibrator, BaseBinaryCalibrator) else 4
    logits = generator.normal(scale=1.5, size=(n_samples, n_classes))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    return _as_input(calibrator, 1.7 * logits), labels


def _as_input(calibrator: Any, logits: FloatArray) -> FloatArray:
    if calibrator.inputs == "logits":
        return logits
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    return np.log(proba) if calibrator.inputs == "log_proba" else proba


def _assert_valid(proba: FloatArray, shape: tuple[int, ...]) -> None:
    assert proba.shape == shape, f"expected shape {shape}, got {proba.shape}"
    assert np.isfinite(proba).all(), "probabilities must be finite"
    assert (proba >= 0).all(), "probabilities must not be negative"
    assert (proba <= 1 + 1e-6).all(), "probabilities must not exceed one"


def _assert_close(left: Any, right: Any, atol: float = _ATOL) -> None:
    np.testing.assert_allclose(left, right, rtol=0, atol=atol)


def check_refit_equals_fit(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    first = calibrator.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(calibrator.fit(X, y).predict_proba(X), first)
    other = make_data(calibrator, 50, seed=5)
    np.testing.assert_array_equal(calibrator.fit(*other).fit(X, y).predict_proba(X), first)


def check_fit_returns_self_and_keeps_parameters(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    before = {name: repr(value) for name, value in calibrator.get_params().items()}
    assert calibrator.fit(X, y) is calibrator
    assert {name: repr(value) for name, value in calibrator.get_params().items()} == before


def check_clone_and_pickle(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    expected = calibrator.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clone(calibrator).fit(X, y).predict_proba(X), expected)
    copy = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(copy.predict_proba(X), expected)


def check_unfitted_error(calibrator: Any) -> None:
    X, _ = make_data(calibrator)
    for method in (calibrator.predict_proba, calibrator.predict):
        try:
            method(X)
        except NotFittedError:
            continue
        raise AssertionError(f"{method.__name__} before fit must raise NotFittedError")


def check_fitted_attributes(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    calibrator.fit(X, y)
    assert calibrator.classes_.tolist() == list(range(X.shape[1]))
    assert calibrator.n_classes_ == X.shape[1]
    assert calibrator.n_features_in_ == X.shape[1]


def check_output_is_valid(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    _assert_valid(calibrator.fit(X, y).predict_proba(X), X.shape)
    assert 0 <= calibrator.score(X, y) <= 1


def check_log_proba(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    calibrator.fit(X, y)
    _assert_close(np.exp(calibrator.predict_log_proba(X)), calibrator.predict_proba(X), 1e-12)
    assert calibrator.predict_log_proba(X.astype(np.float32)).dtype == np.float32


def check_array_kinds(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    expected = calibrator.fit(X, y).predict_proba(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    for scores in (frozen, strided, np.asfortranarray(X), X.tolist()):
        _assert_close(calibrator.fit(scores, y).predict_proba(scores), expected, 1e-7)
    np.testing.assert_array_equal(frozen, X)


def check_dtypes(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    single = X.astype(np.float32)
    result = calibrator.fit(single, y).predict_proba(single)
    assert result.dtype == np.float32
    assert calibrator.fit(X, y).predict_proba(X).dtype == np.float64
    assert calibrator.predict_proba(X.astype(np.float16)).dtype == np.float32


def check_weights_are_copies(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    weight = np.random.default_rng(1).integers(1, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    weighted = clone(calibrator).fit(X, y, sample_weight=weight).predict_proba(X)
    _assert_close(weighted, clone(calibrator).fit(X[copies], y[copies]).predict_proba(X))


def check_weight_zero_is_absence(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    weight = (np.arange(len(y)) % 4 > 0).astype(float)
    rows = weight > 0
    weighted = clone(calibrator).fit(X, y, sample_weight=weight).predict_proba(X)
    _assert_close(weighted, clone(calibrator).fit(X[rows], y[rows]).predict_proba(X))


def check_row_order_is_irrelevant(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    order = np.random.default_rng(2).permutation(len(y))
    _assert_close(
        clone(calibrator).fit(X[order], y[order]).predict_proba(X),
        clone(calibrator).fit(X, y).predict_proba(X),
    )


def check_rows_are_predicted_one_by_one(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    whole = calibrator.fit(X, y).predict_proba(X)
    _assert_close(calibrator.predict_proba(X[10:13]), whole[10:13], 1e-12)
    _assert_close(calibrator.predict_proba(X[::-1]), whole[::-1], 1e-12)


def check_text_labels(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    names = np.array(["pear", "fig", "apple", "date"])[: X.shape[1]]
    expected = clone(calibrator).fit(X, y)
    named = clone(calibrator).set_params(classes=list(names)).fit(X, names[y])
    np.testing.assert_array_equal(named.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(named.predict(X), names[expected.predict(X)])
    assert named.classes_.tolist() == names.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # columns are assumed to be in sorted order
        by_order = clone(calibrator).fit(X, np.sort(names)[y])
    assert by_order.classes_.tolist() == sorted(names)


def check_missing_class(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    present = y != 1
    _assert_valid(calibrator.fit(X[present], y[present]).predict_proba(X), X.shape)


def check_one_row(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    _assert_valid(calibrator.fit(X[:1], y[:1]).predict_proba(X), X.shape)


def check_one_class_only(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    _assert_valid(calibrator.fit(X, np.zeros_like(y)).predict_proba(X), X.shape)


def check_exact_zeros_and_ones(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    X = X.copy()
    if calibrator.inputs == "logits":
        X[::3, 0] = -np.inf
    else:
        certain = np.eye(X.shape[1])
        certain = log_of(certain) if calibrator.inputs == "log_proba" else certain
        X[::3] = certain[y[::3]]
        X[1] = certain[(y[1] + 1) % X.shape[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the true class has probability zero
        calibrator.fit(X, y)
    _assert_valid(calibrator.predict_proba(X), X.shape)


def check_ties(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    constant = np.repeat(X[:1], len(y), axis=0)
    _assert_valid(calibrator.fit(constant, y).predict_proba(X), X.shape)
    two = X[np.arange(len(y)) % 2]
    proba = calibrator.fit(two, y).predict_proba(two)
    _assert_valid(proba, X.shape)
    _assert_close(proba[2:], proba[:-2], 1e-12)


def check_binary_forms_agree(calibrator: Any) -> None:
    _, y = make_data(calibrator)
    two = _as_input(calibrator, np.random.default_rng(3).normal(size=(len(y), 2)))
    flat = two[:, 1] - two[:, 0] if calibrator.inputs == "logits" else two[:, 1]
    from_two = clone(calibrator).fit(two, y % 2).predict_proba(two)
    from_flat = clone(calibrator).fit(flat, y % 2).predict_proba(flat)
    assert from_flat.shape == (len(y), 2)
    _assert_close(from_flat, from_two)


def check_bad_input_is_rejected(calibrator: Any) -> None:
    X, y = make_data(calibrator)
    fitted = clone(calibrator).fit(X, y)
    wrong = [
        (lambda: clone(calibrator).fit(X[:-1], y), "but the scores have"),
        (lambda: clone(calibrator).fit(X, y + 10), "out of range"),
        (lambda: clone(calibrator).fit(np.full_like(X, np.nan), y), "NaN|nan"),
        (lambda: clone(calibrator).fit(X, y, sample_weight=-np.ones(len(y))), "weights must be"),
        (lambda: clone(calibrator).set_params(inputs="guess").fit(X, y), "inputs must be"),
        (
            lambda: fitted.predict_proba(_as_input(calibrator, np.zeros((3, X.shape[1] + 1)))),
            "columns",
        ),
    ]
    for call, message in wrong:
        _assert_raises(call, message)


def _assert_raises(call: Callable[[], Any], message: str) -> None:
    try:
        call()
    except ValueError as error:
        if any(part in str(error) for part in message.split("|")):
            return
        raise AssertionError(f"expected a message about {message!r}, got: {error}") from error
    raise AssertionError(f"expected a ValueError about {message!r}")


def check_frames(calibrator: Any) -> None:
    try:
        import pandas
    except ImportError:
        return
    X, y = make_data(calibrator)
    frame = pandas.DataFrame(X, index=np.arange(len(y)) + 100)
    expected = calibrator.fit(X, y).predict_proba(X)
    _assert_close(calibrator.fit(frame, pandas.Series(y)).predict_proba(frame), expected, 1e-7)
    out = clone(calibrator.set_output(transform="pandas")).fit(frame, y).predict_proba(frame)
    assert out.index.equals(frame.index)
    assert list(out.columns) == list(calibrator.classes_)
    _assert_close(out.to_numpy(), expected, 1e-7)


def check_feature_names(calibrator: Any) -> None:
    try:
        import pandas
    except ImportError:
        return
    X, y = make_data(calibrator)
    frame = pandas.DataFrame(X, columns=list("abcd"[: X.shape[1]]))
    calibrator.fit(frame, y)
    assert calibrator.feature_names_in_.tolist() == list(frame.columns)
    expected = calibrator.predict_proba(frame)
    np.testing.assert_array_equal(calibrator.predict_proba(frame[frame.columns[::-1]]), expected)
    other = frame.rename(columns={"a": "z"})
    _assert_raises(lambda: calibrator.predict_proba(other), "was fitted with the columns")
    assert not hasattr(calibrator.fit(X, y), "feature_names_in_")


CHECKS: dict[str, Callable[[Any], None]] = {
    name: value
    for name, value in sorted(globals().items())
    if name.startswith("check_") and name != "check_calibrator"
}
"""All checks by name."""


def __dir__() -> list[str]:
    return __all__
