"""The evidence by topic: its one-line summary, and numbers that templates cannot take as they are."""

from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.render import words
from nsys_triage.render.charts.histogram import Bin, Histogram, histogram
from nsys_triage.render.views.known import given, gpu_names
from nsys_triage.result.model import Bucket, Gap, Result

LONGEST_GAPS = 10
# which topics a limiter or a finding's cause is about; they are open from the start
_ABOUT: Final[dict[str, tuple[str, ...]]] = {
    "launch": ("launches", "gaps"), "host_launch": ("launches", "kernels"), "host_sync": ("sync", "gaps"),
    "input_pipeline": ("gaps", "copies"), "host_blocked": ("gaps",), "host_compute": ("gaps", "ranges"),
    "communication": ("communication",), "imbalance": ("communication",),
    "host_communication": ("communication",),
    "copy": ("copies",), "memset": ("copies",), "unified_memory": ("copies",), "allocation": ("gaps",),
    "module_load": ("gaps",), "queued": ("gaps",), "dependency": ("gaps",), "profiler": ("gaps",),
    "compute": ("kernels",),
    "graph": ("kernels",), "mixed": ("gaps",), "unknown": ("gaps",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """One fold: its anchor, title, summary, and whether it is open."""

    id: str
    title: str
    summary: str
    open: bool


@dataclass(frozen=True, slots=True)
class LongGap:
    """One of the longest gaps, with the GPU it is on."""

    gpu: str
    gap: Gap


def topics(result: Result) -> list[Topic]:
    """The topics that the result has anything on, in the page's order."""
    summaries = [
        ("gaps", "Gaps", _gaps(result)),
        ("kernels", "Kernels", _kernels(result)),
        ("launches", "Launches", _launches(result)),
        ("sync", "Synchronisation", _sync(result)),
        ("copies", "Copies", _copies(result)),
        ("communication", "Communication", _communication(result)),
        ("ranges", "NVTX ranges", _ranges(result)),
        ("metrics", "GPU metrics", _metrics(result)),
    ]
    limiter = given(result.verdict.limiter)
    wanted = set(_ABOUT.get(limiter, ()) if limiter else ())
    return [
        Topic(key, title, summary, key in wanted and not summary.startswith("no"))
        for key, title, summary in summaries
        if summary is not None
    ]


def _gaps(result: Result) -> str | None:
    if not result.gpus:
        return None
    number, total = sum(g.gaps.count for g in result.gpus), sum(g.gaps.total_ns for g in result.gpus)
    if not number:
        return "none"
    longest = max(g.gaps.max_ns for g in result.gpus)
    return f"{units.plural(number, 'gap')}, {units.time(total)} in all, the longest {units.time(longest)}"


def _kernels(result: Result) -> str | None:
    kernels = given(result.kernels)
    if kernels is None:
        return None
    if not kernels.count:
        return "none"
    line = f"{units.plural(kernels.count, 'kernel')}, {units.plural(kernels.distinct, 'name')}"
    line += f", {units.time(kernels.sum_ns)}"
    return line + (f", half of them up to {units.time(kernels.p50_ns)}" if kernels.p50_ns is not None else "")


def _launches(result: Result) -> str | None:
    launches = given(result.launches)
    if launches is None:
        return None
    line = f"{units.plural(launches.host_calls, 'call')}, {units.time(launches.api_ns)} in them"
    rate = given(launches.per_s)
    return line + (f", {units.per_second(rate)}" if rate else "")


def _sync(result: Result) -> str | None:
    sync = given(result.sync)
    if sync is None:
        return None
    if not sync.calls:
        return "no synchronising calls"
    line = f"{units.plural(sync.calls, 'call')}, {units.time(sync.total_ns)} in them"
    cost = given(sync.cost_ns)
    if cost is None:
        return f"{line}, GPUs idle meanwhile {units.time(sync.idle_ns)}"
    return f"{line}, cost {units.time(cost)} of idle time"


def _copies(result: Result) -> str | None:
    copies = given(result.copies)
    if copies is None:
        return None
    number, volume = sum(k.count for k in copies.kinds), sum(k.bytes for k in copies.kinds)
    return f"{units.plural(number, 'copy', 'copies')}, {units.size(volume)}" if number else "none"


def _communication(result: Result) -> str | None:
    collectives = given(result.collectives)
    if collectives is None:
        return None
    if not collectives.count + collectives.other_count:
        return "no communication kernels"
    number = units.plural(collectives.count, "collective")
    return f"{number}, {units.time(collectives.total_ns)}, exposed {units.time(collectives.exposed_ns)}"


def _ranges(result: Result) -> str | None:
    ranges = given(result.ranges)
    if ranges is None:
        return None
    return f"the {units.count(len(ranges))} that take most time" if ranges else "none recorded"


def _metrics(result: Result) -> str | None:
    sampled = [gpu for gpu in result.gpus if given(gpu.metrics) is not None]
    return f"sampled on {units.plural(len(sampled), 'GPU')}" if sampled else None


def duration_histogram(buckets: list[Bucket]) -> Histogram | None:
    """The picture of a histogram of durations; None where it is empty."""
    return histogram([Bin(units.time_bucket(b.from_ns, b.to_ns), b.count, b.total_ns) for b in buckets])


def gap_histogram(result: Result) -> Histogram | None:
    """The gaps of all GPUs together."""
    sums: dict[tuple[int, int | None], list[int]] = {}
    for gpu in result.gpus:
        for bucket in gpu.gaps.histogram:
            entry = sums.setdefault((bucket.from_ns, bucket.to_ns), [0, 0])
            entry[0] += bucket.count
            entry[1] += bucket.total_ns
    ordered = sorted(sums.items(), key=lambda item: item[0][0])
    return histogram([Bin(units.time_bucket(low, high), n, total) for (low, high), (n, total) in ordered])


def size_histogram(result: Result) -> Histogram | None:
    """The sizes of copies; None where they are not in the result."""
    copies = given(result.copies)
    if copies is None:
        return None
    return histogram(
        [Bin(units.size_bucket(b.from_bytes, b.to_bytes), b.count, b.total_bytes) for b in copies.sizes]
    )


def longest_gaps(result: Result) -> list[LongGap]:
    """The ten longest gaps of all GPUs, longest first."""
    names = gpu_names(result)
    found = [LongGap(names[gpu.id], gap) for gpu in result.gpus for gap in gpu.gaps.longest]
    found.sort(key=lambda entry: (entry.gap.start_ns - entry.gap.end_ns, entry.gap.start_ns, entry.gpu))
    return found[:LONGEST_GAPS]


def host_was_in(gap: Gap) -> list[str]:
    """What the host was in during a gap, each with its kind: `poll`, `range train_step`."""
    calls = [call for part in (gap.api, gap.os_call) if (call := given(part))]
    lines = [", ".join(calls)] if calls and sum(map(len, calls)) < 80 else calls
    lines += [f"range {name}" for part in (gap.nvtx,) if (name := given(part))]
    return lines + [f"CPU: {name}" for part in (gap.cpu,) if (name := given(part))]


def ended_by(gap: Gap) -> str | None:
    """What ran after a gap; kinds of copies in words."""
    name = given(gap.ended_by)
    return words.copy_kind(name.removesuffix(" copy")) + " copy" if name and name.endswith(" copy") else name


def gap_place(gap: Gap) -> str | None:
    """Where in the job a gap begins: `step 3, 62 % in`, `between steps`; None where there are no steps."""
    if gap.step is None:
        return "between steps"
    step = given(gap.step)
    if step is None:
        return None
    place = given(gap.place_share)
    return f"step {step}" + (f", {units.share(place)} in" if place is not None else "")


def causes_text(gap: Gap) -> str:
    """The causes of a gap with their shares of it, the largest first."""
    length = max(1, gap.end_ns - gap.start_ns)
    ordered = sorted(gap.causes, key=lambda part: (-part.ns, part.cause))
    told = [part for place, part in enumerate(ordered) if not place or part.ns >= 0.005 * length]
    return ", ".join(f"{words.cause(part.cause)} {units.share(part.ns / length)}" for part in told[:4])
