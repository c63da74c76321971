"""The time ledger, slowly: the definitions as loops over the rows, one moment after the other.

It shares no code with the package's metrics: every question ("is the thread in a loading call now?") is asked of all
rows. Only tiny traces are meant.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import polars as pl

from nsys_triage.trace.model import Trace
from tests.metrics.reference_rows import (
    ALLOCATES,
    GRAPH_LAUNCHES,
    KERNEL_LAUNCHES,
    LOADING_NAMES,
    LOADS,
    PROFILER_NAMES,
    READS,
    SAYS_LOADING,
    WAITS_FOR_A_THREAD,
    Call,
    GpuKey,
    Operation,
    Row,
    Rows,
    Thread,
    plain,
)

CLASSES = ("compute", "graph", "communication", "copy", "memset")
MS = 1_000_000


@dataclass(frozen=True)
class Gap:
    """A stretch in which a GPU has nothing to do, and the operation that ends it."""

    start: int
    end: int
    op: Operation

    @property
    def launch(self) -> Call | None:
        return self.op.launch


@dataclass(frozen=True)
class Part:
    """A piece of the ledger."""

    gpu: GpuKey
    start: int
    end: int
    cause: str
    gap: int | None = None  # start of the gap


@dataclass
class Purse:
    """How much waiting has not yet been set against idle time, by what it may be used for."""

    left: defaultdict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    counted: dict[Call, int] = field(default_factory=dict)  # up to when a wait has been counted


# --- the ledger -------------------------------------------------------------------------------------------------


class Reference:
    """The ledger of a trace; `steps` (pid, index, start, end), `window` for the copies that recur."""

    def __init__(
        self, trace: Trace, steps: Iterable[tuple[int, int, int, int]], window: tuple[int, int]
    ) -> None:
        self.rows = Rows(trace)
        self.steps = list(steps)
        self.window = window
        ops = [op for op in self.rows.operations if op.end > op.start]
        self.by_gpu: dict[GpuKey, list[Operation]] = defaultdict(list)
        for op in sorted(ops, key=lambda o: (o.start, o.end, o.order)):
            self.by_gpu[op.gpu].append(op)
        self.gaps = {gpu: self._gaps(own) for gpu, own in self.by_gpu.items()}
        self.latency = self._latency()
        self.clock_fault = self._clock_fault()
        self.inputs = {op.order for own in self.by_gpu.values() for op in self._inputs(own)}
        self.first_launches = self._slow_first_launches()

    def ledger(self) -> list[Part]:
        """All pieces, neighbours of one cause (and gap) joined, by GPU and time."""
        parts: list[Part] = []
        for gpu, own in self.by_gpu.items():
            purse = Purse()
            for gap in self.gaps[gpu]:
                parts += [Part(gpu, s, e, cause, gap.start) for s, e, cause in self._explain(gap, purse)]
            parts += [Part(gpu, s, e, name) for s, e, name in busy(own)]
        return joined(parts)

    # --- gaps

    def _gaps(self, own: list[Operation]) -> list[Gap]:
        edges = sorted({t for op in own for t in (op.start, op.end)})
        found = []
        for start, end in pairwise(edges):
            if any(op.start <= start and end <= op.end for op in own):
                continue
            found.append(Gap(start, end, min((op for op in own if op.start == end), key=_launched_first)))
        return found

    def _latency(self) -> int:
        waits = [
            max(0, gap.end - gap.launch.end)
            for gaps in self.gaps.values()
            for gap in gaps
            if gap.launch and gap.start <= gap.launch.start < gap.end
        ]
        return sorted(waits)[(len(waits) - 1) // 2] if len(waits) >= 20 else 10_000

    def _clock_fault(self) -> bool:
        matched = [op for op in self.rows.operations if op.launch]
        early = [op for op in matched if op.launch and op.start < op.launch.start]
        return 100 * len(early) > 5 * len(matched)

    def _inputs(self, own: list[Operation]) -> list[Operation]:
        after_kernels = [
            op for n, op in enumerate(own) if op.large_input and not (n and own[n - 1].large_input)
        ]
        low, high = self.window
        times: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        for op in after_kernels:
            if low <= op.start < high:
                times[op.stream, op.size] += 1
        return [op for op in after_kernels if times[op.stream, op.size] >= 3]

    def _slow_first_launches(self) -> set[Call]:
        by_kernel: dict[tuple[int, str], set[Call]] = defaultdict(set)
        for op in self.rows.operations:
            if op.what in ("compute", "communication") and op.launch:
                by_kernel[op.pid, op.name].add(op.launch)
        firsts = [min(calls, key=lambda c: (c.start, c.thread, -c.end)) for calls in by_kernel.values()]
        return {c for c in firsts if plain(c.name) in KERNEL_LAUNCHES and c.end - c.start >= MS}

    def _opaque(self, pid: int) -> bool:
        launched = any(plain(c.name) in GRAPH_LAUNCHES for c in self.rows.calls if c.thread[0] == pid)
        return launched and not any(
            op.pid == pid and (op.what == "graph" or op.node) for op in self.rows.operations
        )

    # --- threads

    def _explaining(self, gap: Gap) -> Thread | None:
        """T, or the thread that stands in for it."""
        launch = gap.launch
        if launch is None:
            return None
        start, end = gap.start, min(launch.start, gap.end)
        if end <= start:
            return launch.thread
        earlier = [
            op.launch
            for op in self.rows.operations
            if op.launch and op.launch.thread[0] == launch.thread[0] and op.launch.start < gap.start
        ]
        if not earlier:
            return launch.thread
        other = max(earlier, key=lambda c: (c.start, c.thread)).thread
        own = [r for r in self._host_rows() if r.thread == launch.thread and overlap(r, start, end)]
        calls = [r for r in own if isinstance(r, Call)]
        waits = [r for r in self.rows.os_calls if r in own and r.name in WAITS_FOR_A_THREAD]
        awake = sum(
            e - s
            for s, e in split(start, end, [*waits, *calls])
            if not any(w.covers(s, e) for w in waits) or any(c.covers(s, e) for c in calls)
        )
        only_waited = awake < 100_000 and 2 * awake < end - start
        return other if only_waited or not own else launch.thread

    def _host_rows(self) -> list[Row]:
        return [*self.rows.calls, *self.rows.os_calls, *self.rows.mpi, *self.rows.overheads]

    # --- what a gap went to

    def _explain(self, gap: Gap, purse: Purse) -> list[tuple[int, int, str]]:
        named = [(s, e, host, self._by_evidence(gap, s, e, host)) for s, e, host in self._moments(gap)]
        left = sum(e - s for s, e, _, cause in named if cause is None)
        budget = self._taken(gap, left, purse)
        found: list[tuple[int, int, str]] = []
        for s, e, host, cause in named:
            if cause is not None:
                found.append((s, e, cause))
                continue
            paid = min(budget, e - s)
            budget -= paid
            if paid:
                found.append((s, s + paid, "host_sync"))
            if s + paid < e:
                found.append((s + paid, e, self._rest(gap, s, e, host)))
        return found

    def _moments(self, gap: Gap) -> Iterator[tuple[int, int, bool]]:
        """The gap cut wherever something of its threads begins or ends; whether each bit is in the host part."""
        launch = gap.launch
        edge = gap.start if launch is None else max(gap.start, min(launch.start, gap.end))
        threads = {launch.thread if launch else None, self._explaining(gap)}
        rows: list[Row] = [r for r in [*self._host_rows(), *self.rows.nvtx] if r.thread in threads]
        rows += [r for t in threads if t for r in self._dispatch(t)]
        for host, start, end in ((True, gap.start, edge), (False, edge, gap.end)):
            for s, e in split(start, end, rows):
                yield s, e, host

    def _thread(self, gap: Gap, host: bool) -> Thread | None:
        return self._explaining(gap) if host else gap.launch.thread if gap.launch else None

    def _by_evidence(self, gap: Gap, s: int, e: int, host: bool) -> str | None:
        """Steps 1 to 5."""
        thread, launch = self._thread(gap, host), gap.launch
        if any(self._profiler(r) and r.covers(s, e) for r in self._of(self.rows.overheads, thread)):
            return "profiler"
        if gap.op.copy_kind in (11, 12, 13):
            return "unified_memory"
        if launch is None or self.clock_fault or self._opaque(gap.op.pid):
            return "unknown"
        if launch.end + self.latency <= gap.start:
            return "queued"
        loading = self._loading(thread)
        if any(r.covers(s, e) for r in loading):
            return "module_load"
        if any(c in self.first_launches and c.covers(s, e) for c in self._of(self.rows.calls, thread)):
            return "module_load"
        if not host:
            return None
        part_end = min(launch.start, gap.end)
        if any(overlap(r, gap.start, part_end) and r.start >= e for r in loading):
            return "module_load"  # the host time before such a call or row
        return self._host_evidence(gap, s, e, thread)

    def _host_evidence(self, gap: Gap, s: int, e: int, thread: Thread | None) -> str | None:
        calls = [c for c in self._of(self.rows.calls, thread) if c.covers(s, e)]
        if any(plain(c.name) in ALLOCATES for c in calls):
            return "allocation"
        if any(r.covers(s, e) for r in self._of(self.rows.mpi, thread)):
            return "host_communication"
        if any(self._loader(r) and r.covers(s, e) for r in self._of(self.rows.nvtx, thread)):
            return "input_pipeline"
        os_calls = [r for r in self._of(self.rows.os_calls, thread) if r.covers(s, e)]
        if os_calls and not calls:
            reads = any(r.name in READS for r in os_calls)
            return "input_pipeline" if reads and self._before_input(gap) else "host_blocked"
        return None

    def _rest(self, gap: Gap, s: int, e: int, host: bool) -> str:
        """Time inside waits, and steps 7 and 8."""
        thread, launch = self._thread(gap, host), gap.launch
        if launch is None:
            raise ValueError("a gap without a launch is explained before")
        calls = [c for c in self._of(self.rows.calls, thread) if c.covers(s, e)]
        if any(c.waits and not self._is_own(c, launch) for c in calls):
            return "host_sync"
        if not host or calls or any(r.covers(s, e) for r in self._dispatch(thread)):
            return "launch"
        return "input_pipeline" if self._before_input(gap) else "host_compute"

    # --- what waits cost

    def _taken(self, gap: Gap, left: int, purse: Purse) -> int:
        """Step 6: how much of what is left of the gap its wait takes."""
        wait = self._opening(gap)
        if wait is None:
            return 0
        step = [(i) for pid, i, s, e in self.steps if pid == wait.thread[0] and s <= gap.start < e]
        key = (wait.thread, step[0]) if step else (wait,)
        # a wait that opens several gaps counts once
        purse.left[key] += gap.start - purse.counted.get(wait, wait.start)
        purse.counted[wait] = gap.start
        taken = min(left, purse.left[key])
        purse.left[key] -= taken
        return taken

    def _opening(self, gap: Gap) -> Call | None:
        launch = gap.launch
        if launch is None or self._after_large_read(gap):
            return None
        thread = self._explaining(gap)
        waits = [
            c
            for c in self._of(self.rows.calls, thread)
            if c.waits and c.start < gap.start <= c.end and not self._is_own(c, launch)
        ]
        return min(waits, key=lambda c: (c.start, -c.end)) if waits else None

    @staticmethod
    def _is_own(call: Call, launch: Call) -> bool:
        """The launch itself; where that waits, what is nested in it is its own, too."""
        return call == launch or (launch.waits and call.thread == launch.thread and call.inside(launch))

    # --- questions

    @staticmethod
    def _of(rows: Iterable[Any], thread: Thread | None) -> list[Any]:
        return [r for r in rows if r.thread == thread]

    @staticmethod
    def _profiler(row: Row) -> bool:
        if row.kind is None:
            return any(name in row.name.lower() for name in PROFILER_NAMES)
        return row.kind in (3, 4, 5)

    def _loading(self, thread: Thread | None) -> list[Row]:
        rows = [
            r
            for r in self._of(self.rows.overheads, thread)
            if (
                r.kind in (2, 6, 7) if r.kind is not None else any(n in r.name.lower() for n in LOADING_NAMES)
            )
        ]
        return [*rows, *(c for c in self._of(self.rows.calls, thread) if plain(c.name) in LOADS)]

    def _loader(self, row: Row) -> bool:
        if not SAYS_LOADING[row.name]:
            return False
        inside = [c for c in self._of(self.rows.calls, row.thread) if row.start <= c.start < row.end]
        return len([c for c in inside if plain(c.name) in KERNEL_LAUNCHES]) < 3

    def _dispatch(self, thread: Thread | None) -> list[Row]:
        """The stretches of less than 100 us since a thread's last API or OS row up to its launch calls."""
        if thread is None:
            return []
        rows = [*self._of(self.rows.calls, thread), *self._of(self.rows.os_calls, thread)]
        found = []
        for call in self._of(self.rows.calls, thread):
            if plain(call.name) not in KERNEL_LAUNCHES | GRAPH_LAUNCHES:
                continue
            last = max((r.end for r in rows if r.start < call.start), default=None)
            if last is not None and last < call.start and call.start - last < 100_000:
                found.append(Row(last, call.start, thread, "dispatch"))
        return found

    def _after_large_read(self, gap: Gap) -> bool:
        return any(op.large_read and op.end == gap.start for op in self.by_gpu[gap.op.gpu])

    def _before_input(self, gap: Gap) -> bool:
        return gap.op.order in self.inputs and not self._after_large_read(gap)


def busy(own: list[Operation]) -> Iterator[tuple[int, int, str]]:
    """The busy time of one GPU, each bit with the first class present."""
    edges = sorted({t for op in own for t in (op.start, op.end)})
    for start, end in pairwise(edges):
        running = {op.what for op in own if op.start <= start and end <= op.end}
        if running:
            yield start, end, next(name for name in CLASSES if name in running)


def split(start: int, end: int, rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
    """`[start, end)` cut wherever a row begins or ends."""
    edges = sorted({start, end, *(t for r in rows for t in (r.start, r.end) if start < t < end)})
    if end > start:
        yield from pairwise(edges)


def overlap(row: Row, start: int, end: int) -> bool:
    """Whether some time of the row lies in `[start, end)`."""
    return max(row.start, start) < min(row.end, end)


def joined(parts: list[Part]) -> list[Part]:
    """The parts by GPU and time; neighbours of one cause and gap become one."""
    found: list[Part] = []
    for part in sorted(parts, key=lambda p: (str(p.gpu), p.start)):
        last = found[-1] if found else None
        if last and (last.gpu, last.end, last.cause, last.gap) == (
            part.gpu,
            part.start,
            part.cause,
            part.gap,
        ):
            found[-1] = replace(last, end=part.end)
        else:
            found.append(part)
    return found


def _launched_first(op: Operation) -> tuple[Any, ...]:
    """Which of several operations ends a gap: launched first, then lowest stream, then correlation id."""
    launched = (0, op.launch.start) if op.launch else (1, 0)
    numbers = [(n is None, n or 0) for n in (op.stream_id, op.correlation)]
    return (launched, *numbers, op.end, op.order)


def by_gap_and_cause(parts: Iterable[Part]) -> pl.DataFrame:
    """Time by GPU, gap and cause, for messages."""
    totals: defaultdict[tuple[str, int | None, str], int] = defaultdict(int)
    for part in parts:
        totals[str(part.gpu), part.gap, part.cause] += part.end - part.start
    rows = [(*key, ns) for key, ns in totals.items()]
    return pl.DataFrame(
        rows, schema={"gpu": pl.String, "gap": pl.Int64, "cause": pl.String, "ns": pl.Int64}, orient="row"
    )
