"""The steps of all ranks side by side: how long each took, how much of it was waiting, and who came last in it."""

from collections.abc import Mapping

import polars as pl

from nsys_triage.metrics.rank_parts import RankPart
from nsys_triage.result.model import RankStep


def rank_steps(parts: Mapping[int, RankPart], events: pl.DataFrame) -> list[RankStep]:
    """The steps that at least two ranks have, by number; `events` are the matched collectives (ranks.EVENTS).

    A collective belongs to the step of its rank in which it starts, so no clock has to be aligned. The last rank of a
    step is the one that alone has the shortest duration in most of its collectives; of equal ones the lowest, and None
    where there is none. Without steps the list is empty.
    """
    steps = pl.concat(
        [part.steps.with_columns(pl.lit(rank, pl.Int64).alias("rank")) for rank, part in parts.items()]
    ).sort("rank", "start_ns")
    shared = steps.filter(pl.col("rank").n_unique().over("index") > 1)
    if shared.is_empty():
        return []
    inside = (
        events.sort("rank", "start_ns")
        .join_asof(
            shared.select(
                "rank", "index", pl.col("start_ns").alias("step_ns"), pl.col("end_ns").alias("until_ns")
            ),
            left_on="start_ns",
            right_on="step_ns",
            by="rank",
            check_sortedness=False,
        )
        .filter(pl.col("start_ns") < pl.col("until_ns"))
    )
    last = (
        inside.filter((pl.col("wait_ns") == 0) & (((pl.col("wait_ns") == 0).sum()).over("event") == 1))
        .group_by("index", "rank")
        .len("votes")
        .sort(["index", "votes", "rank"], descending=[False, True, False])
        .unique("index", keep="first", maintain_order=True)
        .select("index", pl.col("rank").alias("last"))
    )
    duration = pl.col("end_ns") - pl.col("start_ns")
    rows = (
        shared.group_by("index")
        .agg(
            duration.quantile(0.5, interpolation="lower").cast(pl.Int64).alias("p50_ns"),
            duration.max().alias("max_ns"),
            pl.len().alias("ranks"),
        )
        .join(inside.group_by("index").agg(pl.col("wait_ns").sum()), on="index", how="left")
        .join(last, on="index", how="left")
        .sort("index")
    )
    return [
        RankStep(
            index=row["index"],
            p50_ns=row["p50_ns"],
            max_ns=row["max_ns"],
            wait_ns=(row["wait_ns"] or 0) // row["ranks"],
            last=row["last"],
        )
        for row in rows.iter_rows(named=True)
    ]
