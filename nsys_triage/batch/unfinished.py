"""Whether somebody is still writing a file."""

import errno
import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Final

from nsys_triage.ingest.files import base_name

_SETTLE_S: Final = 0.3
_RECENT_S: Final = 60.0  # where the file system cannot say who has a file open
_F_SETSIG: Final = getattr(fcntl, "F_SETSIG", 10)


def beside(path: Path) -> str | None:
    """Why a file that may be whole is not to be read: a journal or log with content lies beside it; or None."""
    for suffix in ("-journal", "-wal"):
        other = path.with_name(path.name + suffix)
        try:
            if other.stat().st_size:
                return _sentence(path, f"{base_name(other)} lies beside it")
        except OSError:
            continue
    return None


def changed(path: Path, size_bytes: int, version: str) -> str | None:
    """Why: it is not what it was when it was listed."""
    status = path.stat()
    if (status.st_size, str(status.st_mtime_ns)) == (size_bytes, version):
        return None
    return _sentence(path, "it has changed since it was listed")


def refused(path: Path) -> str | None:
    """Why a file that is not complete may be so soon: it is open for writing, grows, or was written just now."""
    if not path.is_file():  # a pipe or a device never becomes complete
        return None
    writer = open_for_writing(path)
    if writer:
        return _sentence(path, "another program has it open for writing")
    before = path.stat()
    if writer is None:
        time.sleep(_SETTLE_S)
        after = path.stat()
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return _sentence(path, "it changes")
        if 0 <= time.time() - after.st_mtime < _RECENT_S:
            return _sentence(path, "it was written less than a minute ago and is not complete")
    return None


def open_for_writing(path: Path) -> bool | None:
    """Whether any process has the file open for writing; None where that cannot be found out.

    A read lease is granted only where nobody has (fcntl(2)); other people's files and network file systems give none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # the default signal for a broken lease, SIGIO, would end the process
        fcntl.fcntl(descriptor, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno in (errno.EAGAIN, errno.EACCES) and _own(descriptor) else None
    finally:
        os.close(descriptor)
    return False


def _own(descriptor: int) -> bool:
    """Whether the file is this user's: for others' a lease is refused whatever they do."""
    return os.geteuid() in (0, os.fstat(descriptor).st_uid)


def _sentence(path: Path, why: str) -> str:
    return (
        f"{base_name(path)} is still being written ({why}): run the same command again when it is complete."
    )
