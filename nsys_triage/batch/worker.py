"""A process that works for the pool: reads a task from stdin, writes its outcome to where stdout was, until stdin ends.

It ends with the pool: when that is killed, the kernel sends SIGTERM here, which goes through the clean-up of what is
under way, an export by nsys included.
"""

import ctypes
import os
import signal
import struct
import sys
from types import FrameType
from typing import Final, NoReturn

HEADER: Final = struct.Struct("<Q")
_PR_SET_PDEATHSIG: Final = 1
_CHUNK_BYTES: Final = 1 << 16


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise SystemExit(128 + number)


def read_exactly(descriptor: int, count: int) -> bytes:
    """That many bytes, or b"" where the other end is gone."""
    parts = []
    while count:
        part = os.read(descriptor, min(count, _CHUNK_BYTES))
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def write_all(descriptor: int, data: bytes) -> None:
    """All bytes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def main(parent: int) -> None:
    """Work until stdin ends."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the line above
        return
    # what a library prints must not get between the outcomes
    answers = os.dup(1)
    os.dup2(2, 1)
    from nsys_triage.batch.task import run_packed

    while head := read_exactly(0, HEADER.size):
        task = read_exactly(0, HEADER.unpack(head)[0])
        if not task:
            return
        outcome = run_packed(task)
        write_all(answers, HEADER.pack(len(outcome)) + outcome)


if __name__ == "__main__":
    main(int(sys.argv[1]))
