"""Whether two sides can be compared at all, and what limits it."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

from nsys_triage import units
from nsys_triage.compare.noise import FEWEST_STEPS
from nsys_triage.compare.numbers import Numbers
from nsys_triage.result.compare_model import Comparability, Grade, Note, Side

POOR_MIX: Final = 0.2
"""Of unrelated programs in the tests' traces at most a tenth is in common; of one program before and after mixed
precision two thirds."""
LIMITED_MIX: Final = 0.5
SAME_STEP: Final = 0.25
"""By how much the launches of a step may differ: a change adds or fuses kernels, another unit is a multiple."""
LIMITED_OVERHEAD: Final = 0.02
DENSER_RANGES: Final = 3.0
_LOST: Final = ("lost", "dropped")

Level = Literal["info", "limited", "poor"]
Found = tuple[str, Level, str]


def comparability(
    sides: tuple[Side, Side], before: Sequence[Numbers], after: Sequence[Numbers]
) -> Comparability:
    """The grade is that of the gravest note. Without GPU work on a side nothing else is looked at."""
    blind = [
        f"{which} ({side.name}) cannot be judged: {side.verdict}"
        for which, side in zip(("BEFORE", "AFTER"), sides, strict=True)
        if side.status == "cannot_judge"
    ]
    if blind:
        return Comparability(
            grade="poor",
            notes=[Note(id="cannot-judge", level="poor", text=text) for text in blind],
            kernel_mix_share=None,
        )
    mix = kernel_mix(before, after)
    found: list[Found] = []
    for check in (_gpus, _ranks):
        found += check(*sides)
    found += _mix(mix)
    for look in (_steps, _window, _recorded, _overhead, _versions, _runs):
        found += look(sides, before, after)
    notes = [Note(id=name, level=level, text=text) for name, level, text in found]
    levels: tuple[Level, ...] = ("poor", "limited", "info")
    notes.sort(key=lambda note: (levels.index(note.level), note.id, note.text))
    grade: Grade = notes[0].level if notes and notes[0].level != "info" else "good"
    return Comparability(grade=grade, notes=notes, kernel_mix_share=None if mix is None else round(mix, 4))


def kernel_mix(before: Sequence[Numbers], after: Sequence[Numbers]) -> float | None:
    """What the kernels of both sides have in common (0..1), by name, in launches or in time, whichever is more.

    None where a side has no kernels (CUDA graphs recorded as a whole, copies alone).
    """
    by_launches = _common(before, after, lambda run: run.launches_by_name)
    by_time = _common(before, after, lambda run: run.time_by_name)
    return None if by_launches is None or by_time is None else max(by_launches, by_time)


def _common(
    before: Sequence[Numbers], after: Sequence[Numbers], of: Callable[[Numbers], dict[str, int]]
) -> float | None:
    shares = []
    for side in (before, after):
        sums: dict[str, int] = {}
        for run in side:
            for name, value in of(run).items():
                sums[name] = sums.get(name, 0) + value
        total = sum(sums.values())
        if not total:
            return None
        shares.append({name: value / total for name, value in sums.items()})
    return sum(min(share, shares[1].get(name, 0.0)) for name, share in shares[0].items())


def same_steps(before: Sequence[Numbers], after: Sequence[Numbers]) -> bool:
    """Whether a step is the same unit of work on both sides: steps in every run, of as many launches, roughly."""
    per_step = [run.launches_per_step for run in (*before, *after)]
    if any(run.steps is None for run in (*before, *after)):
        return False
    if not all(per_step):
        return True
    return max(per_step) <= (1 + SAME_STEP) * min(per_step)


def _gpus(before: Side, after: Side) -> list[Found]:
    models = [sorted({name for name in side.gpus if name}) for side in (before, after)]
    found: list[Found] = []
    if models[0] and models[1] and models[0] != models[1]:
        text = f"The GPUs are others: {', '.join(models[0])} before, {', '.join(models[1])} after."
        found.append(("other-gpu", "poor", text))
    elif bool(models[0]) != bool(models[1]):
        which = "before" if models[0] else "after"
        found.append(("gpu-not-recorded", "info", f"The GPU's model is recorded {which} only."))
    if len(before.gpus) != len(after.gpus) and before.ranks == after.ranks:
        text = (
            f"{units.plural(len(before.gpus), 'GPU')} worked before, {len(after.gpus)} after:"
            " figures are means per GPU, and each may do another part of the work."
        )
        found.append(("other-gpu-count", "poor", text))
    return found


def _ranks(before: Side, after: Side) -> list[Found]:
    found: list[Found] = []
    for which, side in (("before", before), ("after", after)):
        if side.missing_ranks:
            missing = ", ".join(str(rank) for rank in side.missing_ranks[:8])
            word = "Rank" if len(side.missing_ranks) == 1 else "Ranks"
            verb = "is" if len(side.missing_ranks) == 1 else "are"
            found.append(
                (
                    "lost-ranks",
                    "limited",
                    f"{word} {missing} {verb} missing {which}: the others stand for the job.",
                )
            )
    if before.ranks != after.ranks and not found:
        text = f"{units.plural(before.ranks, 'rank')} before, {after.ranks} after: each does another part of the work."
        found.append(("other-rank-count", "poor", text))
    return found


def _mix(mix: float | None) -> list[Found]:
    if mix is None:
        return [("no-kernels", "limited", "One side holds no kernels to match: what runs is not seen.")]
    if mix < POOR_MIX:
        text = f"The workloads differ: {units.share(mix)} of what the kernels do is common to both."
        return [("other-workload", "poor", text)]
    if mix < LIMITED_MIX:
        text = f"Only {units.share(mix)} of what the kernels do is common to both: another workload, or a large change."
        return [("other-workload", "limited", text)]
    return []


Look = tuple[Side, Side]


def _steps(sides: Look, before: Sequence[Numbers], after: Sequence[Numbers]) -> list[Found]:
    has = [all(run.steps is not None for run in side) for side in (before, after)]
    if not any(has):
        return [
            (
                "no-steps",
                "limited",
                "No steps were found: figures are per second of the window, and the verdict is on the time of the"
                " launches that both have. NVTX ranges around a step give more.",
            )
        ]
    if not all(has):
        which = "after" if has[0] else "before"
        return [
            ("no-steps", "limited", f"No steps were found {which}: figures are per second of the window.")
        ]
    if not same_steps(before, after):
        per_step = [side[0].launches_per_step for side in (before, after)]
        text = (
            f"A step is not the same on both sides: {units.count(round(per_step[0]))} launches before,"
            f" {units.count(round(per_step[1]))} after. Figures are per second of the window."
        )
        return [("other-steps", "limited", text)]
    found: list[Found] = []
    few = min(run.step_time.size for run in (*before, *after))
    if few < FEWEST_STEPS:
        text = f"{units.plural(few, 'step')} in a run: too few to tell a change of the step time from noise."
        found.append(("few-steps", "limited", text))
    sources = [side.steps.source for side in sides if side.steps]
    if "periodicity" in sources:
        text = "Steps were found from the launch sequence, which is a heuristic: a step may be a part of one."
        found.append(("heuristic-steps", "info", text))
    return found


def _window(sides: Look, before: Sequence[Numbers], after: Sequence[Numbers]) -> list[Found]:
    del before, after
    windows = [side.window for side in sides]
    if windows[0] is None or windows[1] is None:
        return []
    if windows[0].mode != windows[1].mode:
        text = f"The windows differ: `{windows[0].mode}` before, `{windows[1].mode}` after."
        return [("other-window", "limited", text)]
    if bool(windows[0].left_out_ns) != bool(windows[1].left_out_ns):
        which = "before" if windows[0].left_out_ns else "after"
        return [("startup", "info", f"Start-up was recognised and cut off {which} only.")]
    return []


def _recorded(sides: Look, before: Sequence[Numbers], after: Sequence[Numbers]) -> list[Found]:
    del sides
    found: list[Found] = []
    first, second = before[0].result.capture.counts, after[0].result.capture.counts
    for field, what, level in (
        ("api_calls", "CUDA calls were", "limited"),
        ("nvtx_ranges", "NVTX ranges were", "info"),
        ("syncs", "Synchronisation records were", "info"),
    ):
        there = [getattr(counts, field) is not None for counts in (first, second)]
        if there[0] != there[1]:
            which = "before" if there[0] else "after"
            grade: Level = "limited" if level == "limited" else "info"
            found.append((f"recorded-{field.replace('_', '-')}", grade, f"{what} recorded {which} only."))
    metrics = [any(gpu.metrics is not None for gpu in side[0].result.gpus) for side in (before, after)]
    if metrics[0] != metrics[1]:
        which = "before" if metrics[0] else "after"
        found.append(("recorded-gpu-metrics", "info", f"GPU metrics were sampled {which} only."))
    rates = [
        (c.nvtx_ranges or 0) / max(1, side[0].launches)
        for c, side in zip((first, second), (before, after), strict=True)
    ]
    if min(rates) > 0 and max(rates) > DENSER_RANGES * min(rates):
        which = "before" if rates[0] > rates[1] else "after"
        text = f"There are many more NVTX ranges {which}; each costs host time."
        found.append(("other-annotation", "info", text))
    for which, side in (("before", before), ("after", after)):
        lost = [w for w in side[0].result.capture.warnings if any(word in w.id for word in _LOST)]
        if lost:
            found.append(("lost-events", "limited", f"Events were lost {which}: {lost[0].text}"))
    if not all(run.lists_all_kernels for run in (*before, *after) if run.kernels):
        text = "A result was made by an older version and lists its largest kernels alone, which are matched by name."
        found.append(("top-kernels-only", "limited", text))
    return found


def _overhead(sides: Look, before: Sequence[Numbers], after: Sequence[Numbers]) -> list[Found]:
    del sides
    shares = [
        sum(run.ledger["profiler"] for run in side) / max(1.0, sum(run.span_ns for run in side))
        for side in (before, after)
    ]
    if abs(shares[0] - shares[1]) < LIMITED_OVERHEAD:
        return []
    said = [units.share(share) for share in shares]
    text = f"The recording itself took {said[0]} of the GPU time before and {said[1]} after."
    return [("profiler-overhead", "limited", text)]


def _versions(sides: Look, before: Sequence[Numbers], after: Sequence[Numbers]) -> list[Found]:
    captures = [side[0].result.capture for side in (before, after)]
    found: list[Found] = []
    versions = [c.capture_version or c.exporter_version for c in captures]
    if versions[0] and versions[1] and versions[0] != versions[1]:
        text = f"Recorded or exported with nsys {versions[0]} before and {versions[1]} after."
        found.append(("other-nsys", "info", text))
    if sides[0].tool_version != sides[1].tool_version:
        text = f"Analysed by nsys-triage {sides[0].tool_version} before and {sides[1].tool_version} after."
        found.append(("other-tool-version", "limited", text))
    return found


def _runs(sides: Look, before: Sequence[Numbers], after: Sequence[Numbers]) -> list[Found]:
    del sides
    if len(before) > 1 or len(after) > 1:
        return []
    text = "One run on each side: how much two runs of the same program differ is not known. Give folders of repeats."
    return [("one-run", "info", text)]
