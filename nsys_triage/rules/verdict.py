"""The limiter: the one thing to fix first, from the ledgers of all GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nsys_triage import units
from nsys_triage.metrics.ranks import clear_straggler
from nsys_triage.result.model import (
    BUSY_CAUSES,
    Cause,
    Collectives,
    Finding,
    Gpu,
    Kernels,
    Limiter,
    Ranks,
    Verdict,
)
from nsys_triage.rules.context import record_line

LOST_SHARE: Final = 0.10
LARGEST_SHARE: Final = 0.5
WAIT_SHARE: Final = 0.5

_PLAIN: Final[tuple[tuple[Cause, Limiter], ...]] = (
    ("launch", "host_launch"),
    ("host_sync", "host_sync"),
    ("host_blocked", "host_blocked"),
    ("host_compute", "host_compute"),
    ("allocation", "allocation"),
    ("module_load", "module_load"),
    ("unified_memory", "unified_memory"),
    ("queued", "dependency"),
    ("profiler", "profiler"),
    ("unknown", "unknown"),
)
_SAYS: Final[dict[Limiter, str]] = {
    "input_pipeline": "The GPU waits for input",
    "host_launch": "The host cannot launch work fast enough: the GPU waits for launches",
    "host_sync": "The GPU runs dry while the host waits for it: synchronising calls cost",
    "host_compute": "The GPU waits while the host computes",
    "host_blocked": "The GPU waits while the launching thread is blocked in the operating system",
    "allocation": "The GPU waits for memory allocation",
    "module_load": "The GPU waits while kernels are loaded or compiled",
    "communication": "Communication that nothing hides takes",
    "imbalance": "The ranks wait for each other, with no single one late: communication, mostly waiting, takes",
    "copy": "Copies that nothing hides take",
    "unified_memory": "The GPU waits for unified-memory migrations",
    "profiler": "The recording itself holds up the GPU",
    "dependency": "Work was queued in good time and the GPU waited for another stream, event or the scheduler",
    "unknown": "The GPU is idle for a reason that this recording does not show",
}
_WORDS: Final[dict[Limiter, str]] = {
    "input_pipeline": "waiting for input",
    "host_launch": "launch overhead",
    "host_sync": "synchronising calls",
    "host_compute": "host code",
    "host_blocked": "a blocked host thread",
    "allocation": "memory allocation",
    "module_load": "loading of kernels",
    "communication": "exposed communication",
    "imbalance": "waiting for a late rank",
    "copy": "exposed copies",
    "unified_memory": "unified-memory migrations",
    "profiler": "the profiler",
    "dependency": "waiting for other streams",
    "unknown": "no known cause",
}
_FIRST_STEPS: Final[dict[Limiter, str]] = {
    "input_pipeline": "Give the input pipeline more workers and let it run ahead of the GPU.",
    "host_launch": "Launch less often: CUDA graphs, compilation or fusion, or a larger batch.",
    "host_sync": "Remove or postpone the calls that wait for the GPU in every step.",
    "host_compute": "Move host work off the launching thread, or make it cheaper.",
    "host_blocked": "Find what the launching thread blocks on (locks, writing, sleeping) and take it out of the step.",
    "allocation": "Allocate once and reuse: a pool or caching allocator instead of cudaMalloc and cudaFree in steps.",
    "module_load": "Warm up before recording, or avoid changing shapes that compile and load kernels anew.",
    "communication": "Overlap collectives with computing (buckets, a stream of their own), or send less.",
    "imbalance": "Look at the late rank first: give the ranks equal work and find what holds that one up.",
    "copy": "Keep the data on the GPU, copy less, or overlap copies with computing on a stream of their own.",
    "unified_memory": "Prefetch managed memory (cudaMemPrefetchAsync) or use explicit copies.",
    "profiler": "Record less: fewer event types, no backtraces, a shorter time.",
    "dependency": "Look at what the streams wait for at the place named below.",
    "unknown": "Record again with CUDA API calls: nsys profile --trace=cuda,nvtx,osrt <your command>",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be the limiter: its time, summed over the GPUs."""

    limiter: Limiter
    ns: int


@dataclass(frozen=True, slots=True)
class Balance:
    """What the GPUs lost, and to what."""

    span_ns: int
    lost_ns: int
    candidates: tuple[Candidate, ...]  # the largest first


def balance(gpus: Sequence[Gpu], imbalance: bool) -> Balance:
    """The lost time of all GPUs and the candidates for the limiter (analysis: idle, exposed communication and copies).

    Waits for input and exposed input copies are one problem, named by the larger part; exposed communication and
    host-side communication are one, called imbalance where more than half of it is waiting for another rank.
    """
    totals: dict[Cause, int] = {}
    for gpu in gpus:
        for entry in gpu.ledger or []:
            totals[entry.cause] = totals.get(entry.cause, 0) + entry.ns
    idle = sum(ns for cause, ns in totals.items() if cause not in BUSY_CAUSES)
    copies = totals.get("copy", 0) + totals.get("memset", 0)
    communication = totals.get("communication", 0)
    waits = totals.get("input_pipeline", 0)
    input_copies = sum(gpu.exposed_input_copy_ns or 0 for gpu in gpus)
    found = [Candidate(limiter, totals.get(cause, 0)) for cause, limiter in _PLAIN]
    if waits > input_copies:
        found += [Candidate("input_pipeline", waits + input_copies), Candidate("copy", copies - input_copies)]
    else:
        found.append(Candidate("copy", waits + copies))
    shared = communication + totals.get("host_communication", 0)
    found.append(Candidate("imbalance" if imbalance else "communication", shared))
    ranked = sorted((c for c in found if c.ns > 0), key=lambda c: (-c.ns, c.limiter))
    return Balance(sum(gpu.span_ns for gpu in gpus), idle + communication + copies, tuple(ranked))


def limiter_of(found: Balance) -> Limiter:
    """`compute` where less than a tenth is lost, else the largest candidate if it is half of that, else `mixed`."""
    if found.lost_ns < LOST_SHARE * found.span_ns or not found.candidates:
        return "compute"
    largest = found.candidates[0]
    return largest.limiter if largest.ns >= LARGEST_SHARE * found.lost_ns else "mixed"


def waits_dominate(collectives: Collectives | None, ranks: Ranks | None = None) -> bool:
    """Whether ranks were matched and more than half of their communication time is waiting.

    Communication is that of the GPUs' collectives, and that of the hosts (MPI) where no such collective was matched.
    """
    if collectives is not None and collectives.wait_share is not None:
        return collectives.wait_share > WAIT_SHARE
    rows = [row for row in ranks.per_rank if row.wait_ns is not None] if ranks is not None else []
    waited, total = sum(row.wait_ns or 0 for row in rows), sum(row.communication_ns for row in rows)
    return waited > WAIT_SHARE * total


def judge(
    gpus: Sequence[Gpu],
    kernels: Kernels,
    collectives: Collectives | None,
    ranks: Ranks | None,
    findings: Sequence[Finding],
    failed_launches: int = 0,
) -> Verdict:
    """The verdict: one limiter, one sentence with its number, one next action."""
    found = balance(gpus, ranks is not None and waits_dominate(collectives, ranks))
    limiter = limiter_of(found)
    if limiter == "compute":
        sentence, action = _healthy(gpus, found, kernels, findings)
    elif limiter == "mixed":
        first, second = found.candidates[0], found.candidates[1]
        sentence = (
            f"{units.share(found.lost_ns / found.span_ns)} of the GPU time is lost and no single cause has half of it:"
            f" {units.share(first.ns / found.span_ns)} goes to {_WORDS[first.limiter]},"
            f" {units.share(second.ns / found.span_ns)} to {_WORDS[second.limiter]}."
        )
        action = _action(first.limiter, findings)
    else:
        sentence = _sentence(limiter, found, ranks, gpus)
        action = _action(limiter, findings)
    if failed_launches:
        what = units.plural(failed_launches, "kernel launch", "kernel launches")
        those = "that" if failed_launches == 1 else "those"
        sentence = f"{what} failed and left no kernel: fix {those} first. {sentence}"
        errors = next((f for f in findings if f.rule == "cuda-errors" and f.actions), None)
        action = (
            errors.actions[0]
            if errors
            else "Check the result of every CUDA call (cuda-errors), then record again."
        )
    return Verdict(limiter=limiter, sentence=sentence, next_action=action)


def _sentence(limiter: Limiter, found: Balance, ranks: Ranks | None, gpus: Sequence[Gpu]) -> str:
    share = units.share(found.candidates[0].ns / found.span_ns)
    if limiter == "input_pipeline" and any(gpu.exposed_input_copy_ns for gpu in gpus):
        return f"The GPU waits for input, or for the copies of it, {share} of the time."
    if limiter == "copy" and not any(entry.cause == "copy" for gpu in gpus for entry in gpu.ledger or []):
        return f"Memsets that nothing hides take {share} of the time."
    late = clear_straggler(ranks)  # which rank comes last by chance is no reason to blame it
    if limiter == "imbalance" and ranks is not None and late is not None:
        reason = f" {ranks.straggler_reason}" if isinstance(ranks.straggler_reason, str) else ""
        waits = f"The GPUs wait for rank {late}: communication, mostly waiting, takes {share} of the time."
        return waits + reason
    return f"{_SAYS[limiter]} {share} of the time."


_OWN_CAUSES: Final[dict[Limiter, tuple[Cause, ...]]] = {
    **{limiter: (cause,) for cause, limiter in _PLAIN},
    "input_pipeline": ("input_pipeline",),
    "copy": ("copy", "memset"),
    "communication": ("communication", "host_communication"),
    "imbalance": ("communication", "host_communication"),
}


def _action(limiter: Limiter, findings: Sequence[Finding]) -> str:
    """The first action of the largest finding about the limiter, else what to do about such a limiter in general."""
    causes = set(_OWN_CAUSES.get(limiter, ()))
    # exposed communication and a late rank share a cause; where the ranks say that it is waiting, that comes first
    of_ranks = [f for f in findings if f.rule == "rank-imbalance"] if limiter == "imbalance" else []
    for finding in [*of_ranks, *findings]:
        if causes & set(finding.causes) and finding.actions:
            return finding.actions[0]
    return _FIRST_STEPS.get(limiter, "Record again with nsys profile --trace=cuda,nvtx,osrt <your command>")


_MOST_OF_BUSY: Final = 0.5
_OF_KERNELS: Final[frozenset[Cause]] = frozenset(("compute", "graph"))


def _healthy(
    gpus: Sequence[Gpu], found: Balance, kernels: Kernels, findings: Sequence[Finding]
) -> tuple[str, str]:
    """What is said where the GPU itself is the limit: fine, what kind of kernel limits it, and to stop there."""
    busy = sum(gpu.busy_ns for gpu in gpus)
    classes = sorted(kernels.classes, key=lambda c: (-c.total_ns, c.kernel_class))
    kind = ""
    # a few kernels beside graphs that were recorded as a whole say nothing about what the GPU does
    kernels_known = kernels.sum_ns >= _MOST_OF_BUSY * busy or not any(gpu.graph_ns for gpu in gpus)
    if classes and kernels.sum_ns and kernels_known:
        top = classes[0]
        name = (
            "kernels of the program's own" if top.kernel_class == "other" else f"{top.kernel_class} kernels"
        )
        kind = f" Most kernel time is in {name} ({units.share(top.total_ns / kernels.sum_ns)})."
    elif not kernels_known:
        kind = " Most of it runs in CUDA graphs that were recorded as a whole."
    sentence = (
        f"Nothing worth chasing here outside the kernels: the GPU{'s are' if len(gpus) > 1 else ' is'} busy"
        f" {units.share(busy / found.span_ns)} of the time, and the rest is not worth the effort.{kind}"
    )
    # what remains idle is not worth chasing, so only what makes the kernels themselves faster is next
    of_kernels = [finding for finding in findings if finding.causes and set(finding.causes) <= _OF_KERNELS]
    actions = [action for finding in of_kernels for action in finding.actions]
    if actions:
        return sentence, actions[0]
    if not kernels_known:
        return (
            sentence,
            f"Leave it as it is; to see the kernels of its graphs: {record_line('--cuda-graph-trace=node')}",
        )
    return (
        sentence,
        "Leave it as it is; to go faster, make the longest kernels faster (Nsight Compute) or use a faster GPU.",
    )
