"""The columns of the batch's tables, as data: name, type, what it means, and where in a result it comes from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from nsys_triage.batch.plan import Failure, Job
from nsys_triage.result.model import CAUSES, IDLE_CAUSES, Finding, Gpu, Result, Step
from nsys_triage.rules.verdict import Balance


@dataclass(frozen=True, slots=True)
class JobRow:
    """What a row of a table is made from: a job, its result, and a part of it for tables with several rows per job."""

    job: Job
    result: Result
    balance: Balance
    at_stake_ns: int
    part: Any = None  # Gpu, Finding, Step
    number: int = 0  # of the part


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Where `nullable` is False every row has a value."""

    name: str
    type: pa.DataType
    text: str
    value: Callable[[Any], Any]
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its file's name without suffix, what a row is, and its columns."""

    name: str
    row: str
    columns: Sequence[Column]

    @property
    def schema(self) -> pa.Schema:
        """The schema, with the meaning of each column in its metadata."""
        fields = [pa.field(c.name, c.type, c.nullable, {"description": c.text}) for c in self.columns]
        return pa.schema(fields, {"description": self.row})

    def batch(self, rows: Sequence[Any]) -> pa.RecordBatch:
        """Rows as Arrow."""
        arrays = [pa.array([column.value(row) for row in rows], column.type) for column in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


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
    return sum(entry.ns for ledger in ledgers for entry in ledger if entry.cause == cause)


def _causes(pick: Callable[[JobRow], Sequence[Gpu]], what: str) -> list[Column]:
    def value(cause: str) -> Callable[[JobRow], int | None]:
        return lambda row: cause_ns(pick(row), cause)

    return [
        Column(f"{cause}_ns", pa.int64(), f"{what} with cause {cause} of the ledger", value(cause)) for cause in CAUSES
    ]


def _copy_bytes(row: JobRow) -> int | None:
    copies = _given(row.result.copies)
    return None if copies is None else sum(kind.bytes for kind in copies.kinds)


def _pageable(row: JobRow) -> int | None:
    copies = _given(row.result.copies)
    return None if copies is None else sum(kind.pageable_bytes for kind in copies.kinds)


def _models(row: JobRow) -> list[str]:
    return sorted({gpu.name for gpu in row.result.gpus if gpu.name})


def idle_ns(row: JobRow) -> int | None:
    """Idle time of all GPUs by the ledger's causes; None where there is no ledger."""
    parts = [cause_ns(row.result.gpus, cause) for cause in IDLE_CAUSES]
    return None if None in parts else sum(part or 0 for part in parts)


_JOB: Final = Column("job", pa.string(), "the job: its files are jobs/JOB.html and jobs/JOB.json", lambda row: row.job.name, nullable=False)
_LABEL: Final = Column("label", pa.string(), "what the job is called: its file below the folder given", lambda row: row.job.label, nullable=False)

METRICS: Final = Table(
    "metrics",
    "one job; times are sums over its GPUs in the window that was judged",
    [
        _JOB,
        _LABEL,
        Column("inputs", pa.list_(pa.string()), "the files that were read, by rank", lambda row: list(row.job.inputs), nullable=False),
        Column("also", pa.list_(pa.string()), "other files with the same content, not read again", lambda row: list(row.job.also), nullable=False),
        Column("same_run", pa.list_(pa.string()), "reports of the same run beside the export that was read", lambda row: list(row.job.same_run), nullable=False),
        Column("status", pa.string(), "ok, or cannot_judge: no GPU work is in the trace", _of("status"), nullable=False),
        Column("limiter", pa.string(), "what limits the job; null where it cannot be judged", _of("verdict", "limiter")),
        Column("sentence", pa.string(), "the verdict, or why it cannot be judged", _of("verdict", "sentence"), nullable=False),
        Column("next_action", pa.string(), "what to do first", _of("verdict", "next_action"), nullable=False),
        Column("at_stake_ns", pa.int64(), "GPU time lost to the limiter (an upper bound of what can be won)", lambda row: row.at_stake_ns if row.result.gpus else None),
        Column("lost_ns", pa.int64(), "GPU time idle, in exposed communication or in exposed copies", lambda row: row.balance.lost_ns if row.result.gpus else None),
        Column("kind", pa.string(), "nsys-rep, qdrep or sqlite", _of("capture", "kind"), nullable=False),
        Column("tool_version", pa.string(), "the nsys-triage that judged it", _of("tool_version"), nullable=False),
        Column("exporter_version", pa.string(), "the nsys that exported it", _of("capture", "exporter_version")),
        Column("capture_version", pa.string(), "the nsys that recorded it", _of("capture", "capture_version")),
        Column("started_utc", pa.string(), "start of the capture, ISO 8601", _of("capture", "started_utc")),
        Column("duration_ns", pa.int64(), "length of the capture", _of("capture", "duration_ns")),
        Column("window_mode", pa.string(), "auto, all, user or nvtx", _of("capture", "window", "mode")),
        Column("window_start_ns", pa.int64(), "begin of the window, from the start of the capture", _of("capture", "window", "start_ns")),
        Column("window_end_ns", pa.int64(), "end of the window", _of("capture", "window", "end_ns")),
        Column("gpus", pa.int64(), "GPUs that did work", lambda row: len(row.result.gpus), nullable=False),
        Column("gpu_models", pa.list_(pa.string()), "their models, each once", _models, nullable=False),
        Column("ranks", pa.int64(), "ranks of the job; null for one process", _of("ranks", "count")),
        Column("straggler", pa.int64(), "the rank that arrives last most often", _of("ranks", "straggler")),
        Column("span_ns", pa.int64(), "GPU time: from first to last work of each GPU", _sum("span_ns")),
        Column("busy_ns", pa.int64(), "something ran", _sum("busy_ns")),
        Column("idle_ns", pa.int64(), "nothing ran", _sum("idle_ns")),
        *_causes(lambda row: row.result.gpus, "GPU time"),
        Column("communication_union_ns", pa.int64(), "a collective ran, exposed or not", _sum("communication_ns")),
        Column("exposed_communication_ns", pa.int64(), "a collective ran and nothing computed", _sum("exposed_communication_ns")),
        Column("kernels", pa.int64(), "kernels", _of("kernels", "count")),
        Column("kernel_sum_ns", pa.int64(), "sum of kernel durations", _of("kernels", "sum_ns")),
        Column("kernel_p50_ns", pa.int64(), "median kernel duration", _of("kernels", "p50_ns")),
        Column("small_kernel_share", pa.float64(), "share of kernels shorter than 10 us", _of("kernels", "small_share")),
        Column("launch_calls", pa.int64(), "launch calls of the host", _of("launches", "host_calls")),
        Column("launch_latency_p50_ns", pa.int64(), "median time from launch call to start of its work", _of("launches", "latency_p50_ns")),
        Column("sync_calls", pa.int64(), "synchronising calls", _of("sync", "calls")),
        Column("sync_cost_ns", pa.int64(), "idle time that they cost", _of("sync", "cost_ns")),
        Column("copy_bytes", pa.int64(), "bytes copied", _copy_bytes),
        Column("pageable_bytes", pa.int64(), "of them from or to pageable memory", _pageable),
        Column("collectives", pa.int64(), "communication kernels", _of("collectives", "count")),
        Column("wait_share", pa.float64(), "share of collectives' time spent waiting for other ranks", _of("collectives", "wait_share")),
        Column("steps", pa.int64(), "steps in the window", _of("steps", "count")),
        Column("steps_source", pa.string(), "nvtx, periodicity or none", _of("steps", "source")),
        Column("step_p50_ns", pa.int64(), "median step", _of("steps", "p50_ns")),
        Column("step_p95_ns", pa.int64(), "95th percentile of steps", _of("steps", "p95_ns")),
        Column("step_max_ns", pa.int64(), "longest step", _of("steps", "max_ns")),
        Column("findings", pa.int64(), "findings listed", lambda row: len(row.result.findings), nullable=False),
        Column("high_findings", pa.int64(), "of them of high severity", lambda row: sum(f.severity == "high" for f in row.result.findings), nullable=False),
        Column("warnings", pa.list_(pa.string()), "identifiers of the capture's warnings", lambda row: sorted({w.id for w in row.result.capture.warnings}), nullable=False),
    ],
)  # fmt: skip


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
        Column("gpu", pa.string(), "identifier within the job", _gpu("id"), nullable=False),
        Column("name", pa.string(), "model", _gpu("name")),
        Column("uuid", pa.string(), "UUID of the GPU", _gpu("uuid")),
        Column("identity", pa.string(), "known, or assumed from device numbers", _gpu("identity"), nullable=False),
        Column("rank", pa.int64(), "rank that uses it, where one does", _gpu("rank")),
        Column("device_ids", pa.list_(pa.int64()), "CUDA device numbers", _gpu("device_ids"), nullable=False),
        Column("span_ns", pa.int64(), "from its first work to its last in the window", _gpu("span_ns"), nullable=False),
        Column("busy_ns", pa.int64(), "something ran", _gpu("busy_ns"), nullable=False),
        Column("idle_ns", pa.int64(), "nothing ran", _gpu("idle_ns"), nullable=False),
        *_causes(_one_gpu, "time"),
        Column("kernel_union_ns", pa.int64(), "a kernel ran", _gpu("kernel_ns"), nullable=False),
        Column("compute_union_ns", pa.int64(), "a kernel that is not communication ran", _gpu("compute_ns"), nullable=False),
        Column("communication_union_ns", pa.int64(), "a collective ran, exposed or not", _gpu("communication_ns"), nullable=False),
        Column("exposed_communication_ns", pa.int64(), "a collective ran and nothing computed", _gpu("exposed_communication_ns"), nullable=False),
        Column("gaps", pa.int64(), "stretches without work", lambda row: row.part.gaps.count, nullable=False),
        Column("longest_gap_ns", pa.int64(), "the longest of them", lambda row: row.part.gaps.max_ns, nullable=False),
        Column("whole_span_ns", pa.int64(), "span in the whole capture", lambda row: row.part.whole.span_ns, nullable=False),
        Column("whole_busy_ns", pa.int64(), "busy in the whole capture", lambda row: row.part.whole.busy_ns, nullable=False),
        Column("sm_active_share", pa.float64(), "mean of the sampled metric", _gpu_metric("sm_active_share")),
        Column("tensor_active_share", pa.float64(), "mean of the sampled metric", _gpu_metric("tensor_active_share")),
        Column("dram_share", pa.float64(), "mean of the sampled metric", _gpu_metric("dram_share")),
    ],
)  # fmt: skip

_EVIDENCE: Final = pa.struct(
    [("label", pa.string()), ("unit", pa.string()), ("number", pa.float64()), ("text", pa.string())]
)


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
        Column("number", pa.int64(), "position in the job's report, from 1", lambda row: row.number, nullable=False),
        Column("rule", pa.string(), "the rule: nsys-triage explain RULE", _gpu("rule"), nullable=False),
        Column("title", pa.string(), "the fact with its number", _gpu("title"), nullable=False),
        Column("severity", pa.string(), "high, medium or low", _gpu("severity"), nullable=False),
        Column("confidence", pa.string(), "high, medium or low", _gpu("confidence"), nullable=False),
        Column("stake_low_ns", pa.int64(), "at stake at least, mean per GPU", lambda row: row.part.stake.low_ns, nullable=False),
        Column("stake_high_ns", pa.int64(), "at stake at most, mean per GPU", lambda row: row.part.stake.high_ns, nullable=False),
        Column("stake_share", pa.float64(), "middle of the range over the span", lambda row: row.part.stake.share, nullable=False),
        Column("gpu", pa.string(), "the GPU that it is about, where it is one", _gpu("gpu")),
        Column("where_start_ns", pa.int64(), "begin of the place to look at", lambda row: row.part.where.start_ns if row.part.where else None),
        Column("where_end_ns", pa.int64(), "end of the place to look at", lambda row: row.part.where.end_ns if row.part.where else None),
        Column("causes", pa.list_(pa.string()), "causes of the ledger that it is about", lambda row: list(row.part.causes), nullable=False),
        Column("evidence", pa.list_(_EVIDENCE), "what it rests on: number or text, with its unit", _evidence, nullable=False),
        Column("actions", pa.list_(pa.string()), "what to do, in order", lambda row: list(row.part.actions), nullable=False),
        Column("caveat", pa.string(), "when it is wrong", _gpu("caveat"), nullable=False),
    ],
)  # fmt: skip


def _step_idle(row: JobRow) -> int:
    step: Step = row.part
    return sum(entry.ns for entry in step.idle)


STEPS: Final = Table(
    "steps",
    "one step of one job",
    [
        _JOB,
        Column("pid", pa.int64(), "process", _gpu("pid"), nullable=False),
        Column("step", pa.int64(), "index of the step in its process", _gpu("index"), nullable=False),
        Column("start_ns", pa.int64(), "begin, from the start of the capture", _gpu("start_ns"), nullable=False),
        Column("duration_ns", pa.int64(), "from its start to the next one's", _gpu("duration_ns"), nullable=False),
        Column("busy_ns", pa.int64(), "something ran on the GPU", _gpu("busy_ns"), nullable=False),
        Column("idle_ns", pa.int64(), "the GPU was idle", _step_idle, nullable=False),
        Column("exposed_communication_ns", pa.int64(), "a collective ran and nothing computed", _gpu("exposed_communication_ns"), nullable=False),
        Column("sync_calls", pa.int64(), "synchronising calls", _gpu("sync_calls"), nullable=False),
        Column("state", pa.string(), "startup, steady or slow", _gpu("state"), nullable=False),
    ],
)  # fmt: skip


def _failure(name: str) -> Callable[[Failure], str]:
    return lambda row: str(getattr(row, name))


FAILURES: Final = Table(
    "failures",
    "one input without a result",
    [
        Column("input", pa.string(), "the file below the folder given", _failure("input"), nullable=False),
        Column(
            "kind",
            pa.string(),
            "input (no report or export, damaged), export, window, memory, timeout, crashed, internal; or unfinished: skipped",
            _failure("kind"),
            nullable=False,
        ),
        Column("reason", pa.string(), "what is wrong and what to do", _failure("reason"), nullable=False),
    ],
)

TABLES: Final = (METRICS, FINDINGS, GPUS, STEPS, FAILURES)


def job_parts(row: JobRow) -> dict[str, list[JobRow]]:
    """The rows that a job has in each table."""
    result = row.result
    steps = _given(result.steps)

    def rows(parts: Sequence[Any]) -> list[JobRow]:
        return [
            JobRow(row.job, result, row.balance, row.at_stake_ns, part, number) for number, part in enumerate(parts, 1)
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
