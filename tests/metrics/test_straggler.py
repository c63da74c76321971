"""Why a rank arrives late: the ledgers and kernels of hand-made parts."""

import polars as pl
import pytest

from nsys_triage.metrics.rank_parts import COLLECTIVES, KERNELS_BY_NAME, RankPart
from nsys_triage.metrics.straggler import SLOWER_KERNELS, Reason, straggler_reason
from nsys_triage.result.model import CAUSES, Cause

SPAN = 1_000_000
Kernels = list[tuple[str, int, int, int]]  # name, blocks, count, total ns
SAME: Kernels = [("gemm", 64, 10, 600_000), ("add", 8, 10, 100_000)]


def part(rank: int, kernels: Kernels = SAME, **ledger: int) -> RankPart:
    """A rank on one GPU with that ledger; what is left of the span is exposed communication."""
    times: dict[Cause, int] = {cause: ledger[cause] for cause in CAUSES if cause in ledger}
    times["communication"] = SPAN - sum(times.values())
    return RankPart(
        file=f"{rank}.sqlite", file_index=rank, pid=rank, known_rank=rank, local_rank=None, world_size=None, node=None,
        host_key=None, clock_ns=None, gpus=[], span_ns=SPAN, busy_ns=SPAN, exposed_ns=0, communication_ns=0,
        step_p50_ns=None, window=(0, SPAN), ledger=times, collectives=pl.DataFrame(schema=COLLECTIVES),
        kernels=pl.DataFrame(kernels, schema=KERNELS_BY_NAME, orient="row"), of_hosts=False,
    )  # fmt: skip


def reason(late: RankPart, *others: RankPart) -> Reason | None:
    return straggler_reason(dict(enumerate([late, *others])), 0)


def test_nothing_differs() -> None:
    assert reason(part(0, compute=700_000), part(1, compute=700_000)) is None
    assert reason(part(0, compute=700_000)) is None


@pytest.mark.parametrize(("more", "said"), [(9_999, False), (10_000, True)])
def test_a_hundredth_of_the_span_is_needed(more: int, said: bool) -> None:
    found = reason(part(0, launch=50_000 + more), part(1, launch=50_000), part(2, launch=50_000))
    assert (found is not None) is said


@pytest.mark.parametrize("cause", [c for c in CAUSES if c not in {"communication", "host_communication"}])
def test_every_cause_has_its_words(cause: Cause) -> None:
    found = reason(part(0, **{cause: 300_000}), part(1, **{cause: 100_000}), part(2, **{cause: 40_000}))
    assert found is not None
    assert found.cause == cause
    # the lower median of 100 and 40 us is 40 us
    assert found.text.startswith("Rank 0 is late because ")
    assert found.text.endswith(": 260 us more than the median of the others.")
    assert "_" not in found.text


def test_waiting_itself_is_no_reason() -> None:
    late = part(0, host_communication=200_000)
    assert reason(late, part(1, host_communication=0)) is None


def test_the_largest_difference_is_said_not_the_largest_time() -> None:
    late = part(0, compute=710_000, input_pipeline=90_000)
    found = reason(late, part(1, compute=700_000), part(2, compute=700_000))
    assert found is not None
    assert found.cause == "input_pipeline"


def test_same_kernels_slower() -> None:
    slower: Kernels = [("gemm", 64, 10, 840_000), ("add", 8, 10, 140_000)]
    found = reason(part(0, slower, compute=900_000), part(1, compute=700_000), part(2, compute=700_000))
    assert found == Reason(
        SLOWER_KERNELS,
        "Rank 0 is late because the same kernels take 1.4 times as long on its GPU:"
        " 200 us more than the median of the others.",
    )


@pytest.mark.parametrize(
    "kernels",
    [
        # more launches of the same length
        [("gemm", 64, 14, 840_000), ("add", 8, 10, 100_000)],
        # the same kernel on a larger grid has more work
        [("gemm", 128, 10, 1_200_000), ("add", 8, 10, 100_000)],
        # other kernels altogether: nothing can be compared
        [("another", 64, 10, 900_000), ("add", 8, 10, 140_000)],
        # 4 % longer is what two GPUs of a kind differ by
        [("gemm", 64, 13, 811_200), ("add", 8, 10, 104_000)],
        # both: the launches differ by more
        [("gemm", 64, 20, 1_320_000), ("add", 8, 20, 220_000)],
    ],
    ids=["more launches", "larger grid", "other kernels", "hardly slower", "more of both"],
)
def test_more_work_is_no_slower_gpu(kernels: Kernels) -> None:
    found = reason(part(0, kernels, compute=900_000), part(1, compute=700_000), part(2, compute=700_000))
    assert found is not None
    assert (found.cause, found.text.split(": ")[0]) == ("compute", "Rank 0 is late because it computes more")


def test_one_odd_small_kernel_decides_nothing() -> None:
    kernels: Kernels = [("gemm", 64, 13, 780_000), ("add", 8, 10, 100_000), ("tiny", 1, 1, 5_000)]
    others: Kernels = [*SAME, ("tiny", 1, 1, 100)]
    found = reason(part(0, kernels, compute=900_000), part(1, others, compute=700_000))
    assert found is not None
    assert found.cause == "compute"


def test_compared_with_the_median_of_the_others() -> None:
    """One rank that idles much more than all others is no yardstick."""
    late = part(0, [("gemm", 64, 10, 840_000)], compute=900_000)
    usual = [part(rank, compute=700_000) for rank in (1, 2)]
    found = reason(late, part(3, [("gemm", 64, 1, 60_000)], compute=60_000), *usual)
    assert found is not None
    assert found.cause == SLOWER_KERNELS
    assert found.text.endswith("200 us more than the median of the others.")
