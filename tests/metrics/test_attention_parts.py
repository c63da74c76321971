from pathlib import Path
from typing import Any

import polars as pl

from nsys_triage.metrics.attention_parts import ATTENTION_PARTS, attention_parts
from nsys_triage.metrics.work import build_workload
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import ADD, GEMM, TraceBuilder

SOFTMAX = "void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)0, (bool)0>(T2 *, const T1 *, int)"
SOFTMAX_BACKWARD = SOFTMAX.replace("forward", "backward")
TOP_K = "void at::native::sbtopk::gatherTopK<float, unsigned int, (int)2, (bool)0>(int)"
BATCHED = {"grid": (4, 4, 48)}


def parts(kernels: list[tuple[str, dict[str, Any]]], folder: Path) -> list[tuple[int, int]]:
    """Start and number (of the pair of products) of each part; the kernels are planted 100 us apart."""
    trace = TraceBuilder()
    for index, (name, options) in enumerate(kernels):
        trace.kernel(1_000 + 100 * index, 1_080 + 100 * index, name, **options)
    path = trace.write(folder / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    workload = build_workload(loaded)
    found = attention_parts(loaded, workload, workload.work)
    assert found.schema == pl.Schema(ATTENTION_PARTS)
    return [(start // 100_000 - 10, number) for start, number in found.select("start_ns", "attention").rows()]


def test_what_runs_between_two_batched_products(tmp_path: Path) -> None:
    kernels = [(ADD, {}), (GEMM, BATCHED), (ADD, {}), (SOFTMAX, {}), (GEMM, BATCHED), (ADD, {})]
    assert [at for at, _ in parts(kernels, tmp_path)] == [2, 3]


def test_forward_and_backward(tmp_path: Path) -> None:
    forward = [(GEMM, BATCHED), (SOFTMAX, {}), (GEMM, BATCHED)]
    backward = [(GEMM, BATCHED), (SOFTMAX_BACKWARD, {}), (ADD, {}), (GEMM, BATCHED)]
    found = parts([*forward, (GEMM, {}), *backward], tmp_path)
    assert [at for at, _ in found] == [1, 5, 6]
    assert len({number for _, number in found}) == 2


def test_what_is_none(tmp_path: Path) -> None:
    assert parts([(GEMM, BATCHED), (ADD, {}), (GEMM, BATCHED)], tmp_path) == []
    assert parts([(GEMM, {}), (SOFTMAX, {}), (GEMM, BATCHED)], tmp_path) == []
    assert parts([(GEMM, BATCHED), (SOFTMAX, {}), (GEMM, {})], tmp_path) == []
    assert parts([(GEMM, BATCHED), (SOFTMAX, {})], tmp_path) == []
    # a router of experts
    assert parts([(GEMM, BATCHED), (SOFTMAX, {}), (TOP_K, {}), (GEMM, BATCHED)], tmp_path) == []


def test_sixteen_kernels_between_at_most(tmp_path: Path) -> None:
    assert len(parts([(GEMM, BATCHED), (SOFTMAX, {}), *[(ADD, {})] * 15, (GEMM, BATCHED)], tmp_path)) == 16
    assert parts([(GEMM, BATCHED), (SOFTMAX, {}), *[(ADD, {})] * 16, (GEMM, BATCHED)], tmp_path) == []


def test_streams_are_read_one_by_one(tmp_path: Path) -> None:
    other = {"stream": 20}
    kernels: list[tuple[str, dict[str, Any]]] = [
        (GEMM, BATCHED),
        (GEMM, {**BATCHED, **other}),
        (SOFTMAX, {}),
        (ADD, other),
        (GEMM, BATCHED),
        (GEMM, {**BATCHED, **other}),
    ]
    assert [at for at, _ in parts(kernels, tmp_path)] == [2]


def test_without_kernels(tmp_path: Path) -> None:
    path = TraceBuilder().copy(1_000, 2_000).write(tmp_path / "trace.sqlite")
    loaded = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    workload = build_workload(loaded)
    assert attention_parts(loaded, workload, workload.work).is_empty()
