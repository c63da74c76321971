"""Communication kernels of one rank: how many, how long, and what of it nothing hid."""

import polars as pl

from nsys_triage.intervals import covered, merge
from nsys_triage.metrics.collective_sizes import with_sizes
from nsys_triage.metrics.ledger import CODE
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import COMMUNICATION, Workload
from nsys_triage.result.model import CollectiveOp, Collectives
from nsys_triage.trace.model import Trace


def communication_work(trace: Trace, workload: Workload, window: Window) -> pl.DataFrame:
    """Communication kernels that start in the window: columns of WORK, with operation and collective (NCCL or RCCL)."""
    return _with_operations(
        trace, workload, window.rows(workload.work.filter(pl.col("activity") == COMMUNICATION))
    )


def _with_operations(trace: Trace, workload: Workload, rows: pl.DataFrame) -> pl.DataFrame:
    names = workload.names.select("code", "operation", "collective")
    return (
        rows.with_columns(trace.kernels["name"].gather(rows["row"]).alias("code"))
        .join(names, on="code", how="left", maintain_order="left")
        .with_columns(pl.col("operation").fill_null("other"))
    )


def summarize_collectives(
    trace: Trace, workload: Workload, pieces: pl.DataFrame, window: Window
) -> Collectives:
    """Collectives of the window; `pieces` are the ledger's in the window.

    Counts and totals are of those that start in the window; exposed time is the ledger's, so what is still running at
    the window's start counts there. Operations that are exposed at the same time both have that time. `bytes` of an
    operation are known where the payload of every one of its collectives was recorded. One rank alone cannot split
    waiting from transfer: those fields are None until ranks are matched.
    """
    rows = with_sizes(trace, workload, communication_work(trace, workload, window))
    running = _with_operations(trace, workload, workload.work.filter(pl.col("activity") == COMMUNICATION))
    exposed = pieces.filter(pl.col("cause") == CODE["communication"])
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    by_op = [
        CollectiveOp(
            op=str(op),
            count=of_op.height,
            total_ns=int(of_op.select(length).item()),
            exposed_ns=int(
                covered(merge(running.filter(pl.col("operation") == op), "gpu"), exposed, "gpu").sum()
            ),
            bytes=None if of_op["bytes"].has_nulls() else int(of_op["bytes"].sum()),
        )
        for (op,), of_op in rows.group_by(["operation"], maintain_order=True)
    ]
    return Collectives(
        count=int(rows["collective"].sum()),
        total_ns=int(rows.select(length).item()),
        exposed_ns=int(exposed.select(length).item()),
        other_count=int((~rows["collective"]).sum()),
        wait_ns=None,
        transfer_ns=None,
        wait_share=None,
        by_op=sorted(by_op, key=lambda op: (-op.total_ns, op.op)),
    )
