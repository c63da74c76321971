"""Every kernel of a window by name and launch shape, so that two results can be compared kernel by kernel."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import polars as pl

from nsys_triage.result.model import KernelNameShapes, KernelsByShape, KernelShape, OtherShapes

MOST_ROWS: Final = 2_000
"""A job with shapes that vary from step to step has more; those with the least time are one sum."""

_SHAPE: Final = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_NS: Final = pl.col("duration_ns")


def kernels_by_shape(kernels: pl.DataFrame, names: pl.DataFrame) -> KernelsByShape:
    """The kernels of the rows by name, grid and block, those with most time first; at most MOST_ROWS shapes.

    `kernels` has the columns of `KERNELS`; `names` has code, text and kernel_class. Codes of the same text are one
    kernel. Without rows both parts are empty.
    """
    codes = names.select("code", pl.col("text").rank("dense").alias("text_code"))
    texts = names.select("text", "kernel_class", pl.col("text").rank("dense").alias("text_code")).unique(
        "text_code"
    )
    rows = (
        kernels.lazy()
        .select("name", *_SHAPE, (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))
        .join(codes.lazy(), left_on="name", right_on="code", how="left")
        # once for all quantiles: rows of a group keep their order
        .sort("duration_ns")
        .group_by("text_code", *_SHAPE)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            _NS.sum().alias("total_ns"),
            _NS.std(ddof=0).round().cast(pl.Int64).alias("stddev_ns"),
            *(_NS.get((pl.len().cast(pl.Int64) * q + 99) // 100 - 1).alias(f"p{q}_ns") for q in (25, 50, 75)),
        )
        .join(texts.lazy(), on="text_code", how="left")
        .sort(["total_ns", "text", *_SHAPE], descending=[True, *(False for _ in range(7))])
        .collect()
    )
    left_out = rows.slice(MOST_ROWS)
    others = OtherShapes(
        shapes=left_out.height, count=int(left_out["count"].sum()), total_ns=int(left_out["total_ns"].sum())
    )
    listed = [
        (row["text"], row["kernel_class"], _shape(row)) for row in rows.head(MOST_ROWS).iter_rows(named=True)
    ]
    return KernelsByShape(kernels=_grouped(listed), others=others if others.shapes else None)


def dimensions(row: Mapping[str, Any], what: Literal["grid", "block"]) -> list[int]:
    """The three dimensions of a launch's grid or block; none where they were not recorded."""
    found = [row[f"{what}_{axis}"] for axis in "xyz"]
    return [] if None in found else found


def _shape(row: dict[str, int]) -> KernelShape:
    return KernelShape(
        grid=dimensions(row, "grid"),
        block=dimensions(row, "block"),
        count=row["count"],
        total_ns=row["total_ns"],
        p25_ns=row["p25_ns"],
        p50_ns=row["p50_ns"],
        p75_ns=row["p75_ns"],
        stddev_ns=row["stddev_ns"],
    )


def _grouped(rows: Iterable[tuple[str, str, KernelShape]]) -> list[KernelNameShapes]:
    """Shapes under their names; names by total time, then name, shapes by total time, then shape."""
    found: dict[str, KernelNameShapes] = {}
    for name, kernel_class, shape in rows:
        found.setdefault(
            name, KernelNameShapes(name=name, kernel_class=kernel_class, shapes=[])
        ).shapes.append(shape)
    for kernel in found.values():
        kernel.shapes.sort(key=lambda shape: (-shape.total_ns, shape.grid, shape.block))
    return sorted(found.values(), key=lambda k: (-sum(shape.total_ns for shape in k.shapes), k.name))


def join_by_shape(parts: Sequence[KernelsByShape]) -> KernelsByShape:
    """The kernels of several traces as one block.

    Counts and totals are sums and the deviation is exact; a quantile is the mean of the traces', weighted by their
    counts. What one trace lists and another sums up as others is counted where it stands.
    """
    same: dict[tuple[str, tuple[int, ...]], tuple[str, list[KernelShape]]] = {}
    for part in parts:
        for kernel in part.kernels:
            for shape in kernel.shapes:
                key = (kernel.name, (*shape.grid, *shape.block))
                same.setdefault(key, (kernel.kernel_class, []))[1].append(shape)
    joined = [(key[0], kernel_class, pooled(shapes)) for key, (kernel_class, shapes) in same.items()]
    joined.sort(key=lambda row: (-row[2].total_ns, row[0], row[2].grid, row[2].block))
    left_out = [shape for _, _, shape in joined[MOST_ROWS:]]
    before = [part.others for part in parts if part.others is not None]
    others = OtherShapes(
        shapes=len(left_out) + sum(o.shapes for o in before),
        count=sum(s.count for s in left_out) + sum(o.count for o in before),
        total_ns=sum(s.total_ns for s in left_out) + sum(o.total_ns for o in before),
    )
    return KernelsByShape(kernels=_grouped(joined[:MOST_ROWS]), others=others if others.shapes else None)


def pooled(shapes: Sequence[KernelShape]) -> KernelShape:
    """Rows of one kernel and shape as one; at least one row, each with a count of at least 1."""
    if len(shapes) == 1:
        return shapes[0]
    count, total = sum(s.count for s in shapes), sum(s.total_ns for s in shapes)
    mean = total / count
    squares = sum(s.count * (s.stddev_ns**2 + (s.total_ns / s.count - mean) ** 2) for s in shapes)

    def quantile(values: Iterable[int]) -> int:
        return round(sum(value * s.count for value, s in zip(values, shapes, strict=True)) / count)

    return KernelShape(
        grid=shapes[0].grid,
        block=shapes[0].block,
        count=count,
        total_ns=total,
        p25_ns=quantile(s.p25_ns for s in shapes),
        p50_ns=quantile(s.p50_ns for s in shapes),
        p75_ns=quantile(s.p75_ns for s in shapes),
        stddev_ns=round(math.sqrt(squares / count)),
    )
