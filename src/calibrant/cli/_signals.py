"""Raise an exception when a signal arrives, so commands end and temporary files are removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from calibrant._output.files import replace_file

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Names of signals that end a command. Windows has no SIGHUP."""

_RETRY_SECONDS = 0.05
"""Seconds until a signal that arrived during an uninterruptible step is handled again."""

_UNINTERRUPTIBLE: set[CodeType] = {replace_file.__code__}


class Termination(BaseException):
    """Raised when a signal ends the command. The argument is the number of the signal."""


@contextmanager
def catch_signals() -> Iterator[None]:
    """Raise `Termination` for SIGINT, SIGTERM and SIGHUP."""
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may install handlers
    # Signals that the parent ignores (nohup) stay ignored.
    before = {n: old for n in numbers if (old := signal.getsignal(n)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, _end)
    try:
        yield
    finally:
        if hasattr(signal, "setitimer") and before:
            signal.setitimer(signal.ITIMER_REAL, 0)  # no signal may be handled after the command
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    """Raise `Termination`. If the signal arrives during an uninterruptible step, try again soon.

    An interrupted import would leave a broken module, and an interrupted replacement of a file
    would not be recorded.
    """
    if _is_bad_moment(frame) and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda _, later: _end(number, later))
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
        return
    raise Termination(number)


def _is_bad_moment(frame: Any) -> bool:
    while frame is not None:
        code = frame.f_code
        if code in _UNINTERRUPTIBLE or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
