"""What the rules about kernels share: what a change could give back, and the `ncu` line to look closer."""

import re
from typing import Any, Final

import polars as pl

from nsys_triage.metrics.kernel_classes import WRAPPERS
from nsys_triage.metrics.kernel_counters import Counters
from nsys_triage.metrics.launch_shapes import SHAPE
from nsys_triage.result.model import Evidence, Interval
from nsys_triage.rules.base import NotRun, Threshold, number
from nsys_triage.rules.context import Context

GAIN_THRESHOLD: Final = Threshold(
    0.05, "share", "of the span, that removing this alone could give back at most: less is not worth a change"
)
LONG_KERNEL: Final = Threshold(
    10_000, "ns", "median length: shorter kernels are mostly start and end, whatever their shape"
)
NAME_LENGTH: Final = 72
_APPLIED: Final = re.compile(r"\w+_kernel_cuda|\w+_kernel_impl|\w*Functor\w*|CUDAFunctor_\w+")
_LOOPS: Final = frozenset({"gpu_kernel_impl", "BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*")

Row = dict[str, Any]


def kernels_in_graphs(context: Context) -> NotRun | None:
    """Why kernels cannot be judged: most of the time is in graphs recorded as a whole; None where it is not."""
    if context.total_ns("graph") > context.total_ns("compute"):
        return NotRun(
            "the kernels inside CUDA graphs, which were recorded as a whole", "--cuda-graph-trace=node"
        )
    return None


def unknown_gpu(context: Context) -> NotRun | None:
    """Why launch shapes cannot be judged: the trace does not tell which GPU ran the kernels; None where it does."""
    hidden = kernels_in_graphs(context)
    if hidden is not None:
        return hidden
    shapes = context.m.launch_shapes
    if shapes.height and shapes["sm_count"].null_count() == shapes.height:
        return NotRun("the trace does not tell which GPU ran the kernels")
    return None


def with_gain(shapes: pl.DataFrame, gain: pl.Expr) -> pl.DataFrame:
    """The rows of LAUNCH_SHAPES that could give back time, with `gain_ns`, the largest first."""
    return (
        shapes.with_columns(gain.fill_null(0).cast(pl.Int64).alias("gain_ns"))
        .filter(pl.col("gain_ns") > 0)
        .sort(["gain_ns", "gpu", "pid", "text", *SHAPE], descending=[True, *[False] * (3 + len(SHAPE))])
    )


def total(shapes: pl.DataFrame, column: str) -> int:
    """The sum of a column, over the GPUs."""
    return int(shapes[column].sum())


def share_of_span(context: Context, total_ns: float) -> float:
    """A sum over the GPUs as a share of their spans."""
    return total_ns / context.span_ns if context.span_ns else 0.0


def one_of_several(context: Context, shapes: pl.DataFrame) -> str | None:
    """The GPU on which more than four fifths of the gain lies, where there are several; None otherwise."""
    if len(context.gpus) < 2 or shapes.is_empty():
        return None
    by_gpu = dict(shapes.group_by("gpu").agg(pl.col("gain_ns").sum()).iter_rows())
    most = max(by_gpu, key=lambda gpu: (by_gpu[gpu], -gpu))
    if by_gpu[most] <= 0.8 * sum(by_gpu.values()):
        return None
    return next(g.id for g in context.m.workload.gpus.all if g.index == most)


def first(shapes: pl.DataFrame) -> Row:
    """The first row."""
    return shapes.row(0, named=True)


def short_name(row: Row) -> str:
    """The kernel's own name, with what it applies where it is a loop of PyTorch; shortened where it is long."""
    name = str(row["own_name"])
    if name in WRAPPERS:
        applied = [
            found for found in _APPLIED.findall(str(row["text"]).partition("<")[2]) if found not in _LOOPS
        ]
        name = f"{name} ({applied[0]})" if applied else name
    if len(name) <= NAME_LENGTH:
        return name
    half = NAME_LENGTH // 2 - 2
    return f"{name[:half]}...{name[-half:]}"


def kernel_numbers(context: Context, shapes: pl.DataFrame, row: Row) -> tuple[Evidence, ...]:
    """The time and the launches of all rows, and which of them could give back most."""
    return (
        number(
            "time of these kernels while nothing else computes",
            context.mean_ns(total(shapes, "alone_ns")),
            "ns",
        ),
        number("launches of them", total(shapes, "count"), "count"),
        number("kernel that could give back most", short_name(row), "text"),
        number("launches of it in this shape", row["count"], "count"),
        number("its median duration", row["median_ns"], "ns"),
    )


def longest_launch(row: Row) -> Interval:
    """The longest launch of that row: the time to open."""
    return Interval(start_ns=row["longest_start_ns"], end_ns=row["longest_end_ns"])


def ncu_line(context: Context, row: Row) -> str:
    """The `ncu` command that profiles three launches of that kernel, the first of this shape in the window first.

    `--launch-skip` counts launches of that name alone, from the start of the program: here those of the capture.
    """
    names = context.m.workload.names
    codes = names.filter(pl.col("own_name") == row["own_name"])["code"]
    before = context.m.trace.kernels.filter(
        (pl.col("pid") == row["pid"])
        & pl.col("name").is_in(codes.implode())
        & (pl.col("start_ns") < row["first_start_ns"])
    ).height
    pattern = f"^{re.escape(row['own_name'])}$"
    if not _PLAIN_NAME.fullmatch(row["own_name"]):
        pattern = "'" + pattern.replace("'", ".") + "'"
    return (
        f"ncu --kernel-name regex:{pattern} --launch-skip {before} --launch-count 3 --set full"
        " --export kernel <your command>"
    )


def ncu_action(context: Context, row: Row, question: str) -> str:
    """The step that looks at the kernel with Nsight Compute; `question` says what to find out."""
    return f"{question}: {ncu_line(context, row)}"


def not_sampled(counters: list[Counters], metric: str, title: str) -> NotRun | None:
    """Why sampled metrics do not tell about the kernels; None where they do on some GPU.

    `metric` is the name in GPU_METRICS, `title` what nsys calls it.
    """
    if any(c.tells and (c.dram if metric == "dram" else c.means.get(metric)) is not None for c in counters):
        return None
    if any(c.tells for c in counters):
        return NotRun(f"the sampled metric {title}", "--gpu-metrics-devices=all")
    return NotRun(
        (
            "enough samples within the kernels: these are shorter than the sampling period, or on a GPU that the "
            "trace does not name"
        ),
        "--gpu-metrics-devices=all --gpu-metrics-frequency=100000",
    )
