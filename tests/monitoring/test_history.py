"""The history: all of the latest updates, every other of the older ones."""

from __future__ import annotations

import json

import pytest

from calibrant.monitoring._history import Entry, history_of_state, recorded

ENTRY = Entry("May", 10, 20, 1.5, 0.01, -0.02, 0.04, False)


def test_a_long_history_forgets_every_other_old_update():
    history = []
    for i in range(1100):
        history = recorded(history, ENTRY._replace(when=str(i)))
        assert len(history) <= 1000
    names = [int(one.when) for one in history]
    assert names == sorted(names)
    assert names[:3] == [0, 2, 4]
    assert names[-200:] == list(range(900, 1100))


def test_the_history_that_was_is_left_as_it_was():
    first = [ENTRY]
    assert recorded(first, ENTRY) == [ENTRY, ENTRY]
    assert first == [ENTRY]


def test_a_state_comes_back():
    state = json.loads(json.dumps({"history": [list(ENTRY), list(ENTRY)]}))
    assert history_of_state(state) == [ENTRY, ENTRY]


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({}, "a list of at most 1000 entries"),
        ([list(ENTRY)] * 1001, "a list of at most 1000 entries"),
        ([["May"]], "eight values"),
        ([3], "eight values"),
        ([list(ENTRY._replace(when=5))], "begin with its name"),
        ([list(ENTRY._replace(alarm=1))], "begin with its name"),
        ([list(ENTRY._replace(n_seen=-1))], "n_seen of the state"),
        ([list(ENTRY._replace(nats="much"))], "nats of the state"),
    ],
    ids=["no list", "too long", "short", "number", "name", "alarm", "rows", "text"],
)
def test_a_state_that_no_history_has_is_refused(history, message):
    with pytest.raises(ValueError, match=message):
        history_of_state({"history": history})
