"""The period of the launch sequence: steps where no NVTX range shows them.

Kernels and graphs in the order in which the host launched them are a sequence of names. The period is the shortest
distance at which the sequence agrees with itself; distances worth trying are those that many names recur at. Within
a period a step begins with a name that occurs once in it, the one before which the host pauses longest: the end of
an iteration is where loaders are asked, losses are read and loops turn. It lasts from the moment at which that kernel
starts on the GPU to the next such moment: where launches run ahead, the host's own times say nothing of a step.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.metrics.work import COMMUNICATION, COMPUTE, GRAPH, Workload
from nsys_triage.trace.model import Trace

MIN_PERIODS: Final = 3
MIN_LENGTH: Final = 2
MIN_LAUNCHES: Final = 12
AGREEMENT: Final = 0.75
NEARLY: Final = 0.02
CANDIDATES: Final = 24
ONCE: Final = 0.8
LAUNCHES_INSIDE: Final = 0.5
WHOLE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Period:
    """A repeating launch sequence."""

    length: int  # launches per period
    agreement: float  # share of launches that equal the one a period later
    name: str  # of the kernel that begins it
    steps: pl.DataFrame  # start_ns, end_ns on the GPU; launch_start_ns, launch_end_ns of the host


def launch_sequence(trace: Trace, workload: Workload, pid: int) -> pl.DataFrame:
    """Kernels and graph executions of a process in launch order: token (name), at_ns (launch call), end_ns (work)."""
    rows = workload.work.filter(
        (pl.col("pid") == pid) & pl.col("activity").is_in([COMPUTE, COMMUNICATION, GRAPH])
    )
    calls = workload.calls
    graph = rows["activity"] == GRAPH
    kernel_name = (
        trace.kernels["name"]
        .gather(rows["row"].zip_with(~graph, pl.Series([None], dtype=pl.UInt32)))
        .cast(pl.Int64)
    )
    exec_id = (
        trace.graphs["graph_exec"]
        .gather(rows["row"].zip_with(graph, pl.Series([None], dtype=pl.UInt32)))
        .cast(pl.Int64)
    )
    return (
        rows.with_columns(
            pl.coalesce(kernel_name, -1 - exec_id).alias("token"),
            # work whose launch was cut off stands where it ran
            pl.coalesce(calls["start_ns"].gather(rows["call"]), pl.col("start_ns")).alias("at_ns"),
        )
        .select("token", "at_ns", "start_ns", "end_ns", "stream")
        .sort("at_ns", "start_ns", "stream", maintain_order=True)
    )


def _distances(sequence: pl.DataFrame) -> pl.DataFrame:
    """Per token how often it occurs and its most frequent distance: token, count, distance, times, share."""
    return (
        sequence.lazy()
        .select("token", pl.int_range(pl.len(), dtype=pl.Int64).alias("position"))
        .with_columns((pl.col("position") - pl.col("position").shift(1).over("token")).alias("distance"))
        .drop_nulls("distance")
        .group_by("token", "distance")
        .len("times")
        .sort("token", "times", "distance", descending=[False, True, False])
        .group_by("token", maintain_order=True)
        .agg(pl.col("times").sum().alias("count"), pl.col("distance").first(), pl.col("times").first())
        .with_columns((pl.col("times") / pl.col("count")).alias("share"))
        .collect()
    )


def _best_distance(tokens: pl.Series, distances: pl.DataFrame) -> tuple[int, float] | None:
    n = tokens.len()
    tried = (
        distances.filter(
            (pl.col("share") >= 0.5) & pl.col("distance").is_between(MIN_LENGTH, n // MIN_PERIODS)
        )
        .group_by("distance")
        .agg(pl.len().alias("names"))
        .sort("names", "distance", descending=[True, False])
        .head(CANDIDATES)["distance"]
    )
    agreements = [
        (d, int((tokens.slice(d) == tokens.slice(0, n - d)).sum()) / (n - d)) for d in tried.to_list()
    ]
    if not agreements:
        return None
    best = max(agreement for _, agreement in agreements)
    if best < AGREEMENT:
        return None
    return min((d, a) for d, a in agreements if a >= best - NEARLY)


def _starting_token(sequence: pl.DataFrame, distances: pl.DataFrame, length: int) -> int | None:
    """The name that occurs once per period, before whose launch the host pauses longest (median)."""
    # a loop that is a part of the trace is no step of it: as with ranges, more than half of the launches lie in steps
    enough = pl.col("count") * length > LAUNCHES_INSIDE * sequence.height
    once = distances.filter((pl.col("distance") == length) & (pl.col("share") >= ONCE) & enough)
    pauses = (
        sequence.lazy()
        .with_columns((pl.col("at_ns") - pl.col("at_ns").shift(1)).alias("pause"))
        .join(once.lazy().select("token"), on="token", how="semi")
        .group_by("token")
        .agg(pl.col("pause").median(), pl.col("at_ns").min())
        .sort("pause", "at_ns", descending=[True, False], nulls_last=True)
        .collect()
    )
    return pauses["token"][0] if pauses.height else None


def find_period(trace: Trace, workload: Workload, pid: int) -> Period | None:
    """The period of that process' launch sequence, or None where it does not repeat three times."""
    sequence = launch_sequence(trace, workload, pid)
    if sequence.height < MIN_LAUNCHES:
        return None
    distances = _distances(sequence)
    found = _best_distance(sequence["token"], distances)
    if found is None:
        return None
    length, agreement = found
    token = _starting_token(sequence, distances, length)
    if token is None:
        return None
    numbered = sequence.with_row_index("position")
    starts = numbered.filter(pl.col("token") == token).sort("start_ns", "position")
    # the last one counts if a whole period, or nearly, follows it; it ends with its device work
    rest = numbered.slice(starts["position"][-1])
    end = int(rest.head(length)["end_ns"].max()) if rest.height >= WHOLE * length else None  # type: ignore[arg-type]
    steps = starts.select(
        # a step begins on the GPU: the host may be hundreds of launches ahead of it
        "start_ns",
        pl.col("start_ns").shift(-1, fill_value=end).alias("end_ns"),
        pl.col("at_ns").alias("launch_start_ns"),
        pl.col("at_ns").shift(-1, fill_value=end).alias("launch_end_ns"),
    ).drop_nulls()
    if steps.height < MIN_PERIODS:
        return None
    texts = (
        workload.names.filter(pl.col("code") == token)["own_name"]
        if token >= 0
        else pl.Series(["CUDA graph"])
    )
    return Period(length, agreement, texts[0], steps)
