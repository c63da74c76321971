"""What about the capture itself changes how its figures read."""

from typing import Final

from nsys_triage import units
from nsys_triage.metrics.gaps import CLOCK_FAULT_SHARE, clock_faults, opaque_processes
from nsys_triage.metrics.launches import launches_without_work
from nsys_triage.metrics.lost_events import lost_events
from nsys_triage.metrics.unexplained import without_launch
from nsys_triage.metrics.work import Workload
from nsys_triage.result.model import Warning as CaptureWarning
from nsys_triage.trace.model import Trace

UNMATCHED_SHARE: Final = 0.05
LOST_SHARE: Final = 0.1
LOST_LAUNCHES: Final = 20
"""Of 30 public traces one has as many, 20 of 4,006."""


def capture_warnings(trace: Trace, workload: Workload | None) -> list[CaptureWarning]:
    """All warnings, sorted by identifier; `workload` None where there is no device work."""
    found = [*_about_file(trace)]
    if workload is not None:
        found += _about_graphs(trace, workload) + _about_launches(trace, workload)
    return sorted(found, key=lambda warning: warning.id)


def _about_file(trace: Trace) -> list[CaptureWarning]:
    found = []
    if trace.info.secret_variables:
        n = trace.info.secret_variables
        found.append(
            CaptureWarning(
                id="private-data-in-file",
                text=f"The file holds {units.plural(n, 'environment variable')} whose name looks like a secret.",
                advice="Do not attach the raw report or its export to a ticket; this report holds none of their"
                " values.",
            )
        )
    if trace.info.filtered:
        found.append(
            CaptureWarning(
                id="filtered-export",
                text="The export was made with --tables or --times, so what is missing in it may have been recorded.",
                advice="Export the whole report again: nsys export --type=sqlite REPORT.nsys-rep",
            )
        )
    lost = lost_events(trace).messages
    if lost:
        found.append(
            CaptureWarning(
                id="events-lost",
                text=f"nsys itself reports lost events: {lost[0].text}",
                advice="Record a shorter time or fewer event types, and give the process time to end"
                " (nsys profile --kill=none).",
            )
        )
    dropped = sum(trace.dropped.values())
    if dropped:
        found.append(
            CaptureWarning(
                id="bad-rows",
                text=f"{units.plural(dropped, 'row has', 'rows have')} times that cannot be true and"
                f" {'was' if dropped == 1 else 'were'} left out.",
                advice="A few are normal where a capture was cut off; many mean a damaged recording.",
            )
        )
    return found


def _about_graphs(trace: Trace, workload: Workload) -> list[CaptureWarning]:
    found = []
    if trace.graphs.height:
        found.append(
            CaptureWarning(
                id="graphs-recorded-whole",
                text=f"{units.plural(trace.graphs.height, 'CUDA graph execution was', 'CUDA graph executions were')}"
                " recorded as a whole: what runs inside, and idle time between the nodes, cannot be seen.",
                advice="Record again with nsys profile --cuda-graph-trace=node to see inside.",
            )
        )
    opaque = opaque_processes(trace, workload)
    if opaque:
        found.append(
            CaptureWarning(
                id="graphs-not-in-export",
                text="CUDA graphs were launched whose GPU time the export does not hold: idle time is not known to be"
                " idle.",
                advice="Export with a newer nsys, or record again with nsys profile --cuda-graph-trace=node.",
            )
        )
    return found


def _about_launches(trace: Trace, workload: Workload) -> list[CaptureWarning]:
    found = []
    faults, matched = clock_faults(workload)
    if matched and faults > CLOCK_FAULT_SHARE * matched:
        found.append(
            CaptureWarning(
                id="clock-fault",
                text=f"{units.share(faults / matched)} of the device work starts before the call that launched it: the"
                " clocks of CPU and GPU do not fit.",
                advice="Idle time cannot be explained from this recording; record again, best with a newer driver and"
                " nsys.",
            )
        )
    missing, total = without_launch(trace, workload.work)
    if total and missing > UNMATCHED_SHARE * total:
        found.append(
            CaptureWarning(
                id="launches-unmatched",
                text=f"{units.share(missing / total)} of the device work has no launch call in the trace; the gaps"
                " before it have no known cause.",
                advice="Record from before the launches to after their work ends, with the CUDA API traced"
                " (nsys profile --trace=cuda,nvtx,osrt).",
            )
        )
    without_work, launched = launches_without_work(workload)
    lost = without_work - missing  # work whose launch is not known may be that of these calls
    if lost >= LOST_LAUNCHES and lost > LOST_SHARE * launched:
        found.append(
            CaptureWarning(
                id="kernels-missing",
                text=f"{units.share(lost / launched)} of the kernel launches that succeeded have no kernel here: time"
                " that looks idle may be theirs.",
                advice="Let the process end by itself, so that nsys gets all records (nsys profile --kill=none), and"
                " look at the messages of nsys about lost events.",
            )
        )
    if any(not gpu.known for gpu in workload.gpus.all) and len(workload.gpus.all) > 1:
        found.append(
            CaptureWarning(
                id="gpus-assumed",
                text="The trace does not say which physical GPU a process used: each (process, device) is taken for a"
                " GPU of its own.",
                advice="Record with nsys 2025.1 or newer, which names the GPU of every process.",
            )
        )
    return found
