from pathlib import Path

import pytest

from nsys_triage.rules.base import Outcome
from tests.builders.trace import ADD, GEMM, TraceBuilder
from tests.rules.kernel_support import back_to_back, evidence, found, not_run, passed
from tests.rules.support import outcome

# one block on each of 132 SMs: 165 blocks are 1.25 waves, of which 3/8 is unused
TAIL = {"grid": (165, 1, 1), "dynamic_shared": 200_000, "carveout": 0}


def run(folder: Path, name: str, length: float, options: dict[str, object], span: float = 12_000) -> Outcome:
    """Ten launches of `length` us each within `span` us of work."""
    trace = TraceBuilder()
    back_to_back(trace, [(name, length, options), (GEMM, span / 10 - length, {})] * 10)
    return outcome("wave-tail", trace, folder)


def test_a_quarter_of_a_second_wave(tmp_path: Path) -> None:
    ended = run(tmp_path, GEMM, 800, TAIL)
    # 8 000 us, 3/8 of it
    assert (found(ended).stake.low_ns, found(ended).stake.high_ns) == (0, 3_000_000)
    assert found(ended).title == "Kernels that end with a nearly empty wave of blocks take 67 % of the time"
    assert evidence(ended, "its blocks") == 165
    assert evidence(ended, "blocks that all SMs hold at a time") == 132
    assert evidence(ended, "how full its last wave is") == 0.25
    assert "ncu --kernel-name regex:^ampere_bf16" in found(ended).actions[-1]


def test_exactly_at_the_threshold(tmp_path: Path) -> None:
    # 3/8 of 1 600 us is 5 % of 12 ms
    assert found(run(tmp_path, GEMM, 160, TAIL)).stake.high_ns == 600_000


def test_just_below_the_threshold(tmp_path: Path) -> None:
    assert "leave 5.0 % of the time unused" in passed(run(tmp_path, GEMM, 159.9, TAIL)).note


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        (264, "two full waves"),
        (132, "one full wave"),
        (100, "less than one wave is a small grid"),
        (200, "the second wave is 68 of 132 blocks, more than half"),
        (561, "4.25 waves: more than four have drifted apart"),
    ],
)
def test_look_alike_grids(tmp_path: Path, blocks: int, why: str) -> None:
    passed(run(tmp_path, GEMM, 1_100, {**TAIL, "grid": (blocks, 1, 1)}))


def test_look_alike_blocks_that_share_an_sm(tmp_path: Path) -> None:
    # four resident blocks an SM, 528 at a time: 660 blocks are 1.25 waves, but five blocks for every SM, none idle
    passed(run(tmp_path, GEMM, 1_100, {"grid": (660, 1, 1)}))


def test_look_alike_streaming_kernels(tmp_path: Path) -> None:
    passed(run(tmp_path, ADD, 1_100, TAIL))


def test_look_alike_short_kernels(tmp_path: Path) -> None:
    trace = TraceBuilder()
    back_to_back(trace, [(GEMM, 9.9, TAIL)] * 400)
    passed(outcome("wave-tail", trace, tmp_path))


def test_unknown_gpu(tmp_path: Path) -> None:
    trace = TraceBuilder(gpus=())
    back_to_back(trace, [(GEMM, 400, TAIL)] * 10)
    not_run(outcome("wave-tail", trace, tmp_path))


def test_not_recorded(tmp_path: Path) -> None:
    assert not_run(outcome("wave-tail", TraceBuilder().copy(1_000, 2_000), tmp_path)).option == "--trace=cuda"
