"""The result of one analysis: the JSON contract `nsys-triage/result/1` as typed structs.

Everything that a person sees is rendered from a `Result` and reads nothing else. Keys end in their unit
(`_ns`, `_bytes`, `_share`); times are integers relative to the start of the capture. `None` means that it
could not be measured; `UNSET` (the key is absent) that it does not apply.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

SCHEMA: Final = "nsys-triage/result/1"

Share = Annotated[float, Meta(ge=0, le=1)]
Level = Literal["high", "medium", "low"]
BusyCause = Literal["compute", "graph", "communication", "copy", "memset"]
Cause = Literal[
    "compute", "graph", "communication", "copy", "memset", "launch", "host_sync", "input_pipeline", "host_blocked",
    "host_compute", "host_communication", "allocation", "module_load", "unified_memory", "queued", "profiler",
    "unknown",
]  # fmt: skip
CAUSES: Final[tuple[Cause, ...]] = (
    "compute", "graph", "communication", "copy", "memset", "launch", "host_sync", "input_pipeline", "host_blocked",
    "host_compute", "host_communication", "allocation", "module_load", "unified_memory", "queued", "profiler",
    "unknown",
)  # fmt: skip
"""Every cause, in the order in which ledgers are printed."""
BUSY_CAUSES: Final = CAUSES[:5]
IDLE_CAUSES: Final = CAUSES[5:]
Limiter = Literal[
    "input_pipeline", "host_launch", "host_sync", "host_compute", "host_blocked", "allocation", "module_load",
    "communication", "imbalance", "copy", "unified_memory", "profiler", "compute", "dependency", "mixed", "unknown",
]  # fmt: skip
Unit = Literal["ns", "bytes", "bytes_per_s", "count", "share", "mhz", "text"]


class _Part(Struct, forbid_unknown_fields=True):
    """Base of all parts: an unknown key is an error."""


class Interval(_Part):
    """Half-open `[start_ns, end_ns)`."""

    start_ns: int
    end_ns: int


class Excluded(Interval):
    """A part of the capture that the window leaves out, and why."""

    reason: str


class Window(Interval):
    """The part of the capture that the figures are about."""

    mode: Literal["auto", "all", "user", "nvtx"]
    excluded: list[Excluded]
    name: str | UnsetType = UNSET  # of the NVTX range, mode "nvtx"


class Counts(_Part):
    """Rows of the export before anything is dropped; None where the table is not there."""

    kernels: int | None
    memcpys: int | None
    memsets: int | None
    graphs: int | None
    nvtx_ranges: int | None
    nvtx_points: int | None
    nvtx_open_ranges: int | None
    api_calls: int | None
    syncs: int | None


class DroppedByReason(_Part):
    """Rows left out, by what is wrong with them."""

    not_finished: int
    zero_times: int
    inverted: int
    too_long: int


class DroppedRows(_Part):
    """Rows left out."""

    total: int
    by_reason: DroppedByReason


class LaunchMatch(_Part):
    """Device work whose launch call was found, and not."""

    matched: int
    unmatched: int


class Warning(_Part):  # noqa: A001 - the contract's word
    """Something about the capture that changes how the figures read."""

    id: str
    text: str
    advice: str


class Capture(_Part):
    """The file, and what was recorded in it."""

    file: str
    kind: Literal["nsys-rep", "qdrep", "sqlite"]
    exporter_version: str | None
    capture_version: str | None
    schema_version: str | None
    started_utc: str | None
    duration_ns: int | None
    window: Window | None
    counts: Counts
    dropped_rows: DroppedRows
    launch_match: LaunchMatch | None
    warnings: list[Warning]
    files: list[str] | UnsetType = UNSET  # all of them, where several were read


class CauseTime(_Part):
    """Time under one cause."""

    cause: Cause
    ns: int


class Bucket(_Part):
    """One bucket of a histogram of durations: `[from_ns, to_ns)`, the last one without an end."""

    from_ns: int
    to_ns: int | None
    count: int
    total_ns: int


class Gap(Interval):
    """A stretch in which the GPU had nothing to do."""

    causes: list[CauseTime]
    step: int | UnsetType | None = UNSET  # index of the step it begins in; None between steps
    place_share: Share | UnsetType | None = UNSET  # how far into the step it begins
    ended_by: str | UnsetType | None = UNSET  # what ran next: kernel name or kind of copy
    api: str | UnsetType | None = UNSET  # the CUDA call that the host spent most of it in
    os_call: str | UnsetType | None = UNSET
    nvtx: str | UnsetType | None = UNSET  # the innermost range that the host was in when it began
    cpu: str | UnsetType | None = UNSET  # what CPU samples or scheduling rows show of the thread


class Gaps(_Part):
    """The idle time of one GPU."""

    count: int
    total_ns: int
    max_ns: int
    histogram: list[Bucket]
    longest: list[Gap]


class WholeCapture(_Part):
    """The same figures over the whole capture."""

    span_ns: int
    busy_ns: int
    ledger: list[CauseTime] | UnsetType = UNSET


class Clock(_Part):
    """A sampled clock over the window."""

    min: float
    p50: float
    max: float


class GpuMetrics(_Part):
    """Means of sampled GPU metrics over the window; None where the metric was not sampled."""

    sm_active_share: Share | None = None
    tensor_active_share: Share | None = None
    dram_share: Share | None = None
    clock_mhz: Clock | None = None
    samples: int | UnsetType = UNSET


class Gpu(_Part):
    """One GPU: where its time went."""

    id: str
    name: str | None
    uuid: str | None
    identity: Literal["known", "assumed"]
    processes: list[int]
    device_ids: list[int]
    rank: int | None
    span_ns: int
    busy_ns: int
    idle_ns: int
    kernel_ns: int
    copy_ns: int
    memset_ns: int
    graph_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    kernel_sum_ns: int
    whole: WholeCapture
    gaps: Gaps
    metrics: GpuMetrics | None
    ledger: list[CauseTime] | UnsetType = UNSET
    exposed_input_copy_ns: int | UnsetType = UNSET  # the part of `copy` that is input copies
    sm_count: int | UnsetType | None = UNSET
    compute_capability: str | UnsetType | None = UNSET


class ClassTime(_Part, rename={"kernel_class": "class"}):
    """Kernels of one class."""

    kernel_class: str
    count: int
    total_ns: int


class KernelRow(_Part, rename={"kernel_class": "class"}):
    """One kernel by demangled name; launch shape and limits are those of its most frequent shape.

    `grid` and `block` are empty where the launch's dimensions were not recorded.
    """

    name: str
    kernel_class: str
    count: int
    total_ns: int
    p50_ns: int
    max_ns: int
    occupancy_share: Share | None
    waves: float | None
    grid: list[int]
    block: list[int]
    registers: int | None
    shared_bytes: int | None
    limited_by: str | None  # "warps", "registers", "shared memory", "blocks"
    shapes: int  # distinct launch shapes


class KernelShape(_Part):
    """Launches of one kernel with one grid and block, which are empty where they were not recorded."""

    grid: list[int]
    block: list[int]
    count: int
    total_ns: int
    p25_ns: int
    p50_ns: int
    p75_ns: int
    stddev_ns: int


class KernelNameShapes(_Part, rename={"kernel_class": "class"}):
    """One kernel by demangled name, with its launch shapes."""

    name: str
    kernel_class: str
    shapes: list[KernelShape]


class OtherShapes(_Part):
    """What is not listed, as one sum."""

    shapes: int
    count: int
    total_ns: int


class KernelsByShape(_Part):
    """Every kernel by name and launch shape: at most 2,000 shapes, those with most time, and a sum of the rest."""

    kernels: list[KernelNameShapes]
    others: OtherShapes | None


class Kernels(_Part):
    """All kernels that start in the window, with their whole durations."""

    count: int
    sum_ns: int
    p50_ns: int | None
    p90_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    histogram: list[Bucket]
    small_share: Share | None
    small_time_share: Share | None
    classes: list[ClassTime]
    top: list[KernelRow]
    distinct: int
    by_shape: KernelsByShape | UnsetType = UNSET


class Launches(_Part):
    """Kernel and graph launch calls that start in the window."""

    host_calls: int
    api_ns: int
    latency_p50_ns: int | None  # from the call's start to the start of its work
    latency_p95_ns: int | None
    blocked_calls: int
    clock_faults: int
    per_s: float | None = None
    blocked_ns: int | None = None
    queue_depth_p50: int | None = None
    threads: int | None = None


class SyncApi(_Part):
    """Synchronising calls of one API name."""

    api: str
    calls: int
    total_ns: int
    idle_ns: int
    cost_ns: int | UnsetType = UNSET
    blocking_copies: bool | UnsetType = UNSET


class Readbacks(_Part):
    """Tiny device-to-host copies that the host waited for."""

    count: int
    cost_ns: int | UnsetType = UNSET
    per_step: float | UnsetType | None = UNSET


class Sync(_Part):
    """Synchronising calls that start in the window."""

    calls: int
    total_ns: int
    union_ns: int
    idle_ns: int
    by_api: list[SyncApi]
    readbacks: Readbacks
    cost_ns: int | UnsetType = UNSET


class CopyKind(_Part):
    """Copies of one kind."""

    kind: str
    count: int
    bytes: int
    total_ns: int  # union per GPU, summed over the GPUs
    pageable_bytes: int
    bytes_per_s: float | None
    small_count: int
    p50_bytes: int | None
    max_bytes: int | None


class SizeBucket(_Part):
    """One bucket of a histogram of copy sizes."""

    from_bytes: int
    to_bytes: int | None
    count: int
    total_bytes: int


class Copies(_Part):
    """Copies that start in the window."""

    kinds: list[CopyKind]
    small_count: int
    sizes: list[SizeBucket]
    link_bytes_per_s: float | None = None  # what the GPU's link can do, one way, where the GPU is known
    link_name: str | None = None


class CollectiveOp(_Part):
    """Collectives of one operation."""

    op: str
    count: int
    total_ns: int
    exposed_ns: int
    bytes: int | None = None
    wait_ns: int | None = None
    transfer_ns: int | None = None


class Collectives(_Part):
    """Communication kernels that start in the window."""

    count: int
    total_ns: int
    exposed_ns: int
    other_count: int
    wait_ns: int | None
    transfer_ns: int | None
    wait_share: Share | None
    by_op: list[CollectiveOp]


class RangeRow(_Part):
    """NVTX ranges of one name."""

    name: str
    count: int
    total_ns: int
    gpu_ns: int
    gpu_window_ns: int
    p50_ns: int | UnsetType = UNSET
    domain: str | UnsetType = UNSET


class Step(_Part):
    """One step of the job."""

    index: int
    pid: int
    start_ns: int
    duration_ns: int
    busy_ns: int
    exposed_communication_ns: int
    idle: list[CauseTime]
    sync_calls: int
    state: Literal["startup", "steady", "slow"]
    copy_ns: int | UnsetType = UNSET  # parts of busy_ns, as the ledger has them
    memset_ns: int | UnsetType = UNSET
    graph_ns: int | UnsetType = UNSET


class PeriodicStall(_Part):
    """Every n-th step is longer: a checkpoint, a validation, a log."""

    every: int
    steps: int
    extra_ns: int  # by how much such a step is longer than the median, median over them


class Steps(_Part):
    """The steps of the job, from start to start."""

    source: Literal["nvtx", "periodicity", "none"]
    name: str | None
    count: int
    warmup_count: int
    p50_ns: int | None
    p95_ns: int | None
    max_ns: int | None
    items: list[Step]
    slow: list[int] | UnsetType = UNSET
    periodic: PeriodicStall | UnsetType | None = UNSET
    note: str | UnsetType | None = UNSET  # what matched; that a heuristic is one


class Mark(Interval):
    """One mark of the timeline."""

    what: str  # a cause for GPU rows, a kind of host activity for host rows
    share: Share  # how much of the mark is really that, where a bin holds several things
    text: str | UnsetType = UNSET


class Row(_Part):
    """One row of the timeline."""

    label: str
    kind: Literal["gpu", "idle", "host", "steps"]
    marks: list[Mark]


class Timeline(_Part):
    """The window in at most 2,000 marks."""

    bin_ns: int
    rows: list[Row]


class RankRow(_Part):
    """One rank of the job."""

    rank: int
    gpu: str | None
    communication_ns: int
    transfer_ns: int | None
    wait_ns: int | None
    busy_ns: int
    step_p50_ns: int | None
    span_ns: int | UnsetType = UNSET
    exposed_ns: int | UnsetType = UNSET
    node: int | UnsetType | None = UNSET
    local_rank: int | UnsetType | None = UNSET
    file: str | UnsetType = UNSET


class RankStep(_Part):
    """One step over the ranks that have it, aligned by its number; clocks are not compared."""

    index: int
    p50_ns: int  # median duration over the ranks
    max_ns: int  # longest one
    wait_ns: int  # waiting in its collectives, mean over the ranks
    last: int | None  # the rank that came last in most of its collectives


class Ranks(_Part):
    """The ranks of the job."""

    count: int
    missing: list[int]
    matched_collectives: int
    straggler: int | None
    straggler_votes_share: Share | None
    per_rank: list[RankRow]
    source: Literal["environment", "assumed", "mixed"] | UnsetType = UNSET
    world_size: int | UnsetType | None = UNSET
    straggler_clear: bool | UnsetType = UNSET  # whether it leads by more than chance would have it
    straggler_reason: str | UnsetType | None = UNSET
    straggler_cause: str | UnsetType | None = UNSET  # a cause of the ledger, or "slower_kernels"
    notes: list[str] | UnsetType = UNSET
    steps: list[RankStep] | UnsetType = UNSET  # those that at least two ranks have, the first MOST_RANK_STEPS


class Stake(_Part):
    """The device time at stake, as a range, an upper bound; over several GPUs the mean per GPU."""

    low_ns: int
    high_ns: int
    share: Share  # the middle of the range over the span
    basis: str


class Evidence(_Part):
    """One number that a finding rests on."""

    label: str
    value: int | float | str
    unit: Unit


class Finding(_Part):
    """Something that costs device time, why we believe it and what to do."""

    rule: str
    title: str
    severity: Level
    confidence: Level
    stake: Stake
    gpu: str | None
    where: Interval | None
    evidence: list[Evidence]
    causes: list[Cause]
    actions: list[str]
    caveat: str


class Check(_Part):
    """How one rule ended."""

    rule: str
    status: Literal["finding", "passed", "not_run", "error"]
    note: str


class Verdict(_Part):
    """The one thing to fix first."""

    limiter: Limiter | None
    sentence: str
    next_action: str


class Result(_Part):
    """One analysis."""

    schema: Literal["nsys-triage/result/1"]
    tool_version: str
    status: Literal["ok", "cannot_judge"]
    capture: Capture
    gpus: list[Gpu]
    findings: list[Finding]
    checks: list[Check]
    verdict: Verdict
    kernels: Kernels | UnsetType = UNSET
    launches: Launches | UnsetType = UNSET
    sync: Sync | UnsetType = UNSET
    copies: Copies | UnsetType = UNSET
    collectives: Collectives | UnsetType = UNSET
    ranges: list[RangeRow] | UnsetType = UNSET
    gpu_unattributed_ns: int | UnsetType = UNSET
    steps: Steps | UnsetType = UNSET
    timeline: Timeline | UnsetType = UNSET
    ranks: Ranks | UnsetType | None = UNSET
