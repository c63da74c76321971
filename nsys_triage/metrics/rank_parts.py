"""What is kept of one rank when the traces of a job are read one after the other.

A rank is one process that did device work. A part is small (its collectives, its kernels by name, its ledger), so
that hundreds of ranks fit into memory while only one trace is loaded at a time.
"""

from dataclasses import dataclass, field
from typing import Final

import polars as pl

from nsys_triage.metrics.histogram import nearest_rank
from nsys_triage.metrics.ledger import by_cause, cause_times
from nsys_triage.metrics.measure import Measurement
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE, on_threads
from nsys_triage.result.model import Cause, Gpu
from nsys_triage.trace.model import Schema

# the launcher nearest to the process first: in a batch script SLURM_PROCID is 0, and what mpirun starts inherits it
RANK_VARIABLES: Final = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
)
LOCAL_RANK_VARIABLES: Final = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
WORLD_VARIABLES: Final = (
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_NTASKS",
)
NODE_VARIABLES: Final = ("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")
MOST_RANKS: Final = 1 << 20
"""No job has more: a larger number is not believed, since all ranks below one count as missing."""

COLLECTIVES: Final[Schema] = {
    "communicator": pl.String,  # payload id; "" where none is recorded
    "stream": pl.Int64,  # order of the stream among the process' streams with collectives, by first launch
    "op": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "inside": pl.Boolean,  # starts in the window
}
"""Sorted by start. NCCL and RCCL kernels, or MPI collectives where there are none."""

KERNELS_BY_NAME: Final[Schema] = {
    "name": pl.String,
    "blocks": pl.Int64,  # of the grid: more of them is more work
    "count": pl.Int64,
    "total_ns": pl.Int64,
}
KEPT_NAMES: Final = 40
RANK_STEPS: Final[Schema] = {"index": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}
MOST_STEPS: Final = 500
"""Of a rank, kept for the aligned steps: 512 ranks have 5 MB of them."""

_MPI_COLLECTIVE: Final = (
    r"(?i)^P?MPI_I?(allreduce|reduce|bcast|barrier|allgather|gather|scatter|alltoall|reduce_scatter|scan|exscan)"
    r"v?w?(_block)?$"
)


@dataclass(frozen=True)
class RankPart:
    """One rank of a job, reduced to what ranks are compared by."""

    file: str
    file_index: int
    pid: int
    known_rank: int | None  # from the environment, or from what NCCL recorded
    local_rank: int | None
    world_size: int | None
    node: int | None
    host_key: str | None
    # when the capture began, since 1970; the export's other start counts from the boot of what may be a container's VM:
    # of three captures of one job 24 and 264 s apart it said 0.7 and 0.2 s
    clock_ns: int | None
    gpus: list[Gpu]
    span_ns: int
    busy_ns: int
    exposed_ns: int  # communication that no work of the GPU hides; where it is MPI's, idle time because of it
    communication_ns: int
    step_p50_ns: int | None
    window: tuple[int, int]
    ledger: dict[Cause, int] = field(default_factory=dict)  # cause -> ns, mean of its GPUs
    collectives: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=COLLECTIVES))
    kernels: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=KERNELS_BY_NAME))
    steps: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RANK_STEPS))
    of_hosts: bool = False  # the collectives are MPI calls of the host


def environment_number(environment: dict[str, str], names: tuple[str, ...]) -> int | None:
    """The first of those variables that holds a number of a rank or of ranks."""
    for name in names:
        value = environment.get(name, "")
        if value.isdecimal() and int(value) <= MOST_RANKS:
            return int(value)
    return None


def communicators(m: Measurement) -> pl.DataFrame:
    """NCCL calls with a recorded communicator, on the host, sorted by thread and start.

    Columns thread, pid, start_ns, end_ns, communicator; rank and ranks (how many the communicator has) of the calls
    that made it, null of the others.
    """
    payloads = m.trace.nvtx.filter(pl.col("payload").is_not_null())
    texts = m.trace.strings.join(
        payloads.select("payload").unique(), left_on="code", right_on="payload", how="semi"
    )
    parsed = texts.select(
        "code",
        # an unsigned 64-bit number, often above 2^63: kept as text
        pl.col("text").str.extract(r'"NCCL communicator ID"\s*:\s*"?(\d+)').alias("communicator"),
        pl.col("text").str.extract(r'"Rank"\s*:\s*"?(\d{1,18})').cast(pl.Int64).alias("rank"),
        pl.col("text").str.extract(r'"No\. of ranks"\s*:\s*"?(\d{1,18})').cast(pl.Int64).alias("ranks"),
    ).drop_nulls("communicator")
    return (
        on_threads(payloads, m.workload.threads)
        .join(parsed, left_on="payload", right_on="code", maintain_order="left")
        .select("thread", "pid", "start_ns", "end_ns", "communicator", "rank", "ranks")
        .sort("thread", "start_ns", "end_ns")
    )


def _with_communicator(rows: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """`rows` (thread and launch_ns of collectives) with the communicator of the NCCL call that launched each, or ""."""
    if calls.is_empty():
        return rows.with_columns(pl.lit("").alias("communicator"))
    of_host = calls.select(
        "thread", "communicator", pl.col("start_ns").alias("call_ns"), pl.col("end_ns").alias("call_end_ns")
    )
    found = (
        rows.with_row_index("_row")
        .sort("launch_ns")
        .join_asof(
            of_host.sort("call_ns"),
            left_on="launch_ns",
            right_on="call_ns",
            by="thread",
            check_sortedness=False,
        )
    )
    inside = (pl.col("launch_ns") < pl.col("call_end_ns")).fill_null(value=False)
    return (
        found.with_columns(pl.when(inside).then("communicator").otherwise(pl.lit("")).alias("communicator"))
        .sort("_row")
        .drop("_row", "call_ns", "call_end_ns")
    )


def _collectives(m: Measurement, pid: int, calls: pl.DataFrame) -> pl.DataFrame:
    """The NCCL and RCCL kernels of a process over the whole capture (schema COLLECTIVES)."""
    work = m.workload.work.filter((pl.col("pid") == pid) & (pl.col("activity") == COMMUNICATION))
    api = m.workload.calls
    rows = work.with_columns(
        m.trace.kernels["name"].gather(work["row"]).alias("code"),
        api["thread"].gather(work["call"]),
        api["start_ns"].gather(work["call"]).alias("launch_ns"),
    ).join(
        m.workload.names.filter("collective").select("code", "operation"), on="code", maintain_order="left"
    )
    rows = _with_communicator(rows.sort("start_ns", "gpu", "stream"), calls)
    low, high = m.window.start_ns, m.window.end_ns
    return (
        rows.with_columns(
            pl.struct("gpu", "stream").rank("dense").cast(pl.Int64).alias("lane"),
            # all ranks launch in one order; which of two streams starts first differs from rank to rank
            pl.coalesce("launch_ns", "start_ns").min().over("gpu", "stream").alias("first_ns"),
        )
        .with_columns(pl.struct("first_ns", "lane").rank("dense").cast(pl.Int64).alias("stream"))
        .select(
            "communicator", "stream", pl.col("operation").fill_null("other").alias("op"), "start_ns",
            (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
            pl.col("start_ns").is_between(low, high, closed="left").alias("inside"),
        )
    )  # fmt: skip


def _mpi(m: Measurement, pid: int) -> pl.DataFrame:
    """The MPI collectives of a process' host side, where there is no NCCL (schema COLLECTIVES)."""
    rows = m.trace.host_communication.filter(pl.col("pid") == pid).join(
        m.trace.strings, left_on="name", right_on="code", maintain_order="left"
    )
    return (
        rows.with_columns(pl.col("text").str.to_lowercase().alias("op"))
        .filter(pl.col("text").str.contains(_MPI_COLLECTIVE))
        .sort("start_ns", "end_ns")
        .select(
            pl.lit("").alias("communicator"), pl.lit(0, pl.Int64).alias("stream"), "op", "start_ns",
            (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
            pl.col("start_ns").is_between(m.window.start_ns, m.window.end_ns, closed="left").alias("inside"),
        )
    )  # fmt: skip


def _kernels_by_name(m: Measurement, pid: int) -> pl.DataFrame:
    """The compute kernels of a process in the window with most time, by name and blocks (schema KERNELS_BY_NAME)."""
    work = m.work.filter((pl.col("pid") == pid) & (pl.col("activity") == COMPUTE))
    kernels = m.trace.kernels.select(
        pl.col("name").alias("code"),
        (pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")).alias("blocks"),
    )
    named = pl.concat([work, kernels[work["row"]]], how="horizontal")
    totals = named.group_by("code", "blocks").agg(
        pl.len().cast(pl.Int64).alias("count"),
        (pl.col("end_ns") - pl.col("start_ns")).sum().alias("total_ns"),
    )
    return (
        totals.join(m.workload.names.select("code", "text"), on="code")
        .select(pl.col("text").alias("name"), "blocks", "count", "total_ns")
        .sort(["total_ns", "name", "blocks"], descending=[True, False, False])
        .head(KEPT_NAMES)
    )


def processes(m: Measurement) -> list[int]:
    """The processes with device work in the window, by device, then process id."""
    return list(
        dict.fromkeys(
            pid for _, pid in sorted((min(g.device_ids), pid) for g in m.gpus for pid in g.processes)
        )
    )


def known_ranks(m: Measurement, calls: pl.DataFrame) -> dict[int, int]:
    """The rank of each process: from the environment where there is one process, else what NCCL recorded.

    A process has a rank in every communicator, and that of the largest is its own; none where several are as large and
    disagree.
    """
    pids = processes(m)
    own = environment_number(m.trace.info.environment, RANK_VARIABLES)
    if len(pids) == 1 and own is not None:
        return {pids[0]: own}
    made = calls.drop_nulls("rank").with_columns(pl.col("ranks").fill_null(0))
    largest = (
        made.filter((pl.col("ranks") == pl.col("ranks").max().over("pid")) & (pl.col("rank") < MOST_RANKS))
        .select("pid", "rank")
        .unique()
        .filter(pl.len().over("pid") == 1)
        .sort("pid")
    )
    return dict(largest.iter_rows())


def world_size(m: Measurement, calls: pl.DataFrame) -> int | None:
    """How many ranks the job has: from the environment where there is one process, else NCCL's largest communicator.

    The environment is that of what nsys started, so with several processes it is not that of the ranks.
    """
    own = environment_number(m.trace.info.environment, WORLD_VARIABLES) if len(processes(m)) == 1 else None
    if own is not None or calls["ranks"].null_count() == calls.height:
        return own
    largest = int(calls["ranks"].max())  # type: ignore[arg-type]
    return largest if largest <= MOST_RANKS else None


def rank_parts(m: Measurement, file_index: int = 0) -> list[RankPart]:
    """The ranks in one trace: a part for every process that did device work, by device, then process id."""
    info = m.trace.info
    pids = processes(m)
    calls = communicators(m)
    known, world = known_ranks(m, calls), world_size(m, calls)
    parts = []
    for pid in pids:
        gpus = [gpu for gpu in m.gpus if pid in gpu.processes]
        totals = _totals(m, pid)
        collectives = _collectives(m, pid, calls.filter(pl.col("pid") == pid))
        of_hosts = collectives.is_empty()
        if of_hosts:
            collectives = _mpi(m, pid)
            of_hosts = not collectives.is_empty()
        steps = _settled_steps(m, pid)
        parts.append(
            RankPart(
                file=info.file,
                file_index=file_index,
                pid=pid,
                known_rank=known.get(pid),
                local_rank=environment_number(info.environment, LOCAL_RANK_VARIABLES)
                if len(pids) == 1
                else None,
                world_size=world,
                node=environment_number(info.environment, NODE_VARIABLES),
                host_key=info.host_key,
                clock_ns=info.started_epoch_ns,
                gpus=gpus,
                span_ns=sum(gpu.span_ns for gpu in gpus),
                busy_ns=sum(gpu.busy_ns for gpu in gpus),
                exposed_ns=totals.get("host_communication" if of_hosts else "communication", 0),
                communication_ns=int(collectives.filter("inside")["duration_ns"].sum()),
                step_p50_ns=nearest_rank(steps["end_ns"] - steps["start_ns"], 50),
                window=(m.window.start_ns, m.window.end_ns),
                ledger={cause: ns // len(gpus) for cause, ns in totals.items()},
                collectives=collectives,
                kernels=_kernels_by_name(m, pid),
                of_hosts=of_hosts,
                steps=steps.head(MOST_STEPS),
            )
        )
    return parts


def _totals(m: Measurement, pid: int) -> dict[Cause, int]:
    """The ledger of the GPUs of a process: cause -> ns, summed over them."""
    own = [gpu.index for gpu in m.workload.gpus.all if pid in gpu.processes]
    return {e.cause: e.ns for e in cause_times(by_cause(m.pieces.filter(pl.col("gpu").is_in(own))))}


def _settled_steps(m: Measurement, pid: int) -> pl.DataFrame:
    """The steps of a process in the window, start-up left out (schema RANK_STEPS)."""
    steps = m.window.rows(m.steps.steps.filter(pl.col("pid") == pid))
    return steps.filter(pl.col("index") >= m.window.startup_steps.get(pid, 0)).select(list(RANK_STEPS))
