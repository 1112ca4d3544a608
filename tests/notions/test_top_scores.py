"""Claims of top scores equal those of complete rows."""

from __future__ import annotations

import pytest

from calibrant import metrics
from top_rows import REAL, best, drawn_rows, real_rows

NOTIONS = ("confidence", "top-label", "rank-2", "within-top-5", "top-3-label")


@pytest.fixture(scope="module", params=REAL)
def real(request, real_data):
    return real_rows(real_data(request.param))


@pytest.fixture
def small(rng):
    return drawn_rows(rng)


@pytest.mark.parametrize("notion", NOTIONS)
def test_errors_of_the_top_twenty_are_those_of_whole_rows(real, notion):
    log_proba, y = real
    options = {"inputs": "log_proba", "notion": notion}
    dense = metrics.expected_calibration_error(y, log_proba, **options)
    top = metrics.expected_calibration_error(y, best(log_proba), notion=notion)
    assert top == pytest.approx(dense, abs=1e-12)
    assert metrics.ks_error(y, best(log_proba), notion=notion) == pytest.approx(
        metrics.ks_error(y, log_proba, **options), abs=1e-12
    )


@pytest.mark.parametrize(
    ("notion", "reason"),
    [
        ("class-wise", "given classes"),
        ("rank-4", "top 4 classes of a row, but TopScores contain only the top 3 classes"),
    ],
)
def test_notions_beyond_the_known_classes_are_rejected(small, notion, reason):
    with pytest.raises(ValueError, match=reason):
        metrics.expected_calibration_error(small[1], best(small[0], 3), notion=notion)
