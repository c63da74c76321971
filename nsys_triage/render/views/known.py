"""What a result holds: absent and null parts as None, GPUs by the names that the page gives them."""

from typing import TypeVar

from msgspec import UnsetType

from nsys_triage import units
from nsys_triage.render import text
from nsys_triage.result.model import Gpu, Result

T = TypeVar("T")


def given(part: T | UnsetType | None) -> T | None:
    """The part, or None where the result does not have it."""
    return None if isinstance(part, UnsetType) else part


def gpu_names(result: Result) -> dict[str, str]:
    """The page's name of each GPU by its id: `GPU 0` in the order of the result, and its rank."""
    return {
        gpu.id: f"GPU {number}" + (f" (rank {gpu.rank})" if gpu.rank is not None else "")
        for number, gpu in enumerate(result.gpus)
    }


def model_name(gpu: Gpu) -> str | None:
    """The GPU's model without its maker: `A100-SXM4-80GB`."""
    return text.shorten(gpu.name.removeprefix("NVIDIA ").strip(), 48) if gpu.name else None


def gpus_line(result: Result) -> str:
    """All GPUs by model: `2 x H100 80GB`; `1 GPU, model not recorded` where the trace does not name it."""
    models: dict[str, int] = {}
    for gpu in result.gpus:
        name = model_name(gpu) or ""
        models[name] = models.get(name, 0) + 1
    parts = []
    for name, number in models.items():
        if not name:
            parts.append(f"{units.plural(number, 'GPU')}, model not recorded")
        else:
            parts.append(name if number == 1 else f"{number} x {name}")
    return "; ".join(parts[:6]) + (f"; {len(parts) - 6} more models" if len(parts) > 6 else "")


def processes_line(result: Result) -> str | None:
    """How many ranks or processes: `2 ranks`, `1 process`; None where no GPU says."""
    ranks = given(result.ranks)
    if ranks is not None:
        return units.plural(ranks.count, "rank")
    processes = {pid for gpu in result.gpus for pid in gpu.processes}
    return units.plural(len(processes), "process", "processes") if processes else None


def versions_line(result: Result) -> str | None:
    """Which nsys recorded and which exported; None where neither is known."""
    recorded = given(result.capture.capture_version)
    exported = given(result.capture.exporter_version)
    if recorded and exported and recorded != exported:
        return f"recorded with nsys {text.cut(recorded, 40)}, exported with {text.cut(exported, 40)}"
    if recorded:
        return f"recorded with nsys {text.cut(recorded, 40)}"
    return f"exported with nsys {text.cut(exported, 40)}" if exported else None


def window_name(result: Result) -> str:
    """What the window is called in a sentence: `steady state`, `whole capture`, `chosen window`."""
    window = given(result.capture.window)
    if window is None:
        return "capture"
    if window.mode == "auto":
        return "steady state" if window.excluded else "whole capture"
    if window.mode == "nvtx":
        return f"NVTX range {text.shorten(window.name, 40)}" if given(window.name) else "NVTX range"
    return {"all": "whole capture", "user": "chosen window"}[window.mode]


def window_line(result: Result) -> str | None:
    """The window: `steady state: 4.020 to 14.310 s, 58 of 60 steps`; None where there is none."""
    window = given(result.capture.window)
    if window is None:
        return None
    line = f"{window_name(result)}: {units.stretch(window.start_ns, window.end_ns)}"
    steps = given(result.steps)
    if steps is not None and steps.count and steps.source != "none":
        total = steps.count + (steps.warmup_count if window.excluded else 0)
        line += (
            f", {units.count(steps.count)} of {units.plural(total, 'step')}"
            if total > steps.count
            else (f", {units.plural(steps.count, 'step')}")
        )
    return line


def whole_differs(result: Result) -> bool:
    """Whether the window leaves out a part of what the whole capture has."""
    return any(gpu.whole.span_ns != gpu.span_ns or gpu.whole.busy_ns != gpu.busy_ns for gpu in result.gpus)


def busy_share(gpu: Gpu) -> float:
    """Busy time as a share of the GPU's span; 0 on an empty span."""
    return gpu.busy_ns / gpu.span_ns if gpu.span_ns else 0.0
