from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage.metrics.launch_shapes import LAUNCH_SHAPES, exposed_ns, launch_shapes, single
from nsys_triage.metrics.work import build_workload
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder

INTERVALS = {"gpu": pl.UInt16, "start_ns": pl.Int64, "end_ns": pl.Int64}


def shapes(trace: TraceBuilder, folder: Path) -> pl.DataFrame:
    path = trace.write(folder / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    workload = build_workload(loaded)
    return launch_shapes(loaded, workload, workload.work)


def test_one_row_per_name_and_shape(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.kernel(100, 200).kernel(200, 500).kernel(500, 700).kernel(700, 760, grid=(66, 2, 1)).kernel(
        760, 800, ADD
    )
    found = shapes(trace, tmp_path)
    assert found.schema == pl.Schema(LAUNCH_SHAPES)
    rows = found.select("own_name", "count", "total_ns", "median_ns", "alone_ns", "blocks").rows()
    gemm = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
    assert rows == [
        (gemm, 3, 600_000, 200_000, 600_000, 1_056),
        (gemm, 1, 60_000, 60_000, 60_000, 132),
        ("vectorized_elementwise_kernel", 1, 40_000, 40_000, 40_000, 1_056),
    ]
    first = found.row(0, named=True)
    assert (first["first_start_ns"], first["longest_start_ns"], first["longest_end_ns"]) == (
        100_000,
        200_000,
        500_000,
    )
    assert (first["sm_count"], first["compute_major"], first["compute_minor"]) == (132, 9, 0)
    assert (first["blocks_per_sm"], first["occupancy_share"], first["waves"]) == (4, 0.5, 2.0)


def test_time_alone_leaves_out_what_runs_beside(tmp_path: Path) -> None:
    trace = TraceBuilder()
    # 0 to 100, 50 to 150 and 140 to 200 us: alone for 50, for 150 - 100 - 10 = 40 and for 50
    trace.kernel(1_000, 1_100, GEMM).kernel(1_050, 1_150, ADD, stream=20).kernel(
        1_140, 1_200, "third", stream=21
    )
    found = shapes(trace, tmp_path)
    assert dict(found.select(pl.col("own_name").str.slice(0, 5), "alone_ns").iter_rows()) == {
        "amper": 50_000,
        "vecto": 40_000,
        "third": 50_000,
    }


def test_collectives_are_no_compute_kernels(tmp_path: Path) -> None:
    found = shapes(TraceBuilder().kernel(1_000, 1_100).kernel(1_000, 1_100, ALL_REDUCE, stream=20), tmp_path)
    assert found.select("count", "alone_ns").rows() == [(1, 100_000)]


def test_two_gpus_do_not_run_beside_each_other(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "A100")).kernel(1_000, 1_100).kernel(1_050, 1_100, device=1)
    found = shapes(trace, tmp_path)
    assert found.select("alone_ns", "sm_count").rows() == [(100_000, 132), (50_000, 108)]


def test_a_kernel_that_waits_for_pages_has_no_time_alone(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100).migration(1_020, 1_030).kernel(1_100, 1_200, ADD)
    trace.migration(1_120, 1_129)  # a little less than a tenth
    found = shapes(trace, tmp_path)
    assert found.select(pl.col("own_name").str.slice(0, 5), "total_ns", "alone_ns").rows() == [
        ("vecto", 100_000, 100_000),
        ("amper", 100_000, 0),
    ]


def test_unknown_gpus_have_no_limits(tmp_path: Path) -> None:
    found = shapes(TraceBuilder(gpus=()).kernel(1_000, 1_100), tmp_path)
    assert found.select("sm_count", "compute_major", "occupancy_share", "waves").rows() == [
        (None, None, None, None)
    ]


def test_without_kernels(tmp_path: Path) -> None:
    found = shapes(TraceBuilder().copy(1_000, 1_100).kernel(2_000, 2_000), tmp_path)
    assert found.is_empty()
    assert found.schema == pl.Schema(LAUNCH_SHAPES)


def test_exposed_time_of_chosen_kernels(tmp_path: Path) -> None:
    path = (
        TraceBuilder()
        .kernel(1_000, 1_100)
        .kernel(1_080, 1_130, ADD, stream=20)
        .kernel(1_200, 1_210, ADD)
        .write(tmp_path / "trace.sqlite")
    )
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    work = build_workload(loaded).work
    # the second and the third kernel: 30 of 50 us, and 10
    assert exposed_ns(work, work[1:]) == 40_000
    # all of them: the whole union of 130 + 10 us
    assert exposed_ns(work, work) == 140_000
    assert exposed_ns(work, work.clear()) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(1, 10)).map(
            lambda t: (t[0], t[1], t[1] + t[2])
        ),
        max_size=12,
    )
)
def test_single_is_where_exactly_one_runs(rows: list[tuple[int, int, int]]) -> None:
    found = single(pl.DataFrame(rows, schema=INTERVALS, orient="row"))
    covered = {(gpu, at) for gpu, start, end in found.iter_rows() for at in range(start, end)}
    expected = {
        (gpu, at)
        for gpu in (0, 1)
        for at in range(45)
        if sum(1 for g, start, end in rows if g == gpu and start <= at < end) == 1
    }
    assert covered == expected
