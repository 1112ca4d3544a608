"""Creation time of stored results."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def current_time() -> datetime:
    """The current time in UTC; the standard variable of reproducible builds replaces it."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)
