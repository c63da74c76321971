"""Writes a large export on the true schema: python -m tests.bench.make_trace OUT.sqlite --kernels 1000000

Every kernel has its launch call; copies, waits, NVTX ranges and OS calls come in the proportions that the
options give. The events are plausible (launches before their work, streams in order, steps).
"""

import argparse
import random
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.builders import torch_kernels as torch
from tests.builders.schema import NEWEST, VERSIONS, columns, create_table
from tests.builders.trace import TraceBuilder

Row = tuple[int | str | None, ...]

_STEP: Final = 300  # kernels
_STEPS_PER_INSERT: Final = 64
_PID: Final = 40_000
_COMPUTE_STREAM, _COPY_STREAM, _COMMUNICATION_STREAM = 7, 14, 20
_NOT_APPLICABLE: Final = 4_294_967_295

_KERNEL_NAMES: Final = tuple(
    kernel.name
    for kernel in (
        torch.GEMM_AMPERE,
        torch.ADD,
        torch.LAYER_NORM,
        torch.GELU,
        torch.ATTENTION,
        torch.SOFTMAX,
        torch.MEAN,
        torch.OPTIMIZER,
    )
)
_ALL_REDUCE: Final = torch.ALL_REDUCE.name
_LAUNCH, _COPY, _WAIT = "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020"
_OS_CALL: Final = "pthread_cond_signal"
_OPERATIONS: Final = (
    "aten::linear",
    "aten::add",
    "aten::layer_norm",
    "aten::gelu",
    "aten::softmax",
    "aten::copy_",
)

# columns that the rows fill; all others are as the exporter leaves them
_FILLED: Final = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start end deviceId streamId correlationId globalPid demangledName shortName mangledName gridX blockX"
        " registersPerThread gridId"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start end deviceId streamId correlationId globalPid bytes copyKind srcKind dstKind"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start end deviceId streamId correlationId globalPid eventId",
    "NVTX_EVENTS": "start end globalTid text",
    "OSRT_API": "start end globalTid nameId",
}
_SAME: Final[dict[str, int | str]] = {
    "contextId": 1,
    "greenContextId": 0,
    "launchType": 1,
    "cacheConfig": 1,
    "gridY": 1,
    "gridZ": 1,
    "blockY": 1,
    "blockZ": 1,
    "localMemoryTotal": 115_539_968,
    "sharedMemoryExecuted": 32_768,
    "copyCount": 1,
    "syncType": 3,
    "domainId": 0,
    "tensorSizeMinusOneElements": "'[]'",
}
_CLASS: Final = {"OSRT_API": 27}  # eventClass, 0 elsewhere


@dataclass(frozen=True, slots=True)
class Shape:
    """Nanoseconds: the host's time from launch to launch, and the lengths that kernels have."""

    dispatch: int
    shortest: int
    longest: int


SHAPES: Final = {
    "training": Shape(dispatch=6_000, shortest=4_000, longest=90_000),
    "launch-bound": Shape(dispatch=8_000, shortest=1_500, longest=4_500),
}


@dataclass(slots=True)
class Plan:
    """What to make; the shares are counts per kernel."""

    kernels: int
    shape: Shape
    copies: float = 0.05
    ranges: float = 0.2
    os_calls: float = 0.1
    processes: int = 1
    version: str = NEWEST
    seed: int = 1


@dataclass(slots=True)
class Process:
    """One process on its own GPU, as far as its steps have come."""

    number: int
    plan: Plan
    names: dict[str, int]
    random: random.Random
    host: int = 1_000_000_000
    gpu: int = 0
    correlation: int = 0
    step: int = 0
    rows: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in _FILLED})

    @property
    def pid(self) -> int:
        return _PID + self.number

    @property
    def global_pid(self) -> int:
        return 1 << 48 | self.pid << 24

    @property
    def global_tid(self) -> int:
        return self.global_pid | self.pid

    def call(self, name: str, start: int, end: int) -> int:
        """An API call; its correlation id."""
        self.correlation += 1
        row = (start, end, self.global_tid, self.correlation, self.names[name])
        self.rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(row)
        return self.correlation

    def add_step(self, kernels: int) -> None:
        """One step: a copy of its input, kernels, an all-reduce every 100, a wait."""
        begin = self.host
        self.step += 1
        for index in range(kernels):
            if due(index, self.plan.copies):
                self.copy()
            if due(index, self.plan.os_calls):
                self.os_call()
            self.kernel(index)
            if due(index, self.plan.ranges):
                text = f"{_OPERATIONS[index % len(_OPERATIONS)]}, seq = {self.step * _STEP + index}"
                self.rows["NVTX_EVENTS"].append((self.host - 5_500, self.host + 300, self.global_tid, text))
        self.wait()
        self.rows["NVTX_EVENTS"].append((begin, self.host, self.global_tid, f"step {self.step}"))

    def kernel(self, index: int) -> None:
        """A kernel, launched when the host gets there."""
        shape, draw = self.plan.shape, self.random.random()
        begin = self.host + shape.dispatch
        self.host = begin + 4_000 + int(1_000 * draw)
        correlation = self.call(_LAUNCH, begin, self.host)
        start = max(self.host + 2_500, self.gpu + 900)
        kind = index % len(_KERNEL_NAMES)
        end = start + shape.shortest + int((shape.longest - shape.shortest) * draw * draw)
        name, stream = self.names[_KERNEL_NAMES[kind]], _COMPUTE_STREAM
        if index % 100 == 99:
            name, stream = self.names[_ALL_REDUCE], _COMMUNICATION_STREAM
        self.gpu = end
        grid, block = 64 << kind, 128 if kind % 2 else 256
        place = (self.number, stream, correlation, self.global_pid)
        count = len(self.rows["CUPTI_ACTIVITY_KIND_KERNEL"])
        row = (start, end, *place, name, name, name, grid, block, 32 + 8 * kind, count)
        self.rows["CUPTI_ACTIVITY_KIND_KERNEL"].append(row)

    def copy(self) -> None:
        """A copy to the device on its own stream, from pinned memory."""
        begin = self.host + 2_000
        self.host = begin + 3_500
        correlation = self.call(_COPY, begin, self.host)
        size = 1 << self.random.randrange(8, 24)
        start = self.host + 2_000
        place = (self.number, _COPY_STREAM, correlation, self.global_pid)
        self.rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append(
            (start, start + 900 + size // 24, *place, size, 1, 1, 2)
        )

    def os_call(self) -> None:
        """A short OS call of the launching thread."""
        name = self.names[_OS_CALL]
        self.rows["OSRT_API"].append((self.host + 200, self.host + 1_900, self.global_tid, name))
        self.host += 2_000

    def wait(self) -> None:
        """Waits until the GPU is done."""
        begin = self.host + 1_000
        self.host = max(begin + 2_000, self.gpu + 2_500)
        correlation = self.call(_WAIT, begin, self.host)
        place = (self.number, _COMPUTE_STREAM, correlation, self.global_pid)
        row = (begin + 500, self.host - 700, *place, _NOT_APPLICABLE)
        self.rows["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"].append(row)


def due(index: int, share: float) -> bool:
    """Whether the event that comes `share` times per kernel comes with this one."""
    return int((index + 1) * share) > int(index * share)


def make_trace(path: Path, plan: Plan) -> None:
    """Writes the export, replacing what is there."""
    _frame(plan).write(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = OFF")
        names = {str(text): int(number) for number, text in db.execute("SELECT id, value FROM StringIds")}
        for table in _FILLED:
            db.execute(f'DROP TABLE IF EXISTS "{table}"')
            db.execute(create_table(table, columns(table, plan.version)))
        for rows in _chunks(plan, names):
            for table, found in rows.items():
                db.executemany(_insert(table, plan.version), found)
        db.commit()


def _frame(plan: Plan) -> TraceBuilder:
    """The export without its large tables: one event of each kind and process, from which the builder makes
    the tables of names, processes, contexts and streams."""
    frame = TraceBuilder(plan.version, gpus=("A100",) * plan.processes, shuffle=None)
    for number in range(plan.processes):
        process = frame.on(pid=_PID + number, device=number)
        for name in _KERNEL_NAMES:
            process.kernel(0, 1, name, stream=_COMPUTE_STREAM, launch=_LAUNCH)
        process.kernel(0, 1, _ALL_REDUCE, stream=_COMMUNICATION_STREAM)
        process.copy(0, 1, stream=_COPY_STREAM, launch=_COPY).wait(_WAIT, 0, 1).os_call(_OS_CALL, 0, 1)
    return frame.duration(_length_us(plan)).empty(*_FILLED)


def _length_us(plan: Plan) -> float:
    """An upper bound of the capture's length."""
    return 1e6 + plan.kernels / plan.processes * (plan.shape.longest + 4 * plan.shape.dispatch) / 1000


def _chunks(plan: Plan, names: dict[str, int]) -> Iterator[dict[str, list[Row]]]:
    """The rows of some steps of one process at a time, shuffled, since new exporters do not order them."""
    source = random.Random(plan.seed)  # noqa: S311 lengths and order, no secret
    for number in range(plan.processes):
        process = Process(number, plan, names, source)
        left = plan.kernels // plan.processes
        while left > 0:
            process.rows = {table: [] for table in _FILLED}
            for _ in range(_STEPS_PER_INSERT):
                if left > 0:
                    process.add_step(min(_STEP, left))
                    left -= _STEP
            for found in process.rows.values():
                source.shuffle(found)
            yield process.rows


def _insert(table: str, version: str) -> str:
    """The statement that inserts rows of `_FILLED`, the other columns with their usual values."""
    filled = _FILLED[table].split()
    values: list[str] = []
    for column in columns(table, version):
        if column.name in filled:
            values.append(f"?{filled.index(column.name) + 1}")
        elif column.name in _SAME:
            values.append(str(_SAME[column.name]))
        elif column.name == "eventClass":
            values.append(str(_CLASS.get(table, 0)))
        elif column.name == "eventType":
            values.append("59")
        else:
            values.append("0" if column.not_null else "NULL")
    marks = ", ".join(values)
    return f'INSERT INTO "{table}" VALUES ({marks})'  # noqa: S608


def parse(arguments: Sequence[str] | None = None) -> tuple[Path, Plan]:
    """The output and the plan of a command line."""
    parser = argparse.ArgumentParser(prog="make_trace", description="Write a large export.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--shape", choices=SHAPES, default="training")
    parser.add_argument("--copies", type=float, default=0.05, help="copies per kernel")
    parser.add_argument("--ranges", type=float, default=0.2, help="NVTX ranges per kernel")
    parser.add_argument("--os-calls", type=float, default=0.1, help="OS runtime calls per kernel")
    parser.add_argument("--processes", type=int, default=1, help="each with a GPU of its own")
    parser.add_argument("--version", choices=VERSIONS, default=NEWEST, help="exporter")
    parser.add_argument("--seed", type=int, default=1)
    found = vars(parser.parse_args(arguments))
    out = Path(found.pop("out"))
    return out, Plan(**(found | {"shape": SHAPES[found["shape"]]}))


if __name__ == "__main__":
    target, wanted = parse()
    started = time.perf_counter()
    make_trace(target, wanted)
    took = time.perf_counter() - started
    sys.stdout.write(f"{target}: {target.stat().st_size / 1e6:.0f} MB in {took:.1f} s\n")
