"""The content of the section about risk and coverage."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from calibrant.report._glossary import COLUMNS
from calibrant.report._risk_content import RISK_COLUMNS, RiskCoverage


def test_it_is_frozen_and_its_columns_are_explained(report):
    assert isinstance(report.selective, RiskCoverage)
    with pytest.raises(FrozenInstanceError):
        report.selective.level = 0.5
    assert set(RISK_COLUMNS) <= set(COLUMNS)
