"""A CUDA job in small: host threads, launches, in-order streams, waits; it plants what a capture would hold.

Where `TraceBuilder` is told every time, `Job` works them out: work starts when its launch has arrived and its
stream is free, a wait ends when the work is done, a full launch queue holds the host back. Times are
microseconds.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.builders.schema import has_table
from tests.builders.torch_kernels import Kernel
from tests.builders.trace import TraceBuilder

COMPUTE_STREAM: Final = 7
_QUEUE_DEPTH: Final = 1024
_ARRIVAL: Final = 3.0  # from the end of a launch call to the start of its work on an idle GPU
_BETWEEN: Final = 1.0  # between two operations of one stream
_CALL: Final = 4.5


class Launched(NamedTuple):
    """Work of which the start is known, and the (start, end) of its launch call."""

    start: float
    call: tuple[float, float]


class Job:
    """One process on one GPU. `dispatch` is the host time from one launch to the next, as Python needs it."""

    def __init__(
        self,
        trace: TraceBuilder,
        *,
        pid: int,
        dispatch: float,
        seed: int,
        device: int = 0,
        clock_ahead: float = 0.0,
        slowdown: float = 1.0,
    ) -> None:
        """`clock_ahead`: how much earlier the capture began than the job's time zero; `slowdown` of the
        GPU."""
        self.trace = trace.on(pid=pid, device=device, stream=COMPUTE_STREAM)
        self.pid = pid
        self.tid = pid
        self.now = 0.0
        self.dispatch = dispatch
        self.clock_ahead = clock_ahead
        self.slowdown = slowdown
        self._random = random.Random(seed)  # noqa: S311 jitter, no secret
        self._free: dict[int, float] = {}  # by stream: end of its last operation
        self._starts: list[float] = []
        self._loaded: set[str] = set()

    # --- host -------------------------------------------------------------------------------------------

    def jitter(self, length: float, share: float = 0.03) -> float:
        """The length, give or take that share of it; always the same sequence for one seed."""
        return length * (1 + share * (2 * self._random.random() - 1))

    def host(self, length: float) -> None:
        """The thread computes: nothing is recorded."""
        self.now += self.jitter(length)

    def os_call(self, name: str, length: float) -> None:
        """The thread is in an OS call."""
        start = self.now
        self.host(length)
        self.trace.os_call(name, self._at(start), self._at(self.now), tid=self.tid)

    def meanwhile(self, tid: int, name: str, start: float, end: float) -> None:
        """Another thread is in an OS call."""
        self.trace.os_call(name, self._at(start), self._at(end), tid=tid)

    def call(self, name: str, length: float) -> None:
        """The thread is in a CUDA call that launches nothing."""
        start = self.now
        self.host(length)
        self.trace.api(name, self._at(start), self._at(self.now), tid=self.tid)

    def wait(self, name: str, until: float) -> None:
        """A synchronising call that returns when the GPU gets there."""
        start = self.now
        self.now = max(start + 2.0, until + 2.5)
        self.trace.wait(name, self._at(start), self._at(self.now), tid=self.tid)

    def range(self, name: str, body: Callable[[], None], nccl: dict[str, object] | None = None) -> None:
        """An NVTX range around what `body` does; `nccl` makes it one of NCCL's, with that payload."""
        start = self.now
        body()
        if nccl is None:
            self.range_since(name, start)
        else:
            times = self._at(start), self._at(self.now)
            self.trace.range(name, *times, domain="NCCL", registered=True, json_payload=nccl, tid=self.tid)

    def range_since(self, name: str, start: float) -> None:
        """An NVTX range that ends now."""
        self.trace.range(name, self._at(start), self._at(self.now), tid=self.tid)

    def thread(self, tid: int, body: Callable[[], None], waiting_call: str | None = None) -> None:
        """Another thread takes over (autograd for backward) while this one waits for it."""
        caller, start = self.tid, self.now
        self.tid = tid
        self.host(25)
        body()
        self.tid = caller
        if waiting_call:
            self.meanwhile(caller, waiting_call, start + 8, self.now + 6)
        self.host(12)

    # --- device -----------------------------------------------------------------------------------------

    def done(self, stream: int = COMPUTE_STREAM) -> float:
        """When everything that the stream was given will be done."""
        return self._free.get(stream, 0.0)

    def kernel(self, kernel: Kernel, length: float) -> None:
        """Launches a kernel; its first launch of all loads its code within the call."""
        call = self._launch_call(kernel.name)
        start = self._start(call[1], COMPUTE_STREAM)
        end = self._ran(start, self.jitter(length) * self.slowdown, COMPUTE_STREAM)
        self._plant(kernel, start, end, call, COMPUTE_STREAM)

    def copy(self, kind: str, bytes_: int, gigabytes_per_s: float, *, pinned: bool = True) -> None:
        """An asynchronous copy."""
        call = self._launch_call()
        start = self._start(call[1], COMPUTE_STREAM)
        end = self._ran(start, self.jitter(1.2 + bytes_ / gigabytes_per_s / 1000), COMPUTE_STREAM)
        times = (self._at(call[0]), self._at(call[1]))
        self.trace.copy(
            self._at(start), self._at(end), kind, bytes_=bytes_, pinned=pinned, call=times, tid=self.tid
        )

    def item(self) -> None:
        """`tensor.item()`: four bytes to the host, and a wait for them."""
        self.copy("device_to_host", 4, 10.0)
        self.wait("cudaStreamSynchronize_v3020", self.done())

    def launch_collective(self, stream: int) -> Launched:
        """Launches a collective on its own stream, where it starts when the compute stream has done what it
        was given before. How long it takes depends on the other ranks: `finish_collective` says so."""
        call = self._launch_call()
        return Launched(max(self._start(call[1], stream), self.done()), call)

    def finish_collective(self, kernel: Kernel, launched: Launched, end: float, stream: int) -> None:
        """Plants a launched collective."""
        self._free[stream] = end
        self._plant(kernel, launched.start, end, launched.call, stream)

    def join(self, stream: int) -> None:
        """The compute stream goes on when the other stream is done."""
        self._free[COMPUTE_STREAM] = max(self.done(), self.done(stream))

    # --- how --------------------------------------------------------------------------------------------

    def _at(self, time: float) -> float:
        return time + self.clock_ahead

    def _launch_call(self, kernel: str | None = None) -> tuple[float, float]:
        """The next launch call of this thread."""
        start = self.now + self.jitter(self.dispatch, 0.15)
        end = start + self.jitter(_CALL, 0.2)
        if kernel is not None and kernel not in self._loaded:
            self._loaded.add(kernel)
            end += self._load(start + 1)
        if len(self._starts) >= _QUEUE_DEPTH:
            end = max(end, self._starts[-_QUEUE_DEPTH])
        self.now = end
        return start, end

    def _load(self, start: float) -> float:
        """The time that loading a kernel's code takes, with its overhead row where the exporter has that
        table."""
        length = self.jitter(4_200, 0.5)
        if has_table("CUPTI_ACTIVITY_KIND_OVERHEAD", self.trace.version):
            self.trace.cuda_overhead("lazy_load", self._at(start), self._at(start + length), tid=self.tid)
        return length

    def _start(self, launched: float, stream: int) -> float:
        start = max(launched + self.jitter(_ARRIVAL, 0.2), self.done(stream) + _BETWEEN)
        self._starts.append(start)
        return start

    def _ran(self, start: float, length: float, stream: int) -> float:
        self._free[stream] = start + length
        return start + length

    def _plant(
        self, kernel: Kernel, start: float, end: float, call: tuple[float, float], stream: int
    ) -> None:
        self.trace.kernel(
            self._at(start),
            self._at(end),
            kernel.name,
            call=(self._at(call[0]), self._at(call[1])),
            launch=kernel.launch,
            grid=kernel.grid,
            block=kernel.block,
            registers=kernel.registers,
            static_shared=kernel.static_shared,
            dynamic_shared=kernel.dynamic_shared,
            carveout=kernel.carveout,
            tid=self.tid,
            stream=stream,
        )
