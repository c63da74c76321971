"""The words of the page: what causes, limiters, kinds and classes are called, and the terms it explains."""

from typing import Final

CAUSE_NAMES: Final[dict[str, str]] = {
    "compute": "compute",
    "graph": "CUDA graphs",
    "communication": "exposed communication",
    "copy": "exposed copies",
    "memset": "exposed memsets",
    "launch": "launch",
    "host_sync": "host sync",
    "input_pipeline": "input pipeline",
    "host_blocked": "host blocked",
    "host_compute": "host compute",
    "host_communication": "host communication",
    "allocation": "allocation",
    "module_load": "module load",
    "unified_memory": "unified memory",
    "queued": "queued",
    "profiler": "profiler",
    "unknown": "unknown",
}
CAUSE_MEANINGS: Final[dict[str, str]] = {
    "compute": "a kernel runs that is not communication",
    "graph": "a CUDA graph recorded as a whole runs",
    "communication": "a collective runs and nothing computes",
    "copy": "a copy runs, and neither kernels nor communication",
    "memset": "a memset runs and nothing else",
    "launch": "idle while the host issues the next launch",
    "host_sync": "idle because the host waited for the GPU and so had nothing queued",
    "input_pipeline": "idle until the next batch of input is ready",
    "host_blocked": "idle while the launching thread is blocked in the operating system",
    "host_compute": "idle while the launching thread computes something else",
    "host_communication": "idle while the launching thread is in MPI or another host-side communication call",
    "allocation": "idle while the launching thread allocates or frees memory",
    "module_load": "idle while kernels are loaded or compiled",
    "unified_memory": "idle until pages of managed memory are migrated",
    "queued": "idle although work was queued: it waited for another stream, an event or the scheduler",
    "profiler": "idle because of the recording itself",
    "unknown": "idle, and the trace does not show why",
}
COPY_KINDS: Final[dict[str, str]] = {
    "host_to_device": "host to device",
    "device_to_host": "device to host",
    "device_to_device": "device to device",
    "peer_to_peer": "peer to peer",
    "host_to_host": "host to host",
    "unified_host_to_device": "unified memory, host to device",
    "unified_device_to_host": "unified memory, device to host",
    "unified_device_to_device": "unified memory, device to device",
    "unified_peer_to_peer": "unified memory, peer to peer",
}
CLASSES: Final[dict[str, str]] = {
    "matmul": "matrix multiplication",
    "reduction": "reduction, norms, softmax",
    "layout": "layout and type conversion",
    "gather": "gather, scatter, sort, embedding",
    "random": "random numbers",
}
HOST_ACTIVITIES: Final[dict[str, str]] = {
    "sync": "synchronising call",
    "launch": "launch call",
    "api": "other CUDA call",
    "os": "operating-system call",
    "mpi": "host-side communication",
    "communication": "host-side communication",
    "nvtx": "NVTX range",
    "step": "step",
    "copy": "copy call",
    "allocation": "allocation",
    "module_load": "module load",
    "overhead": "profiler overhead",
    "profiler": "profiler overhead",
    "cpu": "on the CPU",
}
STEP_STATES: Final[dict[str, str]] = {"startup": "start-up", "steady": "steady", "slow": "slow"}
WINDOW_MODES: Final[dict[str, str]] = {
    "auto": "steady state",
    "all": "whole capture",
    "user": "chosen window",
}
LEVELS: Final[dict[str, str]] = {"high": "high", "medium": "medium", "low": "low"}

TERMS: Final[dict[str, tuple[str, str]]] = {
    "span": (
        "GPU time, span",
        "The window, cut to the time from this GPU's first work to its last; shares of GPU time "
        "are shares of it.",
    ),
    "busy": (
        "busy",
        "The time in which the GPU runs at least one kernel, copy, memset or CUDA graph; "
        "overlapping work counts once.",
    ),
    "idle": ("idle", "The span less busy: nothing runs on the GPU, whatever the reason."),
    "ledger": (
        "ledger",
        "The split of every nanosecond of a GPU's span into exactly one cause; its entries sum to the span.",
    ),
    "exposed": (
        "exposed",
        "The part of communication or copies during which nothing computes; what overlaps with "
        "compute costs no time.",
    ),
    "host-sync-cost": (
        "host sync cost",
        "Idle time that exists because the host waited for the GPU and so had nothing queued "
        "when it ran dry; "
        "a wait during which the GPU stays busy costs nothing.",
    ),
    "gap": (
        "gap",
        "A stretch in which a GPU is idle, from the end of the work before to the start of the work after.",
    ),
    "queued": (
        "queued",
        "Idle time although the next work had been launched early enough: it waited for another "
        "stream or an event.",
    ),
    "launch": (
        "launch",
        "The host call that puts a kernel or a graph into a stream, and the framework's work for "
        "it; idle time here "
        "means that the host could not issue work as fast as the GPU finished it.",
    ),
    "latency": (
        "launch latency",
        "The time from the start of a launch call to the start of its work on the GPU.",
    ),
    "back-pressure": (
        "back-pressure",
        "A launch call that takes long because the GPU's queue is full; the GPU is busy, so it "
        "is no launch problem.",
    ),
    "pageable": (
        "pageable",
        "Host memory that is not pinned; copies from or to it go through a staging buffer, are "
        "slower and block the host.",
    ),
    "read-back": (
        "read-back",
        "A copy of a few bytes from the GPU that the host waits for, as `.item()` or printing "
        "the loss makes.",
    ),
    "occupancy": (
        "occupancy",
        "Warps that fit on a multiprocessor at once for a kernel's launch shape, as a share of "
        "its limit (theoretical).",
    ),
    "waves": (
        "waves",
        "Blocks of a launch, divided by the blocks that fit on the whole GPU at once; below 1 a "
        "part of it stays empty.",
    ),
    "work-volume": (
        "work volume",
        "The plain sum of kernel durations; with several streams it can exceed the time that passed.",
    ),
    "wait-transfer": (
        "wait and transfer",
        "A collective lasts until the slowest rank has come: transfer is the shortest duration "
        "among the ranks, "
        "wait is what a rank's own duration is longer than that.",
    ),
    "straggler": (
        "straggler",
        "The rank that most often arrives last at a collective and so has the shortest duration there.",
    ),
    "stake": (
        "at stake",
        "The GPU time that removing a cause could give back at most, as a range; stakes overlap "
        "and do not add up.",
    ),
    "steady-state": (
        "steady state",
        "The window without start-up (loading, compilation, first allocations, slow first "
        "steps), where the trace "
        "shows such a part.",
    ),
    "step": ("step", "One iteration of the job, from the start of one to the start of the next."),
    "percentile": (
        "p50, p95, p99",
        "Half, 95 % and 99 % of all values are at most this long (nearest rank).",
    ),
}


def cause(name: str) -> str:
    """What a cause is called."""
    return CAUSE_NAMES.get(name, plain(name))


def copy_kind(name: str) -> str:
    """What a kind of copy is called."""
    return COPY_KINDS.get(name, plain(name))


def kernel_class(name: str) -> str:
    """What a class of kernels is called."""
    return CLASSES.get(name, plain(name))


def plain(identifier: str) -> str:
    """An identifier as words: `array_to_host` is `array to host`."""
    return identifier.replace("_", " ")


def capital(text: str) -> str:
    """The text with its first letter as a capital, the rest as it is."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """The text as a sentence: a capital at its start, a full stop at its end."""
    return capital(text) if text.endswith((".", "!", "?", ":", "…")) else f"{capital(text)}."


def listed(parts: list[str]) -> str:
    """Parts as a list in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
