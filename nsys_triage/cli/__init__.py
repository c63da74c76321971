"""The command line: `main()` is the only place that turns errors into a sentence and an exit code."""

import errno
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from nsys_triage.cli.group import PipeClosedError, nsys_triage
from nsys_triage.errors import OutputError, TriageError

EXIT_INTERNAL = 70  # EX_SOFTWARE: apart from all codes that mean something about the input
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_PIPE_CLOSED = 128 + signal.SIGPIPE
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


# Polars' allocator keeps freed pages for ten seconds: for one second only, a million kernels need 1.0 GB instead of
# 1.3, in the same time (given back at once: twice the time). It reads this when the library is loaded, later than this.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:1000,muzzy_decay_ms:0")


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _terminate)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code, having printed the reason on stderr where it is not 0."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character of a file name gets a question mark, not an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = nsys_triage.main(arguments, prog_name="nsys-triage", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, PipeClosedError):
        # the interpreter flushes once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_PIPE_CLOSED
    except (Exception, KeyboardInterrupt) as error:
        if logging.getLogger("nsys_triage").isEnabledFor(logging.DEBUG):
            click.echo("".join(traceback.format_exception(error)), err=True)
        return _say(error)
    return code if isinstance(code, int) else 0


def _say(error: BaseException) -> int:
    """Print what went wrong in one line on stderr; returns the exit code that belongs to it."""
    sentence, code = _sentence_and_code(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(sentence, err=True)  # the help text
        return code
    line = "".join(char if char.isprintable() else " " for char in sentence)
    click.echo(f"nsys-triage: {line}", err=True)
    return code


def _sentence_and_code(error: BaseException) -> tuple[str, int]:
    if isinstance(error, TriageError):
        return str(error), error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message(), error.exit_code
    if isinstance(error, click.ClickException):
        return _usage_sentence(error), click.UsageError.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "interrupted.", EXIT_INTERRUPTED
    if isinstance(error, MemoryError):
        return "memory ran out: run it where there is more, or on a shorter recording.", TriageError.exit_code
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return f"the output cannot be written: {os.strerror(error.errno).lower()}.", OutputError.exit_code
    what = f"{type(error).__name__}: {error}"
    return f"internal error ({what}): run it again with -vv and report what it prints.", EXIT_INTERNAL


def _usage_sentence(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" See `{context.command_path} --help`." if context else ""
    message = error.format_message()
    return f"{message if message.endswith(('.', '?', ')')) else message + '.'}{hint}"


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """End as a signal would, but through the clean-up of what is under way."""
    del frame
    raise SystemExit(128 + number)
