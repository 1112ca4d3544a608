"""Figures of other tools, as these compute them."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.llm._figures import helm_ece, hle_error, hle_figures


def test_error_of_two_bins_by_hand():
    confidence = np.repeat([0.2, 0.8], 100)
    correct = np.concatenate([np.arange(100) < 30, np.arange(100) < 50])
    assert hle_error(correct, confidence) == pytest.approx(np.sqrt((0.1**2 + 0.3**2) / 2))
    assert hle_error(correct, confidence, drops_last=True) == pytest.approx(np.sqrt(0.1**2 / 2))


def test_last_bin_takes_the_remaining_rows():
    confidence, correct = np.full(150, 0.5), np.ones(150, bool)
    assert hle_error(correct, confidence) == pytest.approx(0.5)
    assert hle_error(correct[:20], confidence[:20]) == pytest.approx(0.5)
    assert np.isnan(hle_error(correct[:0], confidence[:0]))


def test_rows_with_the_default_confidence_are_shown_apart():
    confidence, correct = np.repeat([0.5, 1.0], 150), np.arange(300) % 2 == 0
    figures = hle_figures(correct, confidence)
    assert set(figures) == {"hle/cerr", "hle/cerr (CAIS)", "hle/cerr without 100%"}
    assert figures["hle/cerr without 100%"] == pytest.approx(0.0)
    assert set(hle_figures(correct[:5], confidence[:5])) == {"hle/cerr"}


def test_helm_error_of_ten_bins_by_hand():
    confidence = np.linspace(0.05, 0.95, 10)
    correct = np.zeros(10, bool)
    assert helm_ece(correct, confidence) == pytest.approx(0.5)
    assert helm_ece(correct[:3], confidence[:3]) == pytest.approx(0.15)
    assert helm_ece(np.array([True, False] * 10), np.full(20, 0.5)) == pytest.approx(0.0)
