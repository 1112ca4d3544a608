"""What a monitor remembers of its updates: a few numbers each, and not of all for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from calibrant.monitoring._state import entry, number

_KEPT, _RECENT = 1000, 200
"""Updates that are remembered at most, and the latest of them, which all are."""


class Entry(NamedTuple):
    """An update: its name, its rows, the rows seen then, the logarithm of the evidence, the mean
    gap of the first claim with its interval, and whether there was an alarm.
    """

    when: str
    n_rows: int
    n_seen: int
    nats: float
    mean: float
    low: float
    high: float
    alarm: bool


def recorded(history: list[Entry], now: Entry) -> list[Entry]:
    """The history with another entry; where it is full, every other one of the older ones goes."""
    longer = [*history, now]
    if len(longer) <= _KEPT:
        return longer
    return longer[:-_RECENT:2] + longer[-_RECENT:]


def history_of_state(state: Mapping[str, Any]) -> list[Entry]:
    """The history in a state, checked."""
    values = entry(state, "history")
    if not isinstance(values, list) or len(values) > _KEPT:
        raise ValueError(f"history of the state must be a list of at most {_KEPT} entries")
    return [_read_entry(value) for value in values]


def _read_entry(value: Any) -> Entry:
    if not isinstance(value, list) or len(value) != len(Entry._fields):
        raise ValueError("an entry of the state's history must hold eight values")
    named = dict(zip(Entry._fields, value, strict=True))
    if not isinstance(named["when"], str) or not isinstance(named["alarm"], bool):
        raise ValueError("an entry of the state's history must begin with its name")
    n_rows, n_seen = (int(number(named, key, 0, 1e15)) for key in ("n_rows", "n_seen"))
    nats, mean, low, high = (
        float(number(named, key, -1e15, 1e15)) for key in ("nats", "mean", "low", "high")
    )
    return Entry(named["when"], n_rows, n_seen, nats, mean, low, high, named["alarm"])
