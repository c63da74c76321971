"""From an exported SQLite file to a `Trace`."""

from pathlib import Path
from typing import Final

import polars as pl

from nsys_triage.errors import InputError
from nsys_triage.trace import events, gpu_metrics, metadata, model, nvtx, strings, targets, versions
from nsys_triage.trace.clean import EPOCH_SIZED_NS, Clock
from nsys_triage.trace.model import Counts, Trace
from nsys_triage.trace.read import Database, Narrow, Piece, Task, quoted

_INTERVALS: Final = (
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
    "api",
    "syncs",
    "osrt",
    "host_communication",
    "overheads",
)
# columns of string codes
_CODES: Final = {
    "kernels": ("name",),
    "api": ("name",),
    "osrt": ("name",),
    "host_communication": ("name",),
    "overheads": ("name",),
    "samples": ("symbol", "module"),
}
_CLOCK_TABLES: Final = ("kernels", "memcpys", "memsets", "graphs", "api", "nvtx", "osrt", "syncs")
_PROBED_ROWS: Final = 64


def load_trace(
    path: Path, *, file: str, kind: str, capture_version: str | None, filtered: bool = False
) -> Trace:
    """The whole trace of an export: every frame of `model.FRAMES`, times in ns from the start of the capture.

    `file` and `kind` are what the result says of the input; `capture_version` is the report's, where its
    header has it; `filtered` says that the export was made with a choice of tables or times. A frame whose
    table is not in the export is empty and not in `Trace.recorded`. The file is opened read-only. Raises
    `InputError` where it is locked, damaged or no export of Nsight Systems, `UsageError` where it does not
    exist.
    """
    database = Database(path)
    recorded = _recorded(database)
    session = metadata.session(database)
    clock = _clock(database, session)
    pieces = _read_events(database, clock)
    frames = {name: piece.frame for name, piece in pieces.items() if name in model.FRAMES and name != "nvtx"}
    frames["samples"] = events.join_samples(pieces["samples"].frame, pieces["callchains"].frame)
    last_ns = _last_ns([*frames.values(), pieces["nvtx"].frame])
    ranges = nvtx.finish(pieces["nvtx"], database, _codes(frames), session.duration_ns, last_ns)
    frames["nvtx"] = ranges.ranges
    # MPI calls have tables of their own since 2023.4.4 and are NVTX ranges before: never both
    if frames["host_communication"].is_empty() and ranges.mpi_calls.height:
        frames["host_communication"] = ranges.mpi_calls
        recorded.add("host_communication")
    own_texts = _name_all(frames, ranges.texts)
    frames["strings"] = _strings(database, frames, own_texts)
    metrics = gpu_metrics.read_gpu_metrics(database, clock)
    if metrics is not None:
        recorded.add("gpu_metrics")
    frames["gpu_metrics"] = model.empty(model.GPU_METRICS) if metrics is None else metrics
    frames |= _targets(database, frames)
    info = metadata.capture_info(
        database, session, file=file, kind=kind, capture_version=capture_version, filtered=filtered
    )
    counts = _counts(pieces, ranges, recorded)
    return Trace(info=info, recorded=frozenset(recorded), counts=counts, dropped=_dropped(pieces), **frames)


def _recorded(database: Database) -> set[str]:
    """The frames whose table is in the export. Raises `InputError` where there is none."""
    known = {
        table for sources in versions.FRAME_SOURCES.values() for source in sources for table in source.tables
    }
    if known.isdisjoint(database.tables):
        raise InputError(f"{database.name} is an SQLite database, but no export of Nsight Systems.")
    return {
        name
        for name, sources in versions.FRAME_SOURCES.items()
        if any(database.resolve(source) is not None for source in sources)
    }


def _read_events(database: Database, clock: Clock) -> dict[str, Piece]:
    """The narrowed rows of each event table; of a frame with several tables, one after the other."""
    narrows: dict[str, Narrow] = {name: events.narrow_intervals(name, clock) for name in _INTERVALS}
    narrows["nvtx"] = nvtx.narrow_nvtx(clock, nvtx.text_categories())
    narrows["scheduling"] = events.narrow_scheduling(clock)
    narrows["samples"] = events.narrow_samples(clock)
    narrows["callchains"] = events.narrow_callchains
    planned = [
        (name, Task(resolved, narrows[name]))
        for name in narrows
        for source in versions.EVENT_SOURCES[name]
        if (resolved := database.resolve(source, strict=True)) is not None
    ]
    read = database.read([task for _, task in planned])
    pieces: dict[str, Piece] = {}
    for name, narrow in narrows.items():
        parts = [
            piece for (planned_name, _), piece in zip(planned, read, strict=True) if planned_name == name
        ]
        pieces[name] = Piece.join(parts or [narrow(_no_rows(name))])
    return pieces


def _no_rows(name: str) -> pl.DataFrame:
    """A batch without rows, as a table that is not there would give it."""
    source = versions.EVENT_SOURCES[name][0]
    return pl.DataFrame(
        schema=dict.fromkeys(source.integers, pl.Int64) | dict.fromkeys(source.texts, pl.Binary)
    )


def _clock(database: Database, session: metadata.Session) -> Clock:
    """How times become relative; analysis.md section 1, "Time".

    The export's shift is taken off; where times are epoch-sized even then, the session's start, and failing
    that the earliest row.
    """
    shift = session.time_shift_ns
    starts = [
        (quoted(table.table), quoted(column))
        for name in _CLOCK_TABLES
        if (table := database.resolve(versions.EVENT_SOURCES[name][0])) is not None
        and (column := table.integers["start"])
    ]
    probed = [time - shift for table, column in starts for time in _some_times(database, table, column)]
    middle = sorted(probed)[len(probed) // 2] if probed else 0
    if middle < EPOCH_SIZED_NS:
        return Clock(shift, session.duration_ns, shift)
    began = session.started_epoch_ns
    if began is not None and abs(middle - began) < EPOCH_SIZED_NS:
        return Clock(shift + began, session.duration_ns, shift)
    first = min(_first_time(database, table, column, shift + EPOCH_SIZED_NS) for table, column in starts)
    return Clock(first, session.duration_ns, shift)


def _some_times(database: Database, table: str, column: str) -> list[int]:
    condition = f"typeof({column}) = 'integer' AND {column} <> 0 LIMIT {_PROBED_ROWS}"
    sql = f"SELECT {column} AS t FROM {table} WHERE {condition}"  # noqa: S608 (quoted)
    times: list[int] = database.query(sql)["t"].to_list()
    return times


def _first_time(database: Database, table: str, column: str, above: int) -> int:
    """The least time of a table above a bound; the largest number that SQLite has where there is none."""
    condition = f"typeof({column}) = 'integer' AND {column} > {above}"
    sql = f"SELECT ifnull(min({column}), {2**63 - 1}) AS t FROM {table} WHERE {condition}"  # noqa: S608
    return int(database.query(sql)["t"][0])


def _last_ns(frames: list[pl.DataFrame]) -> int:
    ends = [frame["end_ns"].max() for frame in frames if "end_ns" in frame.columns]
    return max((end for end in ends if isinstance(end, int)), default=0)


def _codes(frames: dict[str, pl.DataFrame]) -> pl.Series:
    return strings.used_codes(frames[name][column] for name, columns in _CODES.items() for column in columns)


def _name_all(frames: dict[str, pl.DataFrame], own: pl.DataFrame) -> pl.DataFrame:
    """Give rows without a name that of an unknown text; return the texts with it."""
    lacking = [
        name for name, columns in _CODES.items() if columns == ("name",) and frames[name]["name"].has_nulls()
    ]
    if not lacking:
        return own
    largest = strings.used_codes([_codes(frames), own["code"], frames["nvtx"]["name"]]).max()
    code = (largest if isinstance(largest, int) else 0) + 1
    for name in lacking:
        frames[name] = frames[name].with_columns(pl.col("name").fill_null(pl.lit(code, dtype=pl.UInt32)))
    return pl.concat([own, pl.DataFrame({"code": [code], "text": [strings.UNKNOWN]}, schema=model.STRINGS)])


def _strings(database: Database, frames: dict[str, pl.DataFrame], own: pl.DataFrame) -> pl.DataFrame:
    """Every text that a frame uses: of the export, and those that NVTX rows carry themselves."""
    codes = strings.used_codes(
        [_codes(frames), *(frames["nvtx"][column] for column in ("name", "domain", "payload"))]
    )
    of_export = codes.filter(~codes.is_in(own["code"].implode()))
    used = own.filter(pl.col("code").is_in(codes.implode()))
    return pl.concat([strings.read_strings(database, of_export), used]).sort("code")


def _targets(database: Database, frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    with_events = [name for name in (*_INTERVALS, "nvtx", "samples") if frames[name].height]
    pids = [frames[name]["pid"].drop_nulls().unique() for name in with_events or ["scheduling"]]
    active = pl.concat(pids).unique().sort()
    return {
        "gpu_info": targets.gpu_info(database),
        "cuda_devices": targets.cuda_devices(database),
        "contexts": targets.contexts(database),
        "streams": targets.streams(database),
        "processes": targets.processes(database, active),
        "threads": targets.threads(database, active),
    }


def _counts(pieces: dict[str, Piece], ranges: nvtx.Ranges, recorded: set[str]) -> Counts:
    def rows(name: str) -> int | None:
        return pieces[name].rows if name in recorded else None

    has_nvtx = "nvtx" in recorded
    return Counts(
        kernels=rows("kernels"),
        memcpys=rows("memcpys"),
        memsets=rows("memsets"),
        graphs=rows("graphs"),
        nvtx_ranges=ranges.range_count if has_nvtx else None,
        nvtx_points=ranges.point_count if has_nvtx else None,
        nvtx_open_ranges=ranges.open_count if has_nvtx else None,
        api_calls=rows("api"),
        syncs=rows("syncs"),
    )


def _dropped(pieces: dict[str, Piece]) -> dict[str, int]:
    return {
        reason: sum(piece.dropped.get(reason, 0) for piece in pieces.values())
        for reason in model.DROP_REASONS
    }
