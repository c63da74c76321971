"""Sizes of collectives from the payloads of NCCL's ranges."""

from pathlib import Path

import polars as pl

from nsys_triage.metrics.collective_sizes import PAYLOADS, nccl_calls, with_sizes
from nsys_triage.metrics.measure import Measurement
from nsys_triage.metrics.work import COMMUNICATION
from tests.builders.trace import ALL_REDUCE, PID, TraceBuilder
from tests.rules.support import measured

COMMUNICATOR = 13429301450432826988  # above 2^63, as NCCL's are


def payload(size: int) -> dict[str, object]:
    return {"NCCL communicator ID": COMMUNICATOR, "Message size [bytes]": size, "Reduction operation": "Avg"}


def sizes(m: Measurement) -> list[tuple[int | None, str | None]]:
    rows = m.workload.work.filter(pl.col("activity") == COMMUNICATION)
    return with_sizes(m.trace, m.workload, rows).select("bytes", "communicator").rows()


def test_a_kernel_has_the_size_of_the_call_that_launched_it(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    builder.range("ncclAllReduce", 10, 20, domain="NCCL", json_payload=payload(4096))
    builder.range("ncclAllReduce", 30, 40, domain="NCCL", json_payload=payload(8192))
    # the second call's kernel runs first
    builder.kernel(100, 150, ALL_REDUCE, stream=20, call=(32, 34)).kernel(
        150, 200, ALL_REDUCE, stream=21, call=(12, 14)
    )
    assert sizes(measured(builder, tmp_path)) == [(8192, str(COMMUNICATOR)), (4096, str(COMMUNICATOR))]


def test_bounds_threads_and_missing_launches(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100)
    builder.range("ncclAllReduce", 10, 20, domain="NCCL", json_payload=payload(4096))
    builder.kernel(100, 110, ALL_REDUCE, stream=20, call=(10, 12))  # at its start: inside
    builder.kernel(110, 120, ALL_REDUCE, stream=20, call=(20, 22))  # at its end: outside
    builder.kernel(120, 130, ALL_REDUCE, stream=20, call=(12, 14), tid=PID + 1)  # another thread
    builder.kernel(130, 140, ALL_REDUCE, stream=20, launch=None)
    assert [size for size, _ in sizes(measured(builder, tmp_path))] == [4096, None, None, None]


def test_a_call_without_a_size_gives_none(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(100, 110, ALL_REDUCE, stream=20, call=(12, 14))
    set_up = {"NCCL communicator ID": COMMUNICATOR, "No. of ranks": 2, "Rank": 0}
    builder.range("ncclCommInitRankConfig", 10, 20, domain="NCCL", json_payload=set_up)
    m = measured(builder, tmp_path)
    assert sizes(m) == [(None, str(COMMUNICATOR))]
    calls = nccl_calls(m.trace, m.workload)
    assert calls.schema == PAYLOADS
    assert calls.select("start_ns", "end_ns", "bytes").rows() == [(10_000, 20_000, None)]


def test_without_payloads_nothing_is_known(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).kernel(100, 110, ALL_REDUCE, stream=20)
    m = measured(builder.range("ncclAllReduce", 88, 97, domain="NCCL"), tmp_path)
    assert nccl_calls(m.trace, m.workload).is_empty()
    assert sizes(m) == [(None, None)]
