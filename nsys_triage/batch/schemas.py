"""The tables of the batch: which there are, and each of their columns."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from nsys_triage.batch.columns import Column, JobRow, Table, may, must
from nsys_triage.batch.plan import Failure
from nsys_triage.result.model import CAUSES, Finding, Gpu, Step

TEXT: Final = pa.string()
TEXTS: Final = pa.list_(TEXT)
INT: Final = pa.int64()
INTS: Final = pa.list_(INT)
REAL: Final = pa.float64()


def _given(value: Any) -> Any:
    """The value, or None where the result does not have it."""
    return None if type(value).__name__ == "UnsetType" else value


def _of(*names: str) -> Callable[[JobRow], Any]:
    """A part of the result by its keys; None where one of them is absent."""

    def value(row: JobRow) -> Any:
        found: Any = row.result
        for name in names:
            found = _given(getattr(found, name))
            if found is None:
                return None
        return found

    return value


def _sum(name: str) -> Callable[[JobRow], int | None]:
    """A time of the GPUs, summed; None where the job cannot be judged."""

    def value(row: JobRow) -> int | None:
        return sum(int(getattr(gpu, name)) for gpu in row.result.gpus) if row.result.gpus else None

    return value


def cause_ns(gpus: Sequence[Gpu], cause: str) -> int | None:
    """Time under a cause, summed over GPUs; None without GPUs or where one has no ledger."""
    ledgers = [_given(gpu.ledger) for gpu in gpus]
    if not ledgers or None in ledgers:
        return None
    return sum(int(entry.ns) for ledger in ledgers for entry in ledger if entry.cause == cause)


def _causes(pick: Callable[[JobRow], Sequence[Gpu]], what: str) -> list[Column]:
    def value(cause: str) -> Callable[[JobRow], int | None]:
        return lambda row: cause_ns(pick(row), cause)

    return [
        may(f"{cause}_ns", INT, f"{what} with cause {cause} of the ledger", value(cause)) for cause in CAUSES
    ]


def _judged(value: Callable[[JobRow], int]) -> Callable[[JobRow], int | None]:
    """A time of the job; None where it cannot be judged."""
    return lambda row: value(row) if row.result.gpus else None


def _copy_bytes(row: JobRow) -> int | None:
    copies = _given(row.result.copies)
    return None if copies is None else sum(kind.bytes for kind in copies.kinds)


def _pageable(row: JobRow) -> int | None:
    copies = _given(row.result.copies)
    return None if copies is None else sum(kind.pageable_bytes for kind in copies.kinds)


def _models(row: JobRow) -> list[str]:
    return sorted({gpu.name for gpu in row.result.gpus if gpu.name})


_JOB: Final = Column(
    "job",
    TEXT,
    "the job: its files are jobs/JOB.html and jobs/JOB.json",
    lambda row: row.job.name,
    nullable=False,
)
_LABEL: Final = Column(
    "label",
    TEXT,
    "what the job is called: its file below the folder given",
    lambda row: row.job.label,
    nullable=False,
)

METRICS: Final = Table(
    "metrics",
    "one job; times are sums over its GPUs in the window that was judged",
    [
        _JOB,
        _LABEL,
        must("inputs", TEXTS, "the files that were read, by rank", lambda row: list(row.job.inputs)),
        must(
            "also", TEXTS, "other files with the same content, not read again", lambda row: list(row.job.also)
        ),
        must(
            "same_run",
            TEXTS,
            "reports of the same run beside the export that was read",
            lambda row: list(row.job.same_run),
        ),
        must("status", TEXT, "ok, or cannot_judge: no GPU work is in the trace", _of("status")),
        may(
            "limiter", TEXT, "what limits the job; null where it cannot be judged", _of("verdict", "limiter")
        ),
        must("sentence", TEXT, "the verdict, or why it cannot be judged", _of("verdict", "sentence")),
        must("next_action", TEXT, "what to do first", _of("verdict", "next_action")),
        may(
            "at_stake_ns",
            INT,
            "GPU time lost to the limiter (an upper bound of what can be won)",
            _judged(lambda row: row.at_stake_ns),
        ),
        may(
            "lost_ns",
            INT,
            "GPU time idle, in exposed communication or in exposed copies",
            _judged(lambda row: row.balance.lost_ns),
        ),
        must("kind", TEXT, "nsys-rep, qdrep or sqlite", _of("capture", "kind")),
        must("tool_version", TEXT, "the nsys-triage that judged it", _of("tool_version")),
        may("exporter_version", TEXT, "the nsys that exported it", _of("capture", "exporter_version")),
        may("capture_version", TEXT, "the nsys that recorded it", _of("capture", "capture_version")),
        may("started_utc", TEXT, "start of the capture, ISO 8601", _of("capture", "started_utc")),
        may("duration_ns", INT, "length of the capture", _of("capture", "duration_ns")),
        may("window_mode", TEXT, "auto, all, user or nvtx", _of("capture", "window", "mode")),
        may(
            "window_start_ns",
            INT,
            "begin of the window, from the start of the capture",
            _of("capture", "window", "start_ns"),
        ),
        may("window_end_ns", INT, "end of the window", _of("capture", "window", "end_ns")),
        must("gpus", INT, "GPUs that did work", lambda row: len(row.result.gpus)),
        must("gpu_models", TEXTS, "their models, each once", _models),
        may("ranks", INT, "ranks of the job; null for one process", _of("ranks", "count")),
        may("straggler", INT, "the rank that arrives last most often", _of("ranks", "straggler")),
        may("span_ns", INT, "GPU time: from first to last work of each GPU", _sum("span_ns")),
        may("busy_ns", INT, "something ran", _sum("busy_ns")),
        may("idle_ns", INT, "nothing ran", _sum("idle_ns")),
        *_causes(lambda row: row.result.gpus, "GPU time"),
        may("communication_union_ns", INT, "a collective ran, exposed or not", _sum("communication_ns")),
        may(
            "exposed_communication_ns",
            INT,
            "a collective ran and nothing computed",
            _sum("exposed_communication_ns"),
        ),
        may("kernels", INT, "kernels", _of("kernels", "count")),
        may("kernel_sum_ns", INT, "sum of kernel durations", _of("kernels", "sum_ns")),
        may("kernel_p50_ns", INT, "median kernel duration", _of("kernels", "p50_ns")),
        may("small_kernel_share", REAL, "share of kernels shorter than 10 us", _of("kernels", "small_share")),
        may("launch_calls", INT, "launch calls of the host", _of("launches", "host_calls")),
        may(
            "launch_latency_p50_ns",
            INT,
            "median time from launch call to start of its work",
            _of("launches", "latency_p50_ns"),
        ),
        may("sync_calls", INT, "synchronising calls", _of("sync", "calls")),
        may("sync_cost_ns", INT, "idle time that they cost", _of("sync", "cost_ns")),
        may("copy_bytes", INT, "bytes copied", _copy_bytes),
        may("pageable_bytes", INT, "of them from or to pageable memory", _pageable),
        may("collectives", INT, "communication kernels", _of("collectives", "count")),
        may(
            "wait_share",
            REAL,
            "share of collectives' time spent waiting for other ranks",
            _of("collectives", "wait_share"),
        ),
        may("steps", INT, "steps in the window", _of("steps", "count")),
        may("steps_source", TEXT, "nvtx, periodicity or none", _of("steps", "source")),
        may("step_p50_ns", INT, "median step", _of("steps", "p50_ns")),
        may("step_p95_ns", INT, "95th percentile of steps", _of("steps", "p95_ns")),
        may("step_max_ns", INT, "longest step", _of("steps", "max_ns")),
        must("findings", INT, "findings listed", lambda row: len(row.result.findings)),
        must(
            "high_findings",
            INT,
            "of them of high severity",
            lambda row: sum(f.severity == "high" for f in row.result.findings),
        ),
        must(
            "warnings",
            TEXTS,
            "identifiers of the capture's warnings",
            lambda row: sorted({w.id for w in row.result.capture.warnings}),
        ),
    ],
)


def _gpu(name: str) -> Callable[[JobRow], Any]:
    return lambda row: _given(getattr(row.part, name))


def _one_gpu(row: JobRow) -> Sequence[Gpu]:
    return [row.part]


def _gpu_metric(name: str) -> Callable[[JobRow], float | None]:
    return lambda row: None if row.part.metrics is None else getattr(row.part.metrics, name)


GPUS: Final = Table(
    "gpus",
    "one GPU of one job",
    [
        _JOB,
        must("gpu", TEXT, "identifier within the job", _gpu("id")),
        may("name", TEXT, "model", _gpu("name")),
        may("uuid", TEXT, "UUID of the GPU", _gpu("uuid")),
        must("identity", TEXT, "known, or assumed from device numbers", _gpu("identity")),
        may("rank", INT, "rank that uses it, where one does", _gpu("rank")),
        must("device_ids", INTS, "CUDA device numbers", _gpu("device_ids")),
        must("span_ns", INT, "from its first work to its last in the window", _gpu("span_ns")),
        must("busy_ns", INT, "something ran", _gpu("busy_ns")),
        must("idle_ns", INT, "nothing ran", _gpu("idle_ns")),
        *_causes(_one_gpu, "time"),
        must("kernel_union_ns", INT, "a kernel ran", _gpu("kernel_ns")),
        must("compute_union_ns", INT, "a kernel that is not communication ran", _gpu("compute_ns")),
        must("communication_union_ns", INT, "a collective ran, exposed or not", _gpu("communication_ns")),
        must(
            "exposed_communication_ns",
            INT,
            "a collective ran and nothing computed",
            _gpu("exposed_communication_ns"),
        ),
        must("gaps", INT, "stretches without work", lambda row: row.part.gaps.count),
        must("longest_gap_ns", INT, "the longest of them", lambda row: row.part.gaps.max_ns),
        must("whole_span_ns", INT, "span in the whole capture", lambda row: row.part.whole.span_ns),
        must("whole_busy_ns", INT, "busy in the whole capture", lambda row: row.part.whole.busy_ns),
        may("sm_active_share", REAL, "mean of the sampled metric", _gpu_metric("sm_active_share")),
        may("tensor_active_share", REAL, "mean of the sampled metric", _gpu_metric("tensor_active_share")),
        may("dram_share", REAL, "mean of the sampled metric", _gpu_metric("dram_share")),
    ],
)

_EVIDENCE: Final = pa.struct([("label", TEXT), ("unit", TEXT), ("number", REAL), ("text", TEXT)])


def _evidence(row: JobRow) -> list[dict[str, Any]]:
    finding: Finding = row.part
    return [
        {
            "label": e.label,
            "unit": e.unit,
            "number": None if isinstance(e.value, str) else float(e.value),
            "text": e.value if isinstance(e.value, str) else None,
        }
        for e in finding.evidence
    ]


FINDINGS: Final = Table(
    "findings",
    "one finding of one job",
    [
        _JOB,
        must("number", INT, "position in the job's report, from 1", lambda row: row.number),
        must("rule", TEXT, "the rule: nsys-triage explain RULE", _gpu("rule")),
        must("title", TEXT, "the fact with its number", _gpu("title")),
        must("severity", TEXT, "high, medium or low", _gpu("severity")),
        must("confidence", TEXT, "high, medium or low", _gpu("confidence")),
        must("stake_low_ns", INT, "at stake at least, mean per GPU", lambda row: row.part.stake.low_ns),
        must("stake_high_ns", INT, "at stake at most, mean per GPU", lambda row: row.part.stake.high_ns),
        must("stake_share", REAL, "middle of the range over the span", lambda row: row.part.stake.share),
        may("gpu", TEXT, "the GPU that it is about, where it is one", _gpu("gpu")),
        may(
            "where_start_ns",
            INT,
            "begin of the place to look at",
            lambda row: row.part.where.start_ns if row.part.where else None,
        ),
        may(
            "where_end_ns",
            INT,
            "end of the place to look at",
            lambda row: row.part.where.end_ns if row.part.where else None,
        ),
        must("causes", TEXTS, "causes of the ledger that it is about", lambda row: list(row.part.causes)),
        must("evidence", pa.list_(_EVIDENCE), "what it rests on: number or text, with its unit", _evidence),
        must("actions", TEXTS, "what to do, in order", lambda row: list(row.part.actions)),
        must("caveat", TEXT, "when it is wrong", _gpu("caveat")),
    ],
)


def _step_idle(row: JobRow) -> int:
    step: Step = row.part
    return sum(entry.ns for entry in step.idle)


STEPS: Final = Table(
    "steps",
    "one step of one job",
    [
        _JOB,
        must("pid", INT, "process", _gpu("pid")),
        must("step", INT, "index of the step in its process", _gpu("index")),
        must("start_ns", INT, "begin, from the start of the capture", _gpu("start_ns")),
        must("duration_ns", INT, "from its start to the next one's", _gpu("duration_ns")),
        must("busy_ns", INT, "something ran on the GPU", _gpu("busy_ns")),
        must("idle_ns", INT, "the GPU was idle", _step_idle),
        must(
            "exposed_communication_ns",
            INT,
            "a collective ran and nothing computed",
            _gpu("exposed_communication_ns"),
        ),
        must("sync_calls", INT, "synchronising calls", _gpu("sync_calls")),
        must("state", TEXT, "startup, steady or slow", _gpu("state")),
    ],
)


def _failure(name: str) -> Callable[[Failure], str]:
    return lambda row: str(getattr(row, name))


FAILURES: Final = Table(
    "failures",
    "one input without a result",
    [
        must("input", TEXT, "the file below the folder given", _failure("input")),
        Column(
            "kind",
            TEXT,
            "input (no trace, or damaged), export, window, memory, timeout, crashed, internal; unfinished: skipped",
            _failure("kind"),
            nullable=False,
        ),
        must("reason", TEXT, "what is wrong and what to do", _failure("reason")),
    ],
)

TABLES: Final = (METRICS, FINDINGS, GPUS, STEPS, FAILURES)


def job_parts(row: JobRow) -> dict[str, list[JobRow]]:
    """The rows that a job has in each table."""
    result = row.result
    steps = _given(result.steps)

    def rows(parts: Sequence[Any]) -> list[JobRow]:
        return [
            JobRow(row.job, result, row.balance, row.at_stake_ns, part, number)
            for number, part in enumerate(parts, 1)
        ]

    return {
        "metrics": [row],
        "findings": rows(result.findings),
        "gpus": rows(result.gpus),
        "steps": rows(sorted(steps.items, key=lambda step: (step.pid, step.index)) if steps else []),
    }


def schema_markdown() -> str:
    """The tables and their columns for the README."""
    lines = []
    for table in TABLES:
        lines += [f"`{table.name}.parquet`: {table.row}.", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{c.name}` | {c.type} | {c.text} |" for c in table.columns]
        lines.append("")
    return "\n".join(lines)
