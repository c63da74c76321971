"""One fluent builder of Nsight Systems SQLite exports on the true schema, for tests.

    trace = TraceBuilder("2025.5.2")
    trace.kernels(1_000, 50, every=100, length=90)           # 90 % busy
    trace.wait("cudaStreamSynchronize_v3020", 6_000, 6_050)
    trace.range("step 1", 900, 6_100)
    trace.on(tid=77).kernel(6_200, 6_300, ALL_REDUCE, stream=20)   # launched by another thread
    path = trace.write(tmp_path / "job.sqlite")

Times are microseconds from the start of the capture (`MS` and `S` are factors), stored as integer
nanoseconds. A kernel or copy brings its launch call, from 10 to 5 us before it; a wait brings its
synchronisation record; the tables of processes, threads, contexts, streams, GPUs and metadata follow from
what was planted. Every method returns the builder, so that calls can be chained. `pid`, `tid`, `device`,
`context` and `stream` are keywords of every event, and `on(...)` gives the builder with others as its
default. What a release cannot store raises ValueError; columns that it does not have are left out.

Stored rows are shuffled with a seed, since exports are not ordered by time. The same calls give the same
file.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.builders.capture_facts import CaptureFacts
from tests.builders.device_events import ADD, ALL_REDUCE, GEMM, LAUNCH, DeviceEvents
from tests.builders.export import write_export
from tests.builders.host_events import HostEvents
from tests.builders.recording import MS, PID, US, At, Place, Raw, Recording, S, Text
from tests.builders.schema import NEWEST, VERSIONS

__all__ = [
    "ADD",
    "ALL_REDUCE",
    "GEMM",
    "LAUNCH",
    "MS",
    "PID",
    "US",
    "VERSIONS",
    "At",
    "Raw",
    "S",
    "Text",
    "TraceBuilder",
]


class TraceBuilder(DeviceEvents, HostEvents, CaptureFacts):
    """An export of that exporter version, by default from a machine with one H100."""

    def __init__(
        self,
        version: str = NEWEST,
        *,
        gpus: Sequence[str] = ("H100",),
        hardware: int = 0,
        vm: int = 1,
        shuffle: int | None = 1,
    ) -> None:
        """`gpus` are models in CUDA order, () for no GPU table; `hardware` and `vm` go into the serialized
        ids (captures of 2020 have 1 and 0); `shuffle` is the seed of the row order, None for the order of the
        calls."""
        if version not in VERSIONS:
            raise ValueError(f"unknown exporter version {version}; known: {', '.join(VERSIONS)}")
        super().__init__(Recording(version, hardware, vm, shuffle), Place())
        for model in gpus:
            self.gpu(model)

    def write(self, path: Path | str) -> Path:
        """Writes the export and returns its path; a file that is there is replaced."""
        return write_export(self._recording, Path(path))
