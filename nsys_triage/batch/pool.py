"""A pool of processes with a memory and time budget for every input; one that is killed costs its own input alone.

A process works on one input at a time. It is used again for the next one, since starting it takes a second of CPU and
an analysis of a small trace less, but given up after some inputs or when it has kept memory; the budgets hold for each
input. Not `concurrent.futures`: there one killed process breaks the pool.
"""

import json
import logging
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from nsys_triage import units
from nsys_triage.batch import machine
from nsys_triage.batch.messages import Failed, FailureKind, Outcome, Task, outcome_of, packed
from nsys_triage.batch.worker import HEADER, write_all

_log = logging.getLogger(__name__)
_TICK_S: Final = 0.05  # how often budgets are looked at
_MOST_INPUTS: Final = 64  # of one process
_KEPT_SHARE: Final = 0.5  # of its budget: more memory than that when idle, and it is given up
_CHUNK_BYTES: Final = 1 << 20
_START: Final = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1));"
    " runpy.run_module('nsys_triage.batch.worker', run_name='__main__', alter_sys=False)"
)


class Executor(Protocol):
    """What runs tasks somewhere."""

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Outcome]]:
        """The outcomes as they come, with the position of their task."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one input may use."""

    memory_bytes: int
    timeout_s: float | None = None


@dataclass(slots=True)
class _Process:
    """One process of the pool."""

    popen: subprocess.Popen[bytes]
    inputs: int = 0
    task: int | None = None  # position of what it works on
    began: float = 0.0
    most_bytes: int = 0
    answer: bytearray = field(default_factory=bytearray)

    @property
    def descriptor(self) -> int:
        """Where its answers come from."""
        if self.popen.stdout is None:
            raise ValueError("stdout is not a pipe")
        return self.popen.stdout.fileno()


class LocalPool:
    """Processes on this machine. Use it as a context; when that ends, no process is left."""

    def __init__(self, jobs: int, budget: Budget, *, loud: bool = False) -> None:
        """`loud` lets the processes log on stderr."""
        self.jobs = jobs
        self.budget = budget
        self.most_bytes = 0  # memory that any process has used
        self._loud = loud
        self._processes: list[_Process] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> "LocalPool":
        return self

    def __exit__(self, *_error: object) -> None:
        for process in list(self._processes):
            self._end(process, kill=process.task is not None)
        self._selector.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Outcome]]:
        """The outcomes as they come, with the position of their task. Whatever happens to a process is an outcome."""
        data = [packed(task) for task in tasks]
        waiting = deque(range(len(data)))
        tries = dict.fromkeys(waiting, 0)
        try:
            while waiting or self._busy():
                while waiting and (process := self._idle()) is not None:
                    number = waiting.popleft()
                    self._give(process, number, data[number])
                for process, number, ended in self._answers():
                    outcome = self._outcome(process, ended)
                    if isinstance(outcome, Failed) and self._once_more(outcome, process, tries[number]):
                        tries[number] += 1
                        waiting.appendleft(number)
                        continue
                    yield number, outcome
        finally:
            for process in self._busy():
                self._end(process, kill=True)

    # --- processes ----------------------------------------------------------------------------------------------

    def _busy(self) -> list[_Process]:
        return [process for process in self._processes if process.task is not None]

    def _idle(self) -> _Process | None:
        """A process without work, started where there may be one more; None where all are busy."""
        for process in self._processes:
            if process.task is None:
                return process
        return self._started() if len(self._processes) < self.jobs else None

    def _started(self) -> _Process:
        environment = {**os.environ, "POLARS_MAX_THREADS": str(max(1, machine.cores() // self.jobs))}
        popen = subprocess.Popen(  # noqa: S603 - this interpreter
            [
                sys.executable,
                "-P",
                "-c",
                _START,
                json.dumps([path for path in sys.path if isinstance(path, str)]),
                str(os.getpid()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if self._loud else subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C on the terminal is for the pool alone, which then ends it
        )
        process = _Process(popen)
        os.set_blocking(process.descriptor, False)
        self._selector.register(process.descriptor, selectors.EVENT_READ, process)
        self._processes.append(process)
        return process

    def _give(self, process: _Process, number: int, data: bytes) -> None:
        process.task, process.began, process.most_bytes = number, time.monotonic(), 0
        process.inputs += 1
        process.answer.clear()
        if process.popen.stdin is None:
            raise ValueError("stdin is not a pipe")
        # a process that has died meanwhile is seen at its answers, as one that dies at work
        with suppress(BrokenPipeError):
            write_all(process.popen.stdin.fileno(), HEADER.pack(len(data)) + data)

    def _answers(self) -> Iterator[tuple[_Process, int, Failed | None]]:
        """Processes done with their input, and which it was: with an answer (None), or to be ended, and why."""
        for key, _ in self._selector.select(_TICK_S):
            process: _Process = key.data
            if process.task is None:
                self._end(process, kill=True)  # it died without work
            elif self._whole(process):
                yield process, process.task, None
            elif process.popen.poll() is not None:
                yield process, process.task, self._death(process)
        for process in self._processes.copy():
            over = self._over(process)
            if process.task is not None and over:
                yield process, process.task, over

    def _whole(self, process: _Process) -> bool:
        """Takes what there is to read; whether the answer is whole. What a dead process left is not waited for."""
        while True:
            try:
                part = os.read(process.descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                break
            if not part:
                process.popen.wait()
                break
            process.answer += part
        size = HEADER.size
        return (
            len(process.answer) >= size
            and len(process.answer) - size == HEADER.unpack(process.answer[:size])[0]
        )

    def _over(self, process: _Process) -> Failed | None:
        """What a busy process has used too much of."""
        used = machine.resident_bytes(process.popen.pid)
        process.most_bytes = max(process.most_bytes, used)
        self.most_bytes = max(self.most_bytes, used)
        limit_s = self.budget.timeout_s
        if used > self.budget.memory_bytes:
            return Failed(
                "memory",
                f"it needs more than {units.size(self.budget.memory_bytes)} of memory: run again with a larger --memory"
                " (and fewer --jobs), or record a shorter time.",
            )
        if limit_s is not None and time.monotonic() - process.began > limit_s:
            return Failed(
                "timeout",
                f"it was not done within {units.time(round(limit_s * 1e9))}: run again with a larger --timeout.",
            )
        return None

    def _death(self, process: _Process) -> Failed:
        code = process.popen.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return Failed(
            "crashed",
            f"its process was killed or crashed ({how}) twice: if memory ran out on this machine, run again with"
            " fewer --jobs.",
        )

    def _outcome(self, process: _Process, ended: Failed | None) -> Outcome:
        """The outcome; the process is free again, or gone."""
        if ended is None:
            outcome: Outcome = outcome_of(bytes(process.answer[HEADER.size :]))
            kept = machine.resident_bytes(process.popen.pid)
            self.most_bytes = max(self.most_bytes, kept)
            process.task = None
            if process.inputs >= _MOST_INPUTS or kept > _KEPT_SHARE * self.budget.memory_bytes:
                self._end(process, kill=False)
            return outcome
        self._end(process, kill=True)
        return ended

    @staticmethod
    def _once_more(failed: Failed, process: _Process, tries: int) -> bool:
        """Whether an input gets a second try: its process was killed, or had kept memory of earlier inputs."""
        kinds: dict[FailureKind, bool] = {"crashed": True, "memory": process.inputs > 1}
        return tries == 0 and kinds.get(failed.kind, False)

    def _end(self, process: _Process, *, kill: bool) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(process.descriptor)
        if process in self._processes:
            self._processes.remove(process)
        if kill:
            machine.kill_tree(process.popen.pid)
        process.task = None
        for pipe in (process.popen.stdin, process.popen.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.popen.wait()
