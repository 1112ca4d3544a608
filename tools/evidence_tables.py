"""Tables of the recorded benchmarks: read from `benchmarks/records` and written as CSV files.

Benchmark scripts write Markdown pages with many tables. The manual shows summaries of them, so the
tables are offered as downloads: tables of one record with equal columns become one CSV file with
the section as first column.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "records"
EVIDENCE = ROOT / "docs" / "evidence"
DATA = EVIDENCE / "data"

Row = dict[str, str]

# Columns and sections for developers, who find them in the records.
_LEFT_OUT = re.compile(r"met|bar|bar, fast|met \(2\)|at most|holds")
_SECTIONS_LEFT_OUT = {"What was asked, and where it is shown"}


def tables(record: str) -> list[tuple[str, list[Row]]]:
    """Return the tables of a record with the heading or the sentence that stands above each."""
    text = (RECORDS / f"{record}.md").read_text(encoding="utf-8")
    section, found, lines = "", [], text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("#"):
            section = line.lstrip("# ")
        elif line.startswith("<!-- measured: "):
            section = line.removeprefix("<!-- measured: ").removesuffix(" -->")
        elif line.startswith("|--") or line.startswith("| --"):
            found.append((section, _rows(lines, i)))
    return found


def _rows(lines: list[str], rule: int) -> list[Row]:
    head, rows = _unique(_cells(lines[rule - 1])), []
    for line in lines[rule + 1 :]:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(head, _cells(line), strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.replace("`", "").strip("* ") for cell in line.strip().strip("|").split("|")]


def _unique(names: list[str]) -> list[str]:
    """Columns with numbered names where a table uses a name twice."""
    return [
        f"{name} ({names[:i].count(name) + 1})" if name in names[:i] else name
        for i, name in enumerate(names)
    ]


def table(record: str, section: str = "", index: int = 0) -> list[Row]:
    """Return one table of a record: the n-th in the sections whose heading starts so."""
    return [rows for title, rows in tables(record) if title.startswith(section)][index]


def number(text: str) -> float:
    """The first number of a cell, without thousands separators."""
    return float(re.search(r"[-+]?\d[\d,]*\.?\d*(?:e-?\d+)?", text)[0].replace(",", ""))


def csv_files(record: str) -> dict[str, str]:
    """Return the CSV files of a record by name."""
    groups: dict[tuple[str, ...], list[list[str]]] = {}
    for section, rows in tables(record):
        if section in _SECTIONS_LEFT_OUT:
            continue
        rows = [{k: v for k, v in row.items() if not _LEFT_OUT.fullmatch(k)} for row in rows]
        lines = groups.setdefault(tuple(rows[0]), [])
        lines += [[section, *row.values()] for row in rows]
    names = [record, *(f"{record}-{i}" for i in range(2, len(groups) + 1))]
    return {
        f"{name}.csv": _as_csv(["section", *head], lines)
        for name, (head, lines) in zip(names, groups.items(), strict=True)
    }


def _as_csv(head: list[str], lines: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *lines])
    return out.getvalue()
