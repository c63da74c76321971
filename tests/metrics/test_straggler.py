"""Why a rank arrives late: the ledgers and kernels of hand-made parts."""

from dataclasses import replace

import polars as pl
import pytest

from nsys_triage.metrics.rank_parts import COLLECTIVES, KERNELS_BY_NAME, RankPart
from nsys_triage.metrics.straggler import SLOWER_KERNELS, Reason, straggler_reason
from nsys_triage.result.model import CAUSES, Cause, Gaps, Gpu, WholeCapture

SPAN = 1_000_000
Kernels = list[tuple[str, int, int, int]]  # name, blocks, count, total ns
GPU = Gpu(
    id="gpu0", name=None, uuid=None, identity="known", processes=[1], device_ids=[0], rank=None, span_ns=SPAN,
    busy_ns=SPAN, idle_ns=0, kernel_ns=0, copy_ns=0, memset_ns=0, graph_ns=0, compute_ns=0, communication_ns=0,
    exposed_communication_ns=0, kernel_sum_ns=0, whole=WholeCapture(span_ns=SPAN, busy_ns=SPAN, ledger=[]), ledger=[],
    gaps=Gaps(count=0, total_ns=0, max_ns=0, histogram=[], longest=[]), metrics=None,
)  # fmt: skip
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
        # 4 % longer is what two GPUs of a kind differ by: the rest is in kernels that nobody else has
        [("gemm", 64, 10, 624_000), ("add", 8, 10, 104_000), ("checks", 8, 10, 172_000)],
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


def test_of_two_others_the_one_with_less_to_compute_is_the_median() -> None:
    slower: Kernels = [("gemm", 64, 10, 840_000), ("add", 8, 10, 140_000)]
    late = part(0, slower, compute=900_000)
    usual, other = part(1, compute=700_000), part(2, [("another", 64, 10, 800_000)], compute=800_000)
    for others in ((usual, other), (other, usual)):
        found = reason(late, *others)
        assert found is not None
        assert found.cause == SLOWER_KERNELS
        assert found.text.endswith(": 200 us more than the median of the others.")


def test_a_hundredth_is_that_of_one_gpu() -> None:
    # the span of a rank is the sum of its GPUs', its ledger the mean of them: 15 us of 1 ms
    late, others = part(0, launch=65_000), [part(rank, launch=50_000) for rank in (1, 2)]
    found = reason(replace(late, span_ns=2 * SPAN, gpus=[GPU, GPU]), *others)
    assert found is not None
    assert found.cause == "launch"


@pytest.mark.parametrize("pair", [("launch", "host_sync"), ("compute", "copy")])
def test_of_equal_differences_always_the_same_is_said(pair: tuple[Cause, Cause]) -> None:
    for first, second in (pair, pair[::-1]):
        late = part(0, **{first: 100_000, second: 100_000})
        found = reason(late, part(1, **{first: 10_000, second: 10_000}))
        assert found is not None
        assert found.cause == max(pair)


def test_a_cause_that_no_other_rank_has() -> None:
    late = part(0, compute=700_000, module_load=20_000)
    found = reason(late, part(1, compute=700_000), part(2, compute=700_000))
    assert found == Reason(
        "module_load",
        "Rank 0 is late because it loads or compiles kernels longer: 20 us more than the median of the others.",
    )
