"""GPUs, CUDA devices, contexts, streams, processes and threads of the machine that was recorded."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl

from nsys_triage.trace import model, versions
from nsys_triage.trace.read import Database
from nsys_triage.trace.strings import read_strings

# exports before 2021.5 give these in other units; no GPU lies on the wrong side of these bounds
_LEAST_BYTES_PER_S: Final = 10**10  # below: kB/s
_LEAST_CLOCK_HZ: Final = 10**8  # below: kHz
_LEAST_MEMORY_BYTES: Final = 2**24  # below: MiB (seen: 32510)
_THREAD_ROWS: Final[model.Schema] = {
    "pid": pl.Int32,
    "tid": pl.Int32,
    "code": pl.UInt32,
    "priority": pl.Int64,
}
_LIMITS: Final = (
    "max_warps_per_sm",
    "max_blocks_per_sm",
    "max_registers_per_sm",
    "max_registers_per_block",
    "max_shared_per_sm_bytes",
    "max_shared_per_block_bytes",
    "threads_per_warp",
    "memory_bytes",
    "memory_bytes_per_s",
    "clock_hz",
)


def _frame(rows: Iterable[Mapping[str, Any]], schema: model.Schema) -> pl.DataFrame:
    """Rows as a frame of that schema; what does not fit a narrow type becomes null."""
    wide = {
        name: pl.Int64 if pl.Series(dtype=kind).dtype.is_integer() else kind for name, kind in schema.items()
    }
    picked = [[row.get(name) for name in schema] for row in rows]
    frame = pl.DataFrame(picked, schema=wide, orient="row")
    return frame.select(pl.col(name).cast(kind, strict=False) for name, kind in schema.items())


def _base_name(column: str) -> pl.Expr:
    """The last part of a path of any system."""
    return pl.col(column).str.strip_chars_end("/\\").str.replace(r"^.*[/\\]", "")


def gpu_info(database: Database) -> pl.DataFrame:
    """NVIDIA GPUs of the machine (`model.GPU_INFO`); other adapters, which have 0 SMs, are left out.

    Captures of 2020 that a newer nsys exported have names and NULL for every figure.
    """
    rows: list[dict[str, Any]] = []
    for source in versions.GPU_INFO:
        if database.resolve(source) is not None:
            rows = database.rows(source)
            break
    for row in rows:
        row["uuid"] = (row.get("uuid") or "").removeprefix("GPU-") or None
        row["name"] = row.get("name") or None
        row["bus_location"] = row.get("bus_location") or None
    frame = _frame(rows, model.GPU_INFO).filter(pl.col("sm_count").is_null() | (pl.col("sm_count") > 0))
    return (
        frame.with_columns(pl.when(pl.col(name) > 0).then(name).alias(name) for name in _LIMITS)
        .with_columns(
            _scaled("memory_bytes", _LEAST_MEMORY_BYTES, 1 << 20),
            _scaled("memory_bytes_per_s", _LEAST_BYTES_PER_S, 1000),
            _scaled("clock_hz", _LEAST_CLOCK_HZ, 1000),
        )
        .unique("gpu_id", keep="first", maintain_order=True)
        .sort("gpu_id")
    )


def _scaled(name: str, least: int, factor: int) -> pl.Expr:
    return pl.when(pl.col(name) < least).then(pl.col(name) * factor).otherwise(name).alias(name)


def cuda_devices(database: Database) -> pl.DataFrame:
    """Which GPU each process' CUDA ordinals are (`model.CUDA_DEVICES`)."""
    rows = database.rows(versions.CUDA_DEVICES)
    for row in rows:
        row["uuid"] = (row.get("uuid") or "").removeprefix("GPU-") or None
    return _frame(rows, model.CUDA_DEVICES).unique(maintain_order=True).sort("pid", "cuda_ordinal", "gpu_id")


def contexts(database: Database) -> pl.DataFrame:
    """CUDA contexts with their null stream (`model.CONTEXTS`)."""
    rows = _frame(database.rows(versions.CONTEXTS), model.CONTEXTS)
    return rows.unique(maintain_order=True).sort("pid", "device", "context", "null_stream")


def streams(database: Database) -> pl.DataFrame:
    """CUDA streams (`model.STREAMS`)."""
    rows = _frame(database.rows(versions.STREAMS), model.STREAMS)
    return rows.unique(["pid", "context", "stream"], keep="first", maintain_order=True).sort(
        "pid", "context", "stream"
    )


def processes(database: Database, pids: pl.Series) -> pl.DataFrame:
    """Base names of the processes that have events (`model.PROCESSES`)."""
    rows = database.rows(versions.PROCESSES)
    for row in rows:
        row["pid"] = row["pid"] if row["pid"] is not None else _pid(row["global_pid"])
    frame = _frame(rows, model.PROCESSES).filter(pl.col("pid").is_in(pids.implode()))
    named = frame.with_columns(_base_name("name"))
    return named.unique("pid", keep="first", maintain_order=True).sort("pid")


def threads(database: Database, pids: pl.Series) -> pl.DataFrame:
    """Names of the threads of processes that have events (`model.THREADS`).

    A thread that was renamed in NVTX has that name with priority 0 beside that of the system.
    """
    wanted = set(pids.to_list())
    rows = [
        {"pid": pid, "tid": row["global_tid"] & 0xFFFFFF, "code": row["name"], "priority": row["priority"]}
        for row in database.rows(versions.THREADS)
        if row["global_tid"] is not None and (pid := _pid(row["global_tid"])) in wanted
    ]
    frame = _frame(rows, _THREAD_ROWS)
    texts = read_strings(database, frame["code"].drop_nulls().unique().sort())
    return (
        frame.join(texts, on="code", how="left", maintain_order="left")
        .select("pid", "tid", _base_name("text").alias("name"), "priority")
        .sort("priority", nulls_last=True, maintain_order=True)
        .unique(["pid", "tid"], keep="first", maintain_order=True)
        .drop("priority")
        .sort("pid", "tid")
    )


def _pid(global_id: int | None) -> int | None:
    return None if global_id is None else (global_id >> 24) & 0xFFFFFF
