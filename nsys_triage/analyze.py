"""From exported traces to one result: load, measure, judge."""

from collections.abc import Callable, Sequence

from nsys_triage import __version__
from nsys_triage.errors import UsageError
from nsys_triage.ingest import Source
from nsys_triage.metrics.capture_warnings import capture_warnings
from nsys_triage.metrics.launches import failed_launches, launch_match
from nsys_triage.metrics.measure import Measurement, measure
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.model import SCHEMA, Capture, Check, Counts, DroppedByReason, DroppedRows, Result, Verdict
from nsys_triage.rules.registry import all_rules
from nsys_triage.rules.run import RuleSettings, run_rules, settle
from nsys_triage.rules.verdict import judge
from nsys_triage.trace.model import Trace
from nsys_triage.trace.sqlite import load_trace

Progress = Callable[[str, int | None], None]


def analyze(
    sources: Sequence[Source],
    window: WindowRequest,
    progress: Progress | None = None,
    settings: RuleSettings | None = None,
) -> Result:
    """The result for one trace. Raises WindowError where the window holds no device work, InputError for a bad file."""
    if len(sources) != 1:
        raise UsageError("Give one trace.")
    source = sources[0]
    if progress is not None:
        progress(f"reading {source.file}", None)
    trace = load_trace(
        source.path, file=source.file, kind=source.kind, capture_version=source.capture_version, filtered=source.filtered
    )
    if progress is not None:
        progress(f"measuring {source.file}", None)
    measured = measure(trace, window)
    return cannot_judge(trace) if measured is None else judged(measured, settings or RuleSettings())


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
        dropped_rows=DroppedRows(total=sum(trace.dropped.values()), by_reason=DroppedByReason(**trace.dropped)),
        launch_match=launch_match(measured.workload) if measured else None,
        warnings=measured.warnings if measured else capture_warnings(trace, None),
    )


def judged(m: Measurement, settings: RuleSettings) -> Result:
    """The result of a trace that holds device work."""
    ranges, unattributed = m.ranges
    findings, checks = settle(run_rules(all_rules(), m, settings))
    return Result(
        schema=SCHEMA,
        tool_version=__version__,
        status="ok",
        capture=capture_block(m.trace, m),
        gpus=m.gpus,
        kernels=m.kernels,
        launches=m.launches,
        sync=m.sync,
        copies=m.copies,
        collectives=m.collectives,
        ranges=ranges,
        gpu_unattributed_ns=unattributed,
        steps=m.step_block,
        timeline=m.timeline,
        ranks=None,
        findings=findings,
        checks=checks,
        verdict=judge(m.gpus, m.kernels, m.collectives, None, findings, failed_launches(m.workload)),
    )


def cannot_judge(trace: Trace) -> Result:
    """The result of a trace without device work: the likely reason, and how to record again."""
    command = "nsys profile --trace=cuda,nvtx,osrt --output=job python train.py"
    if trace.counts.api_calls:
        reason = (
            "No GPU work is in this trace, although CUDA calls are: the kernels were not recorded, or every launch failed."
        )
    else:
        reason = "No GPU work is in this trace: CUDA was not traced, or the process that uses the GPU was not recorded."
    return Result(
        schema=SCHEMA,
        tool_version=__version__,
        status="cannot_judge",
        capture=capture_block(trace, None),
        gpus=[],
        findings=[],
        checks=[Check(rule=rule.id, status="not_run", note="No GPU work was recorded.") for rule in all_rules()],
        verdict=Verdict(limiter=None, sentence=reason, next_action=f"Record again: {command}"),
    )
