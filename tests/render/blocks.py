"""The blocks of results made by hand for the tests of the renderers."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.result.model import (
    BUSY_CAUSES,
    CAUSES,
    Bucket,
    Capture,
    CauseTime,
    Check,
    ClassTime,
    Clock,
    CollectiveOp,
    Collectives,
    Copies,
    CopyKind,
    Counts,
    DroppedByReason,
    DroppedRows,
    Evidence,
    Finding,
    Gap,
    Gaps,
    Gpu,
    GpuMetrics,
    Interval,
    KernelRow,
    Kernels,
    Launches,
    LaunchMatch,
    Mark,
    PeriodicStall,
    RankRow,
    Ranks,
    Readbacks,
    Row,
    SizeBucket,
    Stake,
    Step,
    Steps,
    Sync,
    SyncApi,
    Timeline,
    WholeCapture,
    Window,
)  # fmt: skip

US, MS, S = 1_000, 1_000_000, 1_000_000_000
SPAN: Final = 10_100 * MS
EDGES: Final = [0, *(m * 10**e for e in range(3, 12) for m in (1, 3) if m * 10**e <= 100 * S)]
LONG_NAME: Final = (
    f"void at::native::elementwise_kernel<4, {'at::native::CUDAFunctor_add<float>, ' * 80}int>(int)"
)


def histogram(parts: dict[int, tuple[int, int]]) -> list[Bucket]:
    """All buckets; `parts` has (count, total) by lower edge in ns."""
    ends: list[int | None] = [*EDGES[1:], None]
    filled = [(low, high, *parts.get(low, (0, 0))) for low, high in zip(EDGES, ends, strict=True)]
    return [
        Bucket(from_ns=low, to_ns=high, count=count, total_ns=total) for low, high, count, total in filled
    ]


def causes(**ns: int) -> list[CauseTime]:
    """Cause times in the fixed order."""
    return [CauseTime(cause=cause, ns=ns[cause]) for cause in CAUSES if ns.get(cause)]


WAITING: Final = causes(
    compute=380 * MS, copy=24 * MS, launch=61 * MS, host_sync=30 * MS, input_pipeline=9_524 * MS,
    host_compute=51 * MS,
    queued=20 * MS, unknown=10 * MS,
)  # fmt: skip


def capture(**changes: Any) -> Capture:
    """A capture of 10.1 s whose window is all of it."""
    plain = Capture(
        file="job.nsys-rep", kind="nsys-rep", exporter_version="2024.6.2", capture_version="2024.6.2",
        schema_version="3.17.0", started_utc="2025-03-01T10:00:00Z", duration_ns=SPAN,
        window=Window(start_ns=0, end_ns=SPAN, mode="all", excluded=[]),
        counts=Counts(
            kernels=9_345, memcpys=160, memsets=12, graphs=None, nvtx_ranges=1_200, nvtx_points=0,
            nvtx_open_ranges=2,
            api_calls=31_000, syncs=420,
        ),
        dropped_rows=DroppedRows(
            total=3, by_reason=DroppedByReason(not_finished=1, zero_times=2, inverted=0, too_long=0)
        ),
        launch_match=LaunchMatch(matched=9_500, unmatched=17), warnings=[],
    )  # fmt: skip
    return replace(plain, **changes)


def gaps(idle_ns: int) -> Gaps:
    """Many short gaps and some long ones, ten of them listed."""
    parts = {
        1 * US: (700, 1_400 * US), 3 * US: (340, 2 * MS), 100 * US: (80, 14 * MS), 100 * MS: (78, 9_500 * MS),
        1 * S: (6, 100 * MS),
    }  # fmt: skip
    longest = [
        Gap(
            start_ns=(500 + 900 * n) * MS, end_ns=(900 + 880 * n) * MS,
            causes=causes(input_pipeline=(390 - 20 * n) * MS, launch=10 * MS), step=n, place_share=0.62,
            ended_by="host_to_device copy", api=None, os_call="poll", nvtx="DataLoader.__next__", cpu=None,
        )
        for n in range(10)
    ]  # fmt: skip
    return Gaps(count=1_204, total_ns=idle_ns, max_ns=1_600 * MS, histogram=histogram(parts), longest=longest)


def gpu(number: int = 0, ledger: Sequence[CauseTime] = WAITING, **changes: Any) -> Gpu:
    """A GPU with this ledger; it waits for input most of the time, unless another one is given."""
    span = sum(part.ns for part in ledger)
    busy = sum(part.ns for part in ledger if part.cause in BUSY_CAUSES)
    plain = Gpu(
        id=f"gpu{number}", name="NVIDIA A100-SXM4-80GB", uuid=None, identity="known",
        processes=[4200 + number],
        device_ids=[number], rank=None, span_ns=span, busy_ns=busy, idle_ns=span - busy, kernel_ns=busy,
        copy_ns=24 * MS, memset_ns=0, graph_ns=0, compute_ns=busy, communication_ns=0,
        exposed_communication_ns=0,
        kernel_sum_ns=busy, whole=WholeCapture(span_ns=span, busy_ns=busy, ledger=list(ledger)),
        gaps=gaps(span - busy), metrics=None, ledger=list(ledger),
    )  # fmt: skip
    return replace(plain, **changes)


def gpu_metrics() -> GpuMetrics:
    clock = Clock(min=1_200.0, p50=1_410.0, max=1_410.0)
    return GpuMetrics(sm_active_share=0.61, dram_share=0.42, clock_mhz=clock, samples=102_900)


def kernel_row(name: str, kernel_class: str, total_ns: int, count: int = 400) -> KernelRow:
    return KernelRow(
        name=name, kernel_class=kernel_class, count=count, total_ns=total_ns, p50_ns=total_ns // count,
        max_ns=3 * total_ns // count, occupancy_share=0.5, waves=1.7, grid=[108, 4, 1], block=[256, 1, 1],
        registers=128, shared_bytes=49_152, limited_by="registers", shapes=3,
    )  # fmt: skip


def kernels(**changes: Any) -> Kernels:
    parts = {
        1 * US: (4_000, 8 * MS), 10 * US: (4_400, 92 * MS), 100 * US: (900, 180 * MS), 1 * MS: (45, 100 * MS)
    }  # fmt: skip
    top = [
        kernel_row("ampere_sgemm_128x64_tn", "matmul", 150 * MS),
        kernel_row(
            "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int)",
            "elementwise",
            80 * MS,
        ),
        kernel_row(LONG_NAME, "elementwise", 40 * MS),
    ]
    classes = [("matmul", 400, 150 * MS), ("elementwise", 800, 120 * MS), ("other", 8_145, 110 * MS)]
    plain = Kernels(
        count=9_345, sum_ns=380 * MS, p50_ns=12 * US, p90_ns=80 * US, p95_ns=120 * US, p99_ns=700 * US,
        max_ns=2_100 * US, histogram=histogram(parts), small_share=0.43, small_time_share=0.02,
        classes=[ClassTime(kernel_class=name, count=count, total_ns=ns) for name, count, ns in classes],
        top=top, distinct=64,
    )  # fmt: skip
    return replace(plain, **changes)


def launches() -> Launches:
    return Launches(
        host_calls=9_345, api_ns=93 * MS, latency_p50_ns=11 * US, latency_p95_ns=60 * US, blocked_calls=12,
        clock_faults=0, per_s=925.2, blocked_ns=3 * MS, queue_depth_p50=2, threads=2,
    )  # fmt: skip


def copies() -> Copies:
    return Copies(
        kinds=[
            CopyKind(
                kind="host_to_device", count=80, bytes=248_000_000, total_ns=22 * MS,
                pageable_bytes=248_000_000,
                bytes_per_s=11.2e9, small_count=2, p50_bytes=3_100_000, max_bytes=3_100_000,
            ),
            CopyKind(
                kind="device_to_host", count=80, bytes=320, total_ns=2 * MS, pageable_bytes=320,
                bytes_per_s=None,
                small_count=80, p50_bytes=4, max_bytes=4,
            ),
        ],
        small_count=82,
        sizes=[
            SizeBucket(from_bytes=0, to_bytes=1_000, count=80, total_bytes=320),
            SizeBucket(from_bytes=1_000, to_bytes=1_000_000, count=0, total_bytes=0),
            SizeBucket(from_bytes=1_000_000, to_bytes=None, count=80, total_bytes=248_000_000),
        ],
        link_bytes_per_s=31.5e9, link_name="PCIe 4.0 x16",
    )  # fmt: skip


def sync() -> Sync:
    by_api = [
        SyncApi(
            api="cudaStreamSynchronize", calls=400, total_ns=3_000 * MS, idle_ns=50 * MS, cost_ns=30 * MS
        ),
        SyncApi(
            api="cudaMemcpyAsync",
            calls=20,
            total_ns=200 * MS,
            idle_ns=10 * MS,
            cost_ns=0,
            blocking_copies=True,
        ),
    ]
    readbacks = Readbacks(count=80, cost_ns=28 * MS, per_step=1.4)
    return Sync(
        calls=420, total_ns=3_200 * MS, union_ns=3_100 * MS, idle_ns=60 * MS, cost_ns=30 * MS, by_api=by_api,
        readbacks=readbacks,
    )  # fmt: skip


def collectives(count: int = 960) -> Collectives:
    if not count:
        return Collectives(
            count=0, total_ns=0, exposed_ns=0, other_count=0, wait_ns=None, transfer_ns=None, wait_share=None,
            by_op=[]
        )  # fmt: skip
    by_op = [
        CollectiveOp(
            op="all_reduce", count=count - 60, total_ns=5_000 * MS, exposed_ns=3_300 * MS,
            bytes=50_000_000_000,
            wait_ns=2_000 * MS, transfer_ns=3_000 * MS,
        ),
        CollectiveOp(op="all_gather", count=60, total_ns=200 * MS, exposed_ns=100 * MS),
    ]  # fmt: skip
    return Collectives(
        count=count, total_ns=5_200 * MS, exposed_ns=3_400 * MS, other_count=4, wait_ns=2_100 * MS,
        transfer_ns=3_100 * MS, wait_share=0.404, by_op=by_op,
    )  # fmt: skip


def finding(rule: str = "input-pipeline", number: int = 0, **changes: Any) -> Finding:
    plain = Finding(
        rule=rule, title="The GPU waits for input 94 % of the time", severity="high", confidence="high",
        stake=Stake(low_ns=7_000 * MS, high_ns=9_524 * MS, share=0.82,
        basis="all gaps under input pipeline removed"),
        gpu=None, where=Interval(start_ns=(500 + number * 300) * MS, end_ns=(900 + number * 300) * MS),
        evidence=[
            Evidence(label="gaps longer than 1 ms", value=78, unit="count"),
            Evidence(label="idle before input copies", value=9_524 * MS, unit="ns"),
            Evidence(label="size of an input copy", value=3_100_000, unit="bytes"),
            Evidence(label="input copies run at", value=11.2e9, unit="bytes_per_s"),
            Evidence(label="share of the gaps in poll and read", value=0.97, unit="share"),
            Evidence(label="range", value="DataLoader.__next__", unit="text"),
        ],
        causes=["input_pipeline"],
        actions=[
            "Raise `num_workers` of the DataLoader until the gaps close, watching CPU cores.",
            "`persistent_workers=True` if gaps cluster at epoch starts.",
            "Look at the longest kernel: ncu --kernel-name regex:sgemm --launch-count 3 python train.py",
        ],
        caveat="The same waits occur where the process waits for requests or for another rank.",
    )  # fmt: skip
    return replace(plain, **changes)


CHECKS: Final = [
    Check(rule="input-pipeline", status="finding", note="94 % of GPU time"),
    Check(
        rule="launch-overhead",
        status="passed",
        note="launch 0.6 % of GPU time, under the 5 % that would matter",
    ),
    Check(rule="host-sync", status="passed", note="host sync cost 0.3 % of GPU time"),
    Check(rule="pageable-copies", status="passed", note="pageable copies are exposed for 0.2 % of GPU time"),
    Check(
        rule="memory-bandwidth-bound",
        status="not_run",
        note="GPU metrics were not recorded: nsys profile --gpu-metrics-devices=all",
    ),
    Check(
        rule="cpu-saturated",
        status="not_run",
        note="no scheduling rows: nsys profile --cpuctxsw=process-tree",
    ),
    Check(rule="wave-tail", status="error", note="ended with a bug: ZeroDivisionError"),
]


def marks(
    starts: Sequence[int], length_ns: int, what: Sequence[str], text: Sequence[str] = (), share: float = 1.0
) -> list[Mark]:
    """Marks of one length; kinds and texts repeat, two of three have this share."""
    return [
        Mark(
            start_ns=at, end_ns=at + length_ns, what=what[n % len(what)], share=share if n % 3 else 1.0,
            text=text[n % len(text)] if text else UNSET,
        )
        for n, at in enumerate(starts)
    ]  # fmt: skip


def timeline(start_ns: int, end_ns: int, gpus: int = 1, number: int = 120) -> Timeline:
    """Rows for each GPU: work, idle by cause; a thread and steps; about `number` marks in all."""
    each = max(2, number // (3 * gpus + 1))
    pitch = (end_ns - start_ns) // each
    starts = [start_ns + place * pitch for place in range(each)]
    busy = ("compute", "communication", "copy") if gpus > 1 else ("compute", "copy")
    idle, host = ("input_pipeline", "launch", "input_pipeline", "host_sync"), ("os", "sync", "api")
    calls = ("poll", "cudaStreamSynchronize", "cudaMalloc")
    rows: list[Row] = []
    for n in range(gpus):
        late, later = [at + pitch // 3 for at in starts], [at + pitch // 2 for at in starts]
        rows.append(Row(label=f"GPU {n}", kind="gpu", marks=marks(starts, pitch // 3, busy, share=0.4)))
        rows.append(Row(label=f"GPU {n} idle", kind="idle", marks=marks(late, pitch - pitch // 3, idle)))
        label = f"process 420{n} launching thread"
        rows.append(Row(label=label, kind="host", marks=marks(later, pitch // 3, host, calls)))
    names = [f"step {n}" for n in range(each)]
    rows.append(Row(label="steps", kind="steps", marks=marks(starts, pitch, ("steady",), names)))
    return Timeline(bin_ns=pitch, rows=rows)


def steps(number: int = 40, period_ns: int = 170 * MS, start_ns: int = 0, pid: int = 4200) -> Steps:
    """Two slow first steps, then steady ones, every 17th twice as long."""
    items, at = [], start_ns
    for index in range(number):
        state, factor = ("startup", 4) if index < 2 else ("slow", 2) if index % 17 == 11 else ("steady", 1)
        duration = period_ns * factor + (index % 5) * period_ns // 40
        busy, launch = period_ns // 20, period_ns // 50
        idle = causes(input_pipeline=duration - busy - launch, launch=launch)
        step = Step(
            index=index, pid=pid, start_ns=at, duration_ns=duration, busy_ns=busy,
            exposed_communication_ns=busy // 4,
            idle=idle, sync_calls=2, state=state,  # type: ignore[arg-type]
        )  # fmt: skip
        items.append(step)
        at += duration
    ordered = sorted(item.duration_ns for item in items if item.state != "startup")
    return Steps(
        source="nvtx", name="train_step #", count=number - 2, warmup_count=2,
        p50_ns=ordered[len(ordered) // 2],
        p95_ns=ordered[int(len(ordered) * 0.95)], max_ns=ordered[-1], items=items,
        slow=[item.index for item in items if item.state == "slow"],
        periodic=PeriodicStall(every=17, steps=2, extra_ns=period_ns), note="NVTX ranges named train_step #",
    )  # fmt: skip


def rank_row(rank: int, wait_ns: int | None, **changes: Any) -> RankRow:
    plain = RankRow(
        rank=rank, gpu=f"gpu{rank}", communication_ns=600 * MS + (wait_ns or 0), transfer_ns=600 * MS,
        wait_ns=wait_ns,
        busy_ns=7_000 * MS + (rank % 7) * 100 * MS, step_p50_ns=170 * MS, span_ns=10_000 * MS,
        exposed_ns=1_300 * MS,
        node=rank // 8, local_rank=rank % 8,
    )  # fmt: skip
    return replace(plain, **changes)


def ranks(number: int) -> Ranks:
    """Rank 1 is the straggler; one rank of the job is missing."""
    rows = [rank_row(n, 20 * MS if n == 1 else (1_400 + n) * MS) for n in range(number)]
    return Ranks(
        count=number, missing=[number], matched_collectives=4_800, straggler=1, straggler_votes_share=0.91,
        per_rank=rows, source="environment", world_size=number + 1,
        straggler_reason="its kernels take 1.4 times as long",
        notes=["unequal counts on rank 0: 4 801 collectives, 4 800 elsewhere; only the common part is used"],
    )  # fmt: skip
