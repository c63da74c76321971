"""What a command shows beside its outputs: log lines and progress on stderr, text for people on stdout."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[str, int | None], None]

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def set_up_logging(verbose: int) -> None:
    """Log lines of the package go to stderr: warnings; with -v what is done; with -vv everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("nsys-triage: %(message)s"))
    logger = logging.getLogger("nsys_triage")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])


def stdout_console() -> "Console":
    """A console on stdout that colours nothing by itself; raises BrokenPipeError where the reader is gone.

    Rich would exit with 1 there, which says that a gate fired.
    """
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipeConsole(file=sys.stdout, highlight=False)


@contextmanager
def progress_display(wanted: bool) -> Iterator[Progress | None]:
    """A callback for progress, shown on stderr; None where stderr is no terminal or nothing is `wanted`."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    # markup off: a file name may hold square brackets
    text = TextColumn("{task.description}", markup=False)
    with Progress(
        text, BarColumn(), TaskProgressColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("", total=None)

        def show(what: str, percent: int | None) -> None:
            bar.update(task, description=what, total=None if percent is None else 100, completed=percent or 0)

        yield show
