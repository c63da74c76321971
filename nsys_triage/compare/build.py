"""From the results of both sides to one comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from nsys_triage import __version__
from nsys_triage.compare.changes import causes, idle_time, span_change, step_busy, step_time
from nsys_triage.compare.comparability import comparability, same_steps
from nsys_triage.compare.findings import compare_findings
from nsys_triage.compare.kernels import Scale, compare_kernels
from nsys_triage.compare.measures import measures
from nsys_triage.compare.noise import mean
from nsys_triage.compare.numbers import Numbers, given
from nsys_triage.compare.verdict import Changes, gate, other_work, verdict, with_busy
from nsys_triage.result.codec import encode
from nsys_triage.result.compare_model import (
    SCHEMA,
    Comparability,
    CompareVerdict,
    Comparison,
    Note,
    Run,
    Side,
    SideSteps,
    SideWindow,
    TimeChange,
)
from nsys_triage.result.model import Result

LISTED_STEPS: Final = 1_000
SAME_WORK: Final = 0.02
"""By how much the launches of two captures may differ for their spans to be of the same work."""

SAME_CAPTURE: Final = "Both are the same measurements, analysed or exported by different versions."

TakenAs = Literal["one run", "repeats", "ranks of one job", "repeats of a job"]


@dataclass(frozen=True, slots=True)
class SideInput:
    """One side as it was given: a result per run."""

    name: str  # base name of the file or folder
    results: Sequence[Result]
    sources: Sequence[Literal["trace", "result"]]
    files: Sequence[Sequence[str]]  # base names by run
    taken_as: TakenAs
    notes: Sequence[Note] = ()


def compare(before: SideInput, after: SideInput, threshold: float | None = None) -> Comparison:
    """The comparison of two sides with at least one run each; `threshold` is a gate's, as a share.

    Sides of the same content are `identical`; a side without a run that can be judged gives `cannot_judge`.
    """
    runs = [[Numbers(result) for result in side.results] for side in (before, after)]
    judged = [_apart([run for run in side if run.judged]) for side in runs]
    sides = _side(before, runs[0], judged[0]), _side(after, runs[1], judged[1])
    sides = _lost_ranks(*sides, judged[0], judged[1])
    if not judged[0] or not judged[1]:
        return _unjudged(sides, judged, threshold)
    same, in_all = _identical(before, after)
    notes = [*before.notes, *after.notes, *_copies(before, runs[0]), *_copies(after, runs[1])]
    if same and not in_all:
        notes.append(Note(id="same-capture", level="info", text=SAME_CAPTURE))
    found = _compared(sides, judged[0], judged[1], same, notes)
    if threshold is None:
        return found
    decided = gate(threshold, found.verdict, _metric(found), found.whole)
    return msgspec.structs.replace(found, gate=with_busy(decided, found.step_busy, found.verdict))


def _metric(comparison: Comparison) -> TimeChange | None:
    if comparison.verdict.metric == "step_time":
        return comparison.step_time
    return comparison.kernels.same_launches if comparison.kernels else None


def _identical(before: SideInput, after: SideInput) -> tuple[bool, bool]:
    """Whether both sides hold the same measurements, and whether their results agree in everything else too.

    The same capture exported by two versions of nsys is the same measurements. Names of files do not count.
    """
    found = []
    for of in (_measured, _content):
        contents = [sorted({of(result) for result in side.results}) for side in (before, after)]
        found.append(contents[0] == contents[1])
    models = [{gpu.name for r in side.results for gpu in r.gpus if gpu.name} for side in (before, after)]
    other_gpu = bool(models[0] and models[1]) and models[0] != models[1]
    return found[0] and not other_gpu, found[1]


def _apart(runs: Sequence[Numbers]) -> list[Numbers]:
    """The runs without copies of one another: no two runs of a job are alike to the nanosecond."""
    return list({_measured(run.result): run for run in reversed(runs)}.values())[::-1]


def _copies(side: SideInput, runs: Sequence[Numbers]) -> list[Note]:
    """That runs of a side are copies of one another, in which there is no noise."""
    names: dict[bytes, list[str]] = {}
    for run, files in zip(runs, side.files, strict=True):
        if run.judged:
            names.setdefault(_measured(run.result), []).append(files[0] if files else side.name)
    found = []
    for same in names.values():
        if len(same) > 1:
            text = (
                f"{len(same)} of the {len(runs)} runs of {side.name} are copies of one capture ({', '.join(same[:3])}"
                f"{', ...' if len(same) > 3 else ''}): they count once, and tell nothing about noise."
            )
            found.append(Note(id="copies", level="limited", text=text))
    return found


def _measured(result: Result) -> bytes:
    """What was measured on the GPU and by step."""
    gpus = [(gpu.span_ns, gpu.busy_ns, gpu.whole.span_ns, given(gpu.ledger)) for gpu in result.gpus]
    steps = given(result.steps)
    window = result.capture.window
    return msgspec.json.encode(
        (gpus, given(result.kernels), steps.items if steps else None, given(result.copies), window)
    )


def _content(result: Result) -> bytes:
    capture = msgspec.structs.replace(result.capture, file="", files=msgspec.UNSET)
    ranks = given(result.ranks)
    if ranks is not None:
        rows = [msgspec.structs.replace(row, file=msgspec.UNSET) for row in ranks.per_rank]
        ranks = msgspec.structs.replace(ranks, per_rank=rows)
    return encode(msgspec.structs.replace(result, capture=capture, ranks=ranks))


def _unjudged(
    sides: tuple[Side, Side], judged: Sequence[Sequence[Numbers]], threshold: float | None
) -> Comparison:
    able = comparability(sides, judged[0], judged[1])
    sentence = f"Not comparable: {able.notes[0].text}"
    result = CompareVerdict(outcome="inconclusive", metric=None, sentence=sentence, details=[])
    return Comparison(
        schema=SCHEMA, tool_version=__version__, status="cannot_judge", basis="second", before=sides[0],
        after=sides[1], comparability=able, verdict=result, step_time=None, outside_steps=None, whole=None,
        causes=[], kernels=None, measures=[], findings=[],
        gate=None if threshold is None else gate(threshold, result, None, None), idle_time=None, step_busy=None,
        idle_in_steps=None,
    )  # fmt: skip


def _compared(
    sides: tuple[Side, Side],
    before: Sequence[Numbers],
    after: Sequence[Numbers],
    same: bool,
    notes: Sequence[Note],
) -> Comparison:
    able = _with_notes(comparability(sides, before, after), notes, same)
    stepwise = same_steps(before, after)
    step = step_time(before, after) if stepwise else None
    reference = step.before_ns if step else 1_000_000_000
    by_cause = causes(before, after, stepwise, reference)
    idle, idle_in_steps = idle_time(before, after, stepwise, reference)
    kernels = compare_kernels(before, after, _scale(before, after, stepwise))
    others = measures(before, after, stepwise, reference)
    comparable = able.grade != "poor" and (step is not None or not other_work(kernels))
    findings = compare_findings(middle(before), middle(after), by_cause, step, stepwise, comparable)
    whole = _whole(before, after)
    outside = None
    if stepwise:
        outside = span_change([r.outside_steps_ns for r in before], [r.outside_steps_ns for r in after])
    changes = Changes(
        stepwise, step, whole, outside, idle_in_steps or idle, by_cause, kernels, others, findings, comparable
    )
    result = verdict(able, changes, sides)
    if same:
        sentence = "Both sides are identical."
        result = CompareVerdict(outcome="identical", metric=result.metric, sentence=sentence, details=[])
    busy = step_busy(before, after) if stepwise else None
    return Comparison(
        schema=SCHEMA, tool_version=__version__, status="identical" if same else "compared",
        basis="step" if stepwise else "second", before=sides[0], after=sides[1], comparability=able, verdict=result,
        step_time=step, outside_steps=outside, whole=whole, idle_time=idle, idle_in_steps=idle_in_steps,
        causes=by_cause, kernels=kernels,
        measures=others, findings=findings, gate=None, step_busy=busy,
    )  # fmt: skip


def _with_notes(found: Comparability, notes: Sequence[Note], same: bool) -> Comparability:
    if same:
        # nothing has to be told from noise
        kept = [note for note in notes if note.level == "info"]
        return msgspec.structs.replace(found, grade="good", notes=kept)
    levels = ("poor", "limited", "info")
    unique = {(note.id, note.text): note for note in (*found.notes, *notes)}
    ordered = sorted(unique.values(), key=lambda note: (levels.index(note.level), note.id, note.text))
    grade = ordered[0].level if ordered else "info"
    return msgspec.structs.replace(found, grade="good" if grade == "info" else grade, notes=ordered)


def _scale(before: Sequence[Numbers], after: Sequence[Numbers], stepwise: bool) -> Scale:
    def units(side: Sequence[Numbers]) -> float:
        if stepwise:
            return float(sum(run.gpus * run.steps.count for run in side if run.steps))
        return max(1e-9, sum(run.gpus * run.span_ns / 1e9 for run in side))

    return Scale("step" if stepwise else "second", units(before), units(after), before[0].gpus, after[0].gpus)


def _whole(before: Sequence[Numbers], after: Sequence[Numbers]) -> TimeChange | None:
    """The spans of the captures, where they are of the same work.

    They are where all have as many steps of one name, all of them in the window, or launched as many kernels per GPU.
    """
    steps = {
        (run.steps.source, run.steps.name, run.steps.count) if run.steps else None
        for run in (*before, *after)
    }
    named = all(
        run.steps and run.steps.source == "nvtx" and not run.steps.warmup_count for run in (*before, *after)
    )
    if named and len(steps) == 1:
        return span_change([run.whole_span_ns for run in before], [run.whole_span_ns for run in after])
    launches = [(run.whole_kernels or 0) / run.gpus for run in (*before, *after)]
    if not min(launches) or max(launches) > (1 + SAME_WORK) * min(launches):
        return None
    return span_change([run.whole_span_ns for run in before], [run.whole_span_ns for run in after])


# --- one side ---------------------------------------------------------------------------------------------------


def middle(runs: Sequence[Numbers]) -> Numbers:
    """The run that stands for the others: the one with the median step time, or busy time without steps."""
    order = sorted(range(len(runs)), key=lambda i: (runs[i].step_time.mean or runs[i].busy_ns, i))
    return runs[order[(len(order) - 1) // 2]]


def _side(given_side: SideInput, runs: Sequence[Numbers], judged: Sequence[Numbers]) -> Side:
    shown = middle(judged) if judged else runs[0]
    ranks = given(shown.result.ranks)
    window = shown.result.capture.window
    busy = [run.busy_ns / run.span_ns for run in judged if run.span_ns]
    return Side(
        name=given_side.name,
        files=[file for files in given_side.files for file in files],
        runs=[
            _run(run, source, files)
            for run, source, files in zip(runs, given_side.sources, given_side.files, strict=True)
        ],
        taken_as=given_side.taken_as,
        status="ok" if judged else "cannot_judge",
        gpus=[gpu.name for gpu in shown.result.gpus],
        ranks=ranks.count if ranks else 1,
        missing_ranks=list(ranks.missing) if ranks else [],
        window=SideWindow(
            mode=window.mode,
            span_ns=round(shown.span_ns),
            left_out_ns=sum(part.end_ns - part.start_ns for part in window.excluded),
        )
        if window and judged
        else None,
        steps=_steps(judged, shown),
        busy_share=round(mean(busy), 6) if busy else None,
        limiter=shown.result.verdict.limiter,
        verdict=shown.result.verdict.sentence,
        ledger=shown.ledger_entries() if judged else [],
        tool_version=shown.result.tool_version,
    )


def _run(run: Numbers, source: Literal["trace", "result"], files: Sequence[str]) -> Run:
    return Run(
        files=list(files),
        source=source,
        status="ok" if run.judged else "cannot_judge",
        span_ns=round(run.span_ns) if run.judged else None,
        steps=run.steps.count if run.steps else None,
        step_mean_ns=round(run.step_time.mean) if run.steps else None,
        busy_share=round(run.busy_ns / run.span_ns, 6) if run.judged and run.span_ns else None,
    )


def _steps(judged: Sequence[Numbers], shown: Numbers) -> SideSteps | None:
    if shown.steps is None or shown.steps.source == "none":
        return None
    durations = [step.duration_ns for run in judged for step in run.judged_steps]
    ordered = sorted(durations)
    if not ordered:
        return None

    def rank(q: int) -> int:
        return ordered[max(0, -(-q * len(ordered) // 100) - 1)]

    every = -(-len(durations) // LISTED_STEPS)
    return SideSteps(
        source=shown.steps.source,
        name=shown.steps.name,
        count=shown.steps.count,
        mean_ns=round(mean([run.step_time.mean for run in judged if run.steps])),
        p25_ns=rank(25),
        p50_ns=rank(50),
        p75_ns=rank(75),
        p95_ns=rank(95),
        max_ns=ordered[-1],
        durations_ns=durations[::every],
    )


def _lost_ranks(
    before: Side, after: Side, first: Sequence[Numbers], second: Sequence[Numbers]
) -> tuple[Side, Side]:
    """The sides, with the ranks that the other side knows and this one lacks as missing."""
    numbers = [
        {gpu.rank for run in side for gpu in run.result.gpus if gpu.rank is not None}
        for side in (first, second)
    ]
    sides = [before, after]
    for own, other in ((0, 1), (1, 0)):
        lacking = sorted(numbers[other] - numbers[own])
        if (
            sides[own].ranks < sides[other].ranks
            and numbers[own]
            and numbers[own] < numbers[other]
            and lacking
        ):
            missing = sorted({*sides[own].missing_ranks, *lacking})
            sides[own] = msgspec.structs.replace(sides[own], missing_ranks=missing)
    return sides[0], sides[1]
