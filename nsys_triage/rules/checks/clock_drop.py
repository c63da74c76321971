"""The same kernels get slower while the program runs, or are slower on one GPU than on the others.

What it means

Kernels with the same name and launch shape do the same work and should take equally long. Where most of
them together take a tenth longer towards the end, the GPU has lowered its clock: it is hot, at its power
limit, or shared with another job. Where they are slower on one of several equal GPUs, that one is
throttled, set to a lower clock, or not alone. Only launches without another kernel beside them are
compared, by medians, and several kernels have to agree.

What to do next

1. Watch clocks, temperature and throttle reasons while the job runs: nvidia-smi
   --query-gpu=index,clocks.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active --format=csv -l 1
2. Record clocks with the trace: nsys profile --gpu-metrics-devices=all.
3. Lock the clock for comparable measurements (nvidia-smi --lock-gpu-clocks), mend cooling or power limits,
   and look for other processes on that GPU.

When it is wrong

Kernels whose work grows with the same launch shape (longer sequences, more particles) get slower by
themselves. A GPU at its power limit after the first seconds of boost is normal: then the later speed is the
true one.
"""

from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.metrics.kernel_counters import clock_by_thirds, compute_kernels
from nsys_triage.metrics.kernel_trend import Slowdown, against_others, slowdown, trend, undisturbed
from nsys_triage.result.model import Evidence, Interval
from nsys_triage.rules import kernel_advice as ka
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, Threshold, number, page_of
from nsys_triage.rules.context import Context

_STEADY_CLOCK: Final = 0.95  # a clock that keeps so much of itself does not explain slower kernels
_WATCH: Final = (
    "Watch clocks and throttle reasons while the job runs: nvidia-smi --query-gpu=index,clocks.sm,temperature.gpu,"
    "power.draw,clocks_throttle_reasons.active --format=csv -l 1"
)
_RECORD: Final = (
    "Record the clocks with the trace: nsys profile --trace=cuda,nvtx,osrt --gpu-metrics-devices=all --output=job "
    "<your command>"
)

_LOCK: Final = (
    "Lock the clock to compare measurements (nvidia-smi --lock-gpu-clocks), and look at cooling, the power limit and"
    " other processes on the GPU."
)


@dataclass(frozen=True, slots=True)
class _Speeds:
    """What can be said of the speed of every GPU's kernels."""

    later: dict[int, Slowdown]  # last third of the window against the first
    others: dict[int, Slowdown]  # this GPU against the others of its model
    clocks: dict[int, tuple[float, float]]


def _speeds(context: Context) -> _Speeds:
    m = context.m
    kernels = undisturbed(m.trace, m.work)
    start, end = m.window.start_ns, m.window.end_ns
    over_time, over_gpus = trend(kernels, start, end), against_others(kernels)
    gpus = m.workload.gpus.all
    same_model = len({gpu.name for gpu in gpus}) == 1
    later = {g.index: s for g in gpus if (s := slowdown(over_time, kernels, g.index)) is not None}
    others = {
        g.index: s for g in gpus if same_model and (s := slowdown(over_gpus, kernels, g.index)) is not None
    }
    clocks = clock_by_thirds(m.trace, m.workload, compute_kernels(m.work), start, end)
    return _Speeds(later, others, clocks)


def check(context: Context) -> Outcome:
    """Fires where kernels that make up most of the kernel time run a tenth slower later on, or on one GPU only."""
    hidden = ka.kernels_in_graphs(context)
    if hidden is not None:
        return hidden
    speeds = _speeds(context)
    limit = context.thresholds["slowdown"]
    later = [s for s in speeds.later.values() if s.by(limit) and _clock_fell(speeds, s.gpu)]
    if later and ka.share_of_span(context, sum(s.extra_ns for s in later)) >= context.thresholds["share"]:
        return _slower_later(context, speeds, later)
    slow = [s for s in speeds.others.values() if s.by(limit)]
    if len(slow) == 1 and ka.share_of_span(context, _of_all(context, slow[0])) >= context.thresholds["share"]:
        return _slower_gpu(context, slow[0])
    fallen = _fallen_clock(context, speeds)
    if fallen is not None:
        return fallen
    told = [s for s in (*speeds.later.values(), *speeds.others.values()) if s.comparable]
    if not told:
        return NotRun(
            "three kernels that make up half of the kernel time, with five launches early and late: the trace has "
            "none"
        )
    most = max(told, key=lambda s: s.ratio)
    elsewhere = " or on another GPU of this trace" if speeds.others else ""
    return Passed(
        f"The same kernels take at most {units.share(max(0.0, most.ratio - 1))} longer later on{elsewhere}."
    )


def _clock_fell(speeds: _Speeds, gpu: int) -> bool:
    """Whether the sampled clock fell, too; True where it was not sampled."""
    clock = speeds.clocks.get(gpu)
    return clock is None or clock[1] <= _STEADY_CLOCK * clock[0]


def _fallen_clock(context: Context, speeds: _Speeds) -> Found | None:
    """The finding that rests on sampled clocks alone, for GPUs whose kernels cannot be compared; None without one."""
    limit = 1 + context.thresholds["slowdown"]
    fell = {
        gpu: clock
        for gpu, clock in speeds.clocks.items()
        if clock[0] >= limit * clock[1] and not (gpu in speeds.later and speeds.later[gpu].comparable)
    }
    blocks = {
        identity.index: block
        for identity in context.m.workload.gpus.all
        for block in context.gpus
        if block.id == identity.id
    }
    # the middle third may have been as slow as the last
    lost = {
        gpu: blocks[gpu].compute_ns * 2 / 3 * (1 - clock[1] / clock[0])
        for gpu, clock in fell.items()
        if gpu in blocks
    }
    if not lost or ka.share_of_span(context, sum(lost.values())) < context.thresholds["share"]:
        return None
    worst = max(lost, key=lambda gpu: (lost[gpu], -gpu))
    first, last = fell[worst]
    return Found(
        title=f"The GPU clock fell from {units.frequency(first)} to {units.frequency(last)} while kernels ran",
        stake=context.stake(
            sum(lost.values()),
            "high: kernels slow down with the clock from the second third on; low: they are limited by memory",
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(
            number("median clock in the first third", first, "mhz"),
            number("median clock in the last third", last, "mhz"),
            number("time in which kernels compute", blocks[worst].compute_ns, "ns"),
        ),
        actions=(_WATCH, _LOCK),
        caveat="Boost clocks of the first seconds are not meant to last; kernels limited by memory do not slow down.",
        confidence="medium",
        where=_last_third(context),
        gpu=_gpu_id(context, worst) if len(lost) == 1 else None,
    )


def _last_third(context: Context) -> Interval:
    start_ns, end_ns = context.m.window.start_ns, context.m.window.end_ns
    return Interval(start_ns=end_ns - (end_ns - start_ns) // 3, end_ns=end_ns)


def _of_all(context: Context, slow: Slowdown) -> int:
    """What the slow GPU costs at most, over all GPUs: where they communicate, all of them wait for it."""
    return slow.extra_ns * (len(context.gpus) if context.has("communication") else 1)


def _slower_later(context: Context, speeds: _Speeds, later: list[Slowdown]) -> Found:
    extra_ns = sum(s.extra_ns for s in later)
    worst = max(later, key=lambda s: (s.ratio, -s.gpu))
    clock = speeds.clocks.get(worst.gpu)
    sampled: tuple[Evidence, ...] = ()
    if clock is not None:
        sampled = (
            number("median clock in the first third", clock[0], "mhz"),
            number("median clock in the last third", clock[1], "mhz"),
        )
    return Found(
        title=f"The same kernels take {units.share(worst.ratio - 1)} longer in the last third than in the first",
        stake=context.stake(
            extra_ns,
            (
                "high: every launch takes as long as in the first third; low: the first third ran on a clock that "
                "cannot be held"
            ),
            low_ns=0,
        ),
        causes=("compute",),
        evidence=(*_numbers(worst), *sampled),
        actions=(
            _WATCH,
            *(() if sampled else (_RECORD,)),
            _LOCK,
        ),
        caveat=(
            "Kernels whose work grows with the same launch shape get slower by themselves, and boost clocks of the "
            "first seconds are not meant to last."
        ),
        confidence="high" if sampled else "low",
        where=_last_third(context),
        gpu=_gpu_id(context, worst.gpu) if len(later) == 1 else None,
    )


def _slower_gpu(context: Context, slow: Slowdown) -> Found:
    name = _gpu_id(context, slow.gpu)
    return Found(
        title=f"One GPU runs the same kernels {units.share(slow.ratio - 1)} slower than the others",
        stake=context.stake(
            _of_all(context, slow),
            "high: all GPUs wait for the slow one; low: the slow one alone gains"
            if context.has("communication")
            else "high: its kernels take as long as on the others; low: half of it",
            low_ns=slow.extra_ns / (1 if context.has("communication") else 2),
        ),
        causes=("compute",),
        evidence=_numbers(slow),
        actions=(
            _WATCH,
            (
                "Compare power limit, application clocks and MIG mode of that GPU with the others (nvidia-smi -q "
                "-d CLOCK,POWER), and look for other processes on it."
            ),
            "If it stays slow alone, have its cooling or the card checked, or leave it out of the job.",
        ),
        caveat="With the same launch shapes the data can differ: then one GPU has more work, not a lower clock.",
        confidence="medium",
        gpu=name,
    )


def _numbers(slow: Slowdown) -> tuple[Evidence, ...]:
    return (
        number("how much longer the same kernels take (median over kernel time)", slow.ratio - 1, "share"),
        number("kernels with launch shapes compared", slow.kernels, "count"),
        number("part of the kernel time that they make up", slow.compared_share, "share"),
        number("part of that in kernels that slowed down by half as much or more", slow.agree_share, "share"),
        number("time that all their launches lose on that GPU", slow.extra_ns, "ns"),
    )


def _gpu_id(context: Context, index: int) -> str | None:
    return (
        next(g.id for g in context.m.workload.gpus.all if g.index == index) if len(context.gpus) > 1 else None
    )


RULE = Rule(
    id="clock-drop",
    title="The same kernels get slower",
    check=check,
    page=page_of(__doc__),
    needs=("kernels",),
    thresholds={
        "share": ka.GAIN_THRESHOLD,
        "slowdown": Threshold(
            0.10, "share", "longer: kernels of healthy recordings differ by 2 % at most between thirds"
        ),
    },
)
