"""The time of results can be fixed, so files are reproducible."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from calibrant._output.clock import current_time


def test_the_variable_of_reproducible_builds_sets_the_time(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert current_time() == datetime(1970, 1, 2, tzinfo=UTC)


def test_otherwise_it_is_now_in_utc(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert abs(current_time() - datetime.now(UTC)) < timedelta(minutes=1)
