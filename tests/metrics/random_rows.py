"""Rows of random traces: a few threads act, one drawn action after another.

An action moves its thread's clock; calls launch work onto streams. Lengths come from a short list around the limits
of the definitions (10 us, 100 us, 1 ms; 64 KiB, 1 MiB), so that traces hit them often.
"""

import random
from collections import defaultdict
from itertools import pairwise
from typing import Any, Final

import polars as pl

from nsys_triage.trace.model import DROP_REASONS, FRAMES, CaptureInfo, Counts, Trace

Thread = tuple[int, int]
Steps = list[tuple[int, int, int, int]]  # pid, index, start, end

LENGTHS: Final = (
    0, 1, 700, 5_000, 9_999, 10_000, 10_001, 30_000, 50_000, 50_001, 99_999, 100_000, 100_001, 150_000, 200_000,
    200_001, 400_000, 999_999, 1_000_000, 1_500_000, 3_000_000,
)  # fmt: skip
SIZES: Final = (4, 64, 65_535, 65_536, 65_536, 1_048_575, 1_048_576, 8 << 20)
THREADS: Final = ((10, 1), (10, 2), (10, 3), (20, 1))  # (pid, tid)
PLACES: Final = ((0, 1, 7), (0, 1, 7), (0, 1, 13), (0, 2, 7), (1, 3, 7))  # (device, context, stream)

KERNELS: Final = (
    "gemm", "gemm", "void attention<float>(float *)", "my_non_nccl_kernel", "ncclDevKernel_AllReduce_Sum_f32",
    "nvshmemi_transfer_rma", "rcclGenericKernel",
)  # fmt: skip
LAUNCHES: Final = ("cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaLaunchKernel_ptsz_v7000")
COPIES: Final = (
    "cudaMemcpyAsync_v3020", "cudaMemcpyAsync_ptsz_v7000", "cudaMemcpy_v3020", "cuMemcpyDtoHAsync_v2",
)  # fmt: skip
WAITS: Final = (
    "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020",
    "cudaEventSynchronize_v3020", "cuCtxSynchronize",
)  # fmt: skip
CALLS: Final = (
    "cudaMalloc_v3020", "cudaFree_v3020", "cudaHostAlloc_v3020", "cuModuleLoadData", "cuLibraryLoadData",
    "cuModuleGetFunction", "cudaEventRecord_v3020", "cudaMallocAsync_v11020", "cudaStreamSynchronize_v3020",
    "cudaLaunchKernel_v7000", "cudaFuncGetAttributes_v3020", "cudaMemset_v3020", "cudaLaunchHostFunc_v10000",
)  # fmt: skip
OS_CALLS: Final = (
    "poll", "read", "pthread_cond_wait", "pthread_cond_wait", "sem_wait", "write", "ioctl", "usleep", "futex",
)  # fmt: skip
RANGES: Final = (
    "next batch", "DataLoader", "load_data", "decoder", "train", "aten::fetch", "prefetch weights", "Fetch, of 3",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
)  # fmt: skip
OVERHEADS: Final = (
    (2, "Driver Compiler"), (3, "CUPTI Buffer flush"), (7, "Lazy Function Loading"), (8, "Command Buffer Full"),
    (None, "CUDA profiling initialization"), (None, "Lazy Function Loading"), (None, "something else"),
)  # fmt: skip
MPI: Final = ("MPI_Allreduce", "ucp_worker_progress")
OPTIONAL: Final = (
    "osrt", "nvtx", "overheads", "host_communication", "memcpys", "memsets", "graphs", "kernels", "api",
)  # fmt: skip

ACTIONS: Final = (
    *["compute"] * 3, *["launch"] * 9, *["copy"] * 5, "memset", "graph", "migrate", *["call"] * 3, *["os"] * 5,
    *["wait"] * 2, *["wait_for_gpu"] * 5, *["open"] * 2, *["close"] * 2, *["range_begin"] * 2, *["range_end"] * 2,
    "mpi", *["overhead"] * 2, *["late"] * 4, *["meet"] * 2, *["step"] * 3, "orphan",
)  # fmt: skip


class Player:
    """Plays actions on a few threads and keeps the rows that they leave."""

    def __init__(self, first_ns: int) -> None:
        self.rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.texts: dict[str, int] = {}
        self.clock = dict.fromkeys(THREADS, first_ns)
        self.tails: dict[tuple[Any, ...], int] = {}
        self.open_calls: defaultdict[Thread, list[tuple[int, str]]] = defaultdict(list)
        self.open_ranges: defaultdict[Thread, list[tuple[int, str]]] = defaultdict(list)
        self.marks: defaultdict[int, list[int]] = defaultdict(list)
        self.last_start = first_ns
        self.correlation = 0

    def code(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    # --- rows

    def host(self, table: str, thread: Thread, start: int, end: int, name: str, **more: Any) -> None:
        row = {"start_ns": start, "end_ns": end, "pid": thread[0], "tid": thread[1], "name": self.code(name)}
        self.rows[table].append(row | more)

    def call(self, thread: Thread, start: int, end: int, name: str) -> int:
        self.correlation += 1
        self.host("api", thread, start, end, name, correlation=self.correlation, return_value=0)
        return self.correlation

    def work(
        self,
        table: str,
        thread: Thread,
        flag: int,
        start: int,
        length: int,
        correlation: int | None,
        **more: Any,
    ) -> None:
        device, context, stream = PLACES[flag % len(PLACES)]
        place = {"pid": thread[0], "device": device, "context": context, "stream": stream}
        self.rows[table].append(
            {"start_ns": start, "end_ns": start + length, "correlation": correlation, **place, **more}
        )
        key = (thread[0], device, context, stream)
        self.tails[key] = max(self.tails.get(key, start), start + length)
        self.last_start = start

    def starts(self, thread: Thread, flag: int, called: int, returned: int, delay: int) -> int:
        """When launched work starts: soon after, in stream order, with what started last, or before its call."""
        device, context, stream = PLACES[flag % len(PLACES)]
        tail = self.tails.get((thread[0], device, context, stream), called)
        how = flag // 8
        if flag == 97:
            return called - delay  # a clock fault, where delay is not 0
        if how % 8 == 6:
            return max(self.last_start, called)
        if how % 8 in (4, 5):
            return called + delay
        return max(tail, returned + delay)

    # --- actions

    def act(self, action: str, thread: Thread, a: int, b: int, flag: int) -> None:
        getattr(self, f"do_{action}")(thread, a, b, flag)

    def do_compute(self, thread: Thread, a: int, b: int, flag: int) -> None:
        self.clock[thread] += a

    def do_launch(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        end = start + a // (1 if flag & 64 else 10)
        correlation = self.call(thread, start, end, LAUNCHES[flag % len(LAUNCHES)])
        known = None if flag % 29 == 28 else correlation
        begin = self.starts(thread, flag, start, end, b // 10)
        self.work(
            "kernels",
            thread,
            flag,
            begin,
            a if flag & 128 else b,
            known,
            name=self.code(KERNELS[flag % len(KERNELS)]),
        )
        self.clock[thread] = end

    def do_copy(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        name = COPIES[flag % len(COPIES)]
        begin = self.starts(thread, flag, start, start + a // 10, b // 10)
        blocking = "Async" not in name or flag & 32
        end = max(start + a // 10, begin + b) if blocking else start + a // 10
        correlation = self.call(thread, start, end, name)
        kind, source, target = (
            (1, flag // 4 % 2, 2),
            (2, 2, flag // 4 % 2),
            (1, flag // 4 % 2, 2),
            (8, 2, 2),
        )[flag // 2 % 4]
        size = SIZES[(flag // 16 + flag) % len(SIZES)]
        self.work(
            "memcpys", thread, flag, begin, b, correlation,
            bytes=size, copy_kind=kind, source_kind=source, target_kind=target, graph_node=None,
        )  # fmt: skip
        self.clock[thread] = end

    def do_memset(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        correlation = self.call(thread, start, start + a // 10, "cudaMemsetAsync_v3020")
        begin = self.starts(thread, flag, start, start + a // 10, b // 10)
        self.work("memsets", thread, flag, begin, b, correlation, bytes=4096, memory_kind=2, graph_node=None)
        self.clock[thread] = start + a // 10

    def do_graph(self, thread: Thread, a: int, b: int, flag: int) -> None:
        """One graph launch: recorded as a whole, node by node, or (in one of eight) not at all."""
        start = self.clock[thread]
        correlation = self.call(thread, start, start + a // 10, "cudaGraphLaunch_v10000")
        begin = self.starts(thread, flag, start, start + a // 10, b // 10)
        if flag // 2 == 127:
            pass
        elif flag & 1:
            self.work("graphs", thread, flag, begin, b, correlation, graph=1, graph_exec=2)
        else:
            name = self.code(KERNELS[flag % len(KERNELS)])
            self.work("kernels", thread, flag, begin, b, correlation, name=name, graph_node=1 << 32)
            self.work(
                "kernels",
                thread,
                flag + 2,
                begin + a // 5,
                b,
                correlation,
                name=name,
                graph_node=(1 << 32) + 1,
            )
        self.clock[thread] = start + a // 10

    def do_migrate(self, thread: Thread, a: int, b: int, flag: int) -> None:
        row = {
            "copy_kind": 11 + flag % 3,
            "bytes": 65_536,
            "source_kind": 4,
            "target_kind": 2,
            "graph_node": None,
        }
        self.work("memcpys", thread, flag, self.clock[thread] + a, b, None, **row)

    def do_orphan(self, thread: Thread, a: int, b: int, flag: int) -> None:
        self.work("kernels", thread, flag, self.clock[thread] + a, b, None, name=self.code("gemm"))

    def do_call(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        self.call(thread, start, start + a, CALLS[flag % len(CALLS)])
        self.clock[thread] = start + a

    def do_os(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        self.host("osrt", thread, start, start + a, OS_CALLS[flag % len(OS_CALLS)])
        self.clock[thread] = start + a + (b if flag & 64 else 0)

    def do_wait(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        self.call(thread, start, start + a, WAITS[flag % len(WAITS)])
        self.clock[thread] = start + a

    def do_wait_for_gpu(self, thread: Thread, a: int, b: int, flag: int) -> None:
        """A wait that ends shortly after the last work of a stream."""
        device, context, stream = PLACES[flag % len(PLACES)]
        start = self.clock[thread]
        tail = self.tails.get((thread[0], device, context, stream), start)
        end = max(start, tail) + (a // 100 if flag & 16 else 0)
        self.call(thread, start, end, WAITS[flag % len(WAITS)])
        self.clock[thread] = end

    def do_open(self, thread: Thread, a: int, b: int, flag: int) -> None:
        self.open_calls[thread].append((self.clock[thread], CALLS[flag % len(CALLS)]))
        self.clock[thread] += a // 10 if flag & 16 else 0

    def do_close(self, thread: Thread, a: int, b: int, flag: int) -> None:
        if self.open_calls[thread]:
            start, name = self.open_calls[thread].pop()
            # no two calls are the same interval: which would be the outer one?
            end = self.clock[thread] + max(1, a // 10 if flag & 16 else 0)
            self.call(thread, start, end, name)
            self.clock[thread] = end

    def do_range_begin(self, thread: Thread, a: int, b: int, flag: int) -> None:
        self.open_ranges[thread].append((self.clock[thread], RANGES[flag % len(RANGES)]))
        self.clock[thread] += a if flag & 16 else 0

    def do_range_end(self, thread: Thread, a: int, b: int, flag: int) -> None:
        if self.open_ranges[thread]:
            start, name = self.open_ranges[thread].pop()
            self.host(
                "nvtx",
                thread,
                start,
                self.clock[thread],
                name,
                domain=None,
                kind=59,
                open=False,
                payload=None,
            )

    def do_mpi(self, thread: Thread, a: int, b: int, flag: int) -> None:
        start = self.clock[thread]
        self.host("host_communication", thread, start, start + a, MPI[flag % len(MPI)])
        self.clock[thread] = start + (a if flag & 16 else 0)

    def do_overhead(self, thread: Thread, a: int, b: int, flag: int) -> None:
        kind, name = OVERHEADS[flag % len(OVERHEADS)]
        start = self.clock[thread] - (b if flag & 16 else 0)
        self.host("overheads", thread, start, start + a, name, kind=kind)

    def do_late(self, thread: Thread, a: int, b: int, flag: int) -> None:
        """The thread goes on after all work of its process has ended."""
        ends = [end for key, end in self.tails.items() if key[0] == thread[0]]
        self.clock[thread] = max([self.clock[thread], *ends]) + a

    def do_meet(self, thread: Thread, a: int, b: int, flag: int) -> None:
        latest = max(self.clock.values())
        self.clock = {t: latest if t[0] == thread[0] or flag & 16 else at for t, at in self.clock.items()}

    def do_step(self, thread: Thread, a: int, b: int, flag: int) -> None:
        self.marks[thread[0]].append(self.clock[thread])

    # --- the result

    def finish(self) -> None:
        for thread in THREADS:
            while self.open_calls[thread]:
                self.do_close(thread, 0, 0, 0)
            while self.open_ranges[thread]:
                self.do_range_end(thread, 0, 0, 0)

    def steps(self, gaps_between: bool) -> Steps:
        """Steps from mark to mark; with `gaps_between` they end a little before the next one."""
        found = []
        for pid, marks in self.marks.items():
            at = sorted(set(marks))
            for index, (start, end) in enumerate(pairwise(at)):
                found.append((pid, index, start, end - (end - start) // 4 if gaps_between else end))
        return found

    def trace(self, seed: int, missing: set[str], one_gpu: bool) -> Trace:
        mixed = random.Random(seed)  # noqa: S311 (no secret)
        frames = {}
        for table, schema in FRAMES.items():
            rows = [] if table in missing else list(self.rows[table])
            mixed.shuffle(rows)
            frames[table] = pl.DataFrame([{c: row.get(c) for c in schema} for row in rows], schema=schema)
        frames["strings"] = pl.DataFrame(
            {"code": list(self.texts.values()), "text": list(self.texts)}, schema=FRAMES["strings"]
        )
        if one_gpu:  # device 0 of both processes
            shared = [
                {"pid": pid, "cuda_ordinal": 0, "gpu_id": 5, "uuid": None, "sm_count": 132}
                for pid in (10, 20)
            ]
            frames["cuda_devices"] = pl.DataFrame(shared, schema=FRAMES["cuda_devices"])
        recorded = frozenset(name for name in FRAMES if name not in missing)
        return Trace(
            CaptureInfo("t.sqlite", "sqlite"), recorded, Counts(), dict.fromkeys(DROP_REASONS, 0), **frames
        )
