"""Whole jobs: the traces of their ranks, in a file each or all in one, become one result with one answer."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nsys_triage.analyze import analyze
from nsys_triage.errors import UsageError
from nsys_triage.ingest import Source
from nsys_triage.metrics.window import parse_window
from nsys_triage.result.codec import encode
from nsys_triage.result.model import Ranks, Result
from nsys_triage.units import share
from tests.builders.ranked import KERNELS, STEPS, TRANSFER_US, training, write
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, TraceBuilder
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


def test_a_trace_beside_one_without_work_is_as_if_alone(tmp_path: Path) -> None:
    (path,) = write(training(1), tmp_path)
    idle = (
        TraceBuilder("2025.5.2").environment(RANK="1").os_call("poll", 1, 2).write(tmp_path / "idle.sqlite")
    )
    alone, beside = report([path]), report([idle, path])
    for block in ("kernels", "launches", "sync", "copies", "collectives", "ranges", "steps"):
        one, two = (msgspec.to_builtins(getattr(result, block)) for result in (alone, beside))
        assert about(one) == two, block
    assert beside.gpu_unattributed_ns == alone.gpu_unattributed_ns
    (gpu,) = alone.gpus
    assert beside.gpus == [msgspec.structs.replace(gpu, id=f"rank0-{gpu.id}", rank=0)]
    assert [(f.rule, f.stake.high_ns) for f in beside.findings] == [
        (f.rule, f.stake.high_ns) for f in alone.findings
    ]
    assert beside.verdict.limiter == alone.verdict.limiter
    assert beside.capture.window == alone.capture.window
    assert beside.capture.counts == alone.capture.counts


def about(value: Any) -> Any:
    """Plain data, numbers to six digits: those of a job are rounded."""
    if isinstance(value, dict):
        return {key: about(part) for key, part in value.items()}
    if isinstance(value, list):
        return [about(part) for part in value]
    return pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value


def test_no_trace_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(UsageError, match="Give a trace"):
        report([])


def test_rank_of_one_trace(tmp_path: Path) -> None:
    trace = TraceBuilder("2025.5.2").environment(RANK="3", WORLD_SIZE="8").kernel(1_000, 2_000)
    result = report([trace.write(tmp_path / "job.sqlite")])
    assert ([gpu.rank for gpu in result.gpus], result.ranks) == ([3], None)


# --- ranks that take turns ----------------------------------------------------------------------------------


@LAYOUTS
def test_two_ranks_that_take_turns_have_no_late_one(tmp_path: Path, one_file: bool) -> None:
    lengths = [(300, 500), (500, 300)] * 6
    result = report(data_parallel(lengths, tmp_path, one_file=one_file), "all")
    ranks = ranks_of(result)
    assert (ranks.matched_collectives, ranks.straggler_votes_share, ranks.straggler_clear) == (12, 0.5, False)
    # in each of 12 steps one rank waits 200 of 1 000 us: 10 % as mean of the ranks
    finding = next(finding for finding in result.findings if finding.rule == "rank-imbalance")
    assert finding.title.endswith("of the time: no rank is late alone")
    assert finding.stake.high_ns == 12 * 100_000
    assert finding.confidence == "medium"
    assert "rank 0" not in result.verdict.sentence + result.verdict.next_action
    assert "uneven-gpus" not in fired(result)


def data_parallel(
    lengths: Sequence[Sequence[int]], folder: Path, *, one_file: bool = False, transfer: int = 100
) -> list[Path]:
    """Steps of 1 ms: on every rank a kernel of so many microseconds, then a collective until the last has come."""
    world = len(lengths[0])
    shared = TraceBuilder("2025.5.2", gpus=("H100",) * world)
    paths = []
    for rank in range(world):
        trace = shared if one_file else TraceBuilder("2025.5.2", gpus=("H100",) * world)
        if not one_file:
            trace.environment(RANK=f"{rank}", WORLD_SIZE=f"{world}")
        own = trace.on(pid=100 + rank, device=rank)
        for step, ranks in enumerate(lengths):
            at = 1_000 * step
            own.kernel(at, at + ranks[rank], GEMM)
            own.kernel(at + ranks[rank], at + max(ranks) + transfer, ALL_REDUCE, stream=20)
            own.kernel(at + max(ranks) + transfer, at + 1_000, ADD)
        if not one_file:
            paths.append(trace.write(folder / f"{rank}.sqlite"))
    return [shared.write(folder / "job.sqlite")] if one_file else paths


@LAYOUTS
def test_waiting_by_hand(tmp_path: Path, one_file: bool) -> None:
    result = report(data_parallel([(300, 500, 400)] * 6, tmp_path, one_file=one_file), "all")
    ranks = ranks_of(result)
    assert [(row.communication_ns, row.transfer_ns, row.wait_ns) for row in ranks.per_rank] == [
        (1_800_000, 600_000, 1_200_000),
        (600_000, 600_000, 0),
        (1_200_000, 600_000, 600_000),
    ]
    assert (ranks.straggler, ranks.straggler_votes_share) == (1, 1.0)
    found = result.collectives
    assert found
    assert (found.count, found.total_ns, found.wait_ns, found.transfer_ns) == (
        18, 3_600_000, 1_800_000, 1_800_000,
    )  # fmt: skip
    assert (found.wait_share, [op.wait_ns for op in found.by_op]) == (0.5, [1_800_000])
    finding = next(finding for finding in result.findings if finding.rule == "rank-imbalance")
    assert finding.stake.high_ns == 600_000  # mean of 1 200, 0 and 600 us
    assert result.capture.counts.kernels == 3 * 18
    assert result.gpu_unattributed_ns == 3 * 6_000_000  # no range owns anything
    assert broken(result) == []


def test_late_hosts_with_mpi(tmp_path: Path) -> None:
    paths = []
    for rank, length in enumerate((300, 800)):
        trace = TraceBuilder("2025.5.2").environment(OMPI_COMM_WORLD_RANK=f"{rank}", OMPI_COMM_WORLD_SIZE="2")
        for step in range(6):
            at = 1_000 * step
            trace.kernel(at, at + length).wait("cudaDeviceSynchronize", at + 10, at + length + 2)
            trace.mpi("MPI_Allreduce", at + length + 5, at + 900)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths, "all")
    ranks = ranks_of(result)
    # the last begins after the last kernel: it is in no window
    assert (ranks.straggler, ranks.straggler_cause, ranks.matched_collectives) == (1, "slower_kernels", 5)
    assert [row.wait_ns for row in ranks.per_rank] == [5 * 500_000, 0]
    assert "rank-imbalance" in fired(result)
    # they are no communication of the GPUs
    assert result.collectives
    assert (result.collectives.count, result.collectives.wait_ns) == (0, None)
    assert broken(result) == []


def test_waiting_of_hosts_is_none_of_the_gpus(tmp_path: Path) -> None:
    """Two ranks with collectives on their GPUs, two with those of their hosts."""
    paths = data_parallel([(300, 500)] * 6, tmp_path)
    for rank, length in ((2, 300), (3, 800)):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}", WORLD_SIZE="4")
        for step in range(6):
            at = 1_000 * step
            trace.kernel(at, at + length).mpi("MPI_Allreduce", at + length + 5, at + 900)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths, "all")
    assert [row.wait_ns for row in ranks_of(result).per_rank] == [6 * 200_000, 0, 5 * 500_000, 0]
    assert result.collectives
    assert (result.collectives.wait_ns, result.collectives.transfer_ns) == (1_200_000, 1_200_000)


# --- clocks and places --------------------------------------------------------------------------------------


def apart(folder: Path, host: str) -> list[Path]:
    """Two ranks at work at the same time, the second on `host`, whose capture began 400 us earlier."""
    first = TraceBuilder("2025.5.2").environment(RANK="0").started(1_780_300_800_000_400_000)
    second = TraceBuilder("2025.5.2").environment(RANK="1").started(1_780_300_800_000_000_000)
    first.kernel(1_000, 2_000).system(Hostname="here")
    second.kernel(1_350, 2_410).system(Hostname=host)
    return [first.write(folder / "0.sqlite"), second.write(folder / "1.sqlite")]


@pytest.mark.parametrize(
    ("host", "start_us", "end_us", "window"),
    [("here", 950, 2_010, (950, 2_010)), ("there", 1_350, 2_410, (1_000, 2_410))],
    ids=["one host", "two hosts"],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_ranks_of_one_host_are_shown_on_one_clock(
    tmp_path: Path, host: str, start_us: int, end_us: int, window: tuple[int, int], backwards: bool
) -> None:
    paths = apart(tmp_path, host)
    result = report(paths[::-1] if backwards else paths, "all")
    assert result.timeline
    marks = {
        row.label.split(":")[0]: [(mark.start_ns, mark.end_ns) for mark in row.marks]
        for row in result.timeline.rows
        if row.kind == "gpu"
    }
    assert marks == {"rank 0": [(1_000_000, 2_000_000)], "rank 1": [(start_us * 1_000, end_us * 1_000)]}
    found = result.capture.window
    assert found
    # on that clock too: what the captures began apart is no time of the job
    assert (found.start_ns, found.end_ns, found.mode) == (window[0] * 1_000, window[1] * 1_000, "all")


def test_gpus_that_ranks_share_are_listed_once(tmp_path: Path) -> None:
    trace = TraceBuilder("2025.5.2", gpus=("H100", "A100")).kernel(1_000, 2_000, pid=10)
    trace.kernel(1_200, 2_100, pid=11).kernel(1_000, 2_100, pid=12, device=1)
    path = trace.write(tmp_path / "a.sqlite")
    one = report([path], "all")
    assert [(gpu.processes, gpu.rank) for gpu in one.gpus] == [([10, 11], None), ([12], 2)]
    assert [row.gpu for row in ranks_of(one).per_rank] == ["gpu1", "gpu1", "gpu0"]
    other = TraceBuilder("2025.5.2").kernel(1_000, 2_000, pid=10).write(tmp_path / "b.sqlite")
    several = report([path, other], "all")
    assert [(gpu.id, gpu.rank) for gpu in several.gpus] == [
        ("rank0-gpu1", None),
        ("rank2-gpu0", 2),
        ("rank3-gpu0", 3),
    ]
    assert [row.gpu for row in ranks_of(several).per_rank] == [
        "rank0-gpu1", "rank0-gpu1", "rank2-gpu0", "rank3-gpu0",
    ]  # fmt: skip
    assert several.timeline
    assert {row.label.split(":")[0] for row in several.timeline.rows} == {"ranks 0 to 2", "rank 3"}
    assert broken(several) == []


# --- many ranks ---------------------------------------------------------------------------------------------


def test_timelines_of_the_lowest_ranks_whatever_the_order(tmp_path: Path) -> None:
    paths = []
    for rank in (9, 3, 0, 5, 1, 8, 2, 7, 4, 6):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}", WORLD_SIZE="10").kernel(1_000, 2_000)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths, "all")
    assert result.timeline
    shown = [row.label.split(":")[0] for row in result.timeline.rows if row.kind == "gpu"]
    assert shown == [f"rank {rank}" for rank in range(8)]
    assert [gpu.rank for gpu in result.gpus] == list(range(10))
    assert sum(len(row.marks) for row in result.timeline.rows) <= 2_000
    assert broken(result) == []


def test_timelines_of_ranks_share_the_marks_of_one(tmp_path: Path) -> None:
    paths = []
    for rank in range(4):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}").kernels(0, 50, every=1_000, length=400)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    bins = []
    for count in (1, 2, 4):
        result = report(paths[:count], "all")
        assert result.timeline
        bins.append(result.timeline.bin_ns)
    # the more there are, the fewer marks for each (some are kept for steps)
    assert bins == sorted(set(bins))
    assert bins[2] > 2 * bins[0]


def test_seventy_ranks_of_one_file(tmp_path: Path) -> None:
    trace = TraceBuilder("2025.5.2", gpus=("H100",) * 70)
    for rank, step in product(range(70), range(4)):
        own, at, length = trace.on(pid=100 + rank, device=rank), 1_000 * step, 500 if rank == 66 else 300
        own.kernel(at, at + length, GEMM).kernel(at + length, at + 600, ALL_REDUCE, stream=20)
    result = report([trace.write(tmp_path / "job.sqlite")], "all")
    ranks = ranks_of(result)
    assert (ranks.count, ranks.matched_collectives, ranks.missing) == (70, 4, [])
    assert (ranks.straggler, ranks.straggler_votes_share, ranks.straggler_cause) == (
        66,
        1.0,
        "slower_kernels",
    )
    assert [row.rank for row in ranks.per_rank] == list(range(70))
    assert {row.wait_ns for row in ranks.per_rank if row.rank != 66} == {4 * 200_000}
    assert [gpu.rank for gpu in result.gpus] == list(range(70))
    assert broken(result) == []


def test_ranks_without_collectives(tmp_path: Path) -> None:
    paths = []
    for rank in range(3):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}", WORLD_SIZE="3")
        trace.kernels(1_000, 3, every=100, length=90 + rank)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths)
    ranks = ranks_of(result)
    assert (ranks.count, ranks.matched_collectives, ranks.straggler) == (3, 0, None)
    assert [(row.rank, row.wait_ns) for row in ranks.per_rank] == [(0, None), (1, None), (2, None)]
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


def test_decoding_in_a_cuda_graph_is_no_data_loading(tmp_path: Path) -> None:
    """A range called decode in which the thread launches one graph is a model's forward pass."""
    trace = TraceBuilder("2025.5.2")
    for step in range(20):
        at = 1_000 + step * 5_000
        trace.range("decode", at, at + 4_900).graph(at + 2_920, at + 4_900, call=(at + 2_900, at + 2_910))
    result = report([trace.write(tmp_path / "t.sqlite")], "all")
    assert result.verdict.limiter == "host_compute"
    assert "input-pipeline" not in fired(result)


@pytest.mark.parametrize(("late_us", "limiter"), [(9_000, "imbalance"), (4_000, "communication")])
def test_ranks_that_wait_in_mpi(tmp_path: Path, late_us: int, limiter: str) -> None:
    """Of 10 ms each rank is in MPI_Allreduce until 9.9 ms: one comes after 2.5 ms, the other after 9 or 4."""
    paths = []
    for rank, length in enumerate((2_500, late_us)):
        trace = TraceBuilder("2025.5.2")
        trace.environment(OMPI_COMM_WORLD_RANK=f"{rank}", OMPI_COMM_WORLD_SIZE="2")
        for step in range(20):
            at = 1_000 + step * 10_000
            trace.kernel(at, at + length, GEMM, call=(at - 10, at - 5))
            trace.wait("cudaStreamSynchronize_v3020", at - 3, at + length + 1)
            trace.mpi("MPI_Allreduce", at + length + 10, at + 9_900)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths, "all")
    # 6.5 of 8.3 ms are waiting, or 1.5 of 13.3
    assert result.verdict.limiter == limiter
    assert ranks_of(result).straggler == 1
    finding = next((finding for finding in result.findings if finding.rule == "rank-imbalance"), None)
    assert finding is None or finding.causes == ["host_communication"]


def test_traces_without_anything_in_common_may_be_no_job(tmp_path: Path) -> None:
    one, other, alike = (tmp_path / f"{name}.sqlite" for name in "abc")
    TraceBuilder().kernels(0, 4, every=100, length=50, name=GEMM).write(one)
    TraceBuilder().kernels(0, 4, every=100, length=50, name="void mine(float*)").write(other)
    TraceBuilder().kernels(0, 4, every=90, length=50, name=GEMM).write(alike)
    assert "unrelated-traces" in {warning.id for warning in report([one, other], "all").capture.warnings}
    assert "unrelated-traces" not in {warning.id for warning in report([one, alike], "all").capture.warnings}


def test_rank_without_gpu_work_is_counted_and_not_missing(tmp_path: Path) -> None:
    paths = write(training(4), tmp_path)[:2]
    idle = TraceBuilder("2025.5.2").environment(RANK="2", WORLD_SIZE="4")
    idle.api("cudaGetDevice_v3020", 1, 2).os_call("poll", 3, 4)
    alone, all_three = (report([*paths, *more]) for more in ([], [idle.write(tmp_path / "rank2.sqlite")]))
    assert ranks_of(all_three).missing == [3]
    assert (all_three.capture.counts.api_calls or 0) - (alone.capture.counts.api_calls or 0) == 1


def test_what_was_cut_of_one_rank_is_said(tmp_path: Path) -> None:
    """Rank 1 loads a module before its steps; the other does not."""
    paths = []
    for rank in range(2):
        trace = TraceBuilder("2025.5.2").environment(RANK=f"{rank}", WORLD_SIZE="2")
        first = 1_000 + 60_000 * rank
        if rank:
            trace.kernel(1_000, 1_010, ADD).api("cuModuleLoadData", 1_100, 60_000)
        for step in range(12):
            at = first + 1_000 * step
            trace.range(f"step {step}", at, at + 990).kernel(at + 10, at + 980, GEMM)
        paths.append(trace.write(tmp_path / f"{rank}.sqlite"))
    result = report(paths)
    assert result.capture.window
    (cut,) = result.capture.window.excluded
    assert cut.reason.endswith("In 1 of 2 traces.")
    assert (cut.start_ns, cut.end_ns) == (1_000_000, 61_000_000)
