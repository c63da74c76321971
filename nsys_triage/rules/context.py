"""What a rule may ask: one measured trace, the rule's thresholds, and the arithmetic that rules share."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import polars as pl

from nsys_triage.metrics.ledger import CODE, by_cause
from nsys_triage.metrics.measure import Measurement
from nsys_triage.metrics.step_items import causes_by_step
from nsys_triage.result.model import Cause, Gpu, Interval, Ranks, Stake

Framework = Literal["pytorch", "jax", "cuda"]

RECORD: Final = "nsys profile --trace=cuda,nvtx,osrt --output=job"
NEEDS: Final[dict[str, tuple[str, str]]] = {
    # name: (what is missing, the option of nsys profile that records it)
    "api": ("CUDA API calls", "--trace=cuda"),
    "kernels": ("kernels", "--trace=cuda"),
    "memcpys": ("memory copies", "--trace=cuda"),
    "nvtx": ("NVTX ranges", "--trace=nvtx"),
    "osrt": ("OS runtime calls", "--trace=osrt"),
    "scheduling": ("CPU scheduling", "--cpuctxsw=process-tree"),
    "samples": ("CPU samples", "--sample=process-tree"),
    "gpu_metrics": ("sampled GPU metrics", "--gpu-metrics-devices=all"),
    "steps": ("steps (an NVTX range around each iteration)", "--trace=cuda,nvtx"),
    "communication": ("communication kernels: the trace has none", ""),
    "several_gpus": ("a second GPU: the trace has one", ""),
    "several_ranks": ("other ranks of the job: give their traces together", ""),
    "gpu_limits": ("the properties of the GPU", ""),
}


@dataclass(frozen=True)
class Context:
    """One measured trace as a rule sees it."""

    m: Measurement
    thresholds: Mapping[str, float]  # of the rule that asks, by name
    ranks: Ranks | None = None  # of the job, where it has several
    job_gpus: tuple[Gpu, ...] | None = None  # of all its traces, where several were read
    job_alike: float | None = (
        None  # where several were: least share of a rank's kernel time in kernels that all run
    )

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The GPUs of the window: of this trace, or of the job where the rule looks at all of it."""
        return list(self.job_gpus) if self.job_gpus is not None else self.m.gpus

    @cached_property
    def span_ns(self) -> int:
        """The spans of all GPUs together."""
        return sum(gpu.span_ns for gpu in self.gpus)

    def has(self, need: str) -> bool:
        """Whether the trace holds what a rule needs (a name of NEEDS)."""
        trace = self.m.trace
        if need == "steps":
            return self.m.window_steps.height >= 3
        if need == "communication":
            return self.m.collectives.count + self.m.collectives.other_count > 0
        if need == "several_gpus":
            return len(self.gpus) > 1
        if need == "several_ranks":
            return self.ranks is not None and self.ranks.count > 1
        if need == "memcpys":
            # a table without rows is left out of an export, and device work shows that CUDA was traced
            return not (trace.memcpys.is_empty() and trace.info.filtered)
        if need == "gpu_limits":
            return any(gpu.sm_count for gpu in self.gpus)
        return need in trace.recorded and not getattr(trace, need).is_empty()

    # --- time by cause ------------------------------------------------------------------------------------------

    @cached_property
    def _by_cause(self) -> dict[str, int]:
        totals: dict[str, int] = {}
        for gpu in self.gpus:
            for entry in gpu.ledger or []:
                totals[entry.cause] = totals.get(entry.cause, 0) + entry.ns
        return totals

    def total_ns(self, *causes: Cause) -> int:
        """Time under those causes in the window, summed over the GPUs."""
        return sum(self._by_cause.get(cause, 0) for cause in causes)

    def share(self, *causes: Cause) -> float:
        """Time under those causes as a share of the span (the mean of the GPUs)."""
        return self.total_ns(*causes) / self.span_ns if self.span_ns else 0.0

    def mean_ns(self, total_ns: float) -> int:
        """A sum over the GPUs as the mean per GPU."""
        return round(total_ns / max(1, len(self.gpus)))

    def stake(self, total_ns: float, basis: str, low_ns: float | None = None) -> Stake:
        """A stake from sums over the GPUs: the mean per GPU, clamped to the span; `low_ns` None means half of it."""
        longest = max((gpu.span_ns for gpu in self.gpus), default=0)
        high = min(longest, self.mean_ns(max(0.0, total_ns)))
        low = min(high, self.mean_ns(max(0.0, total_ns / 2 if low_ns is None else low_ns)))
        mean_span = self.span_ns / max(1, len(self.gpus))
        share = min(1.0, (low + high) / 2 / mean_span) if mean_span else 0.0
        return Stake(low_ns=low, high_ns=high, share=round(share, 6), basis=basis)

    def cause_stake(self, *causes: Cause) -> Stake:
        """What removing those causes from the ledger could give back.

        At most all of it. At least, where there are steps, what is left without the tenth of them (one at least)
        that lose most; without steps, all but the longest gap, which may happen once.
        """
        total = self.total_ns(*causes)
        steady = self._repeated_ns(causes)
        if steady is not None:
            basis = (
                "high: all idle or exposed time under this cause is gone;"
                " low: without the tenth of the steps that lose most to it"
            )
            return self.stake(total, basis, min(total, steady))
        longest = self._longest_ns(causes)
        basis = "high: all idle or exposed time under this cause is gone; low: all but its longest gap"
        return self.stake(total, basis, total - longest)

    def _repeated_ns(self, causes: tuple[Cause, ...]) -> int | None:
        """The time under those causes in all steps but the tenth (one at least) that lose most, summed over the GPUs.

        A median would be 0 where a loader with four workers delivers in bursts, so that every fourth step waits.
        Steps are those of one process; the other GPUs are taken to lose in the same proportion, since the one that
        all wait for loses least. None without steps, or where that process loses nothing.
        """
        steps = self.m.window_steps
        if steps.height < 3:
            return None
        split = (
            self.step_split.filter(pl.col("cause").is_in([CODE[c] for c in causes]))
            .group_by("row")
            .agg(pl.col("ns").sum())
        )
        per_step = sorted([*split["ns"].to_list(), *[0] * (steps.height - split.height)])
        kept = steps.height - max(1, steps.height // 10)
        own = [gpu for gpu in self.gpus if int(steps["pid"][0]) in gpu.processes]
        own_ns = sum(entry.ns for gpu in own for entry in gpu.ledger or [] if entry.cause in causes)
        if not own_ns:
            return None
        return int(sum(per_step[:kept]) * self.total_ns(*causes) * len(own) / own_ns)

    @cached_property
    def step_split(self) -> pl.DataFrame:
        """Time by cause in each step of the window, mean of the main process' GPUs: row, cause (code), ns."""
        steps = self.m.window_steps
        pid = int(steps["pid"][0])
        own = [gpu.index for gpu in self.m.workload.gpus.all if pid in gpu.processes]
        return causes_by_step(self.m.ledger.pieces, steps, own)

    def pieces_of(self, *causes: Cause) -> pl.DataFrame:
        """The ledger's pieces of the window under those causes (schema LEDGER)."""
        return self._cause_pieces(causes)

    def _cause_pieces(self, causes: tuple[Cause, ...]) -> pl.DataFrame:
        return self.m.pieces.filter(pl.col("cause").is_in([CODE[c] for c in causes]))

    def _longest_ns(self, causes: tuple[Cause, ...]) -> int:
        per_gap = (
            by_cause(self._cause_pieces(causes).filter(pl.col("gap").is_not_null()), "gap")
            .group_by("gap")
            .agg(pl.col("ns").sum())
        )
        return int(per_gap["ns"].max() or 0) if per_gap.height else 0  # type: ignore[arg-type]

    # --- where to look ------------------------------------------------------------------------------------------

    def where(self, *causes: Cause) -> Interval | None:
        """The time to open in the Nsight Systems window: the gap with most of those causes, else their longest."""
        pieces = self._cause_pieces(causes)
        if pieces.is_empty():
            return None
        length = (pl.col("end_ns") - pl.col("start_ns")).alias("ns")
        in_gaps = pieces.filter(pl.col("gap").is_not_null())
        if in_gaps.height:
            # a gap with less than the longest piece cannot have the most: a few are left of a million
            longest = int(in_gaps.select(length.max()).item())
            table = self.m.gaps.gaps
            long_enough = table.filter(pl.col("end_ns") - pl.col("start_ns") >= longest)["gap"]
            totals = (
                in_gaps.filter(pl.col("gap").is_in(long_enough.implode()))
                .with_columns(length)
                .group_by("gap")
                .agg(pl.col("ns").sum())
                .sort(["ns", "gap"], descending=[True, False])
            )
            row = self.m.pieces.filter(pl.col("gap") == totals["gap"][0]).select(
                pl.col("start_ns").min(), pl.col("end_ns").max()
            )
        else:
            row = (
                pieces.with_columns(length)
                .sort(["ns", "start_ns"], descending=[True, False])
                .select("start_ns", "end_ns")
            )
        return Interval(start_ns=int(row["start_ns"][0]), end_ns=int(row["end_ns"][0]))

    def gap_count(self, *causes: Cause) -> int:
        """In how many gaps of the window those causes occur."""
        return self._cause_pieces(causes).drop_nulls("gap")["gap"].n_unique()

    def one_gpu(self, *causes: Cause) -> str | None:
        """The GPU that a finding is about, where most of its time is on one of several; None where it is about all."""
        if len(self.gpus) < 2:
            return None
        own = {gpu.id: sum(e.ns for e in gpu.ledger or [] if e.cause in causes) for gpu in self.gpus}
        most = max(own, key=lambda gpu: (own[gpu], gpu))
        return most if own[most] > 0.8 * sum(own.values()) else None

    # --- whose program it is ------------------------------------------------------------------------------------

    @cached_property
    def framework(self) -> Framework:
        """PyTorch or JAX where the names of kernels or NVTX ranges show it, else plain CUDA."""
        names = self.m.workload.names["text"]
        ranges = self.m.trace.strings.join(
            self.m.trace.nvtx.select("name").drop_nulls().unique(),
            left_on="code",
            right_on="name",
            how="semi",
        )["text"]
        for framework, of_kernels, of_ranges in _FRAMEWORKS:
            if names.str.contains(of_kernels).any() or ranges.str.contains(of_ranges).any():
                return framework
        return "cuda"

    def wording(self, pytorch: str, jax: str, cuda: str) -> str:
        """The sentence for the framework of the trace."""
        return {"pytorch": pytorch, "jax": jax, "cuda": cuda}[self.framework]


_FRAMEWORKS: Final[tuple[tuple[Framework, str, str], ...]] = (
    (
        "pytorch",
        r"at::native|at_cuda_detail|c10::|at::cuda|pytorch|torch",
        r"^aten::|autograd::|torch|DataLoader|FSDP|DistributedDataParallel|Optimizer\.",
    ),
    (
        "jax",
        # XLA's names are plain words; others begin with loop_ or input_ as well
        r"^((loop|input)_\w*fusion|gemm_fusion|wrapped_\w+$|(\w+_)?fusion(_+\d+)*$)|xla",
        r"XlaModule|Thunk:#|^jit_|TSL:",
    ),
)


def record_line(*options: str) -> str:
    """The `nsys profile` command that records everything the rules ask for, with further options."""
    return " ".join([RECORD, *dict.fromkeys(o for o in options if o)]) + " <your command>"
