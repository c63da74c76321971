"""Results made by hand for the tests of the renderers: plain, rich, without a verdict, hostile and huge ones."""

from collections.abc import Sequence

from nsys_triage.result.model import (
    CAUSES,
    SCHEMA,
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
    Excluded,
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
    RangeRow,
    RankRow,
    Ranks,
    Readbacks,
    Result,
    Row,
    SizeBucket,
    Stake,
    Step,
    Steps,
    Sync,
    SyncApi,
    Timeline,
    Verdict,
    Warning,
    WholeCapture,
    Window,
)

US, MS, S = 1_000, 1_000_000, 1_000_000_000
EDGES = [0, *(m * 10**e for e in range(3, 12) for m in (1, 3)), None]
EDGES = [e for e in EDGES if e is None or e <= 100 * S]
HOSTILE = "</script><img src=x onerror=alert(1)>"
LONG_NAME = "void at::native::vectorized_elementwise_kernel<4, " + "at::native::CUDAFunctor_add<float>, " * 80 + ">(int)"


def histogram(parts: dict[int, tuple[int, int]]) -> list[Bucket]:
    """All buckets; `parts` has (count, total) by lower edge in ns."""
    edges = [e for e in EDGES if e is not None]
    ends: list[int | None] = [*edges[1:], None]
    return [
        Bucket(from_ns=low, to_ns=high, count=parts.get(low, (0, 0))[0], total_ns=parts.get(low, (0, 0))[1])
        for low, high in zip(edges, ends, strict=True)
    ]


def causes(**ns: int) -> list[CauseTime]:
    """Cause times in the fixed order."""
    return [CauseTime(cause=cause, ns=ns[cause]) for cause in CAUSES if ns.get(cause)]


def capture(**changes: object) -> Capture:
    """A capture of 10.1 s whose window is all of it."""
    given: dict[str, object] = {
        "file": "job.nsys-rep",
        "kind": "nsys-rep",
        "exporter_version": "2024.6.2",
        "capture_version": "2024.6.2",
        "schema_version": "3.17.0",
        "started_utc": "2025-03-01T10:00:00Z",
        "duration_ns": 10_100 * MS,
        "window": Window(start_ns=0, end_ns=10_100 * MS, mode="all", excluded=[]),
        "counts": Counts(
            kernels=9_345,
            memcpys=160,
            memsets=12,
            graphs=None,
            nvtx_ranges=1_200,
            nvtx_points=0,
            nvtx_open_ranges=2,
            api_calls=31_000,
            syncs=420,
        ),
        "dropped_rows": DroppedRows(
            total=3, by_reason=DroppedByReason(not_finished=1, zero_times=2, inverted=0, too_long=0)
        ),
        "launch_match": LaunchMatch(matched=9_500, unmatched=17),
        "warnings": [],
    }
    return Capture(**{**given, **changes})


def gpu(number: int = 0, span_ns: int = 10_100 * MS, ledger: Sequence[CauseTime] | None = None, **changes: object) -> Gpu:
    """A GPU that waits for input most of the time, unless another ledger is given."""
    ledger = list(ledger or causes(
        compute=380 * MS, copy=24 * MS, launch=61 * MS, host_sync=30 * MS, input_pipeline=9_524 * MS,
        host_compute=51 * MS, queued=20 * MS, unknown=10 * MS,
    ))  # fmt: skip
    busy = sum(part.ns for part in ledger if CAUSES.index(part.cause) < 5)
    given: dict[str, object] = {
        "id": f"gpu{number}",
        "name": "NVIDIA A100-SXM4-80GB",
        "uuid": None,
        "identity": "known",
        "processes": [4200 + number],
        "device_ids": [number],
        "rank": None,
        "span_ns": span_ns,
        "busy_ns": busy,
        "idle_ns": span_ns - busy,
        "kernel_ns": busy,
        "copy_ns": 24 * MS,
        "memset_ns": 0,
        "graph_ns": 0,
        "compute_ns": busy,
        "communication_ns": 0,
        "exposed_communication_ns": 0,
        "kernel_sum_ns": busy,
        "whole": WholeCapture(span_ns=span_ns, busy_ns=busy, ledger=list(ledger)),
        "gaps": Gaps(
            count=1_204,
            total_ns=span_ns - busy,
            max_ns=1_600 * MS,
            histogram=histogram(
                {1 * US: (700, 1_400 * US), 3 * US: (340, 2 * MS), 100 * US: (80, 14 * MS), 100 * MS: (78, 9_500 * MS),
                 1 * S: (6, 100 * MS)}
            ),
            longest=[
                Gap(
                    start_ns=(500 + 900 * place) * MS,
                    end_ns=(500 + 900 * place) * MS + (400 - 20 * place) * MS,
                    causes=causes(input_pipeline=(390 - 20 * place) * MS, launch=10 * MS),
                    step=place,
                    place_share=0.62,
                    ended_by="host_to_device copy, 3.1 MB",
                    api=None,
                    os_call="poll",
                    nvtx="DataLoader.__next__",
                    cpu=None,
                )
                for place in range(10)
            ],
        ),
        "metrics": None,
        "ledger": list(ledger),
    }  # fmt: skip
    return Gpu(**{**given, **changes})


def kernel_row(name: str, kernel_class: str, total_ns: int, count: int = 400) -> KernelRow:
    return KernelRow(
        name=name, kernel_class=kernel_class, count=count, total_ns=total_ns, p50_ns=total_ns // count,
        max_ns=3 * total_ns // count, occupancy_share=0.5, waves=1.7, grid=[108, 4, 1], block=[256, 1, 1], registers=128,
        shared_bytes=49_152, limited_by="registers", shapes=3,
    )  # fmt: skip


def kernels() -> Kernels:
    rows = [
        kernel_row("ampere_sgemm_128x64_tn", "matmul", 150 * MS),
        kernel_row("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)", "elementwise", 80 * MS),
        kernel_row(LONG_NAME, "elementwise", 40 * MS),
        kernel_row("void cudnn::batchnorm_fwtr_nhwc_semiPersist<float>(int)", "reduction", 30 * MS),
    ]  # fmt: skip
    return Kernels(
        count=9_345, sum_ns=380 * MS, p50_ns=12 * US, p90_ns=80 * US, p95_ns=120 * US, p99_ns=700 * US, max_ns=2_100 * US,
        histogram=histogram({1 * US: (4_000, 8 * MS), 10 * US: (4_400, 92 * MS), 100 * US: (900, 180 * MS), 1 * MS: (45, 100 * MS)}),
        small_share=0.43, small_time_share=0.02,
        classes=[
            ClassTime(kernel_class="matmul", count=400, total_ns=150 * MS),
            ClassTime(kernel_class="elementwise", count=800, total_ns=120 * MS),
            ClassTime(kernel_class="reduction", count=400, total_ns=30 * MS),
            ClassTime(kernel_class="other", count=7_745, total_ns=80 * MS),
        ],
        top=rows, distinct=64,
    )  # fmt: skip


def copies() -> Copies:
    return Copies(
        kinds=[
            CopyKind(kind="host_to_device", count=80, bytes=248_000_000, total_ns=22 * MS, pageable_bytes=248_000_000,
                     bytes_per_s=11.2e9, small_count=2, p50_bytes=3_100_000, max_bytes=3_100_000),
            CopyKind(kind="device_to_host", count=80, bytes=320, total_ns=2 * MS, pageable_bytes=320, bytes_per_s=None,
                     small_count=80, p50_bytes=4, max_bytes=4),
        ],
        small_count=82,
        sizes=[
            SizeBucket(from_bytes=0, to_bytes=1_024, count=80, total_bytes=320),
            SizeBucket(from_bytes=1_024, to_bytes=1_048_576, count=0, total_bytes=0),
            SizeBucket(from_bytes=1_048_576, to_bytes=None, count=80, total_bytes=248_000_000),
        ],
        link_bytes_per_s=31.5e9,
        link_name="PCIe 4.0 x16",
    )  # fmt: skip


def sync() -> Sync:
    return Sync(
        calls=420, total_ns=3_200 * MS, union_ns=3_100 * MS, idle_ns=60 * MS, cost_ns=30 * MS,
        by_api=[
            SyncApi(api="cudaStreamSynchronize", calls=400, total_ns=3_000 * MS, idle_ns=50 * MS, cost_ns=30 * MS),
            SyncApi(api="cudaMemcpyAsync", calls=20, total_ns=200 * MS, idle_ns=10 * MS, cost_ns=0, blocking_copies=True),
        ],
        readbacks=Readbacks(count=80, cost_ns=28 * MS, per_step=1.4),
    )  # fmt: skip


def finding(rule: str = "input-pipeline", number: int = 0, **changes: object) -> Finding:
    given: dict[str, object] = {
        "rule": rule,
        "title": "The GPU waits for input 94 % of the time",
        "severity": "high",
        "confidence": "high",
        "stake": Stake(low_ns=7_000 * MS, high_ns=9_524 * MS, share=0.82, basis="all gaps under input pipeline removed, "
                       "the copies themselves kept"),
        "gpu": None,
        "where": Interval(start_ns=(500 + number * 300) * MS, end_ns=(900 + number * 300) * MS),
        "evidence": [
            Evidence(label="gaps longer than 1 ms", value=78, unit="count"),
            Evidence(label="idle before input copies", value=9_524 * MS, unit="ns"),
            Evidence(label="size of an input copy", value=3_100_000, unit="bytes"),
            Evidence(label="input copies run at", value=11.2e9, unit="bytes_per_s"),
            Evidence(label="share of the gaps in poll and read", value=0.97, unit="share"),
            Evidence(label="range", value="DataLoader.__next__", unit="text"),
        ],
        "causes": ["input_pipeline"],
        "actions": [
            "Raise num_workers of the DataLoader until the gaps close, watching CPU cores.",
            "persistent_workers=True if gaps cluster at epoch starts.",
            "Move decoding to the GPU (DALI, nvImageCodec) or cache decoded data if the CPU is full.",
        ],
        "caveat": "The same waits occur where the process waits for requests or for another rank.",
    }  # fmt: skip
    return Finding(**{**given, **changes})


CHECKS = [
    Check(rule="input-pipeline", status="finding", note="94 % of GPU time"),
    Check(rule="launch-overhead", status="passed", note="launch 0.6 % of GPU time, under the 5 % that would matter"),
    Check(rule="host-sync", status="passed", note="host sync cost 0.3 % of GPU time"),
    Check(rule="pageable-copies", status="passed", note="pageable copies are exposed for 0.2 % of GPU time"),
    Check(rule="memory-bandwidth-bound", status="not_run",
          note="GPU metrics were not recorded: nsys profile --gpu-metrics-devices=all"),
    Check(rule="cpu-saturated", status="not_run", note="no scheduling rows: nsys profile --cpuctxsw=process-tree"),
    Check(rule="wave-tail", status="error", note="ended with a bug: ZeroDivisionError"),
]  # fmt: skip


def row(
    label: str, kind: str, start_ns: Sequence[int], end_ns: Sequence[int], what: Sequence[str], share: Sequence[float],
    text: Sequence[str] | None = None,
) -> Row:
    texts = [{} for _ in what] if text is None else [{"text": t} for t in text]
    marks = [
        Mark(start_ns=a, end_ns=b, what=w, share=s, **t) for a, b, w, s, t in zip(start_ns, end_ns, what, share, texts, strict=True)
    ]
    return Row(label=label, kind=kind, marks=marks)


def timeline(start_ns: int, end_ns: int, gpus: int = 1, marks: int = 120) -> Timeline:
    """Rows for each GPU: work, idle by cause; a thread and steps; `marks` marks in all."""
    rows: list[Row] = []
    each = max(2, marks // (3 * gpus + 1))
    pitch = (end_ns - start_ns) // each
    starts = [start_ns + place * pitch for place in range(each)]
    for number in range(gpus):
        busy = [("compute", "communication", "copy")[place % 3 if gpus > 1 else (place % 2) * 2] for place in range(each)]
        idle = [("input_pipeline", "launch", "input_pipeline", "host_sync")[place % 4] for place in range(each)]
        rows.append(row(label=f"GPU {number}", kind="gpu", start_ns=starts, end_ns=[s + pitch // 3 for s in starts],
                        what=busy, share=[0.4 + 0.6 * (place % 3) / 2 for place in range(each)]))
        rows.append(row(label=f"GPU {number} idle", kind="idle", start_ns=[s + pitch // 3 for s in starts],
                        end_ns=[s + pitch for s in starts], what=idle, share=[1.0] * each))
        rows.append(row(label=f"launching thread of GPU {number}", kind="host", start_ns=[s + pitch // 2 for s in starts],
                        end_ns=[s + pitch - pitch // 8 for s in starts], what=[("os", "sync", "api")[p % 3] for p in range(each)],
                        share=[1.0] * each, text=[("poll", "cudaStreamSynchronize", "cudaMalloc")[p % 3] for p in range(each)]))
    rows.append(row(label="steps", kind="steps", start_ns=starts, end_ns=[s + pitch for s in starts],
                    what=["steady"] * each, share=[1.0] * each, text=[f"step {p}" for p in range(each)]))
    return Timeline(bin_ns=pitch, rows=rows)  # fmt: skip


def steps(number: int = 40, period_ns: int = 170 * MS, start_ns: int = 0, pid: int = 4200) -> Steps:
    items, at = [], start_ns
    for index in range(number):
        state = "startup" if index < 2 else "slow" if index % 17 == 11 else "steady"
        duration = period_ns * {"startup": 4, "slow": 2, "steady": 1}[state] + (index % 5) * period_ns // 40
        busy = period_ns // 20
        idle = causes(input_pipeline=duration - busy - period_ns // 50, launch=period_ns // 50)
        items.append(Step(index=index, pid=pid, start_ns=at, duration_ns=duration, busy_ns=busy,
                          exposed_communication_ns=busy // 4, idle=idle, sync_calls=2, state=state))
        at += duration
    ordered = sorted(item.duration_ns for item in items if item.state != "startup")
    return Steps(
        source="nvtx", name="train_step", count=number - 2, warmup_count=2, p50_ns=ordered[len(ordered) // 2],
        p95_ns=ordered[int(len(ordered) * 0.95)], max_ns=ordered[-1], items=items,
        slow=[item.index for item in items if item.state == "slow"],
        periodic=PeriodicStall(every=17, steps=2, extra_ns=period_ns), note="ranges named train_step #",
    )  # fmt: skip


def ranks(number: int) -> Ranks:
    rows = [
        RankRow(
            rank=place, gpu=f"gpu{place}", communication_ns=2_000 * MS + place * MS, transfer_ns=600 * MS,
            wait_ns=(1_400 * MS + place * MS) if place != 1 else 20 * MS, busy_ns=7_000 * MS + (place % 7) * 100 * MS,
            step_p50_ns=170 * MS, span_ns=10_000 * MS, exposed_ns=1_300 * MS, node=place // 8, local_rank=place % 8,
        )
        for place in range(number)
    ]  # fmt: skip
    return Ranks(
        count=number, missing=[3] if number < 8 else [], matched_collectives=4_800, straggler=1, straggler_votes_share=0.91,
        per_rank=rows, source="environment", world_size=number + 1, straggler_reason="its kernels take 1.4 times as long",
        notes=["unequal counts on rank 0: 4 801 collectives, 4 800 elsewhere; only the common part is used"],
    )  # fmt: skip


def minimal() -> Result:
    """What can be said of a trace by the first stage alone: no ledger, no verdict worth the name, no blocks."""
    plain = gpu()
    bare = Gpu(**{name: getattr(plain, name) for name in plain.__struct_fields__ if name != "ledger"})
    bare = Gpu(**{**{name: getattr(bare, name) for name in bare.__struct_fields__}, "name": None, "identity": "assumed",
                  "whole": WholeCapture(span_ns=plain.span_ns, busy_ns=plain.busy_ns)})  # fmt: skip
    return Result(
        schema=SCHEMA, tool_version="0.1.0", status="ok", capture=capture(launch_match=None), gpus=[bare], findings=[],
        checks=[], verdict=Verdict(limiter=None, sentence="", next_action=""),
    )  # fmt: skip


def baseline() -> Result:
    """One GPU that waits for input, as the first figures of the design."""
    return Result(
        schema=SCHEMA, tool_version="0.1.0", status="ok", capture=capture(), gpus=[gpu()],
        findings=[finding(), finding("pageable-copies", 1, title="Input copies come from pageable memory", severity="low",
                                     stake=Stake(low_ns=0, high_ns=20 * MS, share=0.001, basis="exposed part of the copies"),
                                     confidence="medium", causes=["copy"])],
        checks=CHECKS,
        verdict=Verdict(limiter="input_pipeline", sentence="The GPU waits for input 94 % of the time (9.5 of 10.1 s).",
                        next_action="Raise num_workers of the DataLoader until the gaps close."),
        kernels=kernels(), launches=launches(), sync=sync(), copies=copies(),
        collectives=Collectives(count=0, total_ns=0, exposed_ns=0, other_count=0, wait_ns=None, transfer_ns=None,
                                wait_share=None, by_op=[]),
        ranges=[RangeRow(name="train_step", count=58, total_ns=9_800 * MS, gpu_ns=390 * MS, gpu_window_ns=400 * MS,
                         p50_ns=168 * MS)],
        gpu_unattributed_ns=4 * MS, steps=steps(), timeline=timeline(0, 10_100 * MS), ranks=None,
    )  # fmt: skip


def launches() -> Launches:
    return Launches(host_calls=9_345, api_ns=93 * MS, latency_p50_ns=11 * US, latency_p95_ns=60 * US, blocked_calls=12,
                    clock_faults=0, per_s=925.2, blocked_ns=3 * MS, queue_depth_p50=2, threads=2)  # fmt: skip


def rich() -> Result:
    """Two GPUs with communication, a steady state, warnings, ranks, metrics and eight findings and more."""
    start, end = 4_020 * MS, 14_310 * MS
    span = end - start
    ledger = causes(
        compute=5_200 * MS, communication=1_700 * MS, copy=240 * MS, memset=5 * MS, launch=1_100 * MS, host_sync=900 * MS,
        input_pipeline=500 * MS, host_blocked=120 * MS, host_compute=180 * MS, allocation=40 * MS, queued=250 * MS,
        unknown=span - 10_235 * MS,
    )  # fmt: skip
    whole = WholeCapture(span_ns=14_000 * MS, busy_ns=8_000 * MS, ledger=causes(
        compute=5_900 * MS, communication=1_800 * MS, copy=295 * MS, memset=5 * MS, launch=1_400 * MS, host_sync=1_000 * MS,
        input_pipeline=600 * MS, module_load=2_200 * MS, allocation=500 * MS, queued=300 * MS))  # fmt: skip
    metrics = GpuMetrics(sm_active_share=0.61, tensor_active_share=None, dram_share=0.42,
                         clock_mhz=Clock(min=1_200.0, p50=1_410.0, max=1_410.0), samples=102_900)  # fmt: skip
    gpus = [
        gpu(number, span, ledger, whole=whole, metrics=metrics, rank=number, name="NVIDIA H100 80GB HBM3",
            communication_ns=2_600 * MS, exposed_communication_ns=1_700 * MS, compute_ns=5_200 * MS)
        for number in range(2)
    ]  # fmt: skip
    titles = ["Collectives run without any compute beside them for 17 % of GPU time", "The host launches too slowly for 11 % of GPU time",
              "A wait for each loss value costs 9 % of GPU time"]  # fmt: skip
    found = [
        finding(("exposed-communication", "launch-overhead", "host-sync")[n % 3], n, title=titles[n % 3],
                severity=("high", "medium", "low")[min(2, n // 2)], gpu="gpu1" if n == 3 else None,
                where=Interval(start_ns=start + n * S, end_ns=start + n * S + 214 * MS) if n != 5 else None,
                stake=Stake(low_ns=(900 - 100 * n) * MS, high_ns=(1_700 - 150 * n) * MS, share=0.12 - n * 0.01, basis="simulation"),
                causes=[("communication",), ("launch", "host_compute"), ("host_sync",)][n % 3])
        for n in range(8)
    ]  # fmt: skip
    base = baseline()
    return Result(
        schema=SCHEMA, tool_version="0.1.0", status="ok",
        capture=capture(
            file="rank0.nsys-rep", files=["rank0.nsys-rep", "rank1.nsys-rep"], duration_ns=14_500 * MS,
            window=Window(start_ns=start, end_ns=end, mode="auto",
                          excluded=[Excluded(start_ns=300 * MS, end_ns=start, reason="2 slow first steps")]),
            warnings=[Warning(id="private-data", text="The raw report holds 3 environment variables whose names look like secrets.",
                              advice="Do not attach the raw report; this page holds none of them."),
                      Warning(id="events-lost", text="The recording lost 1 200 events.", advice="Record a shorter time.")]),
        gpus=gpus, findings=found, checks=CHECKS,
        verdict=Verdict(limiter="communication", sentence="Exposed communication takes 17 % of GPU time (1.7 of 10.3 s).",
                        next_action="Overlap the gradient all-reduce with the backward pass: larger buckets, "
                        "gradient_as_bucket_view=True."),
        kernels=base.kernels, launches=base.launches, sync=base.sync, copies=base.copies,
        collectives=Collectives(count=960, total_ns=5_200 * MS, exposed_ns=3_400 * MS, other_count=4, wait_ns=2_100 * MS,
                                transfer_ns=3_100 * MS, wait_share=0.404,
                                by_op=[CollectiveOp(op="all_reduce", count=900, total_ns=5_000 * MS, exposed_ns=3_300 * MS,
                                                    bytes=50_000_000_000, wait_ns=2_000 * MS, transfer_ns=3_000 * MS),
                                       CollectiveOp(op="all_gather", count=60, total_ns=200 * MS, exposed_ns=100 * MS)]),
        ranges=base.ranges, gpu_unattributed_ns=4 * MS, steps=steps(40, 250 * MS, start),
        timeline=timeline(start, end, gpus=2, marks=600), ranks=ranks(2),
    )  # fmt: skip


def healthy() -> Result:
    """A GPU that is busy all the time."""
    full = gpu(ledger=causes(compute=10_070 * MS, launch=20 * MS, unknown=10 * MS))
    base = baseline()
    fields = {name: getattr(base, name) for name in base.__struct_fields__}
    checks = [Check(rule=c.rule, status="passed" if c.status == "finding" else c.status, note=c.note) for c in CHECKS]
    return Result(**{**fields, "gpus": [full], "findings": [], "checks": checks, "verdict": Verdict(
        limiter="compute", sentence="Nothing worth chasing here: the GPU is busy 99.7 % of the time (10.1 s).",
        next_action="To go further, look into the longest kernels with Nsight Compute.")})  # fmt: skip


def cannot_judge() -> Result:
    """A capture without device work."""
    return Result(
        schema=SCHEMA, tool_version="0.1.0", status="cannot_judge",
        capture=capture(window=None, counts=Counts(kernels=None, memcpys=None, memsets=None, graphs=None, nvtx_ranges=None,
                        nvtx_points=None, nvtx_open_ranges=None, api_calls=120, syncs=None), launch_match=None, duration_ns=None),
        gpus=[], findings=[], checks=[Check(rule="host-sync", status="not_run", note="no device work was recorded")],
        verdict=Verdict(limiter=None, sentence="No GPU work was recorded: CUDA was not traced.",
                        next_action="nsys profile --trace=cuda,nvtx,osrt -o job python train.py"),
    )  # fmt: skip


def hostile() -> Result:
    """Markup wherever the trace's own text can stand."""
    base = rich()
    fields = {name: getattr(base, name) for name in base.__struct_fields__}
    gaps = gpu().gaps
    bad_gap = Gap(start_ns=0, end_ns=MS, causes=causes(launch=MS), step=None, place_share=None, ended_by=HOSTILE, api=HOSTILE,
                  os_call=HOSTILE, nvtx=HOSTILE, cpu=HOSTILE)  # fmt: skip
    bad = gpu(0, name=HOSTILE, id=HOSTILE, gaps=Gaps(count=1, total_ns=gaps.total_ns, max_ns=MS, histogram=gaps.histogram, longest=[bad_gap]))
    rows = [row(label=HOSTILE, kind="host", start_ns=[5 * S], end_ns=[6 * S], what=[HOSTILE], share=[1.0], text=[HOSTILE])]
    top = [kernel_row(HOSTILE, HOSTILE, MS), kernel_row(HOSTILE * 80, "other", MS), kernel_row("a" * 3_000, "other", MS)]
    return Result(**{
        **fields, "gpus": [bad], "capture": capture(file=f"{HOSTILE}'\"$(x).sqlite", warnings=[Warning(id=HOSTILE, text=HOSTILE, advice=HOSTILE)],
                                                    exporter_version=HOSTILE, capture_version=HOSTILE, started_utc=HOSTILE),
        "findings": [finding(HOSTILE, 0, title=HOSTILE, caveat=HOSTILE, actions=[HOSTILE], gpu=HOSTILE, evidence=[
            Evidence(label=HOSTILE, value=HOSTILE, unit="text"), Evidence(label="x" * 900, value="y" * 900, unit="text")])],
        "checks": [Check(rule=HOSTILE, status="passed", note=HOSTILE), Check(rule=f"2{HOSTILE}", status="not_run", note=HOSTILE)],
        "verdict": Verdict(limiter="unknown", sentence=HOSTILE, next_action=HOSTILE),
        "kernels": Kernels(count=3, sum_ns=3 * MS, p50_ns=None, p90_ns=None, p95_ns=None, p99_ns=None, max_ns=None,
                           histogram=histogram({}), small_share=None, small_time_share=None,
                           classes=[ClassTime(kernel_class=HOSTILE, count=1, total_ns=MS)], top=top, distinct=3),
        "ranges": [RangeRow(name=HOSTILE, count=1, total_ns=MS, gpu_ns=0, gpu_window_ns=0, domain=HOSTILE)],
        "timeline": Timeline(bin_ns=MS, rows=rows),
        "steps": Steps(source="nvtx", name=HOSTILE, count=0, warmup_count=0, p50_ns=None, p95_ns=None, max_ns=None, items=[], note=HOSTILE),
    })  # fmt: skip


def huge() -> Result:
    """As much of everything as a result may hold, and names as long as they come."""
    base = rich()
    fields = {name: getattr(base, name) for name in base.__struct_fields__}
    start, end = 0, 600 * S
    ledger = causes(**{cause: 600 * S // 17 for cause in CAUSES})
    span = sum(part.ns for part in ledger)
    gpus = [gpu(n, span, ledger, rank=n, name="<NVIDIA & H100 80GB HBM3>") for n in range(512)]
    long = "<&>'\"" * 600
    each = 2000 // 8
    pitch = (end - start) // each
    starts = [start + n * pitch for n in range(each)]
    rows = [
        row(label=long, kind=kind, start_ns=starts, end_ns=[s + pitch // 2 for s in starts],
            what=[CAUSES[n % 17] for n in range(each)], share=[0.5] * each, text=[long] * each)
        for kind in ("gpu", "idle", "host", "host", "gpu", "idle", "host", "steps")
    ]  # fmt: skip
    top = [kernel_row(f"{n}{long}", "other", (200 - n) * MS) for n in range(200)]
    many = base.kernels
    kernel_fields = {name: getattr(many, name) for name in many.__struct_fields__}
    return Result(**{
        **fields, "gpus": gpus,
        "capture": capture(duration_ns=600 * S, window=Window(start_ns=start, end_ns=end, mode="auto", excluded=[]),
                           files=[f"{n}{long}" for n in range(512)],
                           warnings=[Warning(id=f"w{n}", text=long, advice=long) for n in range(40)]),
        "findings": [finding(f"rule-{n}", n, title=long, caveat=long, actions=[long] * 20,
                             evidence=[Evidence(label=long, value=long, unit="text")] * 30) for n in range(14)],
        "checks": [Check(rule=f"rule-{n}", status=("passed", "not_run", "error")[n % 3], note=long) for n in range(120)],
        "kernels": Kernels(**{**kernel_fields, "top": top}),
        "ranges": [RangeRow(name=f"{n}{long}", count=1, total_ns=MS, gpu_ns=0, gpu_window_ns=0, domain=long) for n in range(300)],
        "steps": steps(10_000, 60 * MS), "timeline": Timeline(bin_ns=pitch, rows=rows), "ranks": ranks(512),
    })  # fmt: skip
