"""Results of a study in one CSV file: one row for each measured quantity of a case.

The columns are ``case``, ``quantity`` (nested names, joined by " | ") and ``value`` (a number, a
string or a list, as JSON). A case is appended when it is finished, so an interrupted run continues
where it stopped, and several processes can share a file. If a case occurs twice, its later rows
count.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FIELDS = ("case", "quantity", "value")
SEPARATOR = " | "

Results = dict[str, dict[str, Any]]
"""Nested dictionaries of results by case."""


def read_results(path: Path) -> Results:
    """Return the cases of a file in alphabetical order; none if there is no file."""
    if not path.exists():
        return {}
    results: dict[str, dict[str, Any]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row["quantity"]:  # the first row of a case
                results[row["case"]] = {}
                continue
            *parents, name = row["quantity"].split(SEPARATOR)
            entry = results[row["case"]]
            for parent in parents:
                entry = entry.setdefault(parent, {})
            entry[name] = json.loads(row["value"])
    return dict(sorted(results.items()))


def append_result(path: Path, case: str, measured: Mapping[str, Any]) -> None:
    """Append a case by a single write, which other processes cannot interrupt."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        writer.writerow(FIELDS)
    writer.writerow((case, "", ""))
    for names, value in _leaves(measured):
        writer.writerow((case, SEPARATOR.join(names), json.dumps(value)))
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())


def _leaves(measured: Mapping[str, Any], *parents: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in measured.items():
        if SEPARATOR in name:
            raise ValueError(f"The name {name!r} contains {SEPARATOR!r}, which joins names.")
        if isinstance(value, Mapping):
            yield from _leaves(value, *parents, name)
        else:
            yield (*parents, name), value
