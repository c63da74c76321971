"""The part of a capture that the figures are about."""

from bisect import bisect_left
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

import polars as pl

from nsys_triage import units
from nsys_triage.errors import UsageError, WindowError
from nsys_triage.metrics.api_names import ALLOCATION, MODULE_LOAD, overhead_kinds
from nsys_triage.metrics.steps import StepTable
from nsys_triage.metrics.work import Workload, on_threads
from nsys_triage.result.model import Excluded
from nsys_triage.result.model import Window as WindowBlock
from nsys_triage.trace.model import Trace

Mode = Literal["auto", "all", "user", "nvtx"]
LONG_STEP: Final = 1.5
SETTLED: Final = 1.25
STEPS_LEFT: Final = 3
LONG_RUN: Final = 10  # a tenth of the device operations
WORK_LEFT: Final = 0.5


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """What the user asked for."""

    mode: Mode = "auto"
    start_ns: int = 0
    end_ns: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The window of one trace."""

    mode: Mode
    start_ns: int
    end_ns: int
    cuts: bool  # False: every row of the capture belongs, whenever it starts
    excluded: list[Excluded] = field(default_factory=list)
    name: str | None = None
    startup_steps: dict[int, int] = field(default_factory=dict)  # pid -> how many leading steps are start-up

    def rows(self, frame: pl.DataFrame, column: str = "start_ns") -> pl.DataFrame:
        """The rows that belong to the window: those that start in it, with their whole duration."""
        if not self.cuts:
            return frame
        return frame.filter(pl.col(column).is_between(self.start_ns, self.end_ns, closed="left"))

    def block(self) -> WindowBlock:
        """The window as the contract has it."""
        extra = {"name": self.name} if self.name is not None else {}
        return WindowBlock(
            start_ns=self.start_ns, end_ns=self.end_ns, mode=self.mode, excluded=self.excluded, **extra
        )


def parse_window(text: str) -> WindowRequest:
    """`auto`, `all`, `START:END` in seconds of the capture's clock, or `nvtx:NAME`. Raises UsageError."""
    if text in ("auto", "all"):
        return WindowRequest(mode="all" if text == "all" else "auto")
    if text.startswith("nvtx:"):
        if not text[5:]:
            raise UsageError("--window nvtx: needs the name of an NVTX range, as in --window 'nvtx:forward'.")
        return WindowRequest(mode="nvtx", name=text[5:])
    start, colon, end = text.partition(":")
    try:
        low, high = (int(Decimal(part.strip()) * 1_000_000_000) for part in (start, end))
    except (InvalidOperation, ValueError, OverflowError):
        low, high = 0, 0
    if not colon or low >= high:
        raise UsageError(
            f"--window {text!r} is neither auto, all, START:END in seconds with START before END (as 4.02:14.3),"
            " nor nvtx:NAME."
        )
    return WindowRequest(mode="user", start_ns=low, end_ns=high)


# --- the steady state -------------------------------------------------------------------------------------------


def _median(values: list[int]) -> int:
    """Nearest-rank: a value that occurs."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


def startup_steps(durations: list[int]) -> int:
    """How many leading steps are start-up: longer than 1.5 times the median of those after them.

    At least three remain, and those that remain are settled: the median of their first third is at most 1.25 times
    that of their last third. Otherwise 0.
    """
    count = 0
    after = sorted(durations)  # the steps after the one that is judged: sorting anew for each took minutes
    for duration in durations:
        del after[bisect_left(after, duration)]
        if len(after) < STEPS_LEFT or duration <= LONG_STEP * after[(len(after) + 1) // 2 - 1]:
            break
        count += 1
    rest = durations[count:]
    third = max(1, len(rest) // 3)
    if count and _median(rest[:third]) > SETTLED * _median(rest[-third:]):
        return 0
    return count


def _loading(trace: Trace, workload: Workload) -> pl.DataFrame:
    """Module loading, JIT and allocation on launching threads: pid, start_ns, end_ns, sorted by end."""
    calls = workload.calls
    launching = calls["thread"].gather(workload.work["call"].drop_nulls().unique()).unique()
    columns = ["pid", "start_ns", "end_ns"]
    by_call = calls.filter(
        ((pl.col("group") & (MODULE_LOAD | ALLOCATION)) > 0) & pl.col("thread").is_in(launching.implode())
    )
    rows = on_threads(overhead_kinds(trace.overheads, trace.strings).filter("loading"), workload.threads)
    by_row = rows.filter(pl.col("thread").is_in(launching.implode()))
    return pl.concat([by_call.select(columns), by_row.select(columns)]).sort("end_ns", "start_ns")


def _after_loading(loading: pl.DataFrame, work: pl.DataFrame) -> int | None:
    """The end of the loading that comes before the first long run of work, or None where there is no such run.

    A run is the device work that starts between one loading and the next; long is a tenth of all operations.
    """
    ends = loading["end_ns"]
    # how much work starts up to each loading's end; the run after it is the difference to the next
    before = work["start_ns"].sort().search_sorted(ends, side="left").cast(pl.Int64)
    until = pl.concat([before.slice(1), pl.Series([work.height], dtype=pl.Int64)])
    long = ((until - before) * LONG_RUN >= work.height).arg_true()
    if before.len() == 0 or before[0] * LONG_RUN >= work.height or long.len() == 0:
        return None
    return int(ends[long[0]])


def _steady_start(
    workload: Workload, steps: pl.DataFrame, pid: int, loading: pl.DataFrame
) -> tuple[int, int, str] | None:
    """Where a process' steady state begins: (time, leading steps that are start-up, why), or None."""
    work = workload.work.filter(pl.col("pid") == pid)
    first_ns = int(work["start_ns"].min())  # type: ignore[arg-type]
    own = steps.filter(pl.col("pid") == pid)
    loaded = loading.filter(pl.col("pid") == pid)
    if own.height:
        slow = startup_steps((own["end_ns"] - own["start_ns"]).to_list())
        begin = int(own["start_ns"][slow])
        if slow:
            return (
                begin,
                slow,
                f"{units.plural(slow, 'slow first step')}: more than {LONG_STEP} times the median of those after",
            )
        between = loaded.filter((pl.col("end_ns") > first_ns) & (pl.col("start_ns") < begin))
        if between.height and begin > first_ns and _enough_left(work, begin):
            return begin, 0, "modules were loaded or memory was first allocated before the first step"
        return None
    end = _after_loading(loaded, work)
    if end is not None and end > first_ns and _enough_left(work, end):
        return end, 0, "module loading, compilation and first allocations before the first long run of work"
    return None


def _enough_left(work: pl.DataFrame, begin: int) -> bool:
    return work.filter(pl.col("start_ns") >= begin).height >= WORK_LEFT * work.height


def _auto(trace: Trace, workload: Workload, table: StepTable, whole: tuple[int, int]) -> Window:
    loading = _loading(trace, workload)
    found = [
        (pid, start)
        for pid in sorted(workload.work["pid"].unique().to_list())
        if (start := _steady_start(workload, table.steps, pid, loading)) is not None
        # of all device work too: a process that comes late loads when the others are long at work
        and (start[1] or _enough_left(workload.work, start[0]))
    ]
    startup = {pid: start[1] for pid, start in found if start[1]}
    if not found:
        return Window("auto", *whole, cuts=False)
    # one window for all processes: from the latest of their steady starts
    begin, _, why = max((start for _, start in found), key=lambda s: s[0])
    if not whole[0] < begin < whole[1]:
        return Window("auto", *whole, cuts=False, startup_steps=startup)
    excluded = Excluded(start_ns=whole[0], end_ns=begin, reason=f"Start-up: {why}.")
    return Window("auto", begin, whole[1], cuts=True, excluded=[excluded], startup_steps=startup)


# --- resolving --------------------------------------------------------------------------------------------------


def _nvtx(trace: Trace, name: str) -> tuple[int, int]:
    codes = trace.strings.filter(pl.col("text") == name)["code"]
    ranges = trace.nvtx.filter(pl.col("name").is_in(codes.implode()))
    if ranges.is_empty():
        raise WindowError(
            f"{trace.info.file} has no NVTX range named {name!r}; the report lists the names that it has."
        )
    return int(ranges["start_ns"].min()), int(ranges["end_ns"].max())  # type: ignore[arg-type]


def resolve_window(trace: Trace, workload: Workload, table: StepTable, request: WindowRequest) -> Window:
    """The window that was asked for. Raises WindowError where no device work lies in it. Needs device work."""
    work = workload.work.filter(pl.col("end_ns") > pl.col("start_ns"))
    whole = (int(work["start_ns"].min()), int(work["end_ns"].max()))  # type: ignore[arg-type]
    steady = _auto(trace, workload, table, whole)
    if request.mode == "auto":
        return steady
    if request.mode == "all":
        return Window("all", *whole, cuts=False, startup_steps=steady.startup_steps)
    bounds = (request.start_ns, request.end_ns) if request.mode == "user" else _nvtx(trace, request.name)
    if work.filter((pl.col("start_ns") < bounds[1]) & (pl.col("end_ns") > bounds[0])).is_empty():
        raise WindowError(
            f"{trace.info.file} has no device work from {units.moment(bounds[0])} to {units.moment(bounds[1])};"
            f" it has some between {units.moment(whole[0])} and {units.moment(whole[1])}."
        )
    name = request.name if request.mode == "nvtx" else None
    return Window(request.mode, *bounds, cuts=True, name=name, startup_steps=steady.startup_steps)
