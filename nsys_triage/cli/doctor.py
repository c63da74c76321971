"""`nsys-triage doctor`: what the tool finds on this machine."""

import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click

from nsys_triage import __version__, units
from nsys_triage.cli.options import cache_dir_option, nsys_option
from nsys_triage.errors import NsysMissingError, UsageError

LIBRARIES = (
    "polars",
    "pyarrow",
    "adbc-driver-sqlite",
    "msgspec",
    "jinja2",
    "click",
    "rich",
    "platformdirs",
)
_LABEL_WIDTH = 11


@click.command("doctor")
@nsys_option
@cache_dir_option
def command(nsys: Path | None, cache_dir: Path | None) -> None:
    """Show the nsys, the cache and the libraries that would be used."""
    lines = [
        ("nsys-triage", [__version__]),
        ("python", [platform.python_version()]),
        ("libraries", [", ".join(_library_versions())]),
        ("nsys", list(_nsys_lines(nsys))),
        ("cache", list(_cache_lines(cache_dir))),
        ("cpus", [str(_cpu_count())]),
    ]
    for label, texts in lines:
        for index, text in enumerate(texts):
            click.echo(f"{label if index == 0 else '':<{_LABEL_WIDTH}}  {text}")


def _library_versions() -> Iterator[str]:
    for name in LIBRARIES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} missing"


def _nsys_lines(given: Path | None) -> Iterator[str]:
    from nsys_triage.ingest.nsys import LOOKED_IN, find_nsys

    try:
        found = find_nsys(given)
    except (NsysMissingError, UsageError) as error:
        yield str(error)
        return
    for nsys in found:
        yield f"{nsys.version}  {nsys.path}"
    if not found:
        yield f"none found (looked at --nsys, {LOOKED_IN}): reports need it, their SQLite exports do not"


def _cache_lines(given: Path | None) -> Iterator[str]:
    from nsys_triage.ingest.cache import Cache

    cache = Cache.locate(given)
    usage = cache.usage()
    yield str(cache.folder)
    yield f"{units.plural(usage.exports, 'export')}, {units.size(usage.size_bytes)}"
    place = next(
        (place for place in (cache.folder, *cache.folder.parents) if os.access(place, os.F_OK)), Path("/")
    )
    yield f"{units.size(shutil.disk_usage(place).free)} free on its disk"


def _cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))
