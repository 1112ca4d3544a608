"""Input on which other implementations fail: every fit ends with finite, valid rows, and at most
one warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import calibrators
from calibrant import Identity
from calibrant._kernels.simplex import softmax
from calibrant.exceptions import ConvergenceWarning, DataWarning


def separable(rng):
    logits = rng.normal(size=(200, 3))
    return logits, logits.argmax(axis=1)


def anti_informative(rng):
    logits = rng.normal(size=(200, 3))
    return logits, logits.argmin(axis=1)


def huge_logits(rng):
    logits = 1e4 * rng.normal(size=(100, 4))
    logits[::3, 1] = -np.inf
    return logits, rng.integers(4, size=100)


def one_class(rng):
    return rng.normal(size=(50, 4)), np.full(50, 2)


def fewer_rows_than_classes(rng):
    return rng.normal(size=(5, 20)), rng.integers(20, size=5)


def one_row(rng):
    return rng.normal(size=(1, 5)), np.array([3])


def duplicated_rows(rng):
    return np.repeat(rng.normal(size=(3, 4)), 40, axis=0), rng.integers(4, size=120)


def constant_scores(rng):
    return np.zeros((60, 3)), rng.integers(3, size=60)


CASES = [
    *(separable, anti_informative, huge_logits, one_class, fewer_rows_than_classes),
    *(one_row, duplicated_rows, constant_scores),
]


def fit_and_check(calibrator, scores, y, inputs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(calibrator).set_params(inputs=inputs).fit(scores, y)
    out = fitted.predict_proba(scores)
    assert np.isfinite(out).all()
    assert (out >= 0).all()
    # Half-precision rows come back as they are from the identity; every map gives exact ones.
    np.testing.assert_allclose(
        out.sum(axis=1), 1, atol=1e-2 if isinstance(fitted, Identity) else 1e-6
    )
    fits = [w for w in caught if w.category is ConvergenceWarning]
    assert len(fits) <= 1
    assert all(":" in str(w.message) for w in fits)
    # Rows whose true class has no score are remarked on, once.
    remarks = [w for w in caught if w.category is not ConvergenceWarning]
    assert len(remarks) <= 1
    assert all(w.category is DataWarning for w in remarks)
    return fitted, fits


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("calibrator", calibrators.WHOLE_VECTOR, ids=repr)
def test_every_case_ends_with_valid_rows(calibrator, case, rng):
    logits, y = case(rng)
    fit_and_check(calibrator, logits, y, "logits")
    fit_and_check(calibrator, softmax(logits), y, "proba")


@pytest.mark.slow
@pytest.mark.parametrize("calibrator", calibrators.WHOLE_VECTOR, ids=repr)
@pytest.mark.parametrize(
    "name", ["20news_cleanlab", "mnist_randomforest_pycalib", "cifar100_cleanlab"]
)
def test_real_files_with_exact_zeros_and_rounded_rows(calibrator, name, real_data):
    file = real_data(name)
    proba, y = file["probs"][:1500], file["labels"][:1500]
    assert (proba == 0).any()
    if (
        name == "cifar100_cleanlab"
    ):  # a hundred classes: a fit with a given strength shows the same as the search for one
        if "DirichletCalibration()" in repr(calibrator):
            calibrator = clone(calibrator).set_params(lam=1e-3)
        proba = proba.astype(np.float16)
    fit_and_check(calibrator, proba, y, "proba")


@pytest.mark.slow
@pytest.mark.parametrize("calibrator", calibrators.WHOLE_VECTOR, ids=repr)
def test_a_thousand_classes_of_which_a_third_is_absent(calibrator, rng):
    logits = 2 * rng.normal(size=(400, 1000))
    y = (logits + rng.gumbel(size=logits.shape))[:, :667].argmax(axis=1)
    if "DirichletCalibration" in repr(calibrator) or "Matrix" in repr(calibrator):
        # A million parameters: the strength is given, and strong enough for so few rows.
        calibrator = clone(calibrator).set_params(lam=10.0)
    fit_and_check(calibrator, logits, y, "logits")


def test_warnings_name_what_deserves_one(rng):
    by_name = {repr(c): c for c in calibrators.WHOLE_VECTOR}
    temperature, vector, structured = (
        by_name[n] for n in ("TemperatureScaling()", "VectorScaling()", "StructuredScaling()")
    )
    for case, calibrator, message in (
        (separable, temperature, "separate the calibration labels perfectly"),
        (
            anti_informative,
            temperature,
            "true classes do not have higher scores than other classes",
        ),
        (one_class, vector, "a class has no rows in the calibration data"),
    ):
        _, caught = fit_and_check(calibrator, *case(rng), "logits")
        assert message in str(caught[0].message)
        assert not fit_and_check(structured, *case(rng), "logits")[
            1
        ]  # every parameter is penalised: nothing to warn of
