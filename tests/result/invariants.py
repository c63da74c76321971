"""What holds for the numbers of every result, whatever the trace: sums, parts and bounds."""

from collections.abc import Iterator, Sequence

from nsys_triage.result.model import (
    BUSY_CAUSES,
    IDLE_CAUSES,
    Bucket,
    CauseTime,
    Copies,
    Finding,
    Gaps,
    Gpu,
    Kernels,
    Result,
    SizeBucket,
    Step,
    Sync,
)
from nsys_triage.rules.base import severity_of
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.run import MOST_FINDINGS, UNLISTED

Claim = tuple[str, bool]
SMALL_NS, SMALL_BYTES = 10_000, 65_536
LARGEST_ERROR = 1e-6  # of shares, which are rounded to six digits


def broken(result: Result) -> list[str]:
    """The claims that do not hold for a result."""
    return [text for text, holds in claims(result) if not holds]


def claims(result: Result) -> Iterator[Claim]:
    yield from _checks(result)
    yield (
        "a result with GPUs is ok, one without cannot be judged",
        (result.status == "ok") == bool(result.gpus),
    )
    yield (
        "a limiter is named exactly where the trace is judged",
        ((result.verdict.limiter is not None) == (result.status == "ok")),
    )
    if result.status != "ok":
        return
    mode = result.capture.window.mode if result.capture.window else None
    for gpu in result.gpus:
        yield from ((f"{gpu.id}: {text}", holds) for text, holds in _gpu(gpu, whole=mode == "all"))
    for finding in result.findings:
        yield from ((f"{finding.rule}: {text}", holds) for text, holds in _finding(finding, result))
    if result.kernels:
        yield from _kernels(result.kernels)
        if mode == "all":
            yield (
                "kernels are those of the GPUs",
                result.kernels.sum_ns == sum(g.kernel_sum_ns for g in result.gpus),
            )
    if result.sync:
        yield from _sync(result.sync, result.gpus)
    if result.copies:
        yield from _copies(result.copies)
    yield from _communication(result)
    yield from _launches(result)
    yield from _steps(result)
    yield from _verdict(result)
    yield from _timeline(result)


def _sum(entries: Sequence[CauseTime], causes: Sequence[str] | None = None) -> int:
    return sum(entry.ns for entry in entries if causes is None or entry.cause in causes)


def _gpu(gpu: Gpu, *, whole: bool) -> Iterator[Claim]:
    ledger = gpu.ledger or []
    own = {entry.cause: entry.ns for entry in ledger}
    yield "busy and idle are the span", gpu.busy_ns + gpu.idle_ns == gpu.span_ns
    yield "the ledger is the span", _sum(ledger) == gpu.span_ns
    yield "busy causes are busy time", _sum(ledger, BUSY_CAUSES) == gpu.busy_ns
    yield "idle causes are idle time", _sum(ledger, IDLE_CAUSES) == gpu.idle_ns
    yield "a cause occurs once, with time", len(own) == len(ledger) and min(own.values(), default=1) > 0
    yield "compute hides everything else", own.get("compute", 0) == gpu.compute_ns
    yield "communication is what is exposed", own.get("communication", 0) == gpu.exposed_communication_ns
    for cause, union in {
        "graph": gpu.graph_ns,
        "communication": gpu.communication_ns,
        "copy": gpu.copy_ns,
        "memset": gpu.memset_ns,
    }.items():
        yield (
            f"the ledger's {cause} is part of its union, and that of busy time",
            (
                own.get(cause, 0) <= union <= gpu.busy_ns  # type: ignore[call-overload]
            ),
        )
    parts = gpu.compute_ns, gpu.communication_ns
    yield "kernels are compute and communication", max(parts) <= gpu.kernel_ns <= sum(parts)
    yield "a union is no more than the sum", gpu.kernel_ns <= gpu.kernel_sum_ns
    unions = gpu.kernel_ns, gpu.graph_ns, gpu.copy_ns, gpu.memset_ns
    yield "busy time is the union of its parts", max(unions) <= gpu.busy_ns <= sum(unions)
    yield "input copies are copies", 0 <= (gpu.exposed_input_copy_ns or 0) <= own.get("copy", 0)
    yield from _whole(gpu, same=whole)
    yield from _gaps(gpu.gaps, ledger, gpu.idle_ns)


def _whole(gpu: Gpu, *, same: bool) -> Iterator[Claim]:
    capture = gpu.whole
    ledger = capture.ledger or []
    yield (
        "the window is part of the capture",
        gpu.span_ns <= capture.span_ns and gpu.busy_ns <= capture.busy_ns,
    )
    yield "the capture's ledger is its span", _sum(ledger) == capture.span_ns
    yield "the capture's busy causes are its busy time", _sum(ledger, BUSY_CAUSES) == capture.busy_ns
    in_capture = {entry.cause: entry.ns for entry in ledger}
    yield (
        "no cause has more time in the window than in the capture",
        all(entry.ns <= in_capture.get(entry.cause, 0) for entry in gpu.ledger or []),
    )
    if same:
        yield "the window `all` is the capture", (gpu.span_ns, gpu.ledger) == (capture.span_ns, ledger)


def _gaps(gaps: Gaps, ledger: Sequence[CauseTime], idle_ns: int) -> Iterator[Claim]:
    yield "all idle time is in gaps", gaps.total_ns == idle_ns
    yield from _histogram("gaps", gaps.histogram, gaps.count, gaps.total_ns)
    lengths = [gap.end_ns - gap.start_ns for gap in gaps.longest]
    yield "ten gaps are listed, or all", len(lengths) == min(10, gaps.count)
    yield "the longest gap is listed", max(lengths, default=0) == gaps.max_ns
    yield "listed gaps are no more than all", sum(lengths) <= gaps.total_ns
    yield (
        "the causes of a gap are its length",
        all(
            _sum(gap.causes, IDLE_CAUSES) == _sum(gap.causes) == length
            for gap, length in zip(gaps.longest, lengths, strict=True)
        ),
    )
    if gaps.count == len(lengths):
        listed = [entry for gap in gaps.longest for entry in gap.causes]
        yield (
            "the causes of all gaps are the ledger's",
            all(_sum(listed, [cause]) == _sum(ledger, [cause]) for cause in IDLE_CAUSES),
        )


def _histogram(
    what: str, buckets: Sequence[Bucket] | Sequence[SizeBucket], count: int, total: int
) -> Iterator[Claim]:
    rows = [
        (b.from_ns, b.to_ns, b.count, b.total_ns)
        if isinstance(b, Bucket)
        else (b.from_bytes, b.to_bytes, b.count, b.total_bytes)
        for b in buckets
    ]
    yield f"the histogram of {what} counts all", sum(row[2] for row in rows) == count
    yield f"the histogram of {what} has the total", sum(row[3] for row in rows) == total
    yield (
        f"what is in a bucket of {what} lies in it",
        all(low * n <= ns and (high is None or ns <= (high - 1) * n) for low, high, n, ns in rows),
    )


def _kernels(kernels: Kernels) -> Iterator[Claim]:
    yield from _histogram("kernels", kernels.histogram, kernels.count, kernels.sum_ns)
    small = [bucket for bucket in kernels.histogram if bucket.to_ns is not None and bucket.to_ns <= SMALL_NS]
    for share, part, all_of_it in (
        (kernels.small_share, sum(b.count for b in small), kernels.count),
        (kernels.small_time_share, sum(b.total_ns for b in small), kernels.sum_ns),
    ):
        yield (
            "small kernels are those in the buckets below 10 us",
            (abs((share or 0) * all_of_it - part) <= LARGEST_ERROR * all_of_it),
        )
    classes = kernels.classes
    yield "classes have all kernels", sum(c.count for c in classes) == kernels.count
    yield "classes have all kernel time", sum(c.total_ns for c in classes) == kernels.sum_ns
    quantiles = [kernels.p50_ns, kernels.p90_ns, kernels.p95_ns, kernels.p99_ns, kernels.max_ns]
    known = [ns for ns in quantiles if ns is not None]
    yield (
        "quantiles are in order, and known where there are kernels",
        (known == sorted(known) and len(known) == (5 if kernels.count else 0)),
    )
    rows = kernels.top
    everything = len(rows) == kernels.distinct
    for found, all_of_it in (
        (sum(row.count for row in rows), kernels.count),
        (sum(row.total_ns for row in rows), kernels.sum_ns),
    ):
        yield "listed kernels are all, or no more", found == all_of_it if everything else found <= all_of_it
    yield (
        "a kernel's total lies between its maximum and that times its count",
        all(row.max_ns <= row.total_ns <= row.max_ns * row.count for row in rows),
    )
    yield "names occur once", len({row.name for row in rows}) == len(rows) <= kernels.distinct


def _sync(sync: Sync, gpus: Sequence[Gpu]) -> Iterator[Claim]:
    host_sync = sum(_sum(gpu.ledger or [], ["host_sync"]) for gpu in gpus)
    yield "what waits cost is host_sync", sync.cost_ns == host_sync
    yield "a union of calls is no more than their sum", sync.idle_ns <= sync.union_ns <= sync.total_ns
    yield "calls by name are all calls", sum(row.calls for row in sync.by_api) == sync.calls
    yield "time by name is all time", sum(row.total_ns for row in sync.by_api) == sync.total_ns
    costs = [row.cost_ns or 0 for row in sync.by_api]
    yield "costs by name are no more than all", sum(costs) <= (sync.cost_ns or 0)
    yield "read-backs cost no more than all waits", (sync.readbacks.cost_ns or 0) <= (sync.cost_ns or 0)
    yield (
        "a call is idle no longer than it lasts",
        all(0 <= row.idle_ns <= row.total_ns for row in sync.by_api),
    )


def _copies(copies: Copies) -> Iterator[Claim]:
    asked_for = [kind for kind in copies.kinds if not kind.kind.startswith("unified")]
    count, size = sum(kind.count for kind in asked_for), sum(kind.bytes for kind in asked_for)
    yield from _histogram("copy sizes", copies.sizes, count, size)
    small = sum(b.count for b in copies.sizes if b.to_bytes is not None and b.to_bytes <= SMALL_BYTES)
    yield (
        "small copies by kind are those in the buckets below 64 KiB",
        (sum(kind.small_count for kind in asked_for) == small),
    )
    yield "small copies are no more than that", copies.small_count <= small
    for kind in copies.kinds:
        yield "pageable bytes are bytes", 0 <= kind.pageable_bytes <= kind.bytes
        yield (
            "the median is no more than the maximum",
            (kind.p50_bytes or 0) <= (kind.max_bytes or 0) <= kind.bytes,
        )


def _communication(result: Result) -> Iterator[Claim]:
    found = result.collectives
    if not found:
        return
    yield (
        "operations are all communication kernels",
        (sum(op.count for op in found.by_op) == found.count + found.other_count),
    )
    yield "operations have all their time", sum(op.total_ns for op in found.by_op) == found.total_ns
    yield (
        "exposed communication is that of the GPUs",
        (found.exposed_ns == sum(gpu.exposed_communication_ns for gpu in result.gpus)),
    )
    split = found.wait_ns, found.transfer_ns
    yield "waiting and transfer are known together", (split[0] is None) == (split[1] is None)
    if split[0] is not None:
        yield "only several ranks show what is waiting", bool(result.ranks)
        yield "waiting and transfer are parts", sum(ns or 0 for ns in split) <= found.total_ns


def _launches(result: Result) -> Iterator[Claim]:
    if not result.launches:
        return
    launches = result.launches
    yield (
        "latencies are in order",
        (launches.latency_p50_ns or 0) <= (launches.latency_p95_ns or 0) or (launches.clock_faults > 0),
    )
    yield "blocked launches are launches", launches.blocked_calls <= launches.host_calls
    yield "blocked time is launch time", (launches.blocked_ns or 0) <= launches.api_ns


def _steps(result: Result) -> Iterator[Claim]:
    steps = result.steps
    if not steps:
        return
    yield (
        "without steps there is no source",
        (steps.source == "none") == (not steps.count) or steps.source != "none",
    )
    yield "listed steps are no more than all", len(steps.items) <= steps.count
    known = [ns for ns in (steps.p50_ns, steps.p95_ns, steps.max_ns) if ns is not None]
    yield "step times are in order", known == sorted(known)
    for step in steps.items:
        yield from ((f"step {step.index}: {text}", holds) for text, holds in _step(step))
    states = {step.index: step.state for step in steps.items}
    yield "slow steps are named so", all(states.get(index, "slow") == "slow" for index in steps.slow or [])


def _step(step: Step) -> Iterator[Claim]:
    # over several GPUs both are means, each rounded; before the first and after the last work a GPU has no ledger
    slack = 1 + len(step.idle)
    yield "busy and idle are within the step", step.busy_ns + _sum(step.idle) <= step.duration_ns + slack
    parts = step.exposed_communication_ns, step.copy_ns or 0, step.memset_ns or 0, step.graph_ns or 0
    yield "parts of busy time are no more than it", sum(parts) <= step.busy_ns + slack
    yield "idle causes are idle", all(entry.cause in IDLE_CAUSES for entry in step.idle)


def _finding(finding: Finding, result: Result) -> Iterator[Claim]:
    stake, spans = finding.stake, [gpu.span_ns for gpu in result.gpus]
    mean = sum(spans) / len(spans)
    yield "the stake is a range within the span", 0 <= stake.low_ns <= stake.high_ns <= max(spans)
    yield (
        "its share is the middle over the span",
        (abs(min(1.0, (stake.low_ns + stake.high_ns) / 2 / mean) - stake.share) <= 2 * LARGEST_ERROR),
    )
    yield "its severity is that of the share", finding.severity == severity_of(stake.share)
    yield (
        "it has a title, a basis, evidence, actions and a caveat",
        all((finding.title, stake.basis, finding.evidence, finding.actions, finding.caveat)),
    )
    yield "what has time at stake says under which causes", bool(finding.causes) or not stake.high_ns
    yield "it is about a GPU of the result", finding.gpu in {None, *(gpu.id for gpu in result.gpus)}
    where = finding.where
    yield "the place to open is not empty", where is None or where.start_ns < where.end_ns
    for evidence in finding.evidence:
        kinds = {"text": str, "ns": int, "bytes": int, "count": int | float, "share": int | float}
        yield (
            f"{evidence.label} is of its unit",
            isinstance(evidence.value, kinds.get(evidence.unit, int | float)),
        )
        if evidence.unit == "share" and not isinstance(evidence.value, str):
            yield f"{evidence.label} is within 0..1", 0 <= evidence.value <= 1


def _checks(result: Result) -> Iterator[Claim]:
    yield (
        "every rule is checked",
        [check.rule for check in result.checks] == [rule.id for rule in all_rules()],
    )
    fired = {check.rule for check in result.checks if check.status == "finding"}
    yield "findings are the checks that fired", fired == {finding.rule for finding in result.findings}
    yield "at most eight findings", len(result.findings) <= MOST_FINDINGS
    yield (
        "a rule is left over only where eight are listed",
        len(fired) == MOST_FINDINGS or not any(check.note.startswith(UNLISTED) for check in result.checks),
    )
    errors = [(check.rule, check.note) for check in result.checks if check.status == "error"]
    yield f"no check ends in an error: {errors}", not errors
    yield "every check says something", all(check.note for check in result.checks)


def _verdict(result: Result) -> Iterator[Claim]:
    span = sum(gpu.span_ns for gpu in result.gpus)
    lost = sum(
        gpu.idle_ns + _sum(gpu.ledger or [], ["communication", "copy", "memset"]) for gpu in result.gpus
    )
    yield (
        "compute is the limit where less than a tenth is lost",
        ((result.verdict.limiter == "compute") == (10 * lost < span)),
    )
    yield (
        "a verdict has a sentence and an action",
        bool(result.verdict.sentence and result.verdict.next_action),
    )


def _timeline(result: Result) -> Iterator[Claim]:
    if not result.timeline:
        return
    marks = [mark for row in result.timeline.rows for mark in row.marks]
    yield "at most 2 000 marks", len(marks) <= 2_000
    yield "marks have a length", all(mark.start_ns < mark.end_ns for mark in marks)
