"""Confidences in words and numbers."""

from __future__ import annotations

import pytest

from calibrant import llm


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90%", 0.9),
        ("90 percent", 0.9),
        ("Confidence: 90%", 0.9),
        ("0.9", 0.9),
        (".9", 0.9),
        (0.9, 0.9),
        (1e-05, 1e-05),
        ("9.5E-1", 0.95),
        ("1e5", None),
        ("9/10", 0.9),
        ("9 out of 10", 0.9),
        ("Very likely.", 0.95),
        ("9/0", None),
        ("85", None),
        ("120%", None),
        ("nan", None),
        ("high", None),
        (None, None),
    ],
)
def test_stated_confidences(text, value):
    assert llm.parse_confidence(text) == value
