"""What breaks the order in which the contract lists things: the same input has to give the same bytes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from msgspec import UNSET

from nsys_triage.metrics.histogram import DURATION_EDGES_NS, SIZE_EDGES
from nsys_triage.result.model import CAUSES, Gpu, Result

SEVERITIES = ("high", "medium", "low")


def disorder(result: Result) -> list[str]:
    """Everything in a result that is out of order, as text; a job's GPUs and ranks are by rank."""
    found = [what for gpu in result.gpus for what in _of_gpu(gpu)]
    for what, rows, key in _lists(result):
        keys = [key(row) for row in rows]
        if any(one >= two for one, two in pairwise(keys)):  # equal keys are no order either
            found.append(f"{what}: {keys}")
    return found


def _of_gpu(gpu: Gpu) -> Iterator[str]:
    for what, entries in (
        ("ledger", gpu.ledger or []),
        ("whole ledger", gpu.whole.ledger or []),
        *(("gap", gap.causes) for gap in gpu.gaps.longest),
    ):
        places = [CAUSES.index(entry.cause) for entry in entries]
        if places != sorted(set(places)):
            yield f"{gpu.id} {what}: {places}"
    if [bucket.from_ns for bucket in gpu.gaps.histogram] != list(DURATION_EDGES_NS):
        yield f"{gpu.id}: not every bucket"


def _lists(result: Result) -> Iterator[tuple[str, Sequence[Any], Callable[[Any], Any]]]:
    ranks = result.ranks or None
    if result.capture.files is UNSET:
        yield "gpus", result.gpus, lambda gpu: (gpu.processes[0], gpu.device_ids[0])
    yield "findings", result.findings, lambda f: (SEVERITIES.index(f.severity), -f.stake.high_ns, f.rule)
    yield "checks", result.checks, lambda check: check.rule
    yield "warnings", result.capture.warnings, lambda warning: warning.id
    for gpu in result.gpus:
        yield "processes", gpu.processes, int
        yield "device_ids", gpu.device_ids, int
        yield "longest gaps", gpu.gaps.longest, lambda gap: (gap.start_ns - gap.end_ns, gap.start_ns)
        yield "gap histogram", gpu.gaps.histogram[:-1], lambda bucket: (bucket.from_ns, bucket.to_ns)
    if result.kernels:
        yield "kernel histogram", result.kernels.histogram[:-1], lambda bucket: (bucket.from_ns, bucket.to_ns)
        yield "kernels.top", result.kernels.top, lambda row: (-row.total_ns, row.name)
        yield "kernels.classes", result.kernels.classes, lambda row: (-row.total_ns, row.kernel_class)
    if result.copies:
        yield "copies.kinds", result.copies.kinds, lambda row: (-row.total_ns, row.kind)
        yield "copies.sizes", result.copies.sizes[:-1], lambda bucket: (bucket.from_bytes, bucket.to_bytes)
    if result.sync:
        yield "sync.by_api", result.sync.by_api, lambda row: (-row.total_ns, row.api)
    if result.collectives:
        yield "collectives.by_op", result.collectives.by_op, lambda row: (-row.total_ns, row.op)
    yield "ranges", result.ranges or [], lambda row: (-row.total_ns, row.name)
    if result.steps:
        yield "steps", result.steps.items, lambda step: step.start_ns
    if ranks:
        yield "ranks", ranks.per_rank, lambda row: row.rank
        yield "missing ranks", ranks.missing, int


def open_ends(result: Result) -> list[str]:
    """Histograms whose last bucket has an end, or another one has none."""
    ends: dict[str, list[int | None]] = {
        f"gaps of {gpu.id}": [bucket.to_ns for bucket in gpu.gaps.histogram] for gpu in result.gpus
    }
    if result.kernels:
        ends["kernels"] = [bucket.to_ns for bucket in result.kernels.histogram]
    if result.copies:
        ends["copies"] = [bucket.to_bytes for bucket in result.copies.sizes]
    wanted = {len(edges): [*edges[1:], None] for edges in (DURATION_EDGES_NS, SIZE_EDGES)}
    return [what for what, found in ends.items() if found != wanted.get(len(found))]
