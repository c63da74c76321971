"""From exported traces to one result: load, measure, judge; one trace at a time, whatever the number of ranks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from nsys_triage import __version__
from nsys_triage.errors import UsageError
from nsys_triage.ingest import Source
from nsys_triage.metrics import job_blocks
from nsys_triage.metrics.capture_warnings import capture_warnings
from nsys_triage.metrics.job_blocks import Blocks, blocks_of
from nsys_triage.metrics.launches import failed_launches, launch_match
from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.rank_parts import (
    RANK_VARIABLES,
    RankPart,
    communicators,
    environment_number,
    known_ranks,
    processes,
    rank_parts,
)
from nsys_triage.metrics.ranks import Job, job_of, kernels_alike, ranks_block, shared_clock
from nsys_triage.metrics.timeline import MARKS, build_timeline
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.model import (
    SCHEMA,
    Capture,
    Check,
    Counts,
    DroppedByReason,
    DroppedRows,
    Excluded,
    Gpu,
    LaunchMatch,
    Ranks,
    Result,
    Steps,
    Timeline,
    Verdict,
    Window,
)
from nsys_triage.result.model import Warning as CaptureWarning
from nsys_triage.rules.base import CAUSE_SHARE, Found, Outcome, Rule
from nsys_triage.rules.job import RankOutcome, join_outcomes, ranks_of
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.run import Failed, JobView, RuleSettings, run_rules, settle
from nsys_triage.rules.verdict import judge
from nsys_triage.trace.model import Trace
from nsys_triage.trace.sqlite import load_trace

Progress = Callable[[str, int | None], None]
MOST_EXCLUDED = 8
ALIKE = 0.1
"""Of a rank's kernel time in kernels that all ranks run: with less, and no collective matched, it may be no job."""
TIMELINE_RANKS = 8
_NO_JOB = CaptureWarning(
    id="unrelated-traces",
    text="These traces have no collective and next to no kernel in common: they may not be of one job.",
    advice="Make a report of each one, or judge them together with nsys-triage batch.",
)
RECORD_AGAIN = "nsys profile --trace=cuda,nvtx,osrt --output=job <your command>"


def analyze(
    sources: Sequence[Source],
    window: WindowRequest,
    progress: Progress | None = None,
    settings: RuleSettings | None = None,
) -> Result:
    """The result for one trace, or for the traces of a job's ranks.

    Raises WindowError where the window holds no device work, InputError for a bad file. Traces of a job that hold no
    device work are named in a warning; where none holds any the status is `cannot_judge`.
    """
    if not sources:
        raise UsageError("Give a trace.")
    say = progress or (lambda _what, _percent: None)
    rules = settings or RuleSettings()
    if len(sources) == 1:
        trace = _load(sources[0], say)
        measured = measure(trace, window)
        return cannot_judge(trace) if measured is None else judged(measured, rules)
    return _job(sources, window, say, rules)


def _load(source: Source, say: Progress, percent: int | None = None) -> Trace:
    say(f"reading {source.file}", percent)
    return load_trace(
        source.path,
        file=source.file,
        kind=source.kind,
        capture_version=source.capture_version,
        filtered=source.filtered,
    )


# --- one trace --------------------------------------------------------------------------------------------------


def capture_block(trace: Trace, measured: Measurement | None) -> Capture:
    """What is known of the capture; the window is None where nothing was measured."""
    info, counts = trace.info, trace.counts
    return Capture(
        file=info.file,
        kind=info.kind,  # type: ignore[arg-type]
        exporter_version=info.exporter_version,
        capture_version=info.capture_version,
        schema_version=info.schema_version,
        started_utc=info.started_utc,
        duration_ns=info.duration_ns,
        window=measured.window.block() if measured else None,
        counts=Counts(**{name: getattr(counts, name) for name in Counts.__struct_fields__}),
        dropped_rows=DroppedRows(
            total=sum(trace.dropped.values()), by_reason=DroppedByReason(**trace.dropped)
        ),
        launch_match=launch_match(measured.workload) if measured else None,
        warnings=measured.warnings if measured else capture_warnings(trace, None),
    )


def judged(m: Measurement, settings: RuleSettings) -> Result:
    """The result of one trace that holds device work. Several processes in it are ranks of a job."""
    job = job_of(rank_parts(m)) if len(processes(m)) > 1 else None
    ranks = ranks_block(job) if job else None
    gpus = _with_ranks(m.gpus, job) if job else _with_own_rank(m)
    collectives = job_blocks.with_waits(m.collectives, job.gpu_events) if job else m.collectives
    view = JobView(ranks, tuple(gpus)) if ranks else None
    findings, checks = settle(run_rules(all_rules(), m, settings, view))
    unattributed = m.ranges[1]
    return Result(
        schema=SCHEMA,
        tool_version=__version__,
        status="ok",
        capture=capture_block(m.trace, m),
        gpus=gpus,
        kernels=m.kernels,
        launches=m.launches,
        sync=m.sync,
        copies=m.copies,
        collectives=collectives,
        ranges=m.ranges[0],
        gpu_unattributed_ns=unattributed,
        steps=m.step_block,
        timeline=m.timeline,
        ranks=ranks,
        findings=findings,
        checks=checks,
        verdict=judge(gpus, m.kernels, collectives, ranks, findings, failed_launches(m.workload)),
    )


def _with_rank(gpu: Gpu, rank: int | None) -> Gpu:
    return msgspec.structs.replace(gpu, rank=rank)


def _with_own_rank(m: Measurement) -> list[Gpu]:
    """The GPUs of the only process with its rank, where that is known."""
    ranks = known_ranks(m, communicators(m))
    return [_with_rank(gpu, ranks.get(gpu.processes[0])) for gpu in m.gpus]


def _with_ranks(gpus: Iterable[Gpu], job: Job) -> list[Gpu]:
    """The GPUs of one trace with the rank of the process that uses each; None where several do."""
    of_process = {part.pid: rank for rank, part in job.parts.items()}
    return [
        _with_rank(gpu, of_process.get(gpu.processes[0]) if len(gpu.processes) == 1 else None) for gpu in gpus
    ]


def cannot_judge(trace: Trace) -> Result:
    """The result of a trace without device work: the likely reason, and how to record again."""
    if trace.info.filtered:
        reason = "No GPU work is in this export, which was made with --tables or --times: it may have been left out."
        action = (
            "Export the whole report: nsys export --type=sqlite REPORT.nsys-rep; if GPU work is missing still, "
            + RECORD_AGAIN
        )
    elif trace.counts.api_calls:
        failed = trace.api.filter(
            (trace.api["return_value"] != 0) & (trace.api["return_value"] != 600)
        ).height
        reason = (
            f"No GPU work is in this trace although it holds {trace.counts.api_calls} CUDA calls: this process launched"
            f" nothing, its launches failed{f' ({failed} calls returned an error)' if failed else ''}, or the kernels"
            " were not recorded."
        )
        action = f"Record again, until the GPU has worked: {RECORD_AGAIN}"
    else:
        reason = "No GPU work is in this trace: CUDA was not traced, or the process that uses the GPU was not recorded."
        action = f"Record again with CUDA traced: {RECORD_AGAIN}"
    return Result(
        schema=SCHEMA,
        tool_version=__version__,
        status="cannot_judge",
        capture=capture_block(trace, None),
        gpus=[],
        findings=[],
        checks=[
            Check(rule=rule.id, status="not_run", note="No GPU work was recorded.") for rule in all_rules()
        ],
        verdict=Verdict(limiter=None, sentence=reason, next_action=action),
    )


# --- the traces of a job ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Read:
    """What is kept of one trace of a job."""

    capture: Capture
    parts: list[RankPart]
    blocks: Blocks
    gpus: list[Gpu]
    steps: Steps
    outcomes: dict[str, Outcome | Failed]
    failed_launches: int


def _own_rules() -> list[Rule]:
    """The rules that look at one trace, whatever the others of its job show."""
    return [rule for rule in all_rules() if not rule.job]


def _read(m: Measurement, index: int, shown: int, settings: RuleSettings) -> _Read:
    return _Read(
        capture=capture_block(m.trace, m),
        parts=rank_parts(m, index),
        blocks=blocks_of(m),
        gpus=m.gpus,
        steps=m.step_block,
        outcomes=run_rules(_own_rules(), m, settings, JobView(_ranks_to_come(shown), None)),
        failed_launches=failed_launches(m.workload),
    )


def _ranks_to_come(count: int) -> Ranks:
    """What is known of a job's ranks while its traces are read: that there are several."""
    return Ranks(
        count=count,
        missing=[],
        matched_collectives=0,
        straggler=None,
        straggler_votes_share=None,
        per_rank=[],
    )


def _job(sources: Sequence[Source], window: WindowRequest, say: Progress, settings: RuleSettings) -> Result:
    """One result on all traces, read one after the other."""
    read: list[_Read] = []
    idle: list[Trace] = []
    timelines: dict[tuple[int, int], Timeline] = {}
    last: Measurement | None = None
    for index, source in enumerate(sources):
        trace = _load(source, say, 100 * index // len(sources))
        measured = measure(trace, window)
        if measured is None:
            idle.append(trace)
            continue
        read.append(_read(measured, len(read), len(sources), settings))
        _keep_timeline(timelines, measured, read[-1].parts, len(sources))
        last = measured
    if last is None:
        first = cannot_judge(idle[0])
        return msgspec.structs.replace(
            first, capture=msgspec.structs.replace(first.capture, files=[source.file for source in sources])
        )
    job = job_of([part for r in read for part in r.parts], idle=[_own_rank(trace) for trace in idle])
    names = _gpu_names(job)
    gpus = _job_gpus(job, names)
    ranks = ranks_block(_renamed(job, names))
    files = _files_by_rank(job)
    blocks = [read[index].blocks for index in files]
    steps = max((read[index].steps for index in files), key=lambda s: s.count)
    kernels, collectives = (
        job_blocks.join_kernels(blocks),
        job_blocks.join_collectives(blocks, job.gpu_events),
    )
    job_rules = [rule for rule in all_rules() if rule.job]
    view = JobView(ranks, tuple(gpus), kernels_alike(job) if len(read) > 1 else None)
    outcomes = _joined_outcomes(read, job, names, settings) | run_rules(job_rules, last, settings, view)
    findings, checks = settle(outcomes)
    capture = _job_capture(sources, read, idle, _shifts(job))
    if len(read) > 1 and not ranks.matched_collectives and (view.alike or 0.0) < ALIKE:
        warnings = sorted([*capture.warnings, _NO_JOB], key=lambda warning: warning.id)
        capture = msgspec.structs.replace(capture, warnings=warnings)
    return Result(
        schema=SCHEMA,
        tool_version=__version__,
        status="ok",
        capture=capture,
        gpus=gpus,
        kernels=kernels,
        launches=job_blocks.join_launches(blocks),
        sync=job_blocks.join_sync(blocks, steps.count),
        copies=job_blocks.join_copies(blocks),
        collectives=collectives,
        ranges=job_blocks.join_ranges(blocks),
        gpu_unattributed_ns=sum(b.unattributed_ns for b in blocks),
        steps=steps,
        timeline=_job_timeline({index: timeline for (_, index), timeline in timelines.items()}, job),
        ranks=ranks,
        findings=findings,
        checks=checks,
        verdict=judge(gpus, kernels, collectives, ranks, findings, sum(r.failed_launches for r in read)),
    )


def _files_by_rank(job: Job) -> dict[int, tuple[int, ...]]:
    """The ranks in each file, ascending; the file with the lowest rank first, whatever the order given."""
    found: dict[int, tuple[int, ...]] = {}
    for rank, part in job.parts.items():
        found[part.file_index] = (*found.get(part.file_index, ()), rank)
    return found


def _gpu_names(job: Job) -> dict[tuple[int, str], str]:
    """(file, GPU's identifier in its trace) -> its identifier in the job."""
    names: dict[tuple[int, str], str] = {}
    for rank, part in job.parts.items():
        for gpu in part.gpus:
            names.setdefault((part.file_index, gpu.id), f"rank{rank}-{gpu.id}")
    return names


def _job_gpus(job: Job, names: dict[tuple[int, str], str]) -> list[Gpu]:
    """The GPUs of all traces, by rank; one that several ranks share is listed once, without a rank."""
    users: dict[tuple[int, str], list[int]] = {}
    for rank, part in job.parts.items():
        for gpu in part.gpus:
            users.setdefault((part.file_index, gpu.id), []).append(rank)
    seen: dict[tuple[int, str], Gpu] = {}
    for part in job.parts.values():
        for gpu in part.gpus:
            key = (part.file_index, gpu.id)
            only = users[key][0] if len(users[key]) == 1 else None
            seen.setdefault(key, msgspec.structs.replace(gpu, id=names[key], rank=only))
    return list(seen.values())


def _renamed(job: Job, names: dict[tuple[int, str], str]) -> Job:
    """The job with the GPUs' identifiers of the job."""
    parts = {
        rank: RankPart(
            **{
                **vars(part),
                "gpus": [msgspec.structs.replace(g, id=names[(part.file_index, g.id)]) for g in part.gpus],
            }
        )
        for rank, part in job.parts.items()
    }
    return Job(parts, job.source, job.notes, job.events, job.idle)


def _own_rank(trace: Trace) -> int | None:
    return environment_number(trace.info.environment, RANK_VARIABLES)


def _joined_outcomes(
    read: Sequence[_Read], job: Job, names: dict[tuple[int, str], str], settings: RuleSettings
) -> dict[str, Outcome | Failed]:
    """Every rule's outcomes on the traces as one outcome."""
    joined = {}
    files = _files_by_rank(job)
    for rule in _own_rules():
        rows = [
            RankOutcome(
                ranks=ranks,
                gpus=len(read[index].gpus),
                span_ns=sum(gpu.span_ns for gpu in read[index].gpus),
                gpu=names.get((index, _own_gpu(read[index], rule.id))),
                outcome=read[index].outcomes[rule.id],
            )
            for index, ranks in files.items()
        ]
        joined[rule.id] = join_outcomes(rows, settings.of(rule).get("share", CAUSE_SHARE))
    return joined


def _own_gpu(read: _Read, rule: str) -> str:
    """The GPU of a trace that an outcome is about: the one it names, or the only one; "" where there is none."""
    outcome = read.outcomes[rule]
    if isinstance(outcome, Found) and outcome.gpu is not None:
        return outcome.gpu
    return read.gpus[0].id if len(read.gpus) == 1 else ""


def _shifts(job: Job) -> dict[int, int]:
    """What moves the times of each file (ns) onto the clock of the file with the lowest rank, which comes first.

    Nothing where the files have no clock in common.
    """
    files = list(_files_by_rank(job))
    clock = shared_clock(job.parts.values()) or dict.fromkeys(files, 0)
    return {index: clock[index] - clock[files[0]] for index in files}


def _job_capture(
    sources: Sequence[Source], read: Sequence[_Read], idle: Sequence[Trace], shifts: Mapping[int, int]
) -> Capture:
    """The first file's capture with counts summed; the window from the least start to the greatest end."""
    captures = [r.capture for r in read]
    without_work = [cannot_judge(trace).capture for trace in idle]
    windows = [(w, shift) for index, shift in shifts.items() if (w := captures[index].window) is not None]
    window = msgspec.structs.replace(
        windows[0][0],
        start_ns=min(w.start_ns + shift for w, shift in windows),
        end_ns=max(w.end_ns + shift for w, shift in windows),
        excluded=_excluded(windows),
    )
    matches = [c.launch_match for c in captures if c.launch_match is not None]
    return msgspec.structs.replace(
        captures[0],
        files=[source.file for source in sources],
        window=window,
        counts=_summed_counts([c.counts for c in (*captures, *without_work)]),
        dropped_rows=_summed_drops([c.dropped_rows for c in (*captures, *without_work)]),
        launch_match=LaunchMatch(
            matched=sum(m.matched for m in matches), unmatched=sum(m.unmatched for m in matches)
        ),
        warnings=_joined_warnings([c.warnings for c in captures], idle),
    )


def _excluded(windows: Sequence[tuple[Window, int]]) -> list[Excluded]:
    """What was cut of any of the traces, each reason once; a part that one of them lost is said to be of that one."""
    found: dict[str, list[Excluded]] = {}
    for window, shift in windows:
        for part in window.excluded:
            moved = msgspec.structs.replace(part, start_ns=part.start_ns + shift, end_ns=part.end_ns + shift)
            found.setdefault(part.reason, []).append(moved)
    return [
        Excluded(
            start_ns=min(part.start_ns for part in same),
            end_ns=max(part.end_ns for part in same),
            reason=reason
            if len(same) == len(windows)
            else f"{reason} In {len(same)} of {len(windows)} traces.",
        )
        for reason, same in list(found.items())[:MOST_EXCLUDED]
    ]


def _summed_counts(counts: Sequence[Counts]) -> Counts:
    def total(name: str) -> int | None:
        known = [value for c in counts if (value := getattr(c, name)) is not None]
        return sum(known) if known else None

    return Counts(**{name: total(name) for name in Counts.__struct_fields__})


def _summed_drops(drops: Sequence[DroppedRows]) -> DroppedRows:
    names = DroppedByReason.__struct_fields__
    return DroppedRows(
        total=sum(d.total for d in drops),
        by_reason=DroppedByReason(**{name: sum(getattr(d.by_reason, name) for d in drops) for name in names}),
    )


def _joined_warnings(
    warnings: Sequence[Sequence[CaptureWarning]], idle: Sequence[Trace]
) -> list[CaptureWarning]:
    """Each warning once, with how many traces it is about."""
    found: dict[str, list[CaptureWarning]] = {}
    for warning in (w for of_trace in warnings for w in of_trace):
        found.setdefault(warning.id, []).append(warning)
    joined = [
        msgspec.structs.replace(same[0], text=f"{same[0].text} (so in {len(same)} of {len(warnings)} traces)")
        for same in found.values()
    ]
    if idle:
        files = ", ".join(trace.info.file for trace in idle[:5]) + (" and others" if len(idle) > 5 else "")
        joined.append(
            CaptureWarning(
                id="ranks-without-gpu-work",
                text=f"{len(idle)} of the traces hold no GPU work and are not among the ranks: {files}.",
                advice="Check that these ranks use the GPU, and record them with nsys profile --trace=cuda,nvtx,osrt.",
            )
        )
    return sorted(joined, key=lambda warning: warning.id)


def _keep_timeline(
    kept: dict[tuple[int, int], Timeline], m: Measurement, parts: Sequence[RankPart], traces: int
) -> None:
    """Keeps the timelines of the lowest ranks of those read so far, by (rank, file): no order given changes them."""
    index = parts[0].file_index
    lowest = min(index if part.known_rank is None else part.known_rank for part in parts)
    if len(kept) == TIMELINE_RANKS and (lowest, index) > max(kept):
        return
    marks = MARKS // min(traces, TIMELINE_RANKS)
    kept[lowest, index] = build_timeline(m.trace, m.workload, m.pieces, m.window, m.window_steps, marks)
    if len(kept) > TIMELINE_RANKS:
        del kept[max(kept)]


def _job_timeline(timelines: Mapping[int, Timeline], job: Job) -> Timeline:
    """The timelines (by file) below each other, by rank; those of one host are moved onto the clock of the first."""
    shifts = _shifts(job)
    rows = []
    for index, ranks in _files_by_rank(job).items():
        if index not in timelines:
            continue
        shift = shifts[index]
        for row in timelines[index].rows:
            marks = [
                msgspec.structs.replace(m, start_ns=m.start_ns + shift, end_ns=m.end_ns + shift)
                for m in row.marks
            ]
            rows.append(msgspec.structs.replace(row, label=f"{ranks_of(ranks)}: {row.label}", marks=marks))
    return Timeline(bin_ns=max(timeline.bin_ns for timeline in timelines.values()), rows=rows)
