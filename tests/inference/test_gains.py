from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calibrant._folds import Fold
from calibrant.inference._gains import paired_gain


def _five_folds(n_rows):
    rows = np.arange(n_rows)
    parts = np.array_split(rows, 5)
    return [
        Fold(np.setdiff1d(rows, part), np.ones(n_rows - len(part)), part, np.ones(len(part)))
        for part in parts
    ]


def test_the_interval_is_that_of_nadeau_and_bengio(rng):
    before, after = rng.random(100), rng.random(100)
    gain = paired_gain(before, after, np.ones(100), _five_folds(100), score="log_loss")
    reach = stats.t(99).ppf(0.975) * stats.sem(before - after) * 1.5
    assert gain.gain == pytest.approx((before - after).mean())
    assert (gain.low, gain.high) == (
        pytest.approx(gain.gain - reach),
        pytest.approx(gain.gain + reach),
    )


def test_weights_are_copies(rng):
    before, after = rng.random(40), rng.random(40)
    weight = rng.integers(1, 4, 40)
    folds = _five_folds(40)
    one = paired_gain(before, after, weight.astype(float), folds, score="log_loss")
    copies = np.repeat(np.arange(40), weight)
    other = paired_gain(
        before[copies], after[copies], np.ones(len(copies)), folds, score="log_loss"
    )
    assert one.high == pytest.approx(other.high)


def test_no_difference_is_known_to_one_row_at_best():
    gain = paired_gain(np.ones(50), np.ones(50), np.ones(50), _five_folds(50), score="log_loss")
    assert (gain.low, gain.gain, gain.high) == (-0.02, 0.0, 0.02)


def test_it_reads_as_a_sentence_and_as_plain_values(rng):
    gain = paired_gain(np.ones(50), np.zeros(50), np.ones(50), _five_folds(50), score="brier_score")
    assert str(gain).startswith("brier_score 1 -> 0, gain 1, 95% interval")
    assert gain.to_dict()["guarantee"] == "asymptotic"
