"""Option scores from token log-probabilities."""

from __future__ import annotations

import math

import pytest

from calibrant.llm._tokens import letter_scores, mean_logprob, token_entries
from llm_logs import token


def test_last_letter_of_the_answer_counts():
    first = token("B", -0.1, [("B", -0.1), ("A", -3.0)])
    last = token(" A", -0.2, [(" A", math.log(0.6)), ("A", math.log(0.2)), ("B", math.log(0.1))])
    result = letter_scores([first, last, token(".", 0.0)], 2, "here")
    assert not result.has_unlisted
    assert [math.exp(score) for score in result.scores] == pytest.approx([0.8, 0.1])


def test_unlisted_letters_share_the_rest_below_the_listed_ones():
    top = [("A", math.log(0.9)), ("the", math.log(0.001))]
    result = letter_scores([token("A", -0.1, top)], 3, "here")
    assert result.has_unlisted
    assert [math.exp(s) for s in result.scores] == pytest.approx([0.9, 0.001, 0.001])


def test_answers_without_letters_or_alternatives():
    assert letter_scores([token("Paris", -0.1, [("A", -0.1)])], 4, "here") is None
    assert letter_scores([token("A", -0.1)], 4, "here") is None
    assert letter_scores([token("E", -0.1, [("E", -0.1)])], 4, "here") is None
    assert token_entries(None) == []
    assert token_entries({"content": None}) == []


def test_mean_of_tokens_must_be_numbers():
    assert mean_logprob([token("a", -1.0), token("b", -3.0)], "here") == -2.0
    with pytest.raises(ValueError, match="here: a log-probability is 'nan'"):
        mean_logprob([token("a", "nan")], "here")
