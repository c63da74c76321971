"""Folders of many traces for the batch: mixed kinds, copies, ranks of jobs, and every kind of bad file."""

import gzip
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.builders.trace import ALL_REDUCE, TraceBuilder
from tests.tools.small_files import REPORT_2023, REPORT_FUTURE, make_export, make_sqlite


def busy() -> TraceBuilder:
    """The GPU works nearly all the time."""
    return TraceBuilder("2025.5.2").kernels(1_000, 200, every=100, length=97)


def launching() -> TraceBuilder:
    """Short kernels, far apart."""
    return TraceBuilder("2023.4.4", gpus=("A100",)).kernels(1_000, 300, every=40, length=8)


def waiting() -> TraceBuilder:
    """A wait after every few kernels."""
    trace = TraceBuilder("2026.3.1")
    for step in range(40):
        start = 1_000 + step * 1_000
        trace.kernels(start, 4, every=60, length=50)
        trace.wait("cudaStreamSynchronize_v3020", start + 100, start + 700)
        trace.range(f"step {step}", start - 50, start + 900)
    return trace


def two_gpus() -> TraceBuilder:
    """Two GPUs, one of them idle half of the time."""
    trace = TraceBuilder("2025.5.2", gpus=("H100", "H100"))
    return (
        trace.kernels(1_000, 100, every=100, length=90).on(device=1).kernels(1_000, 50, every=200, length=90)
    )


def no_gpu_work() -> TraceBuilder:
    """Nothing to judge."""
    return TraceBuilder("2025.5.2").range("work", 1_000, 50_000)


MAKERS: Final[tuple[Callable[[], TraceBuilder], ...]] = (busy, launching, waiting, two_gpus, no_gpu_work)


def rank(number: int, world: int, started_ns: int = 1_780_300_800_000_000_000) -> TraceBuilder:
    """One rank of a job with an all-reduce per step."""
    trace = TraceBuilder("2026.3.1").started(started_ns + number * 1_000_000)
    trace.environment({"RANK": f"{number}", "LOCAL_RANK": f"{number}", "WORLD_SIZE": f"{world}"})
    for step in range(20):
        start = 1_000 + step * 1_000
        trace.kernel(start, start + 600 + 20 * number)
        trace.kernel(start + 600 + 20 * number, start + 800, ALL_REDUCE, stream=20)
    return trace


def variant(base: Path, target: Path, number: int) -> Path:
    """A copy of an export that began at another time and whose kernels are a little shorter: other content."""
    shutil.copyfile(base, target)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute(
            "UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", (number * 10**9,)
        )
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
            connection.execute(
                "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end - (end - start) * ? / 100", (number % 7,)
            )
        connection.commit()
    return target


def _partial(path: Path) -> None:
    make_sqlite(path, {"StringIds": "id INTEGER", "ThreadNames": "nameId INTEGER"}, ("META_DATA_EXPORT", {}))


def _no_tables(path: Path) -> None:
    make_sqlite(path, {"users": "id INTEGER"})


def _damaged(path: Path) -> None:
    spoil(busy().write(path), "CUPTI_ACTIVITY_KIND_KERNEL")


def spoil(path: Path, table: str) -> None:
    """Overwrite the first page of a table: the metadata stays whole."""
    data = bytearray(path.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    data[(root - 1) * page : root * page] = b"\xff" * page
    path.write_bytes(data)


def _cut(path: Path) -> None:
    make_export(path)
    path.write_bytes(path.read_bytes()[:-5_000])


def _no_metadata(path: Path) -> None:
    make_sqlite(
        path, {"StringIds": "id INTEGER, value TEXT", "ANALYSIS_DETAILS": "startTime INTEGER -- clock"}
    )


BAD: Final[dict[str, tuple[str, Callable[[Path], object]]]] = {
    # what is wrong: suffix, how to make it
    "empty": (".sqlite", lambda path: path.write_bytes(b"")),
    "empty report": (".nsys-rep", lambda path: path.write_bytes(b"")),
    "truncated report": (".nsys-rep", lambda path: path.write_bytes(REPORT_2023[:-3])),
    "head of a report": (".qdrep", lambda path: path.write_bytes(REPORT_2023[:10])),
    "truncated export": (".sqlite", _cut),
    "zeros": (".sqlite", lambda path: path.write_bytes(bytes(8_192))),
    "text": (".sqlite", lambda path: path.write_text("no trace\n")),
    "lfs pointer": (
        ".nsys-rep",
        lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\noid x\n"),
    ),
    "packed": (".nsys-rep.gz", lambda path: path.write_bytes(gzip.compress(REPORT_2023))),
    "raw stream": (".qdstrm", lambda path: path.write_bytes(b"U3w[END]NVIDIA Nsight Systems Stream 1")),
    "partial export": (".sqlite", _partial),
    "other database": (".sqlite", _no_tables),
    "damaged": (".sqlite", _damaged),
    "no metadata": (".sqlite", _no_metadata),
    "no nsys for it": (".nsys-rep", lambda path: path.write_bytes(REPORT_FUTURE)),
    "link to nothing": (".sqlite", lambda path: path.symlink_to("nowhere")),
    "no regular file": (".sqlite", os.mkfifo),
}
"""Every kind of file that gives no result."""


@dataclass
class Made:
    """What a folder holds, by path below it."""

    folder: Path
    single: list[str] = field(default_factory=list)
    copies: dict[str, str] = field(default_factory=dict)  # copy -> what it is a copy of
    ranks: list[list[str]] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> int:
        """Results that there should be."""
        return len(self.single) + len(self.ranks)


def make(folder: Path, traces: int, *, bad: int = 0, copies: int = 0, jobs: int = 0, ranks: int = 2) -> Made:
    """A folder with so many files: single traces and bad files of every kind, copies, ranks of jobs."""
    made = Made(folder)
    base = folder.with_name(f"{folder.name} base")
    folder.mkdir(parents=True)
    base.mkdir()
    kinds = [maker().write(base / f"{maker.__name__}.sqlite") for maker in MAKERS]
    for number in range(traces - bad - copies - jobs * ranks):
        kind = kinds[number % len(kinds)]
        path = folder / f"run {number % 10}" / f"{kind.stem}_{number}.sqlite"
        path.parent.mkdir(exist_ok=True)
        made.single.append(str(variant(kind, path, number).relative_to(folder)))
    for number in range(copies):
        source = made.single[number]
        target = folder / "copies" / f"copy_{number}.sqlite"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(folder / source, target)
        made.copies[str(target.relative_to(folder))] = source
    members = [rank(number, ranks).write(base / f"rank{number}.sqlite") for number in range(ranks)]
    for job in range(jobs):
        place = folder / f"job {job}"
        place.mkdir()
        made.ranks.append(
            [str(variant(path, place / path.name, job * 1_000).relative_to(folder)) for path in members]
        )
    for number in range(bad):
        what, (suffix, write) = list(BAD.items())[number % len(BAD)]
        path = folder / "bad" / f"{what} {number}{suffix}"
        path.parent.mkdir(exist_ok=True)
        write(path)
        made.bad.append(str(path.relative_to(folder)))
    shutil.rmtree(base)
    return made
