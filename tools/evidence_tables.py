"""Read tables of the recorded benchmarks, and write them as CSV files.

Benchmark scripts write Markdown pages with many tables to `benchmarks/records`. The manual shows
summaries and offers all tables as downloads. Tables of one record with equal columns become one CSV
file with the section as first column.
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

# Columns and sections for developers, which only the records show.
_LEFT_OUT = re.compile(r"met|bar|bar, fast|met \(2\)|at most|holds")
_SECTIONS_LEFT_OUT = {"What was asked, and where it is shown"}


def tables(record: str) -> list[tuple[str, list[Row]]]:
    """Return the tables of a record with the heading or the mark above each."""
    text = (RECORDS / f"{record}.md").read_text(encoding="utf-8")
    section, result, lines = "", [], text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("#"):
            section = line.lstrip("# ")
        elif line.startswith("<!-- measured: "):
            section = line.removeprefix("<!-- measured: ").removesuffix(" -->")
        elif line.startswith("|--") or line.startswith("| --"):
            result.append((section, _rows(lines, i)))
    return result


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
    """Number the repeated names of columns."""
    return [
        f"{name} ({names[:i].count(name) + 1})" if name in names[:i] else name
        for i, name in enumerate(names)
    ]


def table(record: str, section: str = "", index: int = 0) -> list[Row]:
    """Return a table of a record by its index in the sections that start with a text."""
    return [rows for title, rows in tables(record) if title.startswith(section)][index]


def number(text: str) -> float:
    """Return the first number of a cell. Thousands separators are removed."""
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
