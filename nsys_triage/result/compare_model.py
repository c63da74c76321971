"""The comparison of two runs: the JSON contract `nsys-triage/compare/1` as typed structs.

The page, Markdown and the summary on the terminal are made from a `Comparison` and read nothing else. Times are
integer nanoseconds, per step or per second of the window as `basis` says, and per GPU: the mean of a side's GPUs,
and of its runs. Intervals are of the change, `after - before`; None where the noise is not known.
"""

from typing import Final, Literal

from msgspec import Struct

from nsys_triage.result.model import Cause, CauseTime, Limiter, Unit

SCHEMA: Final = "nsys-triage/compare/1"

Outcome = Literal["lower", "higher", "no_change", "inconclusive"]
"""Of a number: whether it is lower or higher in `after` by more than noise, or too noisy to tell."""
Grade = Literal["good", "limited", "poor"]


class _Part(Struct, forbid_unknown_fields=True):
    """Base of all parts: an unknown key is an error."""


class TimeChange(_Part):
    """A time on both sides, and the interval of its change where its noise is known."""

    before_ns: int
    after_ns: int
    change_ns: int
    change_share: float | None  # of before; None where that is 0
    low_ns: int | None
    high_ns: int | None
    outcome: Outcome


class Run(_Part):
    """One run of a side: a trace, a result, or the traces of a job's ranks."""

    files: list[str]
    source: Literal["trace", "result"]
    status: Literal["ok", "cannot_judge"]
    span_ns: int | None  # of the window, mean of the GPUs
    steps: int | None
    step_mean_ns: int | None
    busy_share: float | None


class SideWindow(_Part):
    """What part of the capture the figures are about."""

    mode: Literal["auto", "all", "user", "nvtx"]
    span_ns: int  # mean of the GPUs
    left_out_ns: int  # of the capture


class SideSteps(_Part):
    """The steps of a side; durations are of steady steps, of all runs, at most 1,000 of them."""

    source: Literal["nvtx", "periodicity"]
    name: str | None
    count: int  # in the window, of the run that is shown
    mean_ns: int
    p25_ns: int
    p50_ns: int
    p75_ns: int
    p95_ns: int
    max_ns: int
    durations_ns: list[int]


class Side(_Part):
    """One side of the comparison. With several runs `verdict` and `ledger` are those of the run in the middle."""

    name: str
    files: list[str]
    runs: list[Run]
    taken_as: Literal["one run", "repeats", "ranks of one job", "repeats of a job"]
    status: Literal["ok", "cannot_judge"]
    gpus: list[str | None]  # models
    ranks: int
    missing_ranks: list[int]
    window: SideWindow | None
    steps: SideSteps | None
    busy_share: float | None
    limiter: Limiter | None
    verdict: str
    ledger: list[CauseTime]  # mean of the GPUs, whole window
    tool_version: str


class Note(_Part):
    """Something that limits what the comparison says; `info` does not."""

    id: str
    level: Literal["info", "limited", "poor"]
    text: str


class Comparability(_Part):
    """Whether the two sides can be compared; `poor` makes the verdict inconclusive."""

    grade: Grade
    notes: list[Note]
    kernel_mix_share: float | None  # how much of the kernels both have in common, 0..1


class CompareVerdict(_Part):
    """What changed, in one sentence, and what else matters."""

    outcome: Literal[
        "identical", "faster", "slower", "mixed", "no_change", "inconclusive"
    ]  # mixed: steps and whole disagree
    metric: Literal["step_time", "same_launches"] | None
    sentence: str
    details: list[str]


class CauseChange(_Part):
    """One cause of the ledger per basis.

    `total` is that of the window, divided by its steps or seconds, the mean of the GPUs. `in_steps` is what lies inside
    the judged steps, of the main process' GPUs: its causes add up to `step_time`. None without steps, and for results
    of versions that do not have it.
    """

    cause: Cause
    total: TimeChange
    in_steps: TimeChange | None


class KernelFigures(_Part):
    """One side of a kernel."""

    count: int  # launches, all GPUs and runs
    calls: float  # per basis and GPU
    total_ns: int  # per basis and GPU
    mean_ns: int
    p50_ns: int


class KernelChange(_Part, rename={"kernel_class": "class"}):
    """One kernel by name and launch shape, or by name alone where its shapes are others on the two sides."""

    name: str
    kernel_class: str
    grid: list[int] | None  # None where several shapes are one row
    block: list[int] | None
    match: Literal["shape", "name", "none"]
    calls: Literal["same", "more", "fewer", "new", "gone"]
    duration: Literal["same", "faster", "slower", "inconclusive"] | None  # of a launch; None on one side only
    before: KernelFigures | None
    after: KernelFigures | None
    mean_change_share: float | None
    low_share: float | None
    high_share: float | None
    total_change_ns: int  # per basis and GPU


class KernelSums(_Part):
    """Rows by what became of them; a row can be both slower and more often called."""

    same: int = 0
    faster: int = 0
    slower: int = 0
    more: int = 0
    fewer: int = 0
    new: int = 0
    gone: int = 0
    inconclusive: int = 0


class KernelChanges(_Part):
    """All kernels of both sides, those whose time changed most first."""

    sums: KernelSums
    same_launches: (
        TimeChange | None
    )  # kernel time of the launches that both sides have, as often as before, per basis
    only_before_share: float  # of the kernel time before: kernels that are gone after
    only_after_share: float  # of the kernel time after: kernels that are new
    rows: list[KernelChange]
    not_listed_before: int  # launches of kernels that a result sums up as others
    not_listed_after: int


class Measure(_Part):
    """Any other number on both sides, per basis and GPU where it is a count, a size or a time."""

    topic: Literal["gpu", "copies", "communication", "sync", "launches"]
    name: str  # kind of copy, API call, operation; "" for the whole topic
    what: str
    unit: Unit
    per_basis: bool
    before: float | None
    after: float | None
    change_share: float | None
    outcome: Outcome


class FindingSize(_Part):
    """What a finding had at stake per basis."""

    title: str
    low_ns: int
    high_ns: int
    share: float


class Prediction(_Part):
    """Whether the time that a fixed finding had at stake was freed."""

    low_ns: int
    high_ns: int
    freed_ns: int  # by how much its causes fell, per basis; negative where they rose
    step_change_ns: int | None
    outcome: Literal["came_true", "less", "moved", "inconclusive"]
    sentence: str


class FindingChange(_Part):
    """One rule with a finding on a side.

    `at_threshold`: on one side, and close enough to the rule's threshold to come and go by chance; `not_checked`: the
    rule could not look at the other side; `not_compared`: on one side, of two that cannot be compared.
    """

    rule: str
    state: Literal["fixed", "new", "remaining", "at_threshold", "not_checked", "not_compared"]
    before: FindingSize | None
    after: FindingSize | None
    prediction: Prediction | None


class GateOutcome(_Part):
    """How `--fail-on-regression` ended."""

    threshold_share: float
    outcome: Literal["passed", "failed", "inconclusive"]
    sentence: str


class Comparison(_Part):
    """Two runs compared."""

    schema: Literal["nsys-triage/compare/1"]
    tool_version: str
    status: Literal["compared", "identical", "cannot_judge"]
    basis: Literal["step", "second"]
    before: Side
    after: Side
    comparability: Comparability
    verdict: CompareVerdict
    step_time: TimeChange | None  # mean duration of a steady step
    step_busy: TimeChange | None  # mean busy time of a steady step, of the main process' GPUs
    outside_steps: TimeChange | None  # window time outside its steps, not per basis
    whole: TimeChange | None  # span of the whole capture, where both sides did the same work; not per basis
    idle_time: TimeChange | None  # all idle causes together, per basis, as `total` of a cause
    idle_in_steps: TimeChange | None  # the same as `in_steps` of a cause
    causes: list[CauseChange]
    kernels: KernelChanges | None
    measures: list[Measure]
    findings: list[FindingChange]
    gate: GateOutcome | None
