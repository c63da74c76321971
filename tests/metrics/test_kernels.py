import time
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.metrics.histogram import DURATION_EDGES_NS
from nsys_triage.metrics.kernel_names import describe
from nsys_triage.metrics.kernels import summarize_kernels
from nsys_triage.result.model import Kernels
from nsys_triage.trace.model import GPU_INFO, KERNELS, STRINGS

SCHEMA = {**KERNELS, "gpu": pl.UInt16}
LIMITS = pl.DataFrame(
    [{"gpu": 0, "sm_count": 132, "compute_major": 9, "compute_minor": 0}],
    schema={"gpu": pl.UInt16, **GPU_INFO},
)
TEXTS = ["ampere_sgemm_128x64_tn", "saxpy(int)", "my_kernel(int)", "saxpy(int)"]


def kernel(name: int, duration: int, start: int = 0, **more: Any) -> dict[str, Any]:
    shape = {
        **dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 1),
        "block_x": 256,
    }
    rest = {
        "registers": 64,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 0,
        "shared_carveout_bytes": 0,
        "gpu": 0,
    }
    return {"name": name, "start_ns": start, "end_ns": start + duration, **shape, **rest, **more}


def summary(rows: list[dict[str, Any]], texts: list[str] = TEXTS) -> Kernels:
    strings = pl.DataFrame({"text": texts}).with_row_index("code").select(*STRINGS)
    names = describe(strings).join(strings, on="code")
    return summarize_kernels(pl.DataFrame(rows, schema=SCHEMA), names, LIMITS)


def test_distribution() -> None:
    rows = [kernel(0, duration, start=7) for duration in (9_999, 10_000, 2_000, 1_000, 500_000)]
    found = summary(rows)
    assert (found.count, found.sum_ns) == (5, 522_999)
    # of 1,000 2,000 9,999 10,000 500,000: ceil(2.5) = 3rd, ceil(4.5) = 5th
    assert (found.p50_ns, found.p90_ns, found.p95_ns, found.p99_ns) == (9_999, 500_000, 500_000, 500_000)
    assert found.max_ns == 500_000
    assert found.small_share == pytest.approx(3 / 5)
    assert found.small_time_share == pytest.approx(12_999 / 522_999)
    assert {bucket.from_ns: bucket.count for bucket in found.histogram if bucket.count} == {
        1_000: 2,
        3_000: 1,
        10_000: 1,
        300_000: 1,
    }


def test_without_kernels() -> None:
    found = summary([])
    assert (found.count, found.sum_ns, found.distinct) == (0, 0, 0)
    assert {found.p50_ns, found.p90_ns, found.p95_ns, found.p99_ns, found.max_ns} == {None}
    assert (found.small_share, found.small_time_share) == (None, None)
    assert (found.classes, found.top) == ([], [])
    assert [bucket.from_ns for bucket in found.histogram] == list(DURATION_EDGES_NS)


def test_kernels_of_no_length_have_no_share_of_the_time() -> None:
    found = summary([kernel(0, 0)])
    assert (found.small_share, found.small_time_share) == (1.0, None)


def test_classes_sum_to_all_and_are_ordered_by_total_then_name() -> None:
    found = summary([kernel(0, 5), kernel(1, 5), kernel(2, 10), kernel(3, 7), kernel(0, 7)])
    assert [(row.kernel_class, row.count, row.total_ns) for row in found.classes] == [
        ("elementwise", 2, 12),
        ("matmul", 2, 12),
        ("other", 1, 10),
    ]


def test_codes_of_one_text_are_one_kernel() -> None:
    found = summary([kernel(1, 5), kernel(3, 7), kernel(3, 6), kernel(2, 10)])
    assert found.distinct == 2
    row = found.top[0]
    assert (row.name, row.count, row.total_ns, row.p50_ns, row.max_ns) == ("saxpy(int)", 3, 18, 6, 7)


def test_top_is_ordered_by_total_then_name_and_cut() -> None:
    texts = [f"kernel_{index:02d}" for index in range(25)]
    found = summary([kernel(code, 100 if code != 24 else 200) for code in reversed(range(25))], texts)
    assert [row.name for row in found.top] == ["kernel_24", *texts[:19]]
    assert found.distinct == 25
    assert found.classes[0].count == 25


def test_the_most_frequent_shape_and_its_occupancy() -> None:
    often = {"grid_x": 528, "grid_y": 3, "dynamic_shared_bytes": 1_024, "static_shared_bytes": 16}
    rows = [
        kernel(0, 10, grid_x=9),
        kernel(0, 10, **often),
        kernel(0, 10, **often, shared_carveout_bytes=233_472),
    ]
    row = summary(rows).top[0]
    assert (row.grid, row.block, row.registers, row.shared_bytes) == ([528, 3, 1], [256, 1, 1], 64, 1_040)
    # 64 registers a thread: 4 blocks of 8 warps; 1,584 blocks over 528 slots
    assert (row.occupancy_share, row.limited_by, row.waves, row.shapes) == (0.5, "registers", 3.0, 2)


def test_a_code_without_a_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="9"):
        summary([kernel(9, 10)])


def test_of_equally_frequent_shapes_the_smallest() -> None:
    rows = [kernel(0, 10, grid_x=x, block_x=b) for x, b in ((5, 64), (3, 128), (3, 32), (4, 32))]
    for order in (rows, rows[::-1]):
        row = summary(order).top[0]
        assert (row.grid[0], row.block[0], row.shapes) == (3, 32, 4)


def test_a_gpu_without_known_limits_has_no_occupancy() -> None:
    row = summary([kernel(0, 10, gpu=5)]).top[0]
    assert (row.occupancy_share, row.waves, row.limited_by) == (None, None, None)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**7), st.integers(1, 3)), max_size=60))
def test_nothing_is_lost_and_order_does_not_matter(items: list[tuple[int, int, int]]) -> None:
    rows = [kernel(name, duration, grid_x=grid) for name, duration, grid in items]
    found = summary(rows)
    assert (
        sum(row.count for row in found.classes)
        == sum(row.count for row in found.top)
        == found.count
        == len(items)
    )
    assert (
        sum(row.total_ns for row in found.classes)
        == found.sum_ns
        == sum(duration for _, duration, _ in items)
    )
    assert sum(row.total_ns for row in found.top) == found.sum_ns
    assert summary(rows[::-1]) == found


def test_a_million_kernels_take_a_moment() -> None:
    number = pl.int_range(1_000_000, eager=True, dtype=pl.Int64)
    frame = pl.DataFrame([kernel(0, 10)], schema=SCHEMA).drop("start_ns", "end_ns", "name", "grid_x")
    rows = (
        pl.DataFrame({"start_ns": number * 20_000})
        .with_columns(
            (pl.col("start_ns") + number.hash(1) % 100_000).cast(pl.Int64).alias("end_ns"),
            (number.hash(2) % 3).cast(pl.UInt32).alias("name"),
            (number.hash(3) % 2_000).cast(pl.UInt32).alias("grid_x"),
        )
        .join(frame, how="cross")
        .select(*SCHEMA)
    )
    strings = pl.DataFrame({"text": TEXTS}).with_row_index("code").select(*STRINGS)
    names = describe(strings).join(strings, on="code")
    start = time.perf_counter()
    found = summarize_kernels(rows, names, LIMITS)
    assert time.perf_counter() - start < 5  # 0.6 s on two cores; the margin is for a loaded machine
    assert found.count == 1_000_000
