"""The command line: ``calibrant demo | evaluate | fit | apply | compare | report |
monitor``.

Results go to standard output, remarks and progress to standard error. Bad input ends with exit code
2 and one line that says what is wrong; an interrupted command with 130, one that a signal ended
with 128 and its number. The commands themselves are in `calibrant.cli._app`, which needs the extra
``cli``.
"""

from __future__ import annotations

import ast
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from calibrant import __version__

BAD_INPUT = 2
INTERRUPTED = 130
_KILLED = 128
_LONGEST_MESSAGE = 2000
"""Characters of a message: it may repeat what a file holds."""


class _Termination(BaseException):
    """A signal asks the command to end: what it has begun to write is removed on the way out."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    raise SystemExit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    try:
        with _catch_signals():
            code = _run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except _Termination as signal_error:
        code = _KILLED + int(signal_error.args[0])
    if code > _KILLED:
        return _report_error("interrupted; nothing was written", code)
    return code


def _run(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:  # at once: the commands import scikit-learn
        sys.stdout.write(f"calibrant {__version__}\n")
        return 0
    try:
        import rich  # noqa: F401  # of results, which are shown by code that is imported later
        import typer

        from calibrant.cli._app import app
    except ImportError as error:
        return _report_error(
            f'the command line needs the package {error.name}: pip install "calibrant[cli]"'
        )
    try:
        code = app(list(arguments) or ["--help"], prog_name="calibrant", standalone_mode=False)
    except typer.Abort:
        code = INTERRUPTED
    except Exception as error:
        return _handle_error(error, _usage_error(typer))
    return code if isinstance(code, int) else 0


@contextmanager
def _catch_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as an error does, so that nothing is left behind."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        names = []  # only the main thread may say what signals do
    before = {getattr(signal, name): signal.getsignal(getattr(signal, name)) for name in names}
    # What the parent ignores (nohup) stays ignored.
    numbers = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def spell_option(name: str, value: str) -> str:
    """A parameter as an option of the command line; ``value`` is a Python literal, or empty."""
    option = f"--{name.replace('_', '-')}"
    if value in ("", "True"):
        return option
    return f"{option} {shlex.quote(str(ast.literal_eval(value)))}"


def _end(number: int, frame: Any) -> NoReturn:
    raise _Termination(number)


def _usage_error(typer: Any) -> Any:
    """What typer raises for bad options: since some version it has come with a click of its own,
    which is found through its public names.
    """
    return next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


def _handle_error(error: Exception, usage_error: Any) -> int:
    """One line about bad input; anything else is a defect of ours, and raised again."""
    if isinstance(error, BrokenPipeError):
        # Whoever reads our output has seen enough; Python must not complain when it flushes at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, usage_error):
        return _report_error(error.format_message())
    if isinstance(error, ValueError | TypeError | OSError | MemoryError):
        return _report_error(_text_of(error))
    raise error


def _text_of(error: Exception) -> str:
    from calibrant._validation import ParameterError  # not at once: it imports scikit-learn

    if isinstance(error, ParameterError):
        return error.message.spell(spell_option)
    return str(error) or type(error).__name__


def _report_error(message: str, code: int = BAD_INPUT) -> int:
    from calibrant._validation import printable  # not at once: it imports scikit-learn

    shown = printable(" ".join(message.split()))
    if len(shown) > _LONGEST_MESSAGE:
        shown = f"{shown[:_LONGEST_MESSAGE]} ..."
    sys.stderr.write(f"calibrant: {shown}\n")
    return code
