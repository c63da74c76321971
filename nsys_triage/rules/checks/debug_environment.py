"""The job was recorded with switches for debugging that slow it down.

What it means

Some environment variables are meant for finding errors and cost time: they make every launch wait, switch off fast
transports or the memory cache, check every collective, or load a checking tool. Figures of such a run are not those of
the job.

What to do next

1. Unset the variables that are named below, and record again.
2. Then judge the rest of the report.

When it is wrong

A variable that is set may have no effect in this job; what is said to be at stake is all that it could lengthen.
"""

from typing import Final, NamedTuple

from nsys_triage import units
from nsys_triage.result.model import Cause
from nsys_triage.rules.base import Found, NotRun, Outcome, Passed, Rule, number, page_of
from nsys_triage.rules.context import Context


class _Switch(NamedTuple):
    """A variable, the values that distort, what it does, and the causes under which that would show."""

    name: str
    values: tuple[str, ...]
    effect: str
    causes: tuple[Cause, ...]


_ON: Final = ("1", "true", "yes", "on", "y", "t")
_HOST: Final[tuple[Cause, ...]] = ("launch", "host_sync", "host_compute")
_NETWORK: Final[tuple[Cause, ...]] = ("communication", "host_communication")
_SWITCHES: Final = (
    _Switch("CUDA_LAUNCH_BLOCKING", _ON, "every launch waits until its kernel is done", _HOST),
    _Switch("NCCL_DEBUG", ("info", "trace"), "NCCL writes a log", ("host_compute",)),
    _Switch("NCCL_P2P_DISABLE", _ON, "NCCL does not use NVLink and peer access", _NETWORK),
    _Switch("NCCL_SHM_DISABLE", _ON, "NCCL does not use shared memory", _NETWORK),
    _Switch("NCCL_IB_DISABLE", _ON, "NCCL does not use InfiniBand", _NETWORK),
    _Switch("TORCH_DISTRIBUTED_DEBUG", ("detail",), "every collective is checked first", (*_NETWORK, "host_compute")),
    _Switch("TORCH_NCCL_BLOCKING_WAIT", _ON, "the host waits for every collective", ("host_sync", *_NETWORK)),
    _Switch("TORCH_CPP_LOG_LEVEL", ("info",), "PyTorch writes a log", ("host_compute",)),
    _Switch("PYTORCH_NO_CUDA_MEMORY_CACHING", _ON, "every tensor is a cudaMalloc", ("allocation", "host_sync")),
    _Switch("NVIDIA_TF32_OVERRIDE", ("0",), "matrix products in FP32 do not use TF32", ("compute",)),
    _Switch("PYTHONTRACEMALLOC", ("1", "5", "10", "25"), "Python traces every allocation", ("host_compute", "launch")),
    _Switch("PYTHONDEVMODE", _ON, "Python checks at run time", ("host_compute", "launch")),
)  # fmt: skip
_TOOLS: Final = ("COMPUTE_SANITIZER", "NV_COMPUTE_SANITIZER", "CUDA_MEMCHECK", "NV_CUDA_MEMCHECK")
_CHECKED: Final[tuple[Cause, ...]] = ("compute", "launch", "host_sync", "host_compute")


def check(context: Context) -> Outcome:
    """Fires where a variable that distorts is set in the captured environment."""
    info = context.m.trace.info
    if not info.private_variables:
        return NotRun("the environment of the process: the file does not hold it")
    found = [s for s in _SWITCHES if info.environment.get(s.name, "").lower() in s.values]
    tools = sorted(name for name in info.environment if name.startswith(_TOOLS))
    found += [_Switch(name, (), "a checking tool is loaded", _CHECKED) for name in tools]
    if not found:
        return Passed("None of the variables that are known to slow a job for debugging is set.")
    causes = tuple(dict.fromkeys(cause for switch in found for cause in switch.causes))
    at_most = context.total_ns(*causes)
    names = [_shown(switch, info.environment) for switch in found]
    more = f" and {units.plural(len(found) - 1, 'more switch', 'more switches')}" if len(found) > 1 else ""
    return Found(
        title=f"Recorded with {names[0]}{more}: {found[0].effect}",
        stake=context.stake(
            at_most,
            "high: all time under the causes that these switches can lengthen; low: none of it, if they had no effect",
            0,
        ),
        causes=causes,
        evidence=(
            *(number(name, switch.effect, "text") for name, switch in zip(names, found, strict=True)),
            number("time under the causes that they can lengthen", context.mean_ns(at_most), "ns"),
        ),
        actions=(
            f"Unset {', '.join(switch.name for switch in found)} and record again: a measurement is worth little with"
            f" {'it' if len(found) == 1 else 'them'}.",
            "Judge the rest of this report after that.",
        ),
        caveat="A switch that is set may have no effect in this job.",
        confidence="medium",
        where=context.where(*causes),
    )


def _shown(switch: _Switch, environment: dict[str, str]) -> str:
    """The name, with its value where that is one of the listed ones."""
    return f"{switch.name}={environment[switch.name]}" if switch.values else switch.name


RULE = Rule(id="debug-environment", title="Switches for debugging", check=check, page=page_of(__doc__))
