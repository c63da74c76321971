from pathlib import Path

from nsys_triage.rules.context import Context
from tests.builders.trace import ALL_REDUCE, GEMM, TraceBuilder
from tests.rules.support import measured


def test_without_the_steps_that_lose_most(tmp_path: Path) -> None:
    trace, start = TraceBuilder(), 1_000.0
    for index in range(10):
        # 40 us of exposed communication in each step, 400 in the seventh
        end = start + 100 + (400 if index == 6 else 40)
        trace.range(f"step {index}", start - 20, end - 21)
        trace.kernel(start, start + 100, GEMM).kernel(start + 100, end, ALL_REDUCE)
        start = end
    stake = Context(measured(trace, tmp_path), {}).cause_stake("communication")
    # 760 us in all, 360 without the tenth of the steps that lose most
    assert (stake.low_ns, stake.high_ns) == (360_000, 760_000)


def test_where_the_steps_are_those_of_the_rank_that_others_wait_for(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=("H100", "H100"))
    for index in range(10):
        start = 1_000 + 200 * index
        # the process with the lower pid, whose steps are shown, communicates 20 us in each, the other one 100
        for pid, device, compute in ((10, 0, 160), (20, 1, 80)):
            where = {"pid": pid, "device": device, "stream": 7 + device}
            trace.range(f"step {index}", start - 15, start + 170, pid=pid)
            trace.kernel(start, start + compute, GEMM, **where)
            trace.kernel(start + compute, start + 180, ALL_REDUCE, **where)
    stake = Context(measured(trace, tmp_path), {}).cause_stake("communication")
    # 200 and 1 000 us: 600 a GPU. Nine of the ten steps of the one with 200 us hold nine tenths of it
    assert (stake.low_ns, stake.high_ns) == (540_000, 600_000)


def test_without_steps_the_longest_gap_may_happen_once(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(1_000, 1_100)
    # gaps of 60 and of 500 us, in launch calls from before their beginning on
    trace.kernel(1_160, 1_300, call=(1_050, 1_155)).kernel(1_800, 2_000, call=(1_200, 1_795))
    c = Context(measured(trace, tmp_path), {})
    stake = c.cause_stake("launch")
    assert stake.high_ns == c.total_ns("launch") == 560_000
    assert stake.low_ns == 60_000
