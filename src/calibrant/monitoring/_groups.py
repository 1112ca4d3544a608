"""Groups of rows: for each the evidence and the gap of its top claim, of which those that are
worth a look are listed together with the claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant.monitoring._families import ClaimFamily
from calibrant.monitoring._sequences import GapSums, sum_gaps
from calibrant.monitoring._state import as_numbers, entry, finite_numbers

_MOST = 10_000
"""Groups that are followed at most: each is a few numbers of the state."""


class Group(NamedTuple):
    """Logarithms of the wealth of the bets (B,), and the sums of the gap."""

    wealth: FloatArray
    gaps: GapSums


Groups = dict[str, Group]


def update_groups(
    groups: Groups, family: ClaimFamily, proba: FloatArray, y: IntArray, group: AnyArray
) -> Groups:
    """The groups after rows; those of a group share its mean gap before them."""
    if len(group) != len(y):
        raise ValueError(f"group must name one group a row: got {len(group)} for {len(y)} rows")
    names, index = np.unique(group.astype(str), return_inverse=True)
    found = dict(groups)
    for place, name in enumerate(names.tolist()):
        rows = np.flatnonzero(index == place)
        before = found.get(name) or Group(np.zeros(family.n_bets), GapSums.zeros(1))
        block = family.notion.select(proba[rows], y[rows])
        gained = family.log_factors_of(block, proba.shape[1]).sum(axis=0)[0]
        gaps = before.gaps + sum_gaps(block, before.gaps.mean, 1)
        found[name] = Group(before.wealth + gained, gaps)
    if len(found) > _MOST:
        raise ValueError(f"at most {_MOST:,} groups are followed, these would be {len(found):,}")
    return found


def groups_to_state(groups: Groups) -> dict[str, Any]:
    """Plain values."""
    return {
        name: {
            "wealth": as_numbers(group.wealth),
            "sums": as_numbers(
                np.concatenate([group.gaps.count, group.gaps.residual, group.gaps.variance])
            ),
        }
        for name, group in groups.items()
    }


def groups_of_state(state: Mapping[str, Any], n_bets: int) -> Groups:
    """What `groups_to_state` gave, checked."""
    values = entry(state, "groups")
    if not isinstance(values, dict) or len(values) > _MOST:
        raise ValueError(f"groups of the state must be at most {_MOST:,} by name")
    found = {}
    for name, value in values.items():
        if not isinstance(value, dict):
            raise ValueError("a group of the state must hold wealth and sums")
        sums = finite_numbers(value, "sums", (3, 1))
        found[name] = Group(finite_numbers(value, "wealth", (n_bets,)), GapSums(*sums))
    return found
