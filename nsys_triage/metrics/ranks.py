"""The ranks of a job: who waited for whom in the collectives.

The n-th collective of a kind on a communicator (payload id where recorded, else stream order) is one event of all
ranks. It ends for everybody shortly after the last has arrived, so the shortest duration among the ranks estimates
the transfer, and what a rank spent beyond that is waiting. The rank that most often has the shortest duration
arrives last: the straggler. No clock alignment between hosts is needed for that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final, Literal

import polars as pl

from nsys_triage import units
from nsys_triage.metrics.gpu_balance import alike
from nsys_triage.metrics.rank_parts import RankPart
from nsys_triage.metrics.rank_steps import rank_steps
from nsys_triage.metrics.straggler import straggler_reason
from nsys_triage.result.model import RankRow, Ranks
from nsys_triage.trace.model import Schema

EVENTS: Final[Schema] = {
    "rank": pl.Int64,
    "op": pl.String,
    "event": pl.UInt32,  # one number for the same collective on all ranks
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "transfer_ns": pl.Int64,
    "wait_ns": pl.Int64,
}
"""The matched collectives of the window, a row per rank and event."""

MEANINGFUL_VOTES: Final = 0.5
LEAD: Final = 1.5
"""Standard deviations of chance by which a straggler leads."""


@dataclass(frozen=True)
class Job:
    """The ranks of a job, numbered, and their matched collectives."""

    parts: dict[int, RankPart]  # by rank number
    source: Literal["environment", "assumed", "mixed"]
    notes: list[str]
    events: pl.DataFrame  # EVENTS
    idle: tuple[int, ...] = ()  # ranks whose traces hold no GPU work

    @property
    def gpu_events(self) -> pl.DataFrame:
        """The events that are kernels: those of NCCL and RCCL, not the MPI calls of hosts."""
        of_gpus = [rank for rank, part in self.parts.items() if not part.of_hosts]
        return self.events.filter(pl.col("rank").is_in(of_gpus))


def numbered(
    parts: Sequence[RankPart],
) -> tuple[dict[int, RankPart], Literal["environment", "assumed", "mixed"], list[str]]:
    """Rank numbers: from the environment (or what NCCL recorded), else in the order given; never from a file name.

    A number that two traces claim is the first one's; the other gets the lowest free number, and a note says so.
    """
    notes: list[str] = []
    found: dict[int, RankPart] = {}
    rest: list[RankPart] = []
    for part in parts:
        if part.known_rank is None:
            rest.append(part)
        elif part.known_rank in found:
            notes.append(
                f"Two traces say that they are rank {part.known_rank}: {part.file} is given another number."
            )
            rest.append(part)
        else:
            found[part.known_rank] = part
    source: Literal["environment", "assumed", "mixed"] = (
        "environment" if not rest else "mixed" if found else "assumed"
    )
    for part in rest:
        number = next(n for n in range(len(parts) + 1) if n not in found)
        found[number] = part
    if source != "environment":
        notes.append(
            "Rank numbers without an entry in the environment are assumed from the order of files and devices."
        )
    return dict(sorted(found.items())), source, notes


def match_collectives(parts: dict[int, RankPart]) -> tuple[pl.DataFrame, list[str]]:
    """The collectives that at least two ranks have (schema EVENTS), and what is said about unequal counts.

    Matching counts from the start of the capture; only events that every rank which has them made in its window count.
    """
    rows = [
        part.collectives.with_columns(pl.lit(rank, pl.Int64).alias("rank"))
        for rank, part in parts.items()
        if part.collectives.height
    ]
    if len(rows) < 2:
        return pl.DataFrame(schema=EVENTS), []
    # a communicator tells nothing where another rank was recorded without NVTX
    of_gpus = [
        p.collectives["communicator"] for p in parts.values() if p.collectives.height and not p.of_hosts
    ]
    if any((recorded == "").all() for recorded in of_gpus):
        rows = [frame.with_columns(pl.lit("").alias("communicator")) for frame in rows]
    # streams tell lanes apart only where no communicator is recorded
    lane = pl.when(pl.col("communicator") == "").then("stream").otherwise(-1).alias("lane")
    keys = ["communicator", "lane", "op"]
    every = (
        pl.concat(rows)
        .with_columns(lane)
        .sort("rank", *keys, "start_ns", "duration_ns")
        .with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).over("rank", *keys).alias("nth"))
    )
    counts = (
        every.group_by("rank", *keys)
        .len("n")
        .group_by(keys)
        .agg(pl.col("n").min().alias("common"), pl.col("n").max().alias("most"), pl.len().alias("ranks"))
    )
    common = counts.filter(pl.col("ranks") > 1)
    matched = (
        every.join(common, on=keys)
        .filter(pl.col("nth") < pl.col("common"))
        .with_columns(pl.struct(*keys, "nth").rank("dense").cast(pl.UInt32).alias("event"))
        .filter(pl.col("inside").all().over("event"))
        .with_columns(pl.col("duration_ns").min().over("event").alias("transfer_ns"))
        .with_columns((pl.col("duration_ns") - pl.col("transfer_ns")).alias("wait_ns"))
        .select(list(EVENTS))
        .sort("event", "rank")
    )
    alone = counts.filter(pl.col("ranks") == 1)["most"].sum()
    left_out = int((common["most"] - common["common"]).sum()) + int(alone)
    notes = []
    if left_out:
        notes.append(
            "The ranks do not have the same number of collectives:"
            f" up to {units.count(left_out)} that only some have are left out."
        )
    return matched, notes


def votes(events: pl.DataFrame) -> tuple[int | None, float | None]:
    """The rank that most often has the shortest duration, alone, and its share of all events; None without events."""
    counted = _votes(events)
    if not counted:
        return None, None
    return counted[0][0], round(counted[0][1] / events["event"].n_unique(), 6)


def stands_out(events: pl.DataFrame) -> bool:
    """Whether the straggler has half of the votes, and leads the next by more than chance would have it.

    Of two ranks that take turns one has half of the votes whatever happens.
    """
    counted = _votes(events)
    if not counted:
        return False
    first, second = (*(n for _, n in counted), 0)[:2]
    led = not second or first - second >= LEAD * sqrt(first + second)
    return led and first >= MEANINGFUL_VOTES * events["event"].n_unique()


def _votes(events: pl.DataFrame) -> list[tuple[int, int]]:
    """Ranks with how often each was last, alone; the most first."""
    alone = events.filter(pl.col("wait_ns") == 0).filter(pl.len().over("event") == 1)
    counted = alone.group_by("rank").len("votes").sort(["votes", "rank"], descending=[True, False])
    return [(int(rank), int(number)) for rank, number in counted.iter_rows()]


def clear_straggler(ranks: Ranks | None, least_share: float = MEANINGFUL_VOTES) -> int | None:
    """The rank that the others wait for, where it is clearly that one and has `least_share` of the votes.

    A result that does not say whether it is clear says that it is.
    """
    if ranks is None or ranks.straggler_clear is False:
        return None
    return ranks.straggler if (ranks.straggler_votes_share or 0.0) >= least_share else None


def job_of(parts: Sequence[RankPart], idle: Iterable[int | None] = ()) -> Job:
    """The parts of all traces as one job; `idle` are the numbers of ranks whose traces hold no GPU work, if known."""
    ranked, source, notes = numbered(parts)
    events, uneven = match_collectives(ranked)
    notes += [*uneven, *_same_captures(ranked), *_about_worlds(ranked, source), *_residual(ranked, events)]
    return Job(ranked, source, notes, events, tuple(rank for rank in idle if rank is not None))


def _same_captures(parts: dict[int, RankPart]) -> list[str]:
    """Two files of one process, one host and one start to the nanosecond hold the same capture."""
    found: dict[tuple[str | None, int, int], RankPart] = {}
    notes = []
    for part in parts.values():
        if part.clock_ns is None:
            continue
        first = found.setdefault((part.host_key, part.pid, part.clock_ns), part)
        if first.file_index != part.file_index:
            files = first.file if first.file == part.file else f"{first.file} and {part.file}"
            notes.append(f"The same capture is given twice ({files}): it counts as two ranks.")
    return notes


def _about_worlds(parts: dict[int, RankPart], source: str) -> list[str]:
    worlds = sorted({p.world_size for p in parts.values() if p.world_size})
    notes = []
    if len(worlds) > 1:
        notes.append(
            f"The traces come from jobs of different size ({', '.join(map(str, worlds))} ranks):"
            " they may be of different jobs."
        )
    elif worlds and len(parts) > worlds[0]:
        notes.append(f"There are {len(parts)} ranks here, more than the {worlds[0]} that the job has.")
    elif worlds and len(parts) < worlds[0] and source == "assumed":
        notes.append(
            f"The job has {worlds[0]} ranks, of which {len(parts)} are here: which ones is not known."
        )
    return notes


def shared_clock(parts: Iterable[RankPart]) -> dict[int, int] | None:
    """When each file's capture began (ns), by file; None where the files do not prove to be of one host.

    The captures of one host have one clock.
    """
    known = {part.file_index: part for part in parts}
    hosts = {part.host_key for part in known.values()}
    clock = {index: part.clock_ns for index, part in known.items() if part.clock_ns is not None}
    return clock if len(hosts) == 1 and None not in hosts and len(clock) == len(known) else None


def _residual(parts: dict[int, RankPart], events: pl.DataFrame) -> list[str]:
    """On one host the session's starts align the clocks; how far apart collectives then end says how well."""
    if events.is_empty():
        return []
    one_file = len({p.file_index for p in parts.values()}) == 1
    clock = (
        dict.fromkeys((p.file_index for p in parts.values()), 0) if one_file else shared_clock(parts.values())
    )
    if clock is None:
        return [
            "The traces come from several hosts, or do not say: their clocks are not aligned,"
            " and nothing here needs that."
        ]
    shifts = pl.DataFrame(
        {"rank": list(parts), "shift": [clock[p.file_index] - min(clock.values()) for p in parts.values()]},
        schema={"rank": pl.Int64, "shift": pl.Int64},
    )
    ends = events.join(shifts, on="rank").with_columns(
        (pl.col("start_ns") + pl.col("duration_ns") + pl.col("shift")).alias("end_ns")
    )
    apart = ends.group_by("event").agg((pl.col("end_ns").max() - pl.col("end_ns").min()).alias("apart"))[
        "apart"
    ]
    median = apart.quantile(0.5, interpolation="lower")
    how = "On one clock" if one_file else "Aligned by the start of the sessions"
    return [
        f"{how}, the ranks end a collective within {units.time(int(median or 0))} of each other (median)."
    ]


def kernels_alike(job: Job) -> float:
    """The least share of a rank's kernel time that is in kernels which all ranks run."""
    kernels = pl.concat(
        part.kernels.select(pl.lit(rank).alias("gpu"), "name", pl.col("total_ns").alias("ns"))
        for rank, part in job.parts.items()
    )
    return alike(kernels, len(job.parts))


def missing_ranks(job: Job) -> list[int]:
    """Ranks without a trace: up to the world size where it is recorded, else gaps between the numbers."""
    worlds = {p.world_size for p in job.parts.values() if p.world_size}
    if job.source == "assumed":
        return []
    size = max(worlds) if len(worlds) == 1 else max(job.parts, default=-1) + 1
    return [rank for rank in range(size) if rank not in job.parts and rank not in job.idle]


def ranks_block(job: Job) -> Ranks:
    """The `ranks` block of the contract. Waits and transfers are None where no collective was matched."""
    per_rank = {
        rank: (int(rows["transfer_ns"].sum()), int(rows["wait_ns"].sum()))
        for (rank,), rows in job.events.partition_by("rank", as_dict=True).items()
    }
    straggler, share = votes(job.events)
    clear = stands_out(job.events)
    reason = straggler_reason(job.parts, straggler) if straggler is not None and clear else None
    rows = []
    for rank, part in job.parts.items():
        transfer, wait = per_rank.get(rank, (None, None))
        rows.append(
            RankRow(
                rank=rank,
                gpu=part.gpus[0].id if len(part.gpus) == 1 else None,
                communication_ns=part.communication_ns,
                transfer_ns=transfer,
                wait_ns=wait,
                busy_ns=part.busy_ns,
                step_p50_ns=part.step_p50_ns,
                span_ns=part.span_ns,
                exposed_ns=part.exposed_ns,
                node=part.node,
                local_rank=part.local_rank,
                file=part.file,
            )
        )
    worlds = {p.world_size for p in job.parts.values() if p.world_size}
    return Ranks(
        count=len(rows),
        missing=missing_ranks(job),
        matched_collectives=job.events["event"].n_unique(),
        straggler=straggler,
        straggler_votes_share=share,
        per_rank=rows,
        source=job.source,
        world_size=max(worlds) if len(worlds) == 1 else None,
        straggler_clear=clear,
        straggler_reason=reason.text if reason else None,
        straggler_cause=reason.cause if reason else None,
        notes=job.notes,
        steps=rank_steps(job.parts, job.events),
    )
