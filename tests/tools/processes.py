"""Whether processes still run."""

import time
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process still runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_gone(pids: list[int], count: int = 2) -> None:
    """That many processes have ended, or do so at once: the kernel takes a moment to end what was killed."""
    assert len(pids) == count
    end = time.monotonic() + 10
    while any(map(alive, pids)):
        assert time.monotonic() < end, "a process is left"
        time.sleep(0.01)
