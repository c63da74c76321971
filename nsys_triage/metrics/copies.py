"""Memory copies of a window: how much, how fast, from where to where."""

from typing import Final

import polars as pl

from nsys_triage.intervals import union_length
from nsys_triage.metrics.gpu_models import Link, host_link
from nsys_triage.metrics.histogram import nearest_rank_expr, size_histogram
from nsys_triage.result.model import Copies, CopyKind

SMALL_BYTES: Final = 65_536
"""Copies of fewer bytes are small: on PCIe they take about as long to start as to run."""

KINDS: Final[dict[int, str]] = {
    0: "unknown",
    1: "host_to_device",
    2: "device_to_host",
    3: "host_to_array",
    4: "array_to_host",
    5: "array_to_array",
    6: "array_to_device",
    7: "device_to_array",
    8: "device_to_device",
    9: "host_to_host",
    10: "peer_to_peer",
    11: "unified_host_to_device",
    12: "unified_device_to_host",
    13: "unified_device_to_device",
}
"""Words of the result by `copy_kind`; no code, and any other, is unknown. From `UNIFIED` on, migrations."""

UNIFIED: Final = 11
"""The first `copy_kind` of a unified-memory migration, which no call of the program asked for."""

_PAGEABLE: Final = 0
_LINKED: Final = ("host_to_device", "device_to_host")
# an achieved rate of more than what the link can carry shows that it is another link
_TOLERANCE: Final = 1.02


def summarize_copies(copies: pl.DataFrame, gpus: pl.DataFrame) -> Copies:
    """Sum up copies by kind, and the sizes of those that the program asked for.

    `copies` has the columns of `MEMCPYS` and gpu; `gpus` has one row per gpu with `name` (of `GPU_INFO`),
    which tells the link to the host. `total_ns` of a kind is the union of its copies on each GPU, summed over
    the GPUs; `bytes_per_s` is its bytes over that time, None where no copy took any. Pageable are bytes whose
    source or target is known to be pageable. Migrations of unified memory are kinds of their own, in neither
    `small_count` nor `sizes`, and never pageable. Without rows: no kinds, counts of 0.

    The link is that of the GPUs which copied, None where it is unknown, not the same for all, or disproved by
    faster copies. Large copies reach about `gpu_models.PRACTICAL_SHARE` of it.
    """
    rows = copies.select(
        "gpu",
        "start_ns",
        "end_ns",
        pl.col("bytes").fill_null(0),
        pl.when(pl.col("copy_kind") <= max(KINDS))
        .then("copy_kind")
        .otherwise(0)
        .cast(pl.UInt8)
        .alias("copy_kind"),
        (
            (pl.col("source_kind") == _PAGEABLE).fill_null(value=False)
            | (pl.col("target_kind") == _PAGEABLE).fill_null(value=False)
        ).alias("pageable"),
    )
    asked_for = rows.filter(pl.col("copy_kind") < UNIFIED)["bytes"]
    kinds = _kinds(rows)
    link = _link(rows, gpus, kinds)
    return Copies(
        kinds=kinds,
        small_count=int((asked_for < SMALL_BYTES).sum()),
        sizes=size_histogram(asked_for),
        link_bytes_per_s=link.bytes_per_s if link else None,
        link_name=link.name if link else None,
    )


def _kinds(rows: pl.DataFrame) -> list[CopyKind]:
    """One entry per kind that occurs, by union time, then name."""
    found = rows.group_by("copy_kind").agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("bytes").sum(),
        pl.when(pl.col("pageable") & (pl.col("copy_kind") < UNIFIED))
        .then("bytes")
        .sum()
        .alias("pageable_bytes"),
        (pl.col("bytes") < SMALL_BYTES).sum().cast(pl.Int64).alias("small_count"),
        nearest_rank_expr("bytes", 50).alias("p50_bytes"),
        pl.col("bytes").max().alias("max_bytes"),
    )
    timed = found.join(_union_times(rows), on="copy_kind", how="left").with_columns(
        pl.col("ns").fill_null(0),
        pl.col("copy_kind").replace_strict(KINDS, return_dtype=pl.String).alias("kind"),
    )
    return [
        CopyKind(
            kind=row["kind"],
            count=row["count"],
            bytes=row["bytes"],
            total_ns=row["ns"],
            pageable_bytes=row["pageable_bytes"],
            bytes_per_s=row["bytes"] / row["ns"] * 1e9 if row["ns"] else None,
            small_count=row["small_count"],
            p50_bytes=row["p50_bytes"],
            max_bytes=row["max_bytes"],
        )
        for row in timed.sort(["ns", "kind"], descending=[True, False]).iter_rows(named=True)
    ]


def _union_times(rows: pl.DataFrame) -> pl.DataFrame:
    """Union of each kind's copies on each GPU, summed over the GPUs: copy_kind and ns."""
    gpus = 1 << 16
    grouped = rows.with_columns((pl.col("copy_kind").cast(pl.Int64) * gpus + pl.col("gpu")).alias("group"))
    kind = (pl.col("group") // gpus).cast(pl.UInt8).alias("copy_kind")
    return union_length(grouped, by="group").group_by(kind).agg(pl.col("ns").sum())


def _link(rows: pl.DataFrame, gpus: pl.DataFrame, kinds: list[CopyKind]) -> Link | None:
    """One link to the host of the GPUs that copied, where it is known and nothing measured disproves it."""
    copied = rows.select("gpu").unique().join(gpus, on="gpu", how="left").sort("gpu")
    links = {host_link(name) for name in copied["name"]}
    link = links.pop() if len(links) == 1 else None
    fastest = max((kind.bytes_per_s or 0 for kind in kinds if kind.kind in _LINKED), default=0)
    return link if link and fastest <= link.bytes_per_s * _TOLERANCE else None
