"""What rules may ask of a trace; stakes by cause are in test_cause_stake.py."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.window import parse_window
from nsys_triage.result.model import Gpu, Interval, RankRow, Ranks, Stake
from nsys_triage.rules.context import NEEDS, Context, record_line
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.support import measured


def two_gpus(first: tuple[float, float], second: tuple[float, float]) -> TraceBuilder:
    """Two GPUs of one process, 1 ms each, with a gap from ... to ... in which the host launches."""
    trace = TraceBuilder(gpus=("H100", "H100"))
    for device, (start, end) in enumerate((first, second)):
        where = {"device": device, "stream": 7 + device, "tid": 4242 + device}
        trace.kernel(1_000, start, call=(980, 990), **where)
        if end > start:
            trace.kernel(end, 2_000, call=(start - 5, end - 1), **where)
    return trace


def context(builder: TraceBuilder, folder: Path, window: str = "all") -> Context:
    return Context(measured(builder, folder, window), {})


# --- shares -----------------------------------------------------------------------------------------------------


def test_shares_are_of_the_spans_of_all_gpus_together(tmp_path: Path) -> None:
    c = context(two_gpus((1_400, 1_500), (1_300, 1_600)), tmp_path)
    # 100 us of 1 000 on one, 300 of 1 000 on the other
    assert [gpu.span_ns for gpu in c.gpus] == [1_000_000, 1_000_000]
    assert c.span_ns == 2_000_000
    assert c.total_ns("launch") == 400_000
    assert c.share("launch") == 0.2
    assert c.total_ns("launch", "compute") == 2_000_000
    assert c.share("launch", "compute") == 1.0
    assert (c.total_ns("copy"), c.share("copy"), c.total_ns()) == (0, 0.0, 0)
    assert c.mean_ns(c.total_ns("launch")) == 200_000
    assert c.gap_count("launch") == 2
    assert c.gap_count("launch", "host_sync") == 2
    assert c.gap_count("host_sync") == 0


def test_shares_are_those_of_the_window(tmp_path: Path) -> None:
    trace = two_gpus((1_400, 1_500), (1_300, 1_600))
    # from 1 400 to 1 500 us there is nothing but the gaps
    c = context(trace, tmp_path, "0.0013:0.0015")
    assert [gpu.span_ns for gpu in c.gpus] == [200_000, 200_000]
    assert c.total_ns("launch") == 300_000
    assert c.share("launch") == 0.75


def test_a_stake_is_the_mean_per_gpu_within_the_span(tmp_path: Path) -> None:
    c = context(two_gpus((1_400, 1_500), (1_300, 1_600)), tmp_path)
    assert c.stake(400_000, "b") == Stake(low_ns=100_000, high_ns=200_000, share=0.15, basis="b")
    assert c.stake(400_000, "b", 0) == Stake(low_ns=0, high_ns=200_000, share=0.1, basis="b")
    assert c.stake(400_000, "b", 10_000_000) == Stake(low_ns=200_000, high_ns=200_000, share=0.2, basis="b")
    assert c.stake(9_000_000, "b", 9_000_000) == Stake(
        low_ns=1_000_000, high_ns=1_000_000, share=1, basis="b"
    )
    assert c.stake(-1, "b", -1) == Stake(low_ns=0, high_ns=0, share=0, basis="b")


def test_the_gpus_of_a_job_stand_for_those_of_the_trace(tmp_path: Path) -> None:
    m = measured(two_gpus((1_400, 1_500), (1_300, 1_600)), tmp_path)
    assert Context(m, {}).gpus == m.gpus
    job = Context(m, {}, None, (m.gpus[1], m.gpus[1], m.gpus[0]))
    assert (job.span_ns, job.total_ns("launch")) == (3_000_000, 700_000)
    assert job.has("several_gpus")


# --- where to look ----------------------------------------------------------------------------------------------


def test_the_place_is_the_gap_with_most_of_the_cause(tmp_path: Path) -> None:
    c = context(two_gpus((1_400, 1_500), (1_300, 1_600)), tmp_path)
    assert c.where("launch") == Interval(start_ns=1_300_000, end_ns=1_600_000)
    assert c.where("host_sync") is None
    equal = context(two_gpus((1_400, 1_500), (1_700, 1_800)), tmp_path)
    assert equal.where("launch") == Interval(start_ns=1_400_000, end_ns=1_500_000)


def test_the_place_may_be_in_pieces_of_a_gap_and_is_all_of_it(tmp_path: Path) -> None:
    # 50 us of launches in one piece; in another gap 30 + 30 with allocation between, 80 us long in all
    trace = TraceBuilder().kernel(1_000, 1_100, call=(900, 910))
    trace.kernel(1_150, 1_300, call=(1_099, 1_149)).kernel(1_380, 1_500, call=(1_349, 1_379))
    trace.api("cudaMalloc_v3020", 1_329, 1_349).api("cudaLaunchKernel_v7000", 1_299, 1_329)
    c = context(trace, tmp_path)
    assert c.total_ns("allocation") > 0
    first, second = 50_000, c.total_ns("launch") - 50_000
    assert second > first
    assert c.where("launch") == Interval(start_ns=1_300_000, end_ns=1_380_000)
    assert c.where("allocation") == Interval(start_ns=1_300_000, end_ns=1_380_000)


def test_the_place_of_a_cause_without_gaps_is_its_longest_time(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.kernel(1_000, 1_100, GEMM).kernel(1_100, 1_140, ALL_REDUCE).kernel(1_140, 1_200, GEMM)
    trace.kernel(1_200, 1_290, ALL_REDUCE).kernel(1_290, 1_300, GEMM).kernel(1_300, 1_390, ALL_REDUCE)
    c = context(trace, tmp_path)
    assert c.where("communication") == Interval(start_ns=1_200_000, end_ns=1_290_000)
    assert c.gap_count("communication") == 0


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ((1_500, 1_500), "first"),  # all of it on the first
        ((1_500, 1_549), "first"),  # 200 and 49 us
        ((1_500, 1_550), None),  # four fifths exactly
        ((1_100, 1_900), None),  # 200 and 800 us: four fifths exactly
        ((1_100, 1_901), "second"),
    ],
)
def test_one_gpu_has_most_of_it(second: tuple[float, float], expected: str | None, tmp_path: Path) -> None:
    c = context(two_gpus((1_400, 1_600), second), tmp_path)
    wanted = {"first": c.gpus[0].id, "second": c.gpus[1].id, None: None}[expected]
    assert c.one_gpu("launch") == wanted
    assert c.one_gpu("host_sync") is None


def test_of_one_gpu_nothing_is_said(tmp_path: Path) -> None:
    c = context(TraceBuilder().kernels(1_000, 3, every=100, length=50), tmp_path)
    assert c.total_ns("host_compute", "launch", "unknown") > 0
    assert c.one_gpu("host_compute", "launch", "unknown") is None


# --- whose program it is ----------------------------------------------------------------------------------------

PYTORCH_KERNELS = (
    ADD,
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float>(float *)",
    "void at_cuda_detail::cub::DeviceScanKernel<int>(int)",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64>>(int)",
)
JAX_KERNELS = (
    "loop_add_fusion",
    "loop_broadcast_fusion_12",
    "input_reduce_fusion_3",
    "input_multiply_reduce_fusion",
    "wrapped_transpose",
    "fusion_12__1",
    "gemm_fusion_dot_5",
    "triton_softmax_fusion",
    "void xla::gpu::SortKernel<float>(int)",
)
PLAIN_KERNELS = (
    GEMM,
    ALL_REDUCE,
    "saxpy(int, float, float *, float *)",
    "loop_kernel(float *)",
    "input_layer_forward(float *, int)",
    "fusion_gather(float *)",
    "void cub::DeviceReduceKernel<int>(int)",
    "optimize_mesh(int)",
)


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        *((name, "pytorch") for name in PYTORCH_KERNELS),
        *((name, "jax") for name in JAX_KERNELS),
        *((name, "cuda") for name in PLAIN_KERNELS),
    ],
)
def test_the_framework_shows_in_the_names_of_kernels(name: str, framework: str, tmp_path: Path) -> None:
    c = context(TraceBuilder().kernel(1_000, 1_100, GEMM).kernel(1_100, 1_200, name), tmp_path)
    assert c.framework == framework
    assert c.wording(pytorch="p", jax="j", cuda="c") == {"pytorch": "p", "jax": "j", "cuda": "c"}[framework]


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("aten::addmm, seq = 12", "pytorch"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "pytorch"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pytorch"),
        ("Optimizer.step#AdamW.step", "pytorch"),
        ("XlaModule:#hlo_module=jit_step,program_id=7#", "jax"),
        ("Thunk:#name=fusion.3#", "jax"),
        ("jit_train_step", "jax"),
        ("step 1", "cuda"),
        ("forward", "cuda"),
        ("my aten::addmm", "cuda"),
    ],
)
def test_the_framework_shows_in_the_names_of_ranges(name: str, framework: str, tmp_path: Path) -> None:
    assert (
        context(TraceBuilder().kernel(1_000, 1_100, GEMM).range(name, 900, 1_200), tmp_path).framework
        == framework
    )


def test_a_name_that_nothing_ran_under_shows_nothing(tmp_path: Path) -> None:
    # texts of calls are in the same table of strings
    trace = TraceBuilder().kernel(1_000, 1_100, GEMM).os_call("torch_poll", 900, 950)
    assert context(trace, tmp_path).framework == "cuda"


def test_pytorch_that_runs_compiled_kernels_is_pytorch(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100, ADD).kernel(1_100, 1_200, "loop_add_fusion")
    assert context(trace, tmp_path).framework == "pytorch"


# --- what was recorded ------------------------------------------------------------------------------------------

BARE = ("api", "kernels", "memcpys", "gpu_limits")


def has(c: Context) -> set[str]:
    return {need for need in NEEDS if c.has(need)}


def test_a_bare_trace_has_little(tmp_path: Path) -> None:
    assert has(context(TraceBuilder().kernel(1_000, 1_100), tmp_path)) == set(BARE)
    assert has(context(TraceBuilder().kernel(1_000, 1_100, launch=None), tmp_path)) == set(BARE) - {"api"}
    assert has(context(TraceBuilder(gpus=()).kernel(1_000, 1_100), tmp_path)) == set(BARE) - {"gpu_limits"}
    only_copies = context(TraceBuilder().copy(1_000, 1_100), tmp_path)
    assert has(only_copies) == set(BARE) - {"kernels"}


def planted(need: str) -> TraceBuilder:
    trace = TraceBuilder().kernels(1_000, 4, every=100, length=50)
    match need:
        case "nvtx":
            return trace.range("a", 900, 1_200)
        case "osrt":
            return trace.os_call("poll", 900, 950)
        case "scheduling":
            return trace.scheduled(900, 950)
        case "samples":
            return trace.sample(950, ["f"])
        case "gpu_metrics":
            return trace.gpu_metrics(1_050, sm_active=50)
        case "communication":
            return trace.kernel(1_400, 1_450, ALL_REDUCE)
    raise ValueError(need)


@pytest.mark.parametrize("need", ["nvtx", "osrt", "scheduling", "samples", "gpu_metrics", "communication"])
def test_what_was_planted_is_there(need: str, tmp_path: Path) -> None:
    assert has(context(planted(need), tmp_path)) == {*BARE, need}


def test_a_table_without_rows_was_not_recorded(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100).empty("OSRT_API", "NVTX_EVENTS", "SCHED_EVENTS")
    assert has(context(trace, tmp_path)) == set(BARE)


def stepped(count: int) -> TraceBuilder:
    trace = TraceBuilder()
    for number in range(count):
        trace.range(f"step {number}", 980 + 200 * number, 1_170 + 200 * number)
        trace.kernel(1_000 + 200 * number, 1_100 + 200 * number)
    return trace


def test_steps_are_those_of_the_window(tmp_path: Path) -> None:
    assert context(stepped(6), tmp_path).has("steps")
    assert not context(stepped(2), tmp_path).has("steps")
    # from 1.6 ms on two begin
    assert not context(stepped(6), tmp_path, "0.0016:0.0025").has("steps")


def test_several_gpus_and_ranks(tmp_path: Path) -> None:
    m = measured(two_gpus((1_400, 1_500), (1_400, 1_500)), tmp_path)
    assert Context(m, {}).has("several_gpus")
    row = RankRow(
        rank=0, gpu=None, communication_ns=0, transfer_ns=None, wait_ns=None, busy_ns=0, step_p50_ns=None
    )
    two = Ranks(
        count=2, missing=[], matched_collectives=0, straggler=None, straggler_votes_share=None, per_rank=[row]
    )  # fmt: skip
    assert Context(m, {}, two).has("several_ranks")
    assert not Context(m, {}, replace(two, count=1)).has("several_ranks")
    assert not Context(m, {}).has("several_ranks")


@pytest.mark.parametrize("filtered", [True, False])
def test_copies_may_have_been_left_out_of_an_export_of_chosen_tables(filtered: bool, tmp_path: Path) -> None:
    def found(builder: TraceBuilder) -> Measurement:
        path = builder.write(tmp_path / "trace.sqlite")
        trace = load_trace(path, file=path.name, kind="sqlite", capture_version=None, filtered=filtered)
        m = measure(trace, parse_window("all"))
        assert m is not None
        return m

    # without copies the table is not there, and CUDA was traced
    assert Context(found(TraceBuilder().kernel(1_000, 1_100)), {}).has("memcpys") is not filtered
    assert Context(found(TraceBuilder().kernel(1_000, 1_100).copy(1_200, 1_300)), {}).has("memcpys")


def test_the_line_that_records() -> None:
    assert record_line() == "nsys profile --trace=cuda,nvtx,osrt --output=job <your command>"
    assert record_line("--sample=process-tree", "", "--sample=process-tree", "-x") == (
        "nsys profile --trace=cuda,nvtx,osrt --output=job --sample=process-tree -x <your command>"
    )


def test_gpus_without_a_ledger_have_nothing_under_any_cause(tmp_path: Path) -> None:
    m = measured(TraceBuilder().kernel(1_000, 1_100), tmp_path)
    bare: tuple[Gpu, ...] = (replace(m.gpus[0], ledger=[]),)
    assert Context(m, {}, None, bare).share("compute") == 0.0
    assert Context(m, {}, None, ()).share("compute") == 0.0
    assert Context(m, {}, None, ()).stake(5, "b").share == 0.0
