"""Everything that is measured on one trace, made once and in order: work, steps, window, gaps, ledger, figures."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from nsys_triage.intervals import covered, merge
from nsys_triage.metrics.activity import busy_pieces
from nsys_triage.metrics.capture_warnings import capture_warnings
from nsys_triage.metrics.collectives import summarize_collectives
from nsys_triage.metrics.copies import summarize_copies
from nsys_triage.metrics.gap_block import summarize_gaps
from nsys_triage.metrics.gaps import GapTable, build_gaps, copies_after_kernels, input_copies
from nsys_triage.metrics.gpu_samples import summarize_gpu_metrics
from nsys_triage.metrics.gpus import GpuIdentity
from nsys_triage.metrics.kernels import summarize_kernels
from nsys_triage.metrics.launch_shapes import launch_shapes
from nsys_triage.metrics.launches import summarize_launches
from nsys_triage.metrics.ledger import CODE, Ledger, build_ledger, by_cause, cause_times
from nsys_triage.metrics.ranges import summarize_ranges
from nsys_triage.metrics.step_items import steps_of_window, summarize_steps
from nsys_triage.metrics.steps import StepTable, find_steps
from nsys_triage.metrics.timeline import build_timeline
from nsys_triage.metrics.waits import summarize_sync
from nsys_triage.metrics.window import Window, WindowRequest, resolve_window
from nsys_triage.metrics.work import COMMUNICATION, COMPUTE, COPY, GRAPH, MEMSET, Workload, build_workload
from nsys_triage.result.model import (
    BUSY_CAUSES,
    Collectives,
    Copies,
    Gpu,
    Kernels,
    Launches,
    RangeRow,
    Steps,
    Sync,
    Timeline,
    WholeCapture,
)
from nsys_triage.result.model import Warning as CaptureWarning
from nsys_triage.trace.model import Trace


@dataclass(frozen=True)
class Measurement:
    """One trace, measured. Frames are the capture's; `pieces` and the blocks are the window's."""

    trace: Trace
    workload: Workload
    steps: StepTable
    window: Window
    gaps: GapTable
    inputs: pl.DataFrame  # input copies, as `metrics.gaps.input_copies` gives them
    ledger: Ledger

    @cached_property
    def pieces(self) -> pl.DataFrame:
        """The ledger's pieces cut to the window."""
        return self.ledger.within(self.window.start_ns, self.window.end_ns)

    @cached_property
    def work(self) -> pl.DataFrame:
        """The device work that starts in the window (schema WORK)."""
        return self.window.rows(self.workload.work)

    @cached_property
    def window_steps(self) -> pl.DataFrame:
        """The steps of the main process that start in the window, with duration_ns and startup."""
        return steps_of_window(self.steps, self.window)

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The GPUs whose span reaches into the window."""
        blocks = [_gpu(self, gpu) for gpu in self.workload.gpus.all]
        return [block for block in blocks if block.span_ns > 0]

    @cached_property
    def kernels(self) -> Kernels:
        """The kernels of the window."""
        return summarize_kernels(
            self.workload.kernels(self.trace, self.work), self.workload.names, self.workload.gpus.limits()
        )

    @cached_property
    def launch_shapes(self) -> pl.DataFrame:
        """The compute kernels of the window by GPU, name and launch shape (schema LAUNCH_SHAPES)."""
        return launch_shapes(self.trace, self.workload, self.work)

    @cached_property
    def launches(self) -> Launches:
        """The launch calls of the window."""
        return summarize_launches(self.workload, self.ledger.pieces, self.window)

    @cached_property
    def sync(self) -> Sync:
        """The synchronising calls of the window."""
        return summarize_sync(self.trace, self.workload, self.pieces, self.window, self.window_steps.height)

    @cached_property
    def copies(self) -> Copies:
        """The copies of the window."""
        return summarize_copies(self.workload.copies(self.trace, self.work), self.workload.gpus.limits())

    @cached_property
    def collectives(self) -> Collectives:
        """The communication kernels of the window."""
        return summarize_collectives(self.trace, self.workload, self.pieces, self.window)

    @cached_property
    def ranges(self) -> tuple[list[RangeRow], int]:
        """The top NVTX ranges, and the GPU time that no range owns."""
        return summarize_ranges(self.trace, self.workload, self.window)

    @cached_property
    def step_block(self) -> Steps:
        """The steps of the window."""
        return summarize_steps(self.workload, self.ledger.pieces, self.steps, self.window)

    @cached_property
    def timeline(self) -> Timeline:
        """The window in at most 2,000 marks."""
        return build_timeline(self.trace, self.workload, self.pieces, self.window, self.window_steps)

    @cached_property
    def warnings(self) -> list[CaptureWarning]:
        """What changes how the figures read."""
        return capture_warnings(self.trace, self.workload)


def measure(trace: Trace, request: WindowRequest) -> Measurement | None:
    """The trace, measured in the window that was asked for; None where it holds no device work of any length.

    Raises WindowError where the window holds no device work.
    """
    workload = build_workload(trace)
    if workload.work.filter(pl.col("end_ns") > pl.col("start_ns")).is_empty():
        return None
    steps = find_steps(trace, workload)
    window = resolve_window(trace, workload, steps, request)
    inputs = input_copies(copies_after_kernels(trace, workload), (window.start_ns, window.end_ns))
    gaps = build_gaps(trace, workload, inputs)
    # the next batch's copy after a checkpoint is not what the GPU waited for
    after_reads = gaps.gaps.filter(pl.col("after_large_read"))["work"]
    inputs = inputs.filter(~pl.col("work").is_in(after_reads.implode()))
    ledger = build_ledger(trace, workload, busy_pieces(workload.work), gaps, steps.launched)
    return Measurement(trace, workload, steps, window, gaps, inputs, ledger)


def _gpu(m: Measurement, gpu: GpuIdentity) -> Gpu:
    """One GPU's block. Unions and the plain sum of kernels are cut at the window's edges."""
    low, high = m.window.start_ns, m.window.end_ns
    whole = m.ledger.pieces.filter(pl.col("gpu") == gpu.index)
    pieces = m.pieces.filter(pl.col("gpu") == gpu.index)
    causes, whole_causes = (cause_times(by_cause(p)) for p in (pieces, whole))
    by_name = {c.cause: c.ns for c in causes}
    busy = sum(c.ns for c in causes if c.cause in BUSY_CAUSES)
    span = sum(c.ns for c in causes)
    cut_work = m.workload.work.filter(pl.col("gpu") == gpu.index).with_columns(
        pl.col("start_ns").clip(lower_bound=low), pl.col("end_ns").clip(upper_bound=high)
    )
    length = pl.col("end_ns") - pl.col("start_ns")

    def union(*activities: int) -> int:
        rows = cut_work.filter(pl.col("activity").is_in(activities))
        return int(merge(rows).select(length.sum()).item())

    kernels = cut_work.filter(
        pl.col("activity").is_in([COMPUTE, COMMUNICATION]) & (pl.col("end_ns") > pl.col("start_ns"))
    )
    exposed_copies = pieces.filter(pl.col("cause") == CODE["copy"]).select("start_ns", "end_ns")
    own_inputs = m.inputs.filter(pl.col("gpu") == gpu.index).select("start_ns", "end_ns")
    info = gpu.info or {}
    major, minor = info.get("compute_major"), info.get("compute_minor")
    return Gpu(
        id=gpu.id,
        name=gpu.name,
        uuid=gpu.uuid,
        identity="known" if gpu.known else "assumed",
        processes=list(gpu.processes),
        device_ids=list(gpu.devices),
        rank=None,  # known once the ranks are: a trace alone may not say
        span_ns=span,
        busy_ns=busy,
        idle_ns=span - busy,
        kernel_ns=union(COMPUTE, COMMUNICATION),
        copy_ns=union(COPY),
        memset_ns=union(MEMSET),
        graph_ns=union(GRAPH),
        compute_ns=union(COMPUTE),
        communication_ns=union(COMMUNICATION),
        exposed_communication_ns=by_name.get("communication", 0),
        kernel_sum_ns=int(kernels.select(length.sum()).item()),
        whole=WholeCapture(
            span_ns=sum(c.ns for c in whole_causes),
            busy_ns=sum(c.ns for c in whole_causes if c.cause in BUSY_CAUSES),
            ledger=whole_causes,
        ),
        ledger=causes,
        gaps=summarize_gaps(m.trace, m.workload, m.gaps, pieces, m.steps.steps),
        metrics=summarize_gpu_metrics(m.trace.gpu_metrics, gpu.gpu_id, low, high)
        if gpu.gpu_id is not None
        else None,
        exposed_input_copy_ns=int(covered(exposed_copies, own_inputs).sum()),
        sm_count=_number(info.get("sm_count")),
        compute_capability=f"{major}.{minor}" if major is not None else None,
    )


def _number(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None
