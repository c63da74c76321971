"""What this machine has to work with, and what processes use of it."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

LEAST_BYTES: Final = 1 << 30  # what a process should at least be allowed: 0.2 GB are libraries
_USED_SHARE: Final = 0.8
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_CGROUP: Final = Path("/sys/fs/cgroup")


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def available_bytes() -> int:
    """Memory that may still be taken: what the kernel says is available, and no more than the control group leaves."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(fields["MemAvailable"].split()[0]) * 1024
    with suppress(OSError, ValueError):
        limit, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        if limit != "max":
            free = min(free, int(limit) - int(used))
    return max(0, free)


def default_jobs(budget_bytes: int | None, available: int | None = None) -> int:
    """How many processes: one per core, fewer where memory does not hold that many budgets."""
    usable = _USED_SHARE * (available_bytes() if available is None else available)
    return max(1, min(cores(), int(usable // (budget_bytes or LEAST_BYTES))))


def default_budget(jobs: int, available: int | None = None) -> int:
    """The memory that each of so many processes may use: together four fifths of what is available."""
    usable = _USED_SHARE * (available_bytes() if available is None else available)
    return max(LEAST_BYTES // 2, int(usable / jobs))


def tree(pid: int) -> list[int]:
    """A process and all that it started, itself first."""
    found = [pid]
    for parent in found:
        with suppress(OSError, ValueError):
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return found


def resident_bytes(pid: int) -> int:
    """Memory in use by a process and what it started; 0 where it is gone."""
    total = 0
    for one in tree(pid):
        with suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * _PAGE_BYTES
    return total


def kill_tree(pid: int) -> None:
    """End a process that has not been reaped yet, and what it started, at once."""
    for one in tree(pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(one, signal.SIGKILL)
