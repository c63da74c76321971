from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.metrics.gpu_models import NVLINK_C2C, PCIE_3, PCIE_4, PCIE_5, host_link
from nsys_triage.metrics.occupancy import OCCUPANCY, with_occupancy
from nsys_triage.trace.model import GPU_INFO, KERNELS

Model = dict[str, Any]
SHAPE = {
    "gpu": pl.UInt16,
    **{
        name: KERNELS[name]
        for name in (
            *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers"),
            *("static_shared_bytes", "dynamic_shared_bytes", "shared_carveout_bytes"),
        )
    },
}
LIMITS = {"gpu": pl.UInt16, **GPU_INFO}
H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "sm_count": 132,
    "compute_major": 9,
    "compute_minor": 0,
    "max_warps_per_sm": 64,
    "max_blocks_per_sm": 32,
    "max_registers_per_sm": 65_536,
    "max_registers_per_block": 65_536,
    "max_shared_per_sm_bytes": 233_472,
    "max_shared_per_block_bytes": 232_448,
}
RTX_3090 = {"name": "NVIDIA GeForce RTX 3090", "sm_count": 82, "compute_major": 8, "compute_minor": 6}
V100 = {"name": "Tesla V100-SXM2-16GB", "sm_count": 80, "compute_major": 7, "compute_minor": 0}
P100 = {"name": "Tesla P100-PCIE-16GB", "sm_count": 56, "compute_major": 6, "compute_minor": 0}


def shape(
    threads: int | tuple[int, int, int], registers: int, shared: int = 0, carveout: int = 0, blocks: int = 132
) -> dict[str, int]:
    x, y, z = threads if isinstance(threads, tuple) else (threads, 1, 1)
    return {
        **dict.fromkeys(SHAPE, 1),
        "gpu": 0,
        "grid_x": blocks,
        "block_x": x,
        "block_y": y,
        "block_z": z,
        "registers": registers,
        "static_shared_bytes": shared // 2,
        "dynamic_shared_bytes": shared - shared // 2,
        "shared_carveout_bytes": carveout,
    }


def occupancy(gpu: Model, launch: dict[str, int]) -> dict[str, Any]:
    limits = pl.DataFrame([{"gpu": 0, **gpu}], schema=LIMITS)
    return with_occupancy(pl.DataFrame([launch], schema=SHAPE), limits).row(0, named=True)


@pytest.mark.parametrize(
    ("gpu", "launch", "blocks", "share", "limited_by"),
    [
        # 64 registers x 32 = 2,048 per warp; 16,384 / 2,048 = 8 warps in each quarter, 32 in all; 4 blocks
        (H100, shape(256, 64), 4, 32 / 64, "registers"),
        # 32 x 32 = 1,024; 16 per quarter, 64 warps in all: no limit before that of warps
        (H100, shape(256, 32), 8, 1.0, "warps"),
        # 255 x 32 = 8,160, rounded to 8,192; 2 per quarter, 8 in all; 1 block of 8
        (H100, shape(256, 255), 1, 8 / 64, "registers"),
        # 40 x 32 = 1,280; 12.8 per quarter are 12, 48 in all; 48 / 7 warps are 6 blocks
        (H100, shape(224, 40), 6, 42 / 64, "registers"),
        # 41 x 32 = 1,312, rounded to 1,536; 10 per quarter, 40 in all (12 and 48 without rounding)
        (H100, shape(128, 41), 10, 40 / 64, "registers"),
        # 33 threads take 2 warps; 32 blocks are the most
        (H100, shape(33, 16), 32, 64 / 64, "warps"),
        (H100, shape(32, 16), 32, 32 / 64, "blocks"),
        # 48 KiB + 1 KiB reserved = 50,176; 233,472 / 50,176 = 4.65
        (H100, shape(128, 32, shared=49_152), 4, 16 / 64, "shared memory"),
        # 1 byte + 1 KiB, rounded to 1,152; 16,384 / 1,152 = 14.2: the carve-out is the limit
        (H100, shape(64, 16, shared=1, carveout=16_384), 14, 28 / 64, "shared memory"),
        # the reserved kilobyte counts without own shared memory too
        (H100, shape(64, 16, carveout=8_192), 8, 16 / 64, "shared memory"),
        # 1,024 threads are 32 warps; 48 warps hold one
        (RTX_3090, shape(1_024, 32), 1, 32 / 48, "warps"),
        (RTX_3090, shape(64, 32), 16, 32 / 48, "blocks"),
        # no kilobyte is reserved before 8.0: 98,304 / 12,288 = 8
        (V100, shape(128, 32, shared=12_288), 8, 32 / 64, "shared memory"),
        # 10,900 bytes rounded to 11,008; 98,304 / 11,008 = 8.9 (9.02 without rounding)
        (V100, shape(128, 32, shared=10_900), 8, 32 / 64, "shared memory"),
        (V100, shape((16, 16, 1), 32), 8, 1.0, "warps"),
        # halves, not quarters: 40 x 32 = 1,280; 25.6 per half are 25, 50 in all; 50 / 10 = 5 (48 / 10 = 4)
        (P100, shape(320, 40), 5, 50 / 64, "registers"),
        # shared memory of more than the carve-out says: it ran, so it fits once
        (H100, shape(256, 32, shared=65_536, carveout=32_768), 1, 8 / 64, "shared memory"),
    ],
)
def test_blocks_per_sm(
    gpu: Model, launch: dict[str, int], blocks: int, share: float, limited_by: str
) -> None:
    found = occupancy(gpu, launch)
    assert (found["blocks_per_sm"], found["limited_by"]) == (blocks, limited_by)
    assert found["occupancy_share"] == pytest.approx(share)


def test_limits_that_are_missing_come_from_the_compute_capability() -> None:
    without = {name: value for name, value in H100.items() if not name.startswith("max_")}
    launch = shape(224, 40, shared=20_000)
    assert occupancy(without, launch) == occupancy(H100, launch)


def test_an_old_capture_that_kept_only_the_name() -> None:
    assert occupancy({"name": V100["name"]}, shape(128, 32)) == occupancy(V100, shape(128, 32))


def test_nothing_is_said_of_an_unknown_gpu() -> None:
    for gpu in ({"name": "something new"}, {"compute_major": 99, "compute_minor": 0, "sm_count": 10}):
        found = occupancy(gpu, shape(256, 64))
        assert {found[name] for name in OCCUPANCY} == {None}


def test_waves() -> None:
    # 4 blocks on each of 132 SMs are 528 at a time
    found = occupancy(H100, shape(256, 64, blocks=528 * 2 + 132))
    assert found["waves"] == pytest.approx(2.25)
    assert found["last_wave_share"] == pytest.approx(0.25)
    whole = occupancy(H100, shape(256, 64, blocks=528 * 3))
    assert (whole["waves"], whole["last_wave_share"]) == (3.0, 1.0)
    small = occupancy(H100, shape(256, 64, blocks=1))
    assert small["waves"] == small["last_wave_share"] == pytest.approx(1 / 528)
    assert occupancy({**H100, "sm_count": None}, shape(256, 64))["waves"] is None


def test_order_schema_and_empty_input() -> None:
    limits = pl.DataFrame([{"gpu": 1, **V100}, {"gpu": 0, **H100}], schema=LIMITS)
    rows = [{**shape(256, 64), "gpu": gpu} for gpu in (0, 1, 0, 7)]
    found = with_occupancy(pl.DataFrame(rows, schema=SHAPE), limits)
    assert found["gpu"].to_list() == [0, 1, 0, 7]
    assert found["blocks_per_sm"].to_list() == [4, 4, 4, None]
    empty = with_occupancy(pl.DataFrame(schema=SHAPE), limits)
    assert dict(empty.schema) == dict(found.schema) == {**SHAPE, **OCCUPANCY}
    without_limits = with_occupancy(pl.DataFrame(rows, schema=SHAPE), pl.DataFrame(schema=LIMITS))
    assert without_limits["occupancy_share"].null_count() == 4


@settings(deadline=None)
@given(
    st.integers(1, 1_024),
    st.integers(0, 255),
    st.integers(0, 232_448),
    st.sampled_from([H100, RTX_3090, V100, P100]),
)
def test_more_of_anything_never_raises_the_blocks(
    threads: int, registers: int, shared: int, gpu: Model
) -> None:
    base = occupancy(gpu, shape(threads, registers, shared))
    assert base["blocks_per_sm"] >= 1
    assert 0 < base["occupancy_share"] <= 1
    for more in (
        shape(min(threads + 32, 1_024), registers, shared),
        shape(threads, min(registers + 8, 255), shared),
        shape(threads, registers, shared + 1_024),
    ):
        assert occupancy(gpu, more)["blocks_per_sm"] <= base["blocks_per_sm"]


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("Tesla V100-SXM2-16GB", PCIE_3),
        ("Tesla T4", PCIE_3),
        ("NVIDIA A100-SXM4-80GB", PCIE_4),
        ("NVIDIA A30 MIG 2g.12gb", PCIE_4),
        ("NVIDIA GeForce RTX 3090", PCIE_4),
        ("NVIDIA GeForce RTX 4070 SUPER", PCIE_4),
        ("NVIDIA RTX 6000 Ada Generation", PCIE_4),
        ("NVIDIA RTX A6000", PCIE_4),
        ("NVIDIA H100 80GB HBM3", PCIE_5),
        ("NVIDIA H200", PCIE_5),
        ("NVIDIA GeForce RTX 5090", PCIE_5),
        ("NVIDIA B200", PCIE_5),
        ("NVIDIA GH200 480GB", NVLINK_C2C),
        ("NVIDIA GeForce RTX 3070 Ti Laptop GPU", None),
        ("NVIDIA GeForce RTX 4060 Ti", None),
        ("NVIDIA GeForce RTX 3050", None),
        ("AMD Radeon", None),
        (None, None),
    ],
)
def test_host_link(name: str | None, link: object) -> None:
    assert host_link(name) == link


def test_link_rates() -> None:
    assert PCIE_3.bytes_per_s == pytest.approx(15.754e9, rel=1e-4)
    assert PCIE_4.bytes_per_s == pytest.approx(31.508e9, rel=1e-4)
    assert PCIE_5.bytes_per_s == pytest.approx(63.015e9, rel=1e-4)
    assert PCIE_4.name == "PCIe 4.0 x16"
