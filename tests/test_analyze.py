"""Whole jobs: the traces of their ranks, in a file each or all in one, become one result with one answer."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from nsys_triage.analyze import analyze
from nsys_triage.ingest import Source
from nsys_triage.metrics.window import parse_window
from nsys_triage.result.codec import encode
from nsys_triage.result.model import Ranks, Result
from nsys_triage.units import share
from tests.builders.ranked import KERNELS, STEPS, TRANSFER_US, training, write
from tests.builders.trace import GEMM, TraceBuilder
from tests.result.invariants import broken

TRANSFER_NS = TRANSFER_US * 1_000
LAYOUTS = pytest.mark.parametrize("one_file", [False, True], ids=["a file per rank", "one file"])


def report(paths: Sequence[Path], window: str = "auto") -> Result:
    return analyze([Source(p, p.name, "sqlite", None, filtered=False) for p in paths], parse_window(window))


def job(folder: Path, ranks: int = 4, **planted: object) -> Result:
    result = report(write(training(ranks, **planted), folder))  # type: ignore[arg-type]
    assert broken(result) == []
    return result


def ranks_of(result: Result) -> Ranks:
    assert isinstance(result.ranks, Ranks)
    return result.ranks


def fired(result: Result) -> set[str]:
    return {finding.rule for finding in result.findings}


@LAYOUTS
def test_even_ranks_are_not_called_uneven(tmp_path: Path, one_file: bool) -> None:
    result = job(tmp_path, one_file=one_file)
    ranks = ranks_of(result)
    assert (ranks.count, ranks.missing, len(result.gpus)) == (4, [], 4)
    # each collective takes its transfer; the jitter of kernels and host alone keeps a rank waiting
    settled = ranks.matched_collectives
    assert STEPS - 2 <= settled < STEPS
    assert [row.transfer_ns for row in ranks.per_rank] == pytest.approx([settled * TRANSFER_NS] * 4, rel=0.05)
    assert fired(result) == {"exposed-communication"}
    assert result.verdict.limiter == "communication"


@LAYOUTS
def test_overlapped_collectives_are_no_finding(tmp_path: Path, one_file: bool) -> None:
    result = job(tmp_path, one_file=one_file, overlapped=True)
    # 300 us of each step are communication, which the product beside it hides
    assert all(gpu.communication_ns >= (STEPS - 2) * TRANSFER_NS for gpu in result.gpus)
    assert max(gpu.exposed_communication_ns / gpu.span_ns for gpu in result.gpus) < 0.02
    assert (result.verdict.limiter, fired(result)) == ("compute", set())


@LAYOUTS
def test_throttled_gpu_is_the_late_rank(tmp_path: Path, one_file: bool) -> None:
    result = job(tmp_path, one_file=one_file, slowdown={2: 1.4})
    ranks = ranks_of(result)
    assert (ranks.straggler, ranks.straggler_votes_share, ranks.straggler_cause) == (2, 1.0, "slower_kernels")
    # before a collective seven products of 400 us (the one after the last collective is the first) take 160 us more
    waits = {row.rank: row.wait_ns for row in ranks.per_rank}
    late_ns = ranks.matched_collectives * (KERNELS + 1) * 160_000
    assert [waits[rank] for rank in (0, 1, 3)] == pytest.approx([late_ns] * 3, rel=0.1)
    assert waits[2] == pytest.approx(0, abs=0.02 * late_ns)
    assert result.verdict.limiter == "imbalance"
    assert "rank 2: " in result.verdict.sentence
    assert "the same kernels take 1.4 times as long on its GPU" in result.verdict.sentence
    assert "nvidia-smi" in result.verdict.next_action
    assert {"rank-imbalance", "uneven-gpus"} <= fired(result)
    uneven = next(finding for finding in result.findings if finding.rule == "uneven-gpus")
    assert "nvidia-smi" in uneven.actions[0]


@LAYOUTS
def test_throttled_gpu_is_late_with_overlapped_collectives_too(tmp_path: Path, one_file: bool) -> None:
    result = job(tmp_path, one_file=one_file, overlapped=True, slowdown={2: 1.4})
    assert (ranks_of(result).straggler, ranks_of(result).straggler_cause) == (2, "slower_kernels")
    assert result.verdict.limiter == "imbalance"


@pytest.mark.parametrize(
    ("planted", "cause", "says"),
    [
        ({"input_us": {1: 2_500.0}}, "input_pipeline", "it waits longer for input"),
        ({"host_us": {1: 2_500.0}}, "host_sync", "its synchronising calls cost more"),
        ({"more_kernels": {1: 4}}, "compute", "it computes more"),
    ],
)
@LAYOUTS
def test_why_a_rank_is_late(
    tmp_path: Path, one_file: bool, planted: dict[str, object], cause: str, says: str
) -> None:
    result = job(tmp_path, one_file=one_file, **planted)
    ranks = ranks_of(result)
    assert (ranks.straggler, ranks.straggler_cause) == (1, cause)
    assert f"Rank 1 is late because {says}: " in result.verdict.sentence
    finding = next(finding for finding in result.findings if finding.rule == "rank-imbalance")
    assert result.verdict.next_action == finding.actions[0]
    assert "rank 1" in finding.actions[0]
    assert ("rank1.sqlite" in finding.actions[1]) is not one_file


def test_order_of_the_files_changes_nothing_but_their_list(tmp_path: Path) -> None:
    paths = write(training(4, slowdown={2: 1.4}), tmp_path)
    forward, backward = report(paths), report(paths[::-1])
    assert backward.capture.files == ["rank3.sqlite", "rank2.sqlite", "rank1.sqlite", "rank0.sqlite"]

    def without_files(result: Result) -> bytes:
        capture = msgspec.structs.replace(result.capture, files=[], file="")
        return encode(msgspec.structs.replace(result, capture=capture))

    first, second = (msgspec.json.decode(without_files(result)) for result in (forward, backward))
    for part in first:
        if part != "capture":
            assert first[part] == second[part], part


def test_one_file_and_a_file_per_rank_agree(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    # the whole captures: where start-up ends is found file by file
    apart = report(write(training(4, slowdown={2: 1.4}), tmp_path), "all")
    together = report(write(training(4, slowdown={2: 1.4}, one_file=True), tmp_path / "one"), "all")
    for one, two in zip(ranks_of(apart).per_rank, ranks_of(together).per_rank, strict=True):
        for name in ("communication_ns", "transfer_ns", "busy_ns"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), rel=0.02), name
    assert apart.kernels
    assert together.kernels
    assert apart.kernels.count == together.kernels.count
    assert apart.kernels.sum_ns == pytest.approx(together.kernels.sum_ns, rel=0.01)


def test_job_of_one_trace_is_that_trace(tmp_path: Path) -> None:
    """Twice the same file is a job of two like ranks: its shares are the trace's own."""
    (path,) = write(training(1), tmp_path)
    alone = report([path])
    assert alone.ranks is None or not alone.ranks
    twice = report([path, path])
    assert twice.kernels
    assert alone.kernels
    assert twice.kernels.count == 2 * alone.kernels.count
    assert [gpu.busy_ns for gpu in twice.gpus] == [gpu.busy_ns for gpu in alone.gpus] * 2
    assert "The same capture is given twice" in " ".join(ranks_of(twice).notes or [])


def test_missing_rank_is_said(tmp_path: Path) -> None:
    paths = write(training(4), tmp_path)
    result = report([paths[0], paths[3]])
    assert (ranks_of(result).missing, ranks_of(result).world_size) == ([1, 2], 4)


def test_file_without_device_work_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    paths = write(training(2), tmp_path)
    idle = TraceBuilder("2025.5.2").environment(RANK="2", WORLD_SIZE="3").os_call("poll", 1, 2)
    result = report([*paths, idle.write(tmp_path / "rank2.sqlite")])
    assert result.status == "ok"
    assert len(result.gpus) == 2
    assert any("rank2.sqlite" in warning.text for warning in result.capture.warnings)


def test_no_file_with_device_work_cannot_be_judged(tmp_path: Path) -> None:
    idle = [TraceBuilder().os_call("poll", 1, 2).write(tmp_path / name) for name in ("a.sqlite", "b.sqlite")]
    result = report(idle)
    assert (result.status, result.capture.files) == ("cannot_judge", ["a.sqlite", "b.sqlite"])


def test_many_ranks(tmp_path: Path) -> None:
    paths = []
    for rank in range(20):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}", WORLD_SIZE="20")
        for step in range(3):
            trace.kernel(1_000 + 100 * step, 1_090 + 100 * step + (rank == 13), GEMM)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths)
    ranks = ranks_of(result)
    assert (ranks.count, len(result.gpus), ranks.matched_collectives, ranks.straggler) == (20, 20, 0, None)
    assert [row.rank for row in ranks.per_rank] == list(range(20))
    assert result.timeline
    assert len({row.label.split(":")[0] for row in result.timeline.rows}) <= 8
    assert broken(result) == []


def test_failed_launches_of_all_ranks_are_in_the_verdict(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}", WORLD_SIZE="2")
        trace.kernel(1_000, 2_000, GEMM).api("cudaLaunchKernel_v7000", 500, 505, result=700)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths)
    assert "2 kernel launches failed and left no kernel: fix those first." in result.verdict.sentence
    assert share(1.0) in result.verdict.sentence
