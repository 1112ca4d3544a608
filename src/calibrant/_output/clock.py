"""Creation time of stored results."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def current_time() -> datetime:
    """Return the current time in UTC, or the time in ``SOURCE_DATE_EPOCH``.

    Reproducible builds set this environment variable.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)
