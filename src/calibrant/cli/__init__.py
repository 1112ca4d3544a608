"""The command line: ``calibrant demo | evaluate | fit | apply | decide | export | compare | report
| llm | monitor``.

Results go to standard output, warnings and progress to standard error. For bad input, the exit code
is 2 and one line states the problem. If a signal ends a command, the exit code is 128 plus the
number of the signal. The commands are in `calibrant.cli._app`, which needs the optional
dependencies ``cli``.
"""

from __future__ import annotations

import ast
import io
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from calibrant import __version__
from calibrant._output.files import completed
from calibrant.cli._deferred import leave_out_optional
from calibrant.cli._signals import Termination, catch_signals

BAD_INPUT = 2
_KILLED = 128
INTERRUPTED = _KILLED + 2
_LONGEST_MESSAGE = 2000
"""Maximum number of characters of a message, which may quote the content of a file."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the encoding may lack characters of class names
            stream.reconfigure(errors="backslashreplace")
    leave_out_optional()
    raise SystemExit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    completed.clear()
    try:
        with catch_signals():
            code = _run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Termination as signal_error:
        code = _KILLED + int(signal_error.args[0])
    if code > _KILLED:
        written = f"Files written: {', '.join(completed)}" if completed else "No file was written"
        return report_error(f"The command was interrupted. {written}.", code)
    return code


def _run(arguments: Sequence[str]) -> int:
    # Print the version before the commands are imported, because this import is slow.
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"calibrant {__version__}\n")
        return 0
    try:
        import rich  # noqa: F401  # modules that print results import rich later
        import typer

        from calibrant.cli._app import app
    except ImportError as error:
        return report_error(
            f"The command line needs the package {error.name}, which is not installed. Run pip "
            'install "calibrant[cli]".'
        )
    try:
        code = app(list(arguments) or ["--help"], prog_name="calibrant", standalone_mode=False)
        flush_output()
    except typer.Abort:
        code = INTERRUPTED
    except SystemExit as end:
        if end.code != 1:  # typer exits with 1 if the reader of its output has closed the pipe
            raise
        drop_output()
        code = 0
    except Exception as error:
        return _handle_error(error, _usage_error(typer))
    return code if isinstance(code, int) else 0


def flush_output() -> None:
    """Flush standard output, so a failure is reported. At exit, Python would ignore the failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def spell_option(name: str, value: str) -> str:
    """Write a parameter as a command-line option. ``value`` is a Python literal, or empty."""
    option = f"--{name.replace('_', '-')}"
    if value in ("", "True"):
        return option
    return f"{option} {shlex.quote(str(ast.literal_eval(value)))}"


def _usage_error(typer: Any) -> Any:
    """Return the exception class for bad options.

    New versions of typer contain their own copy of click, so the class is found through a public
    name of typer.
    """
    return next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


def _handle_error(error: Exception, usage_error: Any) -> int:
    """Report bad input in one line, and raise other exceptions, which are bugs of this package."""
    if isinstance(error, BrokenPipeError):
        drop_output()
        return 0
    if isinstance(error, usage_error):
        return report_error(error.format_message())
    if isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError):
        drop_output()
        return report_error(_text_of(error))
    raise error


def drop_output() -> None:
    """Discard buffered output that cannot be written, because Python would fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        # The reader has closed the pipe, or the disk is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _text_of(error: Exception) -> str:
    # Imported here, because this module imports scikit-learn, which is slow to import.
    from calibrant._validation import ParameterError

    if isinstance(error, ParameterError):
        return error.message.spell(spell_option)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"File {error.filename} does not exist."
    return str(error) or type(error).__name__


def report_error(message: str, code: int = BAD_INPUT) -> int:
    """Print a message on standard error and return the exit code."""
    # Imported here, because this module imports scikit-learn, which is slow to import.
    from calibrant._validation import printable

    text = printable(" ".join(message.split()))
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[:_LONGEST_MESSAGE]} ..."
    line = f"calibrant: {text}"
    if sys.stderr.isatty():
        line = wrap_lines(line, shutil.get_terminal_size().columns)
    sys.stderr.write(f"{line}\n")
    return code


def wrap_lines(text: str, width: int) -> str:
    """Wrap lines between words and keep their indentation.

    Words that are longer than a line, such as paths, stay in one piece and can be copied.
    """
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)
