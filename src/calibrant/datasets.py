"""Example predictions of real classifiers, and synthetic predictions with known calibration errors.

The functions download nothing. `digits_predictions` trains a scikit-learn classifier on bundled
data. The synthetic families draw scores and labels whose true calibration errors have closed
formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray, Rng
from calibrant._validation import check_count, check_option

__all__ = [
    "KnownError",
    "SplitPredictions",
    "digits_predictions",
    "draw_labels",
    "linear_family",
    "noisy_simplex",
    "power_family",
    "two_label_example",
]


@dataclass(frozen=True, eq=False)
class SplitPredictions:
    """Predicted probabilities of a classifier on held-out rows: a calibration set and a test set.

    Attributes
    ----------
    val_proba, test_proba : arrays of shape (n, K)
        Probabilities of the calibration set and of the test set.
    val_labels, test_labels : arrays of shape (n,)
        Column codes of the true labels.
    class_names : array of shape (K,)
        Labels of the columns.

    See Also
    --------
    digits_predictions : Make such predictions.
    """

    val_proba: FloatArray
    val_labels: IntArray
    test_proba: FloatArray
    test_labels: IntArray
    class_names: AnyArray


@dataclass(frozen=True, eq=False)
class KnownError:
    """Scores and labels of a distribution with known calibration errors.

    Attributes
    ----------
    proba : array of shape (n, K) or (n,)
        Predicted probabilities.
    labels : array of shape (n,)
        Column codes of the true labels.
    errors : dict of name -> float
        True errors. ``"<notion>-l1"`` and ``"<notion>-l2"`` are the limits of the expected
        calibration error with ``norm`` 1 and 2, for many rows and narrow bins. ``"<notion>-ks"`` is
        the limit of the KS error.

    See Also
    --------
    power_family, linear_family, noisy_simplex, two_label_example : Make such data.
    """

    proba: FloatArray
    labels: IntArray
    errors: dict[str, float]


_MODELS = ("naive_bayes", "forest", "boosting", "mlp", "logistic")


def _make_model(name: str) -> Any:
    # Imported here, because scikit-learn's models take longer to import than this whole package.
    from sklearn import ensemble, linear_model, naive_bayes, neural_network

    if name == "naive_bayes":
        return naive_bayes.GaussianNB(var_smoothing=1e-3)
    if name == "forest":
        return ensemble.RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    if name == "boosting":
        return ensemble.HistGradientBoostingClassifier(
            max_iter=30, learning_rate=0.3, random_state=0
        )
    if name == "mlp":
        return neural_network.MLPClassifier((32,), alpha=0.0, max_iter=400, random_state=0)
    return linear_model.LogisticRegression(C=100.0, max_iter=2000)


def digits_predictions(
    model: str = "naive_bayes", digits: Sequence[int] | None = None
) -> SplitPredictions:
    """Train a scikit-learn classifier on handwritten digits and return its predictions.

    The data are bundled with scikit-learn and have 10 classes. There are 600 rows for calibration
    and 600 rows for testing.

    Parameters
    ----------
    model : {"naive_bayes", "forest", "boosting", "mlp", "logistic"}, default "naive_bayes"
        Naive Bayes is strongly overconfident. The forest is underconfident and predicts exact
        zeros. The calibration of the other classifiers is between these two extremes.
    digits : sequence of at least two of 0..9, optional
        Digits to include, for a problem with fewer classes. Each digit has about 180 images.

    Returns
    -------
    SplitPredictions
        Probabilities and labels of the calibration set and of the test set.

    See Also
    --------
    noisy_simplex : Synthetic predictions with known calibration errors.

    Notes
    -----
    The result is deterministic for a version of scikit-learn. The training set has 597 rows, and
    the calibration set and the test set have 600 rows each. All sets are stratified by class. A
    selection of digits is split into thirds.

    Examples
    --------
    >>> data = digits_predictions()
    >>> data.val_proba.shape, data.test_proba.shape
    ((600, 10), (600, 10))
    >>> digits_predictions("logistic", digits=(3, 8, 9)).class_names.tolist()
    [3, 8, 9]
    """
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    check_option(model, "model", _MODELS)
    X, y, names = _load_digits(digits)
    third = 600 if digits is None else len(y) // 3
    X, test_X, y, test_y = train_test_split(X, y, test_size=third, stratify=y, random_state=0)
    X, val_X, y, val_y = train_test_split(X, y, test_size=third, stratify=y, random_state=0)
    classifier = make_pipeline(StandardScaler(), _make_model(model)).fit(X, y)
    val, test = (classifier.predict_proba(part) for part in (val_X, test_X))
    return SplitPredictions(val, val_y, test, test_y, names)


def _load_digits(digits: Sequence[int] | None) -> tuple[FloatArray, IntArray, IntArray]:
    """Return images, their class numbers and the digit of each class."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    if digits is None:
        return X, y, np.arange(10)
    names = _check_digits(digits)
    rows = np.isin(y, names)
    return X[rows], np.searchsorted(names, y[rows]), names


def _check_digits(digits: Sequence[int]) -> IntArray:
    names = np.unique(np.asarray(digits))
    if len(names) < 2 or not np.isin(names, np.arange(10)).all():
        raise ValueError(
            f"digits must contain at least two of the digits 0 to 9, got {digits!r}. For example, "
            "pass digits=(3, 8, 9)."
        )
    return names


def power_family(n_samples: int, exponent: float = 2.0, *, rng: Rng = None) -> KnownError:
    r"""Draw binary scores s uniform on [0, 1] with :math:`P(y = 1 \mid s) = s^a`.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    exponent : float, default 2.0
        The exponent a. The scores are calibrated if a is 1.
    rng : int, Generator or None
        Seed or generator.

    Returns
    -------
    KnownError
        Scores, labels and true errors of class 1.

    See Also
    --------
    linear_family : Scores that are overconfident at both ends.
    noisy_simplex : Several classes.

    Notes
    -----
    The gap of class 1 is :math:`|s^a - s|`, always with the same sign. The L1 and KS errors are
    :math:`|1/2 - 1/(a+1)|`, and the squared L2 error is :math:`1/(2a+1) - 2/(a+2) + 1/3`.

    Examples
    --------
    >>> round(power_family(10, 2.0, rng=0).errors["class-1-l1"], 4)
    0.1667
    """
    check_count(n_samples, "n_samples")
    if not exponent > 0:
        raise ValueError(f"exponent must be positive, got {exponent!r}. Pass exponent=2.0.")
    generator = np.random.default_rng(rng)
    score = generator.random(n_samples)
    labels = (generator.random(n_samples) < score**exponent).astype(np.intp)
    l1 = abs(0.5 - 1 / (exponent + 1))
    l2 = (1 / (2 * exponent + 1) - 2 / (exponent + 2) + 1 / 3) ** 0.5
    return KnownError(score, labels, {"class-1-l1": l1, "class-1-l2": l2, "class-1-ks": l1})


def linear_family(n_samples: int, shrinkage: float = 0.2, *, rng: Rng = None) -> KnownError:
    r"""Draw binary scores s uniform on [0, 1] that are overconfident at both ends.

    The true probability is :math:`P(y = 1 \mid s) = (1 - 2d)s + d`.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    shrinkage : float, default 0.2
        The shrinkage d. The scores are calibrated if d is 0.
    rng : int, Generator or None
        Seed or generator.

    Returns
    -------
    KnownError
        Scores, labels and true errors of class 1.

    See Also
    --------
    power_family : Scores with errors of one sign.
    noisy_simplex : Several classes.

    Notes
    -----
    The gap of class 1 is :math:`d|1 - 2s|`, and its sign changes at 1/2. The L1 error is d/2, the
    L2 error is :math:`d/\sqrt 3`, and the KS error is d/4.

    Examples
    --------
    >>> linear_family(10, 0.2, rng=0).errors["class-1-l1"]
    0.1
    """
    check_count(n_samples, "n_samples")
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage must be in [0, 1], got {shrinkage!r}. Pass shrinkage=0.2.")
    generator = np.random.default_rng(rng)
    score = generator.random(n_samples)
    labels = (generator.random(n_samples) < (1 - 2 * shrinkage) * score + shrinkage).astype(np.intp)
    errors = {
        "class-1-l1": shrinkage / 2,
        "class-1-l2": shrinkage / 3**0.5,
        "class-1-ks": shrinkage / 4,
    }
    return KnownError(score, labels, errors)


def noisy_simplex(
    n_samples: int, n_classes: int = 3, noise: float = 0.2, *, rng: Rng = None
) -> KnownError:
    r"""Draw probabilities p uniformly on the simplex, and labels with random noise.

    With probability ``noise``, the label is drawn uniformly instead of from p, so the probabilities
    are overconfident. With ``noise=0``, the probabilities are perfectly calibrated.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_classes : int, default 3
        Number of classes K.
    noise : float, default 0.2
        Probability d of a random label.
    rng : int, Generator or None
        Seed or generator.

    Returns
    -------
    KnownError
        Probabilities, labels and true errors.

    See Also
    --------
    draw_labels : Draw labels of given probabilities.

    Notes
    -----
    The true probabilities are :math:`P(y = k \mid p) = (1 - d) p_k + d / K`. With :math:`H_K = 1
    + 1/2 + \dots + 1/K`, the errors are

    - confidence (L1 and KS): :math:`d (H_K - 1) / K`, because the mean of the largest entry is
      :math:`H_K / K`.
    - class-wise L1 (mean over classes): :math:`2 d (1 - 1/K)^K / K`.
    - class-wise L2: :math:`d \sqrt{(K - 1) / (K + 1)} / K`.
    - ``"canonical-l2"``, the root mean square of the Euclidean gap: :math:`\sqrt K` times the
      class-wise L2 error.

    Examples
    --------
    >>> round(noisy_simplex(10, 3, 0.3, rng=0).errors["confidence-l1"], 6)
    0.083333
    """
    check_count(n_samples, "n_samples")
    check_count(n_classes, "n_classes", minimum=2)
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be in [0, 1], got {noise!r}. Pass noise=0.2.")
    generator = np.random.default_rng(rng)
    proba = generator.dirichlet(np.ones(n_classes), n_samples)
    labels = draw_labels(proba, rng=generator)
    replaced = generator.random(n_samples) < noise
    labels[replaced] = generator.integers(n_classes, size=int(replaced.sum()))
    return KnownError(proba, labels, _noise_errors(n_classes, noise))


def _noise_errors(n_classes: int, noise: float) -> dict[str, float]:
    """Return the true errors of `noisy_simplex`."""
    confidence = noise * (np.sum(1 / np.arange(1, n_classes + 1)) - 1) / n_classes
    class_l2 = noise * ((n_classes - 1) / (n_classes + 1)) ** 0.5 / n_classes
    return {
        "confidence-l1": float(confidence),
        "confidence-ks": float(confidence),
        "class-wise-l1": 2 * noise * (1 - 1 / n_classes) ** n_classes / n_classes,
        "class-wise-l2": class_l2,
        "canonical-l2": class_l2 * n_classes**0.5,
    }


def draw_labels(proba: FloatArray, *, rng: Rng = None) -> IntArray:
    """Draw one label per row from its probabilities, which are then perfectly calibrated.

    Parameters
    ----------
    proba : array of shape (n, K)
        Probabilities.
    rng : int, Generator or None
        Seed or generator.

    Returns
    -------
    array of shape (n,)
        Column codes.

    See Also
    --------
    noisy_simplex : Probabilities with labels.

    Examples
    --------
    >>> draw_labels(np.eye(3), rng=0).tolist()
    [0, 1, 2]
    """
    generator = np.random.default_rng(rng)
    bounds = np.cumsum(np.asarray(proba, dtype=np.float64), axis=1)
    # Divide by the sum of the row, which may differ from one by rounding.
    threshold = generator.random(len(bounds)) * bounds[:, -1]
    return np.asarray((bounds <= threshold[:, None]).sum(axis=1), dtype=np.intp)


def two_label_example(n_samples: int = 100) -> KnownError:
    """Return an example with calibrated confidence and miscalibrated predicted classes.

    Half of the rows predict class 0 with probability 0.6 and are correct in 20% of the cases. The
    other rows predict class 1 with probability 0.6 and are always correct. The confidence error is
    0, and the top-label error is 0.4. Both errors are exact if ``n_samples`` is a multiple of ten.

    Parameters
    ----------
    n_samples : int, default 100
        Number of rows.

    Returns
    -------
    KnownError
        Probabilities, labels and true errors.

    See Also
    --------
    noisy_simplex : Predictions with other errors.

    References
    ----------
    Gupta & Ramdas (2022), Example 1, arXiv:2107.08353.

    Examples
    --------
    >>> two_label_example().errors["top-label-l1"]
    0.4
    """
    check_count(n_samples, "n_samples")
    is_zero = np.arange(n_samples) < n_samples / 2
    proba = np.where(is_zero[:, None], [0.6, 0.4], [0.4, 0.6])
    is_correct = ~is_zero | (np.arange(n_samples) % 5 == 0)
    labels = np.where(is_zero == is_correct, 0, 1).astype(np.intp)
    return KnownError(proba, labels, {"confidence-l1": 0.0, "top-label-l1": 0.4})


def __dir__() -> list[str]:
    return __all__
