"""The invariants on the sample traces, on random ones and on small ones with every kind of event."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsys_triage.analyze import analyze, judged
from nsys_triage.errors import WindowError
from nsys_triage.ingest import Source
from nsys_triage.metrics.measure import measure
from nsys_triage.metrics.window import WindowRequest, parse_window
from nsys_triage.result.codec import decode, encode
from nsys_triage.result.model import CauseTime, Result
from nsys_triage.rules.run import RuleSettings
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
from tests.metrics.random_traces import dense_trace
from tests.result.invariants import broken
from tests.result.order import disorder, open_ends

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.sqlite"))


def source(path: Path) -> Source:
    return Source(path, path.name, "sqlite", None, filtered=False)


def wrong(result: Result) -> list[str]:
    return [*broken(result), *disorder(result), *open_ends(result)]


@pytest.mark.parametrize("window", ["auto", "all", "0.5:1.5"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples(path: Path, window: str) -> None:
    try:
        result = analyze([source(path)], parse_window(window))
    except WindowError:
        assert window == "0.5:1.5"
        pytest.skip("no work in that window")
    assert wrong(result) == []


@pytest.mark.parametrize("window", ["auto", "all"])
def test_ranks_of_a_job(window: str) -> None:
    ranks = [source(path) for path in SAMPLES if path.stem.startswith("two_ranks")]
    result = analyze(ranks, parse_window(window))
    assert wrong(result) == []
    assert decode(encode(result)) == result


@pytest.mark.parametrize("number", range(25))
def test_random_traces(number: int) -> None:
    random = dense_trace(number)
    start, end = random.window
    for request in (
        WindowRequest("all"),
        WindowRequest("auto"),
        WindowRequest("user", start + (end - start) // 3, end - (end - start) // 4),
    ):
        try:
            m = measure(random.trace, request)
        except WindowError:
            continue
        if m is not None:
            result = judged(m, RuleSettings())
            assert wrong(result) == [], request
            assert decode(encode(result)) == result


def everything() -> TraceBuilder:
    """Two GPUs, three streams, every kind of device work, overlaps, waits, ranges, and gaps of several kinds."""
    trace = TraceBuilder("2025.5.2", gpus=("H100", "A100"))
    for step in range(6):
        at = 1_000 + 1_000 * step
        trace.range(f"step {step}", at - 20, at + 940)
        trace.kernel(at, at + 200, GEMM).kernel(at + 150, at + 260, ALL_REDUCE, stream=20)
        trace.copy(at + 240, at + 320, bytes_=1 << 20, pinned=False, stream=9).memset(at + 310, at + 330)
        trace.copy(at + 330, at + 332, "device_to_host", bytes_=4)
        trace.wait("cudaStreamSynchronize_v3020", at + 300, at + 333)
        trace.graph(at + 400, at + 500).kernel(at + 480, at + 520, ADD).kernel(at + 560, at + 561, ADD)
        trace.api("cudaMalloc_v3020", at + 600, at + 650).kernel(at + 680, at + 700, GEMM)
        trace.kernel(at + 100, at + 900, GEMM, device=1, stream=21, tid=4300)
        trace.copy(at + 850, at + 950, "peer_to_peer", peers=(0, 1), device=1, stream=22, tid=4300)
        trace.os_call("poll", at + 700, at + 800).migration(at + 720, at + 730)
    return trace


@pytest.mark.parametrize("window", ["all", "auto", "0.0021:0.0046", "0.00205:0.0021", "nvtx:step 3"])
def test_every_kind_of_work(window: str, tmp_path: Path) -> None:
    result = analyze([source(everything().write(tmp_path / "all.sqlite"))], parse_window(window))
    assert len(result.gpus) == 2
    assert wrong(result) == []


@pytest.mark.parametrize(
    "trace",
    [
        TraceBuilder().kernel(1_000, 1_000.001),
        TraceBuilder().copy(1_000, 1_001, bytes_=0),
        TraceBuilder().memset(1_000, 1_001),
        TraceBuilder().graph(1_000, 1_500),
        TraceBuilder(gpus=()).kernel(1_000, 1_001).kernel(5_000_000, 5_000_001, launch=None),
        TraceBuilder().kernel(1_000, 1_100, ALL_REDUCE),
        TraceBuilder().migration(1_000, 1_010),
        TraceBuilder().kernel(1_000, 1_100, pid=1).kernel(1_050, 1_200, pid=2),
    ],
    ids=[
        "a nanosecond",
        "a copy",
        "a memset",
        "a graph",
        "no GPU table",
        "a collective",
        "a migration",
        "two processes",
    ],
)
def test_next_to_nothing(trace: TraceBuilder, tmp_path: Path) -> None:
    result = analyze([source(trace.write(tmp_path / "t.sqlite"))], parse_window("all"))
    assert result.status == "ok"
    assert wrong(result) == []


def test_nothing(tmp_path: Path) -> None:
    result = analyze(
        [source(TraceBuilder().os_call("poll", 1, 2).write(tmp_path / "t.sqlite"))], parse_window("all")
    )
    assert result.status == "cannot_judge"
    assert wrong(result) == []


def test_the_invariants_see_what_is_wrong(tmp_path: Path) -> None:
    """Each of the checks above, seen to fail once."""
    result = analyze([source(everything().write(tmp_path / "all.sqlite"))], parse_window("all"))
    gpu, second = result.gpus
    assert result.kernels
    assert result.sync
    assert gpu.ledger

    def with_gpu(**changes: object) -> Result:
        return replace(result, gpus=[replace(gpu, **changes), second])

    less = [*gpu.ledger[:-1], CauseTime(cause=gpu.ledger[-1].cause, ns=gpu.ledger[-1].ns - 1)]
    changed = {
        "busy and idle are the span": with_gpu(idle_ns=gpu.idle_ns + 1),
        "the ledger is the span": with_gpu(ledger=less),
        "communication is what is exposed": with_gpu(
            exposed_communication_ns=gpu.exposed_communication_ns + 1
        ),
        "all idle time is in gaps": with_gpu(gaps=replace(gpu.gaps, total_ns=gpu.gaps.total_ns + 1)),
        "the histogram of gaps counts all": with_gpu(gaps=replace(gpu.gaps, histogram=second.gaps.histogram)),
        "what waits cost is host_sync": replace(result, sync=replace(result.sync, cost_ns=-1)),
        "classes have all kernels": replace(result, kernels=replace(result.kernels, classes=[])),
        "every rule is checked": replace(result, checks=result.checks[1:]),
        "compute is the limit": replace(result, verdict=replace(result.verdict, limiter="compute")),
        "ledger: [": with_gpu(ledger=gpu.ledger[::-1]),
        "gpus: [": replace(result, gpus=[second, gpu]),
        "checks: [": replace(result, checks=result.checks[::-1]),
        "kernels.top: [": replace(result, kernels=replace(result.kernels, top=result.kernels.top[::-1])),
        "sync.by_api: [": replace(result, sync=replace(result.sync, by_api=result.sync.by_api * 2)),
    }
    assert {
        text for text, other in changed.items() if not any(text in said for said in wrong(other))
    } == set()
