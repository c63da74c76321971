"""Theoretical occupancy: how many warps of a kernel an SM can hold, of those that it has room for.

The arithmetic is that of `cuda_occupancy.h` of the CUDA toolkit, which NVIDIA's occupancy calculator and
`cudaOccupancyMaxActiveBlocksPerMultiprocessor` share: the least of four limits on the blocks per SM.
"""

from typing import Final

import polars as pl

from nsys_triage.metrics.gpu_models import OLD_MODELS, SM_LIMITS, SUB_PARTITIONS
from nsys_triage.trace.model import Schema

OCCUPANCY: Final[Schema] = {
    "blocks_per_sm": pl.Int32,
    "occupancy_share": pl.Float64,
    "limited_by": pl.String,  # "warps", "registers", "shared memory", "blocks"
    "waves": pl.Float64,
    "last_wave_share": pl.Float64,  # how full the last wave is, above 0, at most 1
}

_THREADS_PER_WARP: Final = 32
_REGISTER_UNIT: Final = 256  # registers are given to a warp in units of so many
_SHARED_UNIT: Final = 128  # bytes, compute capability 8.0 and up
_OLD_SHARED_UNIT: Final = 256
_RESERVED_SHARED: Final = 1_024  # bytes that the system takes per block, compute capability 8.0 and up
_LIMITS: Final = ("max_warps_per_sm", "max_blocks_per_sm", "max_registers_per_sm", "max_shared_per_sm_bytes")


def with_occupancy(shapes: pl.DataFrame, limits: pl.DataFrame) -> pl.DataFrame:
    """`shapes` with the columns of `OCCUPANCY` for each row, in its order.

    `shapes` has gpu and the launch columns of `KERNELS` (grid, block, registers, shared memory); `limits` has
    one row per gpu with the columns of `GPU_INFO`. A limit that was not recorded comes from the table by
    compute capability; where that is unknown too, the results are null. `waves` is the blocks of the grid
    over those that all SMs hold at a time, null without the number of SMs. Where limits tie, the first of
    warps, blocks, registers, shared memory is named. Empty `shapes` give an empty frame.

    A kernel that ran fits at least once: limits that say otherwise count as one block per SM.
    """
    known = shapes.join(complete_limits(limits), on="gpu", how="left", maintain_order="left", suffix="_limit")
    blocks = {
        "warps": pl.col("max_warps_per_sm") // _warps(),
        "blocks": pl.col("max_blocks_per_sm"),
        "registers": _blocks_by_registers(),
        "shared memory": _blocks_by_shared_memory(),
    }
    least = pl.min_horizontal(pl.col("_" + name) for name in blocks).clip(lower_bound=1)
    counted = known.with_columns(expr.cast(pl.Int64).alias("_" + name) for name, expr in blocks.items())
    complete = pl.all_horizontal(pl.col(name).is_not_null() for name in ("compute_major", *_LIMITS))
    found = counted.with_columns(pl.when(complete).then(least).cast(pl.Int32).alias("blocks_per_sm"))
    at_a_time = pl.col("blocks_per_sm").cast(pl.Int64) * pl.col("sm_count")
    return found.select(
        *shapes.columns,
        "blocks_per_sm",
        # a block of more warps than an SM holds cannot run; the share stays one
        (pl.col("blocks_per_sm") * _warps() / pl.col("max_warps_per_sm"))
        .clip(upper_bound=1.0)
        .alias("occupancy_share"),
        pl.when(pl.col("blocks_per_sm").is_not_null())
        .then(pl.coalesce(_binding(name) for name in blocks))
        .alias("limited_by"),
        (_grid_blocks() / at_a_time).alias("waves"),
        (((_grid_blocks() - 1) % at_a_time + 1) / at_a_time).alias("last_wave_share"),
    )


def complete_limits(limits: pl.DataFrame) -> pl.DataFrame:
    """Limits of each gpu, what was not recorded filled in by compute capability.

    One row per row of `limits`: gpu, sm_count, compute_major, compute_minor and the limits of an SM; null where
    neither the trace nor the model's name tells.
    """
    by_capability = SM_LIMITS.rename({name: "_" + name for name in _LIMITS})
    named = {
        column: pl.coalesce(
            column,
            *(
                pl.when(pl.col("name").str.contains(model[0])).then(pl.lit(model[index], pl.Int32))
                for model in OLD_MODELS
            ),
        )
        for index, column in enumerate(("compute_major", "compute_minor", "sm_count"), start=1)
    }
    return (
        limits.with_columns(**named)
        .join(by_capability, on=["compute_major", "compute_minor"], how="left")
        .select(
            "gpu",
            "sm_count",
            "compute_major",
            "compute_minor",
            *(pl.coalesce(name, "_" + name) for name in _LIMITS),
        )
    )


def _grid_blocks() -> pl.Expr:
    return pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")


def _warps() -> pl.Expr:
    threads = pl.col("block_x").cast(pl.Int64) * pl.col("block_y") * pl.col("block_z")
    return (threads.clip(lower_bound=1) + _THREADS_PER_WARP - 1) // _THREADS_PER_WARP


def _blocks_by_registers() -> pl.Expr:
    """Warps get registers in units, from the register file of the quarter of the SM that they run on."""
    per_warp = _up(pl.col("registers").cast(pl.Int64) * _THREADS_PER_WARP, _REGISTER_UNIT)
    parts = (
        pl.when((pl.col("compute_major") == 6) & (pl.col("compute_minor") == 0))
        .then(2)
        .otherwise(SUB_PARTITIONS)
    )
    warps = pl.col("max_registers_per_sm") // parts // per_warp * parts
    # without registers there is no limit by them
    return pl.when(per_warp > 0).then(warps // _warps())


def _blocks_by_shared_memory() -> pl.Expr:
    """Blocks that fit into the part of the SM's memory which the driver set aside as shared memory.

    The driver sets aside enough: of 1,350 launch shapes in real traces none had fewer blocks by its carve-out
    than by all the memory that the SM has.
    """
    modern = pl.col("compute_major") >= 8
    unit = pl.when(modern).then(_SHARED_UNIT).otherwise(_OLD_SHARED_UNIT)
    reserved = pl.when(modern).then(_RESERVED_SHARED).otherwise(0)
    used = pl.col("static_shared_bytes").cast(pl.Int64) + pl.col("dynamic_shared_bytes")
    per_block = (used + reserved + unit - 1) // unit * unit
    carveout = pl.col("shared_carveout_bytes").cast(pl.Int64)
    available = pl.when(carveout > 0).then(carveout).otherwise(pl.col("max_shared_per_sm_bytes"))
    return pl.when(per_block > 0).then(available // per_block)


def _up(value: pl.Expr, unit: int) -> pl.Expr:
    return (value + unit - 1) // unit * unit


def _binding(name: str) -> pl.Expr:
    return pl.when(pl.col("_" + name) <= pl.col("blocks_per_sm")).then(pl.lit(name))
