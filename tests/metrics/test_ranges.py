"""NVTX ranges and the GPU time of what was launched inside them; numbers by hand, in microseconds."""

from pathlib import Path

from nsys_triage.metrics.measure import Measurement
from nsys_triage.metrics.ranges import TOP
from nsys_triage.result.model import RangeRow
from tests.builders.trace import PID, TraceBuilder
from tests.rules.support import measured


def rows(m: Measurement) -> dict[str, RangeRow]:
    return {row.name: row for row in m.ranges[0]}


def test_a_range_owns_what_its_thread_launches_inside_it(tmp_path: Path) -> None:
    builder = TraceBuilder()
    # launched inside; runs until after the range has ended
    builder.kernel(100, 180, call=(20, 25))
    # launched by another thread while the range lasts
    builder.kernel(180, 240, call=(30, 35), tid=PID + 1, stream=8)
    # launched after the range
    builder.kernel(300, 350, call=(290, 295)).range("forward", 10, 200)
    m = measured(builder, tmp_path)
    row = rows(m)["forward"]
    assert (row.count, row.total_ns, row.p50_ns) == (1, 190_000, 190_000)
    assert row.gpu_ns == 80_000
    # device time of the process while the range lasts: 100 to 180 and 180 to 200
    assert row.gpu_window_ns == 100_000
    # the other thread's kernel and the later one
    assert m.ranges[1] == 60_000 + 50_000


def test_a_range_is_half_open(tmp_path: Path) -> None:
    builder = TraceBuilder().range("a", 10, 20)
    builder.kernel(100, 110, call=(10, 11)).kernel(110, 130, call=(19.999, 20)).kernel(
        130, 170, call=(20, 21)
    )
    m = measured(builder, tmp_path)
    assert rows(m)["a"].gpu_ns == 10_000 + 20_000
    assert m.ranges[1] == 40_000


def test_ranges_of_one_name_are_one_row_and_count_each_kernel_once(tmp_path: Path) -> None:
    builder = TraceBuilder()
    # two of the same name, one inside the other, and a third later
    builder.range("step", 0, 100).range("step", 20, 60).range("step", 200, 230)
    builder.kernel(300, 350, call=(30, 35)).kernel(350, 380, call=(210, 215))
    m = measured(builder, tmp_path)
    row = rows(m)["step"]
    assert (row.count, row.total_ns) == (3, 100_000 + 40_000 + 30_000)
    assert row.p50_ns == 40_000
    assert row.gpu_ns == 80_000
    assert m.ranges[1] == 0


def test_overlapping_kernels_count_once(tmp_path: Path) -> None:
    builder = TraceBuilder().range("a", 0, 100)
    builder.kernel(200, 300, call=(10, 11)).kernel(250, 320, call=(20, 21), stream=8)
    assert rows(measured(builder, tmp_path))["a"].gpu_ns == 120_000


def test_two_gpus_of_a_process_are_summed(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).range("a", 0, 250)
    builder.kernel(200, 300, call=(10, 11)).kernel(200, 260, call=(20, 21), device=1, context=2)
    row = rows(measured(builder, tmp_path))["a"]
    assert row.gpu_ns == 160_000
    assert row.gpu_window_ns == 50_000 + 50_000


def test_all_nodes_of_a_graph_belong_to_the_range_of_its_launch(tmp_path: Path) -> None:
    builder = TraceBuilder().range("a", 0, 100).graph_nodes([(200, 220), (220, 250)], call=(10, 20))
    assert rows(measured(builder, tmp_path))["a"].gpu_ns == 50_000


def test_another_process_is_another_matter(tmp_path: Path) -> None:
    builder = TraceBuilder(gpus=("H100", "H100")).range("a", 0, 400).kernel(200, 300)
    builder.kernel(200, 300, pid=PID + 1, device=1)
    m = measured(builder, tmp_path)
    assert rows(m)["a"].gpu_ns == 100_000
    assert rows(m)["a"].gpu_window_ns == 100_000
    assert m.ranges[1] == 100_000


def test_start_end_ranges_count_and_names_without_text_do_not(tmp_path: Path) -> None:
    builder = (
        TraceBuilder().process_range("epoch", 0, 400).range("  ", 0, 400).range(None, 0, 400).kernel(200, 300)
    )
    m = measured(builder, tmp_path)
    assert set(rows(m)) == {"epoch"}
    assert rows(m)["epoch"].gpu_ns == 100_000


def test_work_without_a_launch_belongs_to_no_range(tmp_path: Path) -> None:
    builder = TraceBuilder().range("a", 0, 400).kernel(200, 300, launch=None).kernel(300, 330)
    m = measured(builder, tmp_path)
    assert rows(m)["a"].gpu_ns == 30_000
    assert m.ranges[1] == 100_000


def test_without_ranges_no_range_owns_anything(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(50, 120, stream=8)
    assert measured(builder, tmp_path).ranges == ([], 120_000)


def test_the_longest_names_are_listed_by_time_then_name(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    for index in range(TOP + 2):
        builder.range(f"r{index:02}", 0, 50 if index < TOP else 10 + index)
    found = [row.name for row in measured(builder, tmp_path).ranges[0]]
    assert len(found) == TOP
    assert found == [f"r{index:02}" for index in range(TOP)]


def test_ranges_and_work_of_a_window_are_those_that_start_in_it(tmp_path: Path) -> None:
    builder = TraceBuilder().range("early", 0, 600).range("late", 510, 700)
    builder.kernel(490, 560, call=(480, 485)).kernel(600, 650, call=(520, 525)).kernel(
        900, 1000, call=(890, 895)
    )
    m = measured(builder, tmp_path, window="0.0005:0.00095")
    assert set(rows(m)) == {"late"}
    # with its whole duration, though the window cuts at 950
    assert rows(m)["late"].total_ns == 190_000
    assert rows(m)["late"].gpu_ns == 50_000
    assert m.ranges[1] == 100_000
