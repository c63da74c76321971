"""Command lines to record again: to compare after a fix, and to record what was missing."""

import re
from typing import Final

from nsys_triage.render import text
from nsys_triage.render.views import known
from nsys_triage.result.model import Result

_OPTION: Final = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)=([\w,.:/-]*\w)")
_TRACE: Final = re.compile(r"(?<![\w-])(?:--trace[= ]|-t[ =]?)([a-z][\w,-]*\w)")
YOURS: Final = "<your command>"
_BASE: Final = ("cuda", "nvtx", "osrt")
# options of `nsys profile` that record more; anything else that looks like an option in a note is left alone
_RECORDING: Final = {
    "--backtrace", "--cpu-core-events", "--cpuctxsw", "--cuda-event-trace",
    "--cuda-flush-interval", "--cuda-graph-trace",
    "--cuda-memory-usage", "--cuda-um-cpu-page-faults", "--cuda-um-gpu-page-faults",
    "--cudabacktrace", "--delay",
    "--duration", "--event-sample", "--gpu-metrics-device", "--gpu-metrics-devices",
    "--gpu-metrics-frequency",
    "--gpu-metrics-set", "--mpi-impl", "--nic-metrics", "--osrt-threshold",
    "--python-backtrace", "--python-sampling",
    "--pytorch", "--sample", "--sampling-period", "--trace-fork-before-exec",
}  # fmt: skip


def record_missing(result: Result) -> str | None:
    """One command line that records all that checks lacked; None where their notes name no option."""
    traces, options = set(_BASE), dict[str, str]()
    found = False
    for check in result.checks:
        if check.status != "not_run":
            continue
        for match in _TRACE.finditer(check.note):
            traces.update(match.group(1).split(","))
            found = True
        for name, value in _OPTION.findall(check.note):
            if name in _RECORDING:
                options.setdefault(name, value)
                found = True
    if not found:
        return None
    extra = sorted(traces - set(_BASE))
    parts = [
        f"--trace={','.join([*_BASE, *extra])}",
        *(f"{name}={value}" for name, value in sorted(options.items())),
    ]
    return f"nsys profile {' '.join(parts)} -o job {YOURS}"


def compare_after(result: Result) -> list[str]:
    """The two command lines that record again and compare with this capture; of several ranks all are needed."""
    if len(files := known.given(result.capture.files) or []) > 1:
        return [
            f"nsys profile --trace=cuda,nvtx,osrt -o after/rank%q{{RANK}} {YOURS}",
            f"nsys-triage compare before after   # folders with the traces of all {len(files)} ranks",
        ]
    return [
        f"nsys profile --trace=cuda,nvtx,osrt -o after {YOURS}",
        f"nsys-triage compare {text.quoted(text.cut(result.capture.file, 200))} after.nsys-rep",
    ]
