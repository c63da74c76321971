"""Results made by hand for the tests of the renderers: plain, rich, unjudged, hostile, huge."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.result import model
from nsys_triage.result.model import (
    CAUSES,
    SCHEMA,
    Check,
    Evidence,
    Gap,
    Gaps,
    RangeRow,
    Result,
    Row,
    Stake,
    Verdict,
)
from tests.render import blocks
from tests.render.blocks import MS, SPAN, S, causes, finding, gpu

HOSTILE: Final = "</script><img src=x onerror=alert(1)>"
# every field of `Result` that may be absent
OPTIONAL: Final = (
    "kernels", "launches", "sync", "copies", "collectives", "ranges", "gpu_unattributed_ns", "steps",
    "timeline", "ranks",
)  # fmt: skip


def baseline(**changes: Any) -> Result:
    """One GPU that waits for input, with the first figures of the design."""
    verdict = Verdict(
        limiter="input_pipeline",
        sentence="The GPU waits for input 94 % of the time (9.5 of 10.1 s).",
        next_action="Raise num_workers of the DataLoader until the gaps close.",
    )
    stake = Stake(low_ns=0, high_ns=20 * MS, share=0.001, basis="exposed part of the copies")
    lesser = finding("pageable-copies", 1, severity="low", confidence="medium", causes=["copy"], stake=stake,
                     title="Input copies come from pageable memory")  # fmt: skip
    train = RangeRow(
        name="train_step",
        count=58,
        total_ns=9_800 * MS,
        gpu_ns=390 * MS,
        gpu_window_ns=400 * MS,
        p50_ns=168 * MS,
    )
    plain = Result(
        schema=SCHEMA, tool_version="0.1.0", status="ok", capture=blocks.capture(), gpus=[gpu()],
        findings=[finding(), lesser], checks=blocks.CHECKS, verdict=verdict, kernels=blocks.kernels(),
        launches=blocks.launches(), sync=blocks.sync(), copies=blocks.copies(),
        collectives=blocks.collectives(0),
        ranges=[train], gpu_unattributed_ns=4 * MS, steps=blocks.steps(), timeline=blocks.timeline(0, SPAN),
        ranks=None,
    )  # fmt: skip
    return replace(plain, **changes)


def minimal() -> Result:
    """What the first measurements alone can say: no ledger, no verdict, no blocks, a GPU without a name."""
    plain = gpu()
    whole = model.WholeCapture(span_ns=plain.span_ns, busy_ns=plain.busy_ns)
    bare = replace(plain, name=None, identity="assumed", whole=whole, ledger=UNSET)
    nothing = dict.fromkeys(OPTIONAL, UNSET)
    verdict = Verdict(limiter=None, sentence="", next_action="")
    return baseline(gpus=[bare], findings=[], checks=[], verdict=verdict, **nothing)


def rich() -> Result:
    """Two GPUs with communication, a steady state, warnings, ranks, metrics and eight findings."""
    start, end = 4_020 * MS, 14_310 * MS
    ledger = causes(
        compute=5_200 * MS, communication=1_700 * MS, copy=240 * MS, memset=5 * MS, launch=1_100 * MS,
        host_sync=900 * MS, input_pipeline=500 * MS, host_blocked=120 * MS, host_compute=180 * MS,
        allocation=40 * MS,
        queued=250 * MS, unknown=end - start - 10_235 * MS,
    )  # fmt: skip
    whole = causes(
        compute=5_900 * MS, communication=1_800 * MS, copy=295 * MS, memset=5 * MS, launch=1_400 * MS,
        host_sync=1_000 * MS, input_pipeline=600 * MS, module_load=2_200 * MS, allocation=500 * MS,
        queued=300 * MS,
    )  # fmt: skip
    capture = model.WholeCapture(span_ns=14_000 * MS, busy_ns=8_000 * MS, ledger=whole)
    gpus = [
        gpu(n, ledger, whole=capture, metrics=blocks.gpu_metrics(), rank=n, name="NVIDIA H100 80GB HBM3")
        for n in range(2)
    ]
    excluded = [model.Excluded(start_ns=300 * MS, end_ns=start, reason="2 slow first steps")]
    warnings = [
        model.Warning(id="private-data", text="The raw report holds 3 variables whose names look secret.",
                      advice="Do not attach the raw report; this page holds none of them."),
        model.Warning(id="events-lost", text="The recording lost 1 200 events.",
        advice="Record a shorter time."),
    ]  # fmt: skip
    verdict = Verdict(
        limiter="communication",
        sentence="Exposed communication takes 17 % of GPU time (1.7 of 10.3 s).",
        next_action="Overlap the gradient all-reduce with the backward pass: larger buckets.",
    )
    return baseline(
        capture=blocks.capture(
            file="rank0.nsys-rep", files=["rank0.nsys-rep", "rank1.nsys-rep"], duration_ns=14_500 * MS,
            window=model.Window(start_ns=start, end_ns=end, mode="auto", excluded=excluded),
            warnings=warnings,
        ),
        gpus=gpus, findings=[_finding(n, start) for n in range(8)], verdict=verdict,
        collectives=blocks.collectives(), steps=blocks.steps(40, 250 * MS, start),
        timeline=blocks.timeline(start, end, gpus=2, number=600), ranks=blocks.ranks(2),
    )  # fmt: skip


def _finding(n: int, start_ns: int) -> model.Finding:
    rule, title, parts = (
        ("exposed-communication", "Collectives run without any compute beside them for 17 % of GPU time",
        ["communication"]),
        ("launch-overhead", "The host launches too slowly for 11 % of GPU time", ["launch", "host_compute"]),
        ("host-sync", "A wait for each loss value costs 9 % of GPU time", ["host_sync"]),
    )[n % 3]  # fmt: skip
    where = model.Interval(start_ns=start_ns + n * S, end_ns=start_ns + n * S + 214 * MS)
    stake = Stake(
        low_ns=(900 - 100 * n) * MS, high_ns=(1_700 - 150 * n) * MS, share=0.12 - n * 0.01, basis="simulation"
    )
    severity = ("high", "medium", "low")[min(2, n // 2)]
    return finding(rule, n, title=title, severity=severity, gpu="gpu1" if n == 3 else None, causes=parts,
    stake=stake,
                   where=where if n != 5 else None)  # fmt: skip


def healthy() -> Result:
    """A GPU that is busy all the time."""
    full = gpu(ledger=causes(compute=10_070 * MS, launch=20 * MS, unknown=10 * MS))
    checks = [replace(c, status="passed") if c.status == "finding" else c for c in blocks.CHECKS]
    verdict = Verdict(
        limiter="compute",
        sentence="Nothing worth chasing here: the GPU is busy 99.7 % of the time (10.1 s).",
        next_action="To go further, look into the longest kernels with Nsight Compute.",
    )
    return baseline(gpus=[full], findings=[], checks=checks, verdict=verdict)


def cannot_judge() -> Result:
    """A capture without device work."""
    counts = replace(
        model.Counts(**dict.fromkeys(model.Counts.__struct_fields__)),  # type: ignore[arg-type]
        api_calls=120,
    )
    capture = blocks.capture(window=None, counts=counts, launch_match=None, duration_ns=None)
    verdict = Verdict(
        limiter=None,
        sentence="No GPU work was recorded: CUDA was not traced.",
        next_action="Record again: nsys profile --trace=cuda,nvtx,osrt -o job python train.py",
    )
    checks = [Check(rule="host-sync", status="not_run", note="no device work was recorded")]
    nothing = dict.fromkeys(OPTIONAL, UNSET)
    return baseline(
        status="cannot_judge",
        capture=capture,
        gpus=[],
        findings=[],
        checks=checks,
        verdict=verdict,
        **nothing,
    )


def hostile() -> Result:
    """Markup wherever the trace's own text can stand."""
    bad = HOSTILE
    gap = Gap(start_ns=0, end_ns=MS, causes=causes(launch=MS), step=None, place_share=None, ended_by=bad,
    api=bad,
              os_call=bad, nvtx=bad, cpu=bad)  # fmt: skip
    gaps = Gaps(count=1, total_ns=MS, max_ns=MS, histogram=blocks.histogram({1 * MS: (1, MS)}), longest=[gap])
    evidence = [
        Evidence(label=bad, value=bad, unit="text"),
        Evidence(label="x" * 900, value="y" * 900, unit="text"),
    ]
    top = [blocks.kernel_row(name, "other", MS) for name in (bad, bad * 80, "a" * 3_000)]
    steps = replace(blocks.steps(4), name=bad, note=bad)
    ranks = replace(blocks.ranks(2), notes=[bad], straggler_reason=bad)
    classes = [model.ClassTime(kernel_class=bad, count=1, total_ns=MS)]
    row = Row(label=bad, kind="host", marks=blocks.marks([5 * S], S, (bad,), (bad,)))
    return baseline(
        gpus=[gpu(name=bad, id=bad, gaps=gaps)],
        capture=blocks.capture(
            file=f"{bad}'\"$(x).sqlite", warnings=[model.Warning(id=bad, text=bad, advice=bad)],
            exporter_version=bad,
            capture_version=bad, started_utc=bad,
        ),
        findings=[finding(bad, title=bad, caveat=bad, actions=[bad], gpu=bad, evidence=evidence)],
        checks=[Check(rule=bad, status="passed", note=bad), Check(rule="2", status="not_run", note=bad)],
        verdict=Verdict(limiter="unknown", sentence=bad, next_action=bad),
        kernels=blocks.kernels(p50_ns=None, small_share=None, classes=classes, top=top),
        ranges=[RangeRow(name=bad, count=1, total_ns=MS, gpu_ns=0, gpu_window_ns=0, domain=bad)],
        timeline=model.Timeline(bin_ns=MS, rows=[row]), steps=steps, ranks=ranks,
    )  # fmt: skip


def huge(gpus: int = 512, name: str = "<&>'\"" * 600) -> Result:
    """As much of everything as a result may hold, and names as long as they come."""
    start, end, each = 0, 600 * S, 250
    ledger = causes(**dict.fromkeys(CAUSES, 600 * S // 17))
    pitch = (end - start) // each
    starts = [start + n * pitch for n in range(each)]
    kinds: tuple[Any, ...] = ("gpu", "idle", "host", "host", "gpu", "idle", "host", "steps")
    rows = [
        Row(label=name, kind=kind, marks=blocks.marks(starts, pitch // 2, CAUSES, (name,), 0.5))
        for kind in kinds
    ]
    evidence = [Evidence(label=name, value=name, unit="text")] * 30
    states: tuple[Any, ...] = ("passed", "not_run", "error")
    return baseline(
        gpus=[gpu(n, ledger, rank=n, name=name, metrics=blocks.gpu_metrics()) for n in range(gpus)],
        capture=blocks.capture(
            duration_ns=end, window=model.Window(start_ns=start, end_ns=end, mode="auto", excluded=[]),
            files=[f"{n}{name}" for n in range(gpus)],
            warnings=[model.Warning(id=f"w{n}", text=name, advice=name) for n in range(40)],
        ),
        findings=[
            finding(f"rule-{n}", n, title=name, caveat=name, actions=[name] * 20,
            evidence=evidence) for n in range(14)
        ],
        checks=[Check(rule=f"rule-{n}", status=states[n % 3], note=name) for n in range(120)],
        kernels=blocks.kernels(
            top=[blocks.kernel_row(f"{n}{name}", "other", (200 - n) * MS) for n in range(200)]
        ),
        ranges=[
            RangeRow(name=f"{n}{name}", count=1, total_ns=MS, gpu_ns=0, gpu_window_ns=0,
            domain=name) for n in range(300)
        ],
        steps=blocks.steps(10_000, 60 * MS), timeline=model.Timeline(bin_ns=pitch, rows=rows),
        ranks=blocks.ranks(gpus),
    )  # fmt: skip


ALL: Final[dict[str, Callable[[], Result]]] = {
    "minimal": minimal, "baseline": baseline, "rich": rich, "healthy": healthy, "cannot_judge": cannot_judge,
    "hostile": hostile, "huge": huge,
}  # fmt: skip
