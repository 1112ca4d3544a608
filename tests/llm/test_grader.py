"""Pass rates of graders, corrected by human labels."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.guarantees import clopper_pearson
from calibrant.llm import pass_rate


def draw(rng, n_labeled=100, n_unlabeled=1000, rate=0.6, false_pass=0.3, false_fail=0.05):
    n_rows = n_labeled + n_unlabeled
    truth = rng.random(n_rows) < rate
    graded = np.where(truth, rng.random(n_rows) >= false_fail, rng.random(n_rows) < false_pass)
    return graded[n_labeled:], truth[:n_labeled], graded[:n_labeled]


def test_biased_grader_is_corrected_and_the_interval_covers(rng):
    results = [pass_rate(*draw(rng)) for _ in range(300)]
    covered = np.mean([result.low <= 0.6 <= result.high for result in results])
    assert covered >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean([result.rate for result in results]) == pytest.approx(0.6, abs=0.01)
    assert np.mean([result.grader_rate for result in results]) > 0.66


def test_interval_is_shorter_than_that_of_the_labels_alone(rng):
    graded, human, human_graded = draw(rng)
    result = pass_rate(graded, human, human_graded)
    alone = 2 * 1.984 * human.std(ddof=1) / np.sqrt(100)
    assert result.high - result.low < 0.85 * alone
    assert 0.5 < result.power <= 1


def test_grader_that_knows_nothing_is_not_used(rng):
    graded, human, _ = draw(rng)
    result = pass_rate(np.ones(50), human, np.ones(100))
    assert result.power == 0
    assert result.rate == human.mean()
    noise = pass_rate(rng.random(1000), human, rng.random(100))
    assert noise.power < 0.4
    assert graded.mean() > 0


def test_equal_labels_keep_a_width():
    result = pass_rate(np.ones(100), np.ones(50), np.ones(50))
    exact = clopper_pearson(np.array([50.0]), np.array([50.0]), 0.05)[0][0]
    assert (result.low, result.high) == (pytest.approx(exact), 1.0)


def test_the_interval_covers_if_the_labels_show_few_errors(rng):
    options = {"n_labeled": 60, "rate": 0.97, "false_pass": 0.5, "false_fail": 0.0}
    results = [pass_rate(*draw(rng, **options)) for _ in range(300)]
    covered = np.mean([result.low <= 0.97 <= result.high for result in results])
    assert covered >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


def test_result_is_a_sentence_and_a_dictionary(rng):
    result = pass_rate(*draw(rng))
    assert str(result).startswith("Pass rate: ")
    assert "95% CI" in str(result)
    assert result.to_dict()["n_labeled"] == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 0], [1, 0]), "graded must be between 0 and 1, got 2"),
        (([1, 0], [1, 0, 1], [1, 0]), "same number of rows"),
        (([1, 0], [1], [1]), "at least two answers"),
        (([1, 0], [1, np.nan], [1, 0]), "human must be between 0 and 1, got nan"),
        ((["a", "b"], [1, 0], [1, 0]), "graded must be numbers"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        pass_rate(*arguments)
