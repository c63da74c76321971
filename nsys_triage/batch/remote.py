"""Traces on object stores and other file systems, through fsspec, where the extra `dask` is installed."""

import glob
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nsys_triage.errors import InputError, UsageError
from nsys_triage.ingest.files import base_name

# what file systems say of a file that changes when it does
_VERSION_KEYS: Final = (
    "ETag",
    "etag",
    "md5Hash",
    "content_md5",
    "generation",
    "CRC",
    "LastModified",
    "last_modified",
    "mtime",
    "size",
)
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file behind a URL."""

    place: str  # its URL, with the archive it lies in behind `::`
    below: int  # how many of its last parts are below what was given
    size_bytes: int
    version: str


def is_url(place: str) -> bool:
    """Whether the place is a URL and not a path."""
    return _URL.fullmatch(place) is not None


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError("URLs need fsspec: pip install 'nsys-triage[dask]'.") from error
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:
        raise UsageError(
            f"{_shown(url)} cannot be opened ({type(error).__name__}): install fsspec's driver for it, or check it."
        ) from error
    return system, str(path)


def _shown(url: str) -> str:
    """A URL as people may see it: kind and last part, without host, user and folders."""
    return f"{url.partition('://')[0]}://.../{base_name(Path(url.partition('::')[0]))}"


def listed(url: str, wanted: Callable[[str], object]) -> Iterator[RemoteFile]:
    """The files of a URL: that file, what a glob matches, or what a folder holds and `wanted` likes by its name.

    Raises `UsageError` where there is nothing, or no way to look.
    """
    system, path = _file_system(url)
    within = "::" + url.partition("::")[2] if "::" in url else ""
    try:
        if glob.has_magic(path):
            start = path[: min(path.find(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
            paths = [name for name in system.glob(path) if not system.isdir(name)]
        elif system.isdir(path):
            start = path
            paths = [name for name in system.find(path) if wanted(name.rpartition("/")[2])]
        else:
            start, paths = path.rpartition("/")[0], [path]
        depth = len([part for part in start.split("/") if part])
        for name in sorted(map(str, paths)):
            info = system.info(name)
            below = len([part for part in name.split("/") if part]) - depth
            yield RemoteFile(system.unstrip_protocol(name) + within, below, *_state(info))
    except (OSError, ValueError) as error:
        raise UsageError(f"{_shown(url)} cannot be read ({type(error).__name__}): check it.") from error
    if not paths:
        raise UsageError(f"nothing is at {_shown(url)}: check it.")


@contextmanager
def local_copy(place: str) -> Iterator[Path]:
    """The file as a path: itself, or a copy of what is behind a URL that goes when the block ends."""
    if not is_url(place):
        yield Path(place)
        return
    system, path = _file_system(place)
    with tempfile.TemporaryDirectory(prefix="nsys-triage-batch-") as folder:
        target = Path(folder) / (path.rpartition("/")[2] or "trace")
        try:
            system.get_file(path, str(target))
        except OSError as error:
            raise InputError(
                f"{base_name(target)} cannot be fetched ({type(error).__name__}): check the URL and access to it."
            ) from error
        yield target


def version_of(place: str) -> tuple[int, str]:
    """Size and version of a file behind a URL, now."""
    system, path = _file_system(place)
    return _state(system.info(path))


def _state(info: dict[str, Any]) -> tuple[int, str]:
    return int(info.get("size") or 0), "; ".join(
        f"{key} {info[key]}" for key in _VERSION_KEYS if info.get(key) is not None
    )
