"""Runs a program in a process group of its own, and never leaves any of it behind."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICK_S: Final = 0.05  # how often the end of the program and the deadline are looked at
_KEPT_BYTES: Final = 64 * 1024  # of the messages: the end of them, where an endless stream comes


class DeadlineError(Exception):
    """The program was still running when its time was up; it has been ended."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended by itself."""

    return_code: int  # minus the signal, where one ended it
    stderr: str  # its last 64 KiB


def run_group(
    command: Sequence[str | os.PathLike[str]],
    cwd: Path,
    timeout_s: float | None,
    on_stderr: Callable[[bytes], None],
) -> Finished:
    """Runs a program without a shell to its end; `on_stderr` gets what it prints on stderr, as it comes.

    Whatever happens, an interrupt included, the whole process group is gone when this returns or raises.
    Raises `DeadlineError` after `timeout_s`, and `OSError` where the program cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603 - an argument list, no shell
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        kept = _follow(process, timeout_s, on_stderr)
    finally:
        # the leader has not been reaped yet, so its number cannot belong to anybody else
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return_code = process.wait()
        if process.stderr:
            process.stderr.close()
    return Finished(return_code, kept.decode("utf-8", "replace"))


def _follow(
    process: subprocess.Popen[bytes], timeout_s: float | None, on_stderr: Callable[[bytes], None]
) -> bytes:
    """Reads stderr until the program has ended; its end is seen without reaping it."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    kept = b""
    if process.stderr is None:
        raise ValueError("stderr is not a pipe")
    descriptor = process.stderr.fileno()
    os.set_blocking(descriptor, False)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            # after its end, only what is in the pipe already: a child of it may hold the other end open
            while selector.get_map() and selector.select(0 if ended else _TICK_S):
                data = os.read(descriptor, 65536)
                if not data:
                    selector.unregister(descriptor)
                    break
                on_stderr(data)
                kept = (kept + data)[-_KEPT_BYTES:]
                if deadline is not None and time.monotonic() > deadline:
                    break
            if ended:
                return kept
            if deadline is not None and time.monotonic() > deadline:
                raise DeadlineError
            if not selector.get_map():
                time.sleep(_TICK_S)
