"""Read text and JSON files within limits, so no line, file or archive can exhaust the memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_BYTES = 2**28
"""Largest line, JSON document or archive member that is read (256 MB). A sample with a long
transcript has a few megabytes."""


def parse_json(text: bytes, place: str) -> Any:
    """Parse a JSON document. Error messages begin with ``place``."""
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{place} is not valid UTF-8 (byte {error.start}). Write the file again as UTF-8."
        ) from None
    except RecursionError:
        raise ValueError(f"{place} is nested too deeply to be an evaluation log.") from None
    except ValueError as error:
        raise ValueError(f"{place} is not valid JSON: {error}.") from None


def read_document(path: Path) -> Any:
    """Parse a JSON file of limited size."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ValueError(
            f"{path} has {size:,} bytes, but JSON documents of at most {MOST_BYTES:,} bytes are "
            "read. Write one JSON object per line (.jsonl)."
        )
    return parse_json(path.read_bytes(), str(path))


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Iterate over the numbers and bytes of the lines that are not empty."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MOST_BYTES + 1):
            number += 1
            if len(line) > MOST_BYTES:
                raise ValueError(f"{path}, line {number} has more than {MOST_BYTES:,} bytes.")
            if not line.isspace():
                yield number, line


def read_records(path: Path, skipped: Counter[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over line numbers and JSON objects of a file with one object per line.

    The incomplete last line of an interrupted run is counted and skipped.
    """
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            is_syntax = not isinstance(error, UnicodeDecodeError | RecursionError)
            if is_syntax and not line.endswith(b"\n"):
                skipped["truncated last line"] += 1
                return
            record = parse_json(line, place)
        if not isinstance(record, dict):
            raise ValueError(f"{place} is not a JSON object, but {type(record).__name__}.")
        yield number, record


def first_record(path: Path) -> dict[str, Any] | None:
    """Return the first line of a file if it is a JSON object, else None."""
    for _, line in read_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return record if isinstance(record, dict) else None
    return None


def as_float(value: Any, place: str, what: str) -> float:
    """Convert a number or its text to a finite number or -inf."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{place}: {what} is {value!r}, but must be a number.") from None
    if number != number or number == float("inf"):
        raise ValueError(f"{place}: {what} is {value!r}, but must be a finite number or -inf.")
    return number
