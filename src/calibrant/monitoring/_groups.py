"""Groups of rows: for each the evidence and the gap of its top claim, of which those that are
worth a look are listed together with the claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray
from calibrant.monitoring._families import ClaimFamily
from calibrant.monitoring._members import Rows
from calibrant.monitoring._sequences import GapSums, sum_gaps
from calibrant.monitoring._state import as_numbers, entry, finite_numbers

_MOST = 10_000
"""Groups that are followed at most: each is a few numbers of the state."""


class Group(NamedTuple):
    """Logarithms of the wealth of the bets (B,), and the sums of the gap."""

    wealth: FloatArray
    gaps: GapSums

    def plus(self, other: Group) -> Group:
        """The sums of both."""
        return Group(self.wealth + other.wealth, self.gaps + other.gaps)


Groups = dict[str, Group]


def sum_groups(before: Groups, family: ClaimFamily, rows: Rows, group: AnyArray) -> Groups:
    """What rows add to their groups, in the order in which the groups come; those of a group share
    its mean gap before them.
    """
    names, first, index = np.unique(group.astype(str), return_index=True, return_inverse=True)
    found = {}
    for place in np.argsort(first).tolist():
        own, name = rows.part(np.flatnonzero(index == place)), str(names[place])
        block = family.notion.select(own.proba, own.y)
        log_f = np.log(family.factors_of(block, own.proba.shape[1])[:, 0])
        gained = log_f.sum(axis=0) if own.weight is None else own.weight @ log_f
        mean = before[name].gaps.mean if name in before else np.zeros(1)
        found[name] = Group(gained, sum_gaps(block, mean, 1, own.weight))
    return found


def add_groups(groups: Groups, more: Groups) -> Groups:
    """Both together."""
    found = dict(groups)
    for name, group in more.items():
        found[name] = group.plus(found[name]) if name in found else group
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
