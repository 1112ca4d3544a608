"""The command line: ``calibrant demo | evaluate | fit | apply | compare | report |
monitor``.

Results go to standard output, remarks and progress to standard error. Bad input ends with exit code
2 and one line that says what is wrong; an interrupted command with 130. The commands themselves are
in `calibrant.cli._app`, which needs the extra ``cli``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

BAD_INPUT = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    raise SystemExit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    try:
        import typer

        from calibrant.cli._app import app
    except ImportError as error:
        return _complain(
            f'the command line needs the package {error.name}: pip install "calibrant[cli]"'
        )
    try:
        code = app(list(arguments) or ["--help"], prog_name="calibrant", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except Exception as error:
        return _explain(error, _usage_error(typer))
    if code == INTERRUPTED:
        return _complain("interrupted; nothing was written", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _usage_error(typer: Any) -> Any:
    """What typer raises for bad options: since some version it has come with a click of its own,
    which is found through its public names.
    """
    return next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


def _explain(error: Exception, usage_error: Any) -> int:
    """One line about bad input; anything else is a defect of ours, and raised again."""
    if isinstance(error, BrokenPipeError):
        # Whoever reads our output has seen enough; Python must not complain when it flushes at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, usage_error):
        return _complain(error.format_message())
    if isinstance(error, ValueError | TypeError | OSError | MemoryError):
        return _complain(str(error) or type(error).__name__)
    raise error


def _complain(message: str, code: int = BAD_INPUT) -> int:
    sys.stderr.write(f"calibrant: {' '.join(message.split())}\n")
    return code
