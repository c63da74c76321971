from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.metrics.copies import KINDS, summarize_copies
from nsys_triage.metrics.histogram import SIZE_EDGES
from nsys_triage.result.model import Copies, CopyKind
from nsys_triage.trace.model import GPU_INFO, MEMCPYS

SCHEMA = {**MEMCPYS, "gpu": pl.UInt16}
PAGEABLE, PINNED, DEVICE = 0, 1, 2
TO_DEVICE, TO_HOST, WITHIN, PEER, UM_TO_DEVICE, UM_TO_HOST = 1, 2, 8, 10, 11, 12


def copy(kind: int | None, start: int, end: int, size: int = 1_000, **more: Any) -> dict[str, Any]:
    return {"copy_kind": kind, "start_ns": start, "end_ns": end, "bytes": size, "gpu": 0, **more}


def summary(rows: list[dict[str, Any]], *names: str | None) -> Copies:
    gpus = pl.DataFrame(
        [{"gpu": gpu, "name": name} for gpu, name in enumerate(names)], schema={"gpu": pl.UInt16, **GPU_INFO}
    )
    return summarize_copies(pl.DataFrame(rows, schema=SCHEMA), gpus)


def by_kind(found: Copies) -> dict[str, CopyKind]:
    return {row.kind: row for row in found.kinds}


def test_kinds_are_ordered_by_union_time_then_name() -> None:
    found = summary(
        [
            copy(TO_DEVICE, 0, 100),
            copy(WITHIN, 0, 100),
            copy(TO_HOST, 500, 900),
            copy(PEER, 0, 0),
            copy(UM_TO_HOST, 0, 50),
            copy(99, 0, 10),
            copy(None, 20, 30),
        ]
    )
    assert [(row.kind, row.count, row.total_ns) for row in found.kinds] == [
        ("device_to_host", 1, 400),
        ("device_to_device", 1, 100),
        ("host_to_device", 1, 100),
        ("unified_device_to_host", 1, 50),
        ("unknown", 2, 20),
        ("peer_to_peer", 1, 0),
    ]
    assert by_kind(found)["peer_to_peer"].bytes_per_s is None


def test_time_is_the_union_on_each_gpu_summed_over_the_gpus() -> None:
    found = summary(
        [
            copy(TO_DEVICE, 0, 100, 300),
            copy(TO_DEVICE, 50, 150, 500),
            copy(TO_DEVICE, 400, 500, 200),
            copy(TO_DEVICE, 20, 120, 1_000, gpu=1),
            copy(TO_HOST, 60, 80, 7),  # another kind takes nothing from the union
        ]
    )
    row = by_kind(found)["host_to_device"]
    # 150 + 100 on the first GPU, 100 on the second
    assert (row.count, row.bytes, row.total_ns) == (4, 2_000, 350)
    assert row.bytes_per_s == pytest.approx(2_000 / 350e-9)
    # of 200, 300, 500 and 1,000 the second
    assert (row.p50_bytes, row.max_bytes) == (300, 1_000)


def test_pageable_bytes_are_those_known_to_be_pageable() -> None:
    found = summary(
        [
            copy(TO_DEVICE, 0, 1, 1, source_kind=PAGEABLE, target_kind=DEVICE),
            copy(TO_DEVICE, 0, 1, 10, source_kind=PINNED, target_kind=DEVICE),
            copy(TO_DEVICE, 0, 1, 100, source_kind=None, target_kind=None),
            copy(TO_DEVICE, 0, 1, 1_000, source_kind=None, target_kind=PAGEABLE),
            copy(TO_HOST, 0, 1, 10_000, source_kind=DEVICE, target_kind=PAGEABLE),
            copy(UM_TO_DEVICE, 0, 1, 100_000, source_kind=PAGEABLE, target_kind=DEVICE),
        ]
    )
    kinds = by_kind(found)
    assert kinds["host_to_device"].pageable_bytes == 1_001
    assert kinds["device_to_host"].pageable_bytes == 10_000
    assert kinds["unified_host_to_device"].pageable_bytes == 0


def test_small_copies_and_sizes_leave_migrations_out() -> None:
    rows = [copy(TO_DEVICE, 0, 1, size) for size in (65_535, 65_536, 4)]
    found = summary([*rows, copy(UM_TO_DEVICE, 0, 1, 4_096)])
    assert found.small_count == 2
    assert [row.from_bytes for row in found.sizes] == list(SIZE_EDGES)
    assert {row.from_bytes: (row.count, row.total_bytes) for row in found.sizes if row.count} == {
        0: (1, 4),
        16_384: (1, 65_535),
        65_536: (1, 65_536),
    }
    assert {kind: row.small_count for kind, row in by_kind(found).items()} == {
        "host_to_device": 2,
        "unified_host_to_device": 1,
    }


def test_without_copies() -> None:
    found = summary([], "NVIDIA A100-SXM4-80GB")
    assert (found.kinds, found.small_count, found.link_name) == ([], 0, None)
    assert all(row.count == 0 for row in found.sizes)


def test_the_link_of_the_gpus_that_copied() -> None:
    a100, h100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
    slow = copy(TO_DEVICE, 0, 1_000_000, 20_000_000)  # 20 GB/s
    assert summary([slow], a100, h100).link_name == "PCIe 4.0 x16"
    assert summary([slow], a100).link_bytes_per_s == pytest.approx(31.5e9, rel=1e-3)
    assert summary([slow, {**slow, "gpu": 1}], a100, a100).link_name == "PCIe 4.0 x16"
    assert summary([slow, {**slow, "gpu": 1}], a100, h100).link_name is None
    assert summary([slow, {**slow, "gpu": 1}], a100).link_name is None
    assert summary([slow], None).link_name is None


def test_a_faster_copy_disproves_the_link() -> None:
    fast = copy(TO_DEVICE, 0, 1_000_000, 60_000_000)  # 60 GB/s: NVLink to the host
    assert summary([fast], "Tesla V100-SXM2-16GB").link_name is None
    within = copy(WITHIN, 0, 1_000_000, 600_000_000)  # never crosses the link
    assert summary([within], "Tesla V100-SXM2-16GB").link_name == "PCIe 3.0 x16"


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(KINDS)),
            st.integers(0, 3),
            st.integers(0, 1_000),
            st.integers(0, 300),
            st.integers(0, 10**6),
        ),
        max_size=40,
    )
)
def test_union_times_and_totals(items: list[tuple[int, int, int, int, int]]) -> None:
    rows = [copy(kind, start, start + length, size, gpu=gpu) for kind, gpu, start, length, size in items]
    found = summary(rows)
    assert sum(row.count for row in found.kinds) == len(items)
    for kind, row in by_kind(found).items():
        mine = [item for item in items if KINDS[item[0]] == kind]
        moments = {(gpu, at) for _, gpu, start, length, _ in mine for at in range(start, start + length)}
        assert row.total_ns == len(moments)
        assert row.bytes == sum(size for *_, size in mine)
    assert summary(rows[::-1]) == found
