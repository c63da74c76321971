"""What is kept of one rank: its number, its collectives, its kernels, its ledger. Numbers by hand, in microseconds."""

from pathlib import Path

import pytest

from nsys_triage.metrics.rank_parts import (
    COLLECTIVES,
    KEPT_NAMES,
    KERNELS_BY_NAME,
    LOCAL_RANK_VARIABLES,
    MOST_RANKS,
    NODE_VARIABLES,
    RANK_VARIABLES,
    WORLD_VARIABLES,
    RankPart,
    communicators,
    environment_number,
    known_ranks,
    processes,
    rank_parts,
    world_size,
)
from tests.builders.trace import ADD, ALL_REDUCE, GEMM, PID, TraceBuilder
from tests.rules.support import measured

ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ONE_SHOT = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)"
WORLD, TENSOR = 13_429_301_450_432_826_988, 77  # communicators; NCCL's exceed 2^63


def parts(trace: TraceBuilder, folder: Path, window: str = "all") -> list[RankPart]:
    return rank_parts(measured(trace, folder, window))


def part(trace: TraceBuilder, folder: Path, window: str = "all") -> RankPart:
    (only,) = parts(trace, folder, window)
    return only


def one_kernel(**environment: str) -> TraceBuilder:
    return TraceBuilder().kernel(0, 100).environment(environment)


def joins(
    trace: TraceBuilder, rank: object, ranks: object, communicator: int = WORLD, pid: int = PID
) -> None:
    """The NCCL call with which a rank becomes one of a communicator."""
    payload = {"NCCL communicator ID": communicator, "No. of ranks": ranks, "Rank": rank, "CUDA device": 0}
    trace.range(
        "ncclCommInitRankConfig", -500, -100, domain="NCCL", registered=True, json_payload=payload, pid=pid
    )


# --- what the environment says ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [RANK_VARIABLES, WORLD_VARIABLES, LOCAL_RANK_VARIABLES, NODE_VARIABLES], ids=" ".join
)
def test_every_launcher_alone_says_it(names: tuple[str, ...]) -> None:
    assert [environment_number({name: "3"}, names) for name in names] == [3] * len(names)


@pytest.mark.parametrize(
    "variables",
    [
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"),  # torchrun
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID"),
    ],
)
def test_a_launcher_in_a_trace(variables: tuple[str, ...], tmp_path: Path) -> None:
    found = part(one_kernel(**dict(zip(variables, ("3", "16", "2", "1"), strict=True))), tmp_path)
    assert (found.known_rank, found.world_size, found.local_rank, found.node) == (3, 16, 2, 1)


def test_the_launcher_nearest_to_the_process_decides(tmp_path: Path) -> None:
    # srun of one task runs mpirun, which runs torchrun: each hands its variables down
    variables = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
    assert part(one_kernel(**variables), tmp_path).known_rank == 0
    variables |= {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    mpi = part(one_kernel(**variables), tmp_path)
    assert (mpi.known_rank, mpi.world_size, mpi.local_rank, mpi.node) == (5, 8, 1, 0)
    variables |= {"RANK": "6", "WORLD_SIZE": "32", "LOCAL_RANK": "2", "NODE_RANK": "1"}
    torch = part(one_kernel(**variables), tmp_path)
    assert (torch.known_rank, torch.world_size, torch.local_rank, torch.node) == (6, 32, 2, 1)


@pytest.mark.parametrize("name", [name for name in RANK_VARIABLES if name != "SLURM_PROCID"])
def test_every_launcher_within_a_batch_script_decides(name: str) -> None:
    # a batch script is task 0 of itself, and what it starts inherits that
    assert environment_number({"SLURM_PROCID": "0", name: "5"}, RANK_VARIABLES) == 5


@pytest.mark.parametrize("value", ["", "-1", "two", "1.0", "0x3", " 3", "1e3", f"{MOST_RANKS + 1}", "9" * 30])
def test_nonsense_is_no_number_and_the_next_variable_is_asked(value: str) -> None:
    assert environment_number({"RANK": value}, RANK_VARIABLES) is None
    assert environment_number({"RANK": value, "SLURM_PROCID": "4"}, RANK_VARIABLES) == 4


def test_numbers_of_the_environment() -> None:
    assert environment_number({"RANK": "007"}, RANK_VARIABLES) == 7
    assert environment_number({"RANK": f"{MOST_RANKS}"}, RANK_VARIABLES) == MOST_RANKS
    assert environment_number({}, RANK_VARIABLES) is None


def test_nothing_is_known_of_a_plain_job(tmp_path: Path) -> None:
    found = part(one_kernel(), tmp_path)
    assert (found.known_rank, found.world_size, found.local_rank, found.node) == (None, None, None, None)


def test_a_file_name_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rank3"
    path.mkdir()
    assert part(one_kernel(), path).known_rank is None


# --- what NCCL says -----------------------------------------------------------------------------------------


def test_rank_and_world_size_of_the_largest_communicator(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100)
    joins(trace, rank=1, ranks=2, communicator=TENSOR)
    joins(trace, rank=5, ranks=8)
    found = part(trace, tmp_path)
    assert (found.known_rank, found.world_size) == (5, 8)


def test_numbers_in_quotes_count_too(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100)
    joins(trace, rank="5", ranks="8")
    assert part(trace, tmp_path).known_rank == 5


def test_equally_large_communicators_have_to_agree(tmp_path: Path) -> None:
    agree = TraceBuilder().kernel(0, 100)
    joins(agree, rank=3, ranks=8)
    joins(agree, rank=3, ranks=8, communicator=TENSOR)
    assert part(agree, tmp_path).known_rank == 3
    # of a grid of 2 x 2 ranks: first in its row, second in its column
    differ = TraceBuilder().kernel(0, 100)
    joins(differ, rank=0, ranks=2)
    joins(differ, rank=1, ranks=2, communicator=TENSOR)
    assert part(differ, tmp_path).known_rank is None


def test_the_environment_comes_before_nccl(tmp_path: Path) -> None:
    trace = one_kernel(RANK="4", WORLD_SIZE="16")
    joins(trace, rank=0, ranks=8)
    found = part(trace, tmp_path)
    assert (found.known_rank, found.world_size) == (4, 16)


def test_numbers_of_nccl_that_no_job_has(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100)
    joins(trace, rank=MOST_RANKS, ranks=MOST_RANKS + 1)
    found = part(trace, tmp_path)
    assert (found.known_rank, found.world_size) == (None, None)


def test_payloads_of_others_and_of_calls_say_no_rank(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100)
    trace.range("mine", -40, -30, json_payload={"Rank": 3, "No. of ranks": 4})
    trace.range("ncclAllReduce", -20, -10, domain="NCCL", json_payload={"NCCL communicator ID": WORLD})
    trace.range("ncclGroupStart", -60, -50, domain="NCCL", json_payload={"Rank": 3, "No. of ranks": 4})
    trace.range("ncclBcast", -80, -70, domain="NCCL", json_payload="{")
    m = measured(trace, tmp_path)
    assert communicators(m).select("communicator", "rank", "ranks").rows() == [(str(WORLD), None, None)]
    assert known_ranks(m, communicators(m)) == {}
    assert world_size(m, communicators(m)) is None


# --- several processes in one file --------------------------------------------------------------------------


def two_processes() -> TraceBuilder:
    trace = TraceBuilder(gpus=("H100", "H100"))
    trace.kernel(0, 100, pid=20, device=0, stream=9)
    return trace.kernel(0, 300, pid=10, device=1, stream=9)


def test_processes_of_one_file_by_device_then_process(tmp_path: Path) -> None:
    trace = two_processes().kernel(0, 50, pid=15, device=0)
    found = parts(trace, tmp_path)
    assert [p.pid for p in found] == [15, 20, 10]
    assert {p.file for p in found} == {"trace.sqlite"}
    assert {p.file_index for p in found} == {0}


def test_an_environment_of_several_processes_is_that_of_none(tmp_path: Path) -> None:
    # what nsys started (torchrun, mpirun) may be a rank of something itself
    variables = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "NODE_RANK": "3"}
    found = parts(two_processes().environment(variables), tmp_path)
    assert [(p.known_rank, p.local_rank, p.world_size) for p in found] == [(None, None, None)] * 2
    assert [p.node for p in found] == [3, 3]  # a capture is of one node


def test_nccl_knows_the_ranks_of_several_processes(tmp_path: Path) -> None:
    trace = two_processes()
    joins(trace, rank=1, ranks=2, pid=20)
    joins(trace, rank=0, ranks=2, pid=10)
    found = parts(trace, tmp_path)
    assert [(p.pid, p.known_rank, p.world_size) for p in found] == [(20, 1, 2), (10, 0, 2)]


def test_the_largest_communicator_of_each_process(tmp_path: Path) -> None:
    trace = two_processes()
    joins(trace, rank=0, ranks=2, pid=20, communicator=TENSOR)
    joins(trace, rank=6, ranks=8, pid=20)
    joins(trace, rank=1, ranks=2, pid=10, communicator=TENSOR)  # the start of the larger one was not recorded
    found = parts(trace, tmp_path)
    assert [(p.pid, p.known_rank, p.world_size) for p in found] == [(20, 6, 8), (10, 1, 8)]


def test_figures_of_each_process_are_its_own(tmp_path: Path) -> None:
    trace = two_processes().kernel(150, 200, ALL_REDUCE, pid=20, device=0, stream=20)
    trace.kernel(100, 260, ALL_REDUCE, pid=10, device=1, stream=20)  # hidden by its GPU's kernel
    first, second = parts(trace, tmp_path)
    assert (first.span_ns, first.busy_ns) == (200_000, 150_000)
    assert (second.span_ns, second.busy_ns) == (300_000, 300_000)
    assert (first.communication_ns, first.exposed_ns) == (50_000, 50_000)
    assert (second.communication_ns, second.exposed_ns) == (160_000, 0)
    assert first.ledger["compute"] == 100_000
    assert second.ledger == {"compute": 300_000}
    assert [gpu.processes for gpu in (*first.gpus, *second.gpus)] == [[20], [10]]


def test_a_process_without_device_work_is_no_rank(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100, pid=10).os_call("poll", 0, 50, pid=20)
    trace.api("cudaGetDevice_v3020", 0, 5, pid=20).range("step", 0, 60, pid=20)
    assert [p.pid for p in parts(trace, tmp_path)] == [10]


def test_a_process_without_work_in_the_window_is_no_rank(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100")).kernel(0, 100, pid=20).kernel(900, 1_000, pid=10, device=1)
    assert processes(measured(trace, tmp_path)) == [20, 10]
    assert processes(measured(trace, tmp_path, window="0.0005:0.001")) == [10]


def test_two_gpus_of_one_process_are_one_rank(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    trace.kernel(0, 100, ADD).kernel(100, 140, ALL_REDUCE, stream=20)
    trace.kernel(0, 60, GEMM, device=1, context=2).kernel(60, 80, ALL_REDUCE, device=1, context=2, stream=20)
    found = part(trace, tmp_path)
    assert [gpu.device_ids for gpu in found.gpus] == [[0], [1]]
    assert (found.span_ns, found.busy_ns) == (140_000 + 80_000, 140_000 + 80_000)
    assert (found.communication_ns, found.exposed_ns) == (60_000, 60_000)
    assert found.ledger == {"compute": 80_000, "communication": 30_000}  # means of the two
    assert found.kernels.rows() == [(ADD, 1056, 1, 100_000), (GEMM, 1056, 1, 60_000)]
    # streams of one number on two GPUs are two, by their first launch
    assert found.collectives.select("start_ns", "stream").rows() == [(60_000, 1), (100_000, 2)]


def test_streams_of_two_gpus_that_begin_together(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100")).kernel(0, 10, ALL_REDUCE, stream=20)
    trace.kernel(0, 20, ALL_REDUCE, device=1, context=2, stream=20, tid=77)
    assert part(trace, tmp_path).collectives.select("duration_ns", "stream").rows() == [
        (10_000, 1),
        (20_000, 2),
    ]


def test_two_processes_on_one_gpu(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100, GEMM, pid=10).kernel(200, 260, ADD, pid=20)
    trace.kernel(260, 300, ALL_REDUCE, pid=20, stream=20)
    first, second = parts(trace, tmp_path)
    # the GPU counts for both: what of its time belongs to which process is not in a ledger
    assert [gpu.id for gpu in first.gpus] == [gpu.id for gpu in second.gpus]
    assert first.gpus[0].processes == [10, 20]
    assert (first.span_ns, first.busy_ns) == (second.span_ns, second.busy_ns) == (300_000, 200_000)
    # kernels and collectives are those of the process
    assert first.kernels["name"].to_list() == [GEMM]
    assert second.kernels["name"].to_list() == [ADD]
    assert first.collectives.is_empty()
    assert second.communication_ns == 40_000


# --- collectives --------------------------------------------------------------------------------------------


def test_collectives_of_the_capture_and_which_are_in_the_window(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100).kernel(900, 1_000)
    trace.kernel(300, 320, ALL_GATHER, stream=21).kernel(100, 110, ALL_REDUCE, stream=20)
    trace.kernel(500, 530, ALL_REDUCE, stream=20).kernel(700, 705, ONE_SHOT)
    found = part(trace, tmp_path, window="0.0003:0.0005")
    assert dict(found.collectives.schema) == COLLECTIVES
    assert found.collectives.rows() == [
        ("", 1, "all_reduce", 100_000, 10_000, False),
        ("", 2, "all_gather", 300_000, 20_000, True),
        ("", 1, "all_reduce", 500_000, 30_000, False),  # at the window's end: not in it
    ]
    assert found.communication_ns == 20_000


def test_communicator_of_the_call_that_launched_each(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 50)
    for at, communicator, stream in ((100, WORLD, 20), (200, TENSOR, 21), (300, WORLD, 20)):
        trace.kernel(at, at + 10, ALL_REDUCE, stream=stream)  # launched 10 us before
        payload = {"NCCL communicator ID": communicator, "Message size [bytes]": 8}
        trace.range("ncclAllReduce", at - 12, at - 3, domain="NCCL", json_payload=payload)
    trace.kernel(400, 410, ALL_REDUCE, stream=20)  # after the last call
    trace.kernel(500, 510, ALL_REDUCE, stream=20, call=(488.5, 490), tid=77)  # another thread's
    trace.range(
        "ncclAllReduce", 488, 497, domain="NCCL", json_payload={"NCCL communicator ID": TENSOR}, tid=78
    )
    trace.kernel(600, 610, ALL_REDUCE, stream=20, launch=None)  # of which no launch was recorded
    found = part(trace, tmp_path)
    assert found.collectives["communicator"].to_list() == [str(WORLD), str(TENSOR), str(WORLD), "", "", ""]


def test_a_call_ends_before_its_end(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 50)
    payload = {"NCCL communicator ID": WORLD}
    for at, end in ((100, 90), (200, 190.001)):  # launched at 90 and 190
        trace.kernel(at, at + 10, ALL_REDUCE, stream=20)
        trace.range("ncclAllReduce", at - 12, end, domain="NCCL", json_payload=payload)
    assert part(trace, tmp_path).collectives["communicator"].to_list() == ["", str(WORLD)]


def test_streams_count_by_their_first_launch(tmp_path: Path) -> None:
    # that of stream 20 was launched first and started last
    trace = TraceBuilder().kernel(0, 50)
    trace.kernel(200, 210, ALL_REDUCE, stream=20, call=(60, 65))
    trace.kernel(100, 110, ALL_REDUCE, stream=8, call=(70, 75))
    found = part(trace, tmp_path).collectives
    assert found.select("start_ns", "stream").rows() == [(100_000, 2), (200_000, 1)]


def test_no_collectives(tmp_path: Path) -> None:
    found = part(one_kernel(), tmp_path)
    assert found.collectives.is_empty()
    assert dict(found.collectives.schema) == COLLECTIVES
    assert (found.communication_ns, found.exposed_ns, found.of_hosts) == (0, 0, False)


@pytest.mark.parametrize("version", ["2026.3.1", "2021.5.2"])
def test_mpi_collectives_where_there_is_no_nccl(version: str, tmp_path: Path) -> None:
    trace = TraceBuilder(version).kernel(0, 100).kernel(1_000, 1_100)
    trace.mpi("MPI_Send", 110, 150, "point_to_point")
    trace.mpi("MPI_Barrier", 500, 560).mpi("MPI_Allreduce", 200, 300).mpi(
        "PMPI_Ireduce_scatter_block", 600, 610
    )
    found = part(trace, tmp_path)
    assert found.of_hosts
    assert found.collectives.rows() == [
        ("", 0, "mpi_allreduce", 200_000, 100_000, True),
        ("", 0, "mpi_barrier", 500_000, 60_000, True),
        ("", 0, "pmpi_ireduce_scatter_block", 600_000, 10_000, True),
    ]
    assert found.communication_ns == 170_000
    # what the GPU lost to MPI, whichever call it was
    assert found.exposed_ns == found.ledger["host_communication"] > 0


def test_nccl_comes_before_mpi(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100).mpi("MPI_Allreduce", 110, 150)
    trace.kernel(200, 230, ALL_REDUCE, stream=20)
    found = part(trace, tmp_path)
    assert not found.of_hosts
    assert found.collectives["op"].to_list() == ["all_reduce"]
    assert (found.communication_ns, found.exposed_ns) == (30_000, 30_000)


def test_mpi_of_each_process(tmp_path: Path) -> None:
    trace = two_processes().mpi("MPI_Barrier", 110, 150, pid=20)
    first, second = parts(trace, tmp_path)
    assert (first.of_hosts, second.of_hosts) == (True, False)
    assert (first.communication_ns, second.communication_ns) == (40_000, 0)


# --- kernels, steps, host -----------------------------------------------------------------------------------


def test_kernels_by_name_and_blocks(tmp_path: Path) -> None:
    trace = TraceBuilder().kernels(0, 3, every=100, length=90)
    trace.kernel(300, 420, GEMM, grid=(10, 2, 3)).kernel(500, 510, ADD).kernel(
        510, 600, ALL_REDUCE, stream=20
    )
    found = part(trace, tmp_path).kernels
    assert dict(found.schema) == KERNELS_BY_NAME
    assert found.rows() == [(GEMM, 1056, 3, 270_000), (GEMM, 60, 1, 120_000), (ADD, 1056, 1, 10_000)]
    # those that start in the window
    assert part(trace, tmp_path, window="0.00015:0.0004").kernels.rows() == [
        (GEMM, 60, 1, 120_000),
        (GEMM, 1056, 1, 90_000),
    ]


def test_the_longest_of_many_names_are_kept(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for index in range(KEPT_NAMES + 5):
        trace.kernel(100 * index, 100 * index + 10 + index, f"kernel_{index}()")
    found = part(trace, tmp_path).kernels
    assert found["name"].to_list() == [f"kernel_{index}()" for index in range(KEPT_NAMES + 4, 4, -1)]


def test_median_step_of_each_process(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    for index in range(12):
        for pid, device, length in ((20, 0, 1_000), (10, 1, 1_500)):
            at = length * index
            where = {"pid": pid, "device": device, "stream": 9}
            trace.range(f"step {index}", at, at + length - 50, pid=pid)
            trace.kernel(at + 20, at + 800, **where)  # type: ignore[arg-type]
    assert [p.step_p50_ns for p in parts(trace, tmp_path)] == [1_000_000, 1_500_000]
    assert part(one_kernel(), tmp_path).step_p50_ns is None


def test_start_up_is_no_step_of_the_median(tmp_path: Path) -> None:
    trace, at = TraceBuilder(), 0
    for index, length in enumerate((9_000, *(1_000, 1_200) * 5)):
        trace.range(f"step {index}", at, at + length - 50).kernel(at + 20, at + length - 100)
        at += length
    # the sixth of all eleven would be 1 200; the last step ends with its range, 50 us earlier
    assert part(trace, tmp_path).step_p50_ns == 1_000_000


def test_host_clock_and_window(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 100).kernel(900, 1_000).started(1_780_000_000_000_000_123)
    found = part(trace, tmp_path, window="0.0001:0.001")
    assert found.clock_ns == 1_780_000_000_000_000_123
    assert found.window == (100_000, 1_000_000)
    other = part(TraceBuilder().kernel(0, 100).system(Hostname="elsewhere"), tmp_path)
    assert found.host_key is not None
    assert other.host_key not in (None, found.host_key, "elsewhere")
