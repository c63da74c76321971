"""The time ledger: every nanosecond of a GPU's time has exactly one cause.

Busy time goes to the first activity present; idle time is explained gap by gap from what the launching thread was
doing, in the order of the definitions: profiler, unified memory, unknown, queued, direct evidence, waits, launch,
and what is left is the host's own work.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.intervals import clip, paint
from nsys_triage.metrics import evidence as ev
from nsys_triage.metrics.activity import IDLE
from nsys_triage.metrics.api_names import SYNC
from nsys_triage.metrics.gaps import GapTable
from nsys_triage.metrics.work import Workload
from nsys_triage.result.model import CAUSES, Cause, CauseTime
from nsys_triage.trace.model import Schema, Trace

CODE: Final[dict[Cause, int]] = {cause: code for code, cause in enumerate(CAUSES)}
LEDGER: Final[Schema] = {
    "gpu": pl.UInt16,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "cause": pl.UInt8,  # index in CAUSES
    "gap": pl.UInt32,  # row in GAPS; null while busy
    "call": pl.UInt32,  # host_sync: row in CALLS of the wait that costs it
}
"""A partition of every GPU's time from its first start to its last end over the whole capture, sorted."""

_LEFT: Final = 255  # not explained by direct evidence
SLICE_GAPS: Final = 200_000
_PART_BIT: Final = 1 << 20
_PARTS: Final[Schema] = {
    "gap": pl.UInt32, "thread": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64,
    "host": pl.Boolean,  # of the host part, not of the launch part
    "own_wait": pl.Boolean,  # inside the launch call, which waits itself: being in it is launching
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ledger:
    """The partition, and the waits that opened gaps."""

    pieces: pl.DataFrame  # LEDGER

    def within(self, start_ns: int, end_ns: int) -> pl.DataFrame:
        """The pieces cut to `[start_ns, end_ns)`."""
        inside = self.pieces.select(pl.col("start_ns").min() >= start_ns, pl.col("end_ns").max() <= end_ns)
        return self.pieces if all(inside.row(0)) else clip(self.pieces, start_ns, end_ns)


def by_cause(pieces: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Time per cause (and per `keys`): columns keys, cause, ns; sorted by them."""
    return (
        pieces.lazy()
        .group_by(*keys, "cause")
        .agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns"))
        .sort(*keys, "cause")
        .collect()
    )


def cause_times(rows: pl.DataFrame) -> list[CauseTime]:
    """Rows (cause, ns) of `by_cause` as the contract has them, in the order of ledgers, causes of 0 left out."""
    totals = rows.select("cause", "ns").sort("cause")
    return [CauseTime(cause=CAUSES[code], ns=ns) for code, ns in totals.iter_rows() if ns > 0]


# --- the parts of a gap -----------------------------------------------------------------------------------------


def _parts(gaps: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Every gap as its host part and its launch part, each with the thread that explains it (schema _PARTS).

    A gap without a known launch is one launch part without a thread. The launch part of a call that waits itself
    (one of `waits`) has two: the call, and what comes after it.
    """
    cut = pl.col("launch_start_ns").fill_null(pl.col("start_ns")).clip(pl.col("start_ns"), pl.col("end_ns"))
    waits_itself = pl.col("call").is_in(waits["wait"].implode()).fill_null(value=False)
    done = pl.when(waits_itself).then(pl.col("launch_end_ns").clip(cut, pl.col("end_ns"))).otherwise(cut)
    launcher = pl.col("launch_thread").alias("thread")
    no, yes = pl.lit(value=False), pl.lit(value=True)
    host = gaps.lazy().select(
        "gap",
        pl.col("host_thread").alias("thread"),
        "start_ns",
        cut.alias("end_ns"),
        yes.alias("host"),
        no.alias("own_wait"),
    )
    call = gaps.lazy().select(
        "gap", launcher, cut.alias("start_ns"), done.alias("end_ns"), no.alias("host"), yes.alias("own_wait")
    )
    rest = gaps.lazy().select(
        "gap", launcher, done.alias("start_ns"), "end_ns", no.alias("host"), no.alias("own_wait")
    )
    return pl.concat([host, call, rest]).filter(pl.col("end_ns") > pl.col("start_ns")).collect()


def _host_pieces(parts: pl.DataFrame, layers: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """The parts cut by what their threads did: gap, host, own_wait, start_ns, end_ns, mask; sorted by gap and start.

    Parts of one thread are disjoint on one GPU, so `parts` has to be of one GPU.
    """
    known = parts.filter(pl.col("thread").is_not_null()).sort("thread", "start_ns")
    unknown = parts.filter(pl.col("thread").is_null()).select(
        "gap", "host", "own_wait", "start_ns", "end_ns", pl.lit(0, pl.Int64).alias("mask")
    )
    if known.is_empty():
        return unknown.sort("gap", "start_ns")
    threads = known["thread"].unique()
    chosen = {bit: layer.filter(pl.col("thread").is_in(threads.implode())) for bit, layer in layers.items()}
    pieces = paint(
        {**chosen, _PART_BIT: known.select("thread", "start_ns", "end_ns")}, "thread", numbered=_PART_BIT
    )
    row = pieces["number"]
    named = pieces.select(
        *[known[c].gather(row) for c in ("gap", "host", "own_wait")],
        "start_ns", "end_ns", pl.col("mask") & ~pl.lit(_PART_BIT, pl.Int64),
    )  # fmt: skip
    return pl.concat([named, unknown]).sort("gap", "start_ns")


# --- direct evidence --------------------------------------------------------------------------------------------


def _has(*bits: int) -> pl.Expr:
    total = 0
    for bit in bits:
        total |= bit
    return (pl.col("mask") & total) > 0


def _cause(name: Cause) -> pl.Expr:
    return pl.lit(CODE[name], pl.UInt8)


def _with_gap_facts(pieces: pl.DataFrame, table: GapTable) -> pl.DataFrame:
    """The pieces with what decides about their gap as a whole, and until when its host time belongs to loading."""
    gaps = table.gaps
    unexplained = pl.col("call").is_null() | pl.col("opaque") | pl.lit(table.clock_fault)
    facts = gaps.select(
        "unified", "input_copy", unexplained.alias("unexplained"),
        (pl.col("launch_end_ns") + table.latency_ns <= pl.col("start_ns")).fill_null(value=False).alias("queued"),
    )  # fmt: skip
    gap = pieces["gap"]
    joined = pieces.with_columns(*[facts[c].gather(gap) for c in facts.columns])
    loaded = (
        joined.lazy()
        .filter(pl.col("host") & _has(ev.LOADING))
        .group_by("gap")
        .agg(pl.col("end_ns").max().alias("loaded_ns"))
        .collect()
    )
    if loaded.is_empty():
        return joined.with_columns(pl.lit(None, pl.Int64).alias("loaded_ns"))
    return joined.join(loaded, on="gap", how="left", maintain_order="left")


def _by_evidence(pieces: pl.DataFrame) -> pl.DataFrame:
    """The pieces with `cause`: what steps 1 to 5 of the definition say, else _LEFT."""
    in_os = _has(ev.OS_CALL) & ~_has(ev.CUDA_CALL)
    cause = (
        pl.when(_has(ev.PROFILER))
        .then(_cause("profiler"))
        .when("unified")
        .then(_cause("unified_memory"))
        .when("unexplained")
        .then(_cause("unknown"))
        .when("queued")
        .then(_cause("queued"))
        .when(pl.col("host") & (pl.col("start_ns") < pl.col("loaded_ns")).fill_null(value=False))
        .then(_cause("module_load"))
        .when(_has(ev.LOADING, ev.FIRST_LAUNCH))
        .then(_cause("module_load"))
        .when(~pl.col("host"))
        .then(pl.lit(_LEFT, pl.UInt8))
        .when(_has(ev.ALLOCATING))
        .then(_cause("allocation"))
        .when(_has(ev.HOST_COMMUNICATION))
        .then(_cause("host_communication"))
        .when(_has(ev.LOADER_RANGE))
        .then(_cause("input_pipeline"))
        .when(in_os & _has(ev.OS_READ) & pl.col("input_copy"))
        .then(_cause("input_pipeline"))
        .when(in_os)
        .then(_cause("host_blocked"))
        .otherwise(pl.lit(_LEFT, pl.UInt8))
    )
    return pieces.with_columns(cause.alias("cause"))


# --- what waits cost --------------------------------------------------------------------------------------------


def _outer_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Synchronising calls that are not inside another one of their thread: wait (row in CALLS), thread, start, end."""
    waits = (
        calls.with_row_index("wait")
        .filter((pl.col("group") & SYNC) > 0)
        .select("wait", "thread", "start_ns", "end_ns")
    )
    reach = pl.col("end_ns").cum_max().over("thread").shift(1)
    inside = (pl.col("end_ns") <= reach) & (pl.col("thread") == pl.col("thread").shift(1))
    return waits.filter(~inside.fill_null(value=False))


def opening_waits(waits: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """The gaps that one of those waits opened: gap, gpu, thread, pid, gap_start_ns, wait (row in CALLS), wait_start_ns.

    A synchronising call of the explaining thread, other than the launch itself, was waiting when the GPU ran dry.
    A wait for a large read-back does not open a gap.
    """
    candidates = gaps.filter(pl.col("host_thread").is_not_null() & ~pl.col("after_large_read")).select(
        "gap",
        "gpu",
        "pid",
        "call",
        pl.col("host_thread").alias("thread"),
        pl.col("start_ns").alias("gap_start_ns"),
    )
    if waits.is_empty() or candidates.is_empty():
        return candidates.clear().select(
            "gap", "gpu", "thread", "pid", "gap_start_ns",
            pl.lit(None, pl.UInt32).alias("wait"), pl.lit(None, pl.Int64).alias("wait_start_ns"),
        )  # fmt: skip
    found = candidates.sort("gap_start_ns").join_asof(
        waits.rename({"start_ns": "wait_start_ns", "end_ns": "wait_end_ns"}).sort("wait_start_ns"),
        left_on="gap_start_ns", right_on="wait_start_ns", by="thread", strategy="backward", allow_exact_matches=False,
        check_sortedness=False,
    )  # fmt: skip
    opened = (pl.col("wait_end_ns") >= pl.col("gap_start_ns")) & (pl.col("wait") != pl.col("call")).fill_null(
        value=True
    )
    return found.filter(opened.fill_null(value=False)).select(
        "gap", "gpu", "thread", "pid", "gap_start_ns", "wait", "wait_start_ns"
    )


def _wait_shares(opened: pl.DataFrame, left: pl.DataFrame) -> pl.DataFrame:
    """How much of each opened gap is its wait's cost: gap, wait, ns.

    `opened` has `step` (null between steps), `left` the unexplained time of each gap. A wait adds its length up to
    the gap to what is left over from before (once, where it opens several gaps), the gap takes what it has left, and
    the rest is carried to the next gap that a wait opens in that step: the running sum reflected at zero.
    """
    alone = pl.col("step").is_null()
    same_wait = (pl.col("wait") == pl.col("wait").shift(1)) & (pl.col("gpu") == pl.col("gpu").shift(1))
    since = (
        pl.when(same_wait.fill_null(value=False))
        .then(pl.col("gap_start_ns").shift(1))
        .otherwise("wait_start_ns")
    )
    rows = (
        opened.join(left, on="gap", how="left", maintain_order="left")
        .sort("gpu", "thread", "gap_start_ns", "gap")
        # a wait that opens several gaps counts once, in whatever steps they begin
        .with_columns(pl.col("left_ns").fill_null(0), (pl.col("gap_start_ns") - since).alias("credit"))
        .with_columns(
            # without a step a wait's budget is its own
            pl.struct(
                "gpu",
                "thread",
                pl.when(alone).then(-1).otherwise("step").alias("s"),
                pl.when(alone).then("wait").alias("w"),
            )
            .rank("dense")
            .alias("purse")
        )
        .sort("purse", "gap_start_ns", "gap")
    )
    total = (pl.col("credit") - pl.col("left_ns")).cum_sum().over("purse")
    lowest = pl.min_horizontal(total.cum_min().over("purse"), 0)
    return (
        rows.with_columns((total - lowest).alias("rest"))
        .with_columns(pl.col("rest").shift(1).over("purse").fill_null(0).alias("carried"))
        .select("gap", "wait", (pl.col("carried") + pl.col("credit") - pl.col("rest")).alias("ns"))
        .filter(pl.col("ns") > 0)
    )


def _with_waits(pieces: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    """The pieces cut where a wait's share ends; `cause` host_sync and `call` set for the first part."""
    length = pl.when(pl.col("cause") == _LEFT).then(pl.col("end_ns") - pl.col("start_ns")).otherwise(0)
    with_call = pieces.with_columns(pl.lit(None, pl.UInt32).alias("call"))
    if shares.is_empty():
        return with_call
    affected = with_call.join(shares, on="gap", how="inner", maintain_order="left").with_columns(
        length.alias("length")
    )
    before = pl.col("length").cum_sum().over("gap") - pl.col("length")
    # gaps are runs of rows: the sum restarts with each
    affected = affected.with_columns((pl.col("ns") - before).clip(0, pl.col("length")).alias("taken"))
    boundary = pl.col("start_ns") + pl.col("taken")
    columns = with_call.columns
    first = affected.filter(pl.col("taken") > 0).with_columns(
        boundary.alias("end_ns"), _cause("host_sync").alias("cause"), pl.col("wait").alias("call")
    )
    second = affected.with_columns(boundary.alias("start_ns")).filter(pl.col("end_ns") > pl.col("start_ns"))
    untouched = with_call.join(shares, on="gap", how="anti", maintain_order="left")
    return pl.concat([untouched.select(columns), first.select(columns), second.select(columns)])


def _by_rest(pieces: pl.DataFrame) -> pl.DataFrame:
    """Steps 6 (inside a wait), 7 and 8 for what is still _LEFT."""
    rest = (
        pl.when(_has(ev.WAITING) & ~pl.col("own_wait"))
        .then(_cause("host_sync"))
        .when(~pl.col("host") | _has(ev.CUDA_CALL))
        .then(_cause("launch"))
        .when("input_copy")
        .then(_cause("input_pipeline"))
        .otherwise(_cause("host_compute"))
    )
    return pieces.with_columns(pl.when(pl.col("cause") == _LEFT).then(rest).otherwise("cause").alias("cause"))


def _in_slices(parts: pl.DataFrame) -> list[pl.DataFrame]:
    """The parts of one GPU in slices of so many gaps: what is cut at once bounds the memory, 90 bytes an event."""
    first, last = parts["gap"].min(), parts["gap"].max()
    if not isinstance(first, int) or not isinstance(last, int):
        return [parts]
    return [
        parts.filter(pl.col("gap").is_between(low, low + SLICE_GAPS, closed="left"))
        for low in range(first, last + 1, SLICE_GAPS)
    ]


def _explained(parts: pl.DataFrame, layers: dict[int, pl.DataFrame], table: GapTable) -> pl.DataFrame:
    """The pieces of those parts with what direct evidence says.

    Columns gap, host, start_ns, end_ns, mask, input_copy, own_wait and cause.
    """
    low, high = parts["start_ns"].min(), parts["end_ns"].max()
    near = {
        bit: layer.filter((pl.col("end_ns") > low) & (pl.col("start_ns") < high))
        for bit, layer in layers.items()
    }
    pieces = _by_evidence(_with_gap_facts(_host_pieces(parts, near), table))
    return pieces.select(
        "gap", "host", "start_ns", "end_ns", pl.col("mask").cast(pl.Int16), "input_copy", "own_wait", "cause"
    )


def build_ledger(
    trace: Trace, workload: Workload, activity: pl.DataFrame, table: GapTable, steps: pl.DataFrame
) -> Ledger:
    """The partition of every GPU's time over the whole capture.

    `activity` as `busy_pieces` gives it, `steps` as `metrics.steps` does (pid, index, start_ns, end_ns). Without
    device work it is empty. The lengths of a GPU's pieces sum to its span exactly.
    """
    gaps = table.gaps
    busy = activity.filter(pl.col("activity") != IDLE).select(
        "gpu", "start_ns", "end_ns", pl.col("activity").alias("cause"),
        pl.lit(None, pl.UInt32).alias("gap"), pl.lit(None, pl.UInt32).alias("call"),
    )  # fmt: skip
    waits = _outer_waits(workload.calls)
    parts = _parts(gaps, waits)
    threads = pl.concat([gaps["host_thread"], gaps["launch_thread"]]).drop_nulls().unique()
    layers = ev.host_layers(trace, workload, threads)
    opened = _in_steps(opening_waits(waits, gaps), steps)
    explained = [busy]
    for gpu in sorted(gaps["gpu"].unique().to_list()):
        numbers = gaps.filter(pl.col("gpu") == gpu)["gap"]
        own = parts.filter(
            pl.col("gap").is_between(numbers.min(), numbers.max())
        )  # gaps are numbered GPU by GPU
        of_gpu = _idle_pieces(own, layers, table, opened.filter(pl.col("gpu") == gpu), waits)
        explained.append(
            of_gpu.select(pl.lit(gpu, pl.UInt16).alias("gpu"), "start_ns", "end_ns", "cause", "gap", "call")
        )
        del own, of_gpu
    del activity, busy, parts, layers
    return Ledger(_in_order(explained))


def _idle_pieces(
    parts: pl.DataFrame,
    layers: dict[int, pl.DataFrame],
    table: GapTable,
    opened: pl.DataFrame,
    waits: pl.DataFrame,
) -> pl.DataFrame:
    """The idle time of one GPU with its causes; `opened` are its gaps that a wait opened."""
    pieces = pl.concat([_explained(some, layers, table) for some in _in_slices(parts)])
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    left = (
        pieces.lazy().filter(pl.col("cause") == _LEFT).group_by("gap").agg(length.alias("left_ns")).collect()
    )
    return _with_wait_named(_by_rest(_with_waits(pieces, _wait_shares(opened, left))), waits, table.gaps)


def _in_order(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The parts as one frame (LEDGER) sorted by gpu and start, made column by column: it is the largest of all."""
    whole = pl.concat(parts, rechunk=False)
    parts.clear()
    several = whole["gpu"].n_unique() > 1
    order = (
        whole.select(pl.arg_sort_by("gpu", "start_ns")).to_series()
        if several
        else whole["start_ns"].arg_sort()
    )
    columns = []
    for name in LEDGER:
        columns.append(whole[name].gather(order))
        whole = whole.drop(name)
    return pl.DataFrame(columns, schema=LEDGER)


def _with_wait_named(pieces: pl.DataFrame, waits: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """`call` set for the host_sync pieces that lie inside a wait."""
    inside = (pl.col("cause") == CODE["host_sync"]) & pl.col("call").is_null()
    rows = pieces.select(inside.arg_true().alias("_row"))["_row"]
    if rows.is_empty():
        return pieces
    open_pieces = pieces[rows]
    gap = open_pieces["gap"]
    thread = pl.select(
        pl.when(open_pieces["host"])
        .then(gaps["host_thread"].gather(gap))
        .otherwise(gaps["launch_thread"].gather(gap))
        .alias("thread")
    )
    named = (
        open_pieces.select("start_ns", rows, thread["thread"])
        .sort("start_ns")
        .join_asof(
            waits.select("wait", "thread", "start_ns").sort("start_ns"),
            on="start_ns",
            by="thread",
            check_sortedness=False,
        )
        .sort("_row")
    )
    return pieces.with_columns(pieces["call"].scatter(named["_row"], named["wait"]))


def _in_steps(opened: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The opened gaps with the index of the step of their process in which they begin; null outside of steps."""
    if steps.is_empty() or opened.is_empty():
        return opened.with_columns(pl.lit(None, pl.Int64).alias("step"))
    bounds = steps.select(
        "pid",
        pl.col("index").cast(pl.Int64).alias("step"),
        pl.col("start_ns").alias("step_start_ns"),
        pl.col("end_ns").alias("step_end_ns"),
    )
    found = opened.sort("gap_start_ns").join_asof(
        bounds.sort("step_start_ns"),
        left_on="gap_start_ns",
        right_on="step_start_ns",
        by="pid",
        check_sortedness=False,
    )
    return found.with_columns(
        pl.when(pl.col("gap_start_ns") < pl.col("step_end_ns")).then("step").alias("step")
    ).drop("step_start_ns", "step_end_ns")
