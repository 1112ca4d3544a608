"""scikit-learn's own tests of calibration, of proper scores and of metadata routing, taken from the
installed package and run against Calibrant by `sklearn_adapters`.

What differs is listed with its reason. A difference that is new, and one that is gone, fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import sklearn

import calibrant

HERE = Path(__file__).parent
SOURCE = Path(calibrant.__file__).parents[1]

_SECOND_HALF = "weight or parallel or float32 or less_classes"
_NOT_OURS = "not display and not plot and not array_api"


class Suite(NamedTuple):
    """Test modules of scikit-learn, which tests of them, how many pass at least, and those that do
    not, with the reason. Whether tests in ``rounding`` pass depends on the machine.
    """

    modules: tuple[str, ...]
    select: str
    passed: int
    differences: dict[str, str]
    rounding: frozenset[str] = frozenset()


SUITES = {
    "calibration of several classes": Suite(
        ("sklearn.tests.test_calibration",), f"{_NOT_OURS} and multiclass", 8, {}
    ),
    "calibration, first half": Suite(
        ("sklearn.tests.test_calibration",),
        f"{_NOT_OURS} and not multiclass and not ({_SECOND_HALF})",
        45,
        {
            "test_calibration_ensemble_false[isotonic-calibrator1]": (
                "IsotonicCalibration is a step function; IsotonicRegression interpolates"
            ),
        },
    ),
    "calibration, second half": Suite(
        ("sklearn.tests.test_calibration",),
        f"{_NOT_OURS} and not multiclass and ({_SECOND_HALF})",
        26,
        {
            "test_calibration_less_classes[True]": (
                "a class missing from a fold gets 1 / (n + K) there, not zero"
            ),
        },
        # The rows are separable: probabilities of 1e-22 differ by 2e-7 of themselves.
        frozenset(
            "test_calibrated_classifier_cv_double_sample_weights_equivalence"
            f"[{ensemble}-temperature]"
            for ensemble in (True, False)
        ),
    ),
    "proper scores": Suite(
        ("sklearn.metrics.tests.test_classification", "sklearn.metrics.tests.test_common"),
        "(log_loss or brier) and not d2 and not array_api",
        45,
        {
            **dict.fromkeys(
                [
                    *(
                        f"test_log_loss_not_probabilities_warning[{kind}]"
                        for kind in ("float64", "float32", "float16")
                    ),
                ],
                "rows that do not sum to one are an error, not a warning",
            ),
            **dict.fromkeys(
                ["test_log_loss_warnings", "test_brier_score_loss_warnings"],
                "labels are given in the order of the columns by classes=, and need not be sorted",
            ),
            "test_brier_score_loss_binary": "one-hot labels are rejected, with the way out",
            "test_log_loss_y_pred_deprecation": "a parameter that scikit-learn renamed",
            **dict.fromkeys(
                [
                    f"test_format_invariance_with_1d_vectors[{name}]"
                    for name in ("brier_score_loss", "log_loss", "unnormalized_log_loss")
                ],
                "scores of shape (n, 1) are rejected, with the way to write them",
            ),
            **dict.fromkeys(
                [
                    f"{test}[{name}]"
                    for test in (
                        "test_multilabel_sample_weight_invariance",
                        "test_continuous_multilabel_multioutput_permutations_invariance",
                    )
                    for name in ("brier_score_loss", "log_loss", "unnormalized_log_loss")
                ],
                "several labels a row are no problem of ours",
            ),
        },
    ),
    "metadata routing": Suite(
        ("sklearn.tests.test_metaestimators_metadata_routing",),
        "CalibratedClassifierCV",
        4,
        dict.fromkeys(
            [
                "test_setting_request_on_sub_estimator_removes_error[CalibratedClassifierCV]",
                "test_non_consuming_estimator_works[CalibratedClassifierCV]",
            ],
            "the mock gives one score a row for three classes",
        ),
    ),
}


def _run(suite: Suite, folder: Path) -> str:
    """What pytest says of the suite, in a process of its own: names of scikit-learn are changed."""
    paths = [str(SOURCE), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [
        *(sys.executable, "-m", "pytest", "-p", "sklearn_adapters", "-p", "no:cacheprovider"),
        *("-c", os.devnull, f"--rootdir={folder}", "-q", "-rfE", "--tb=no", "-W", "ignore"),
        *("-k", suite.select, "--pyargs", *suite.modules),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_the_tests_of_scikit_learn_hold_but_for_named_differences(name, tmp_path):
    suite = SUITES[name]
    if tuple(map(int, sklearn.__version__.split(".")[:2])) != (1, 9):
        pytest.skip(f"the differences are named for scikit-learn 1.9, not {sklearn.__version__}")
    said = _run(suite, tmp_path)
    differing = set(re.findall(r"^(?:FAILED|ERROR) \S*?::(\S+)", said, flags=re.MULTILINE))
    assert differing - suite.rounding == set(suite.differences)
    counted = re.search(r"(\d+) passed", said)
    assert counted is not None, said
    assert int(counted[1]) >= suite.passed
