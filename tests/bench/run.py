"""Compares the tool with the floor: python -m tests.bench.run [--kernels N] [--runs N] [TRACE.sqlite ...]

Each round runs the floor and the tool one after the other, so that both see the same machine; medians are
printed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.make_trace import SHAPES, Plan, make_trace

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command."""

    seconds: float
    peak_bytes: int  # resident set of the process itself; its children are not in it
    output: bytes


def run(command: Sequence[str]) -> Run:
    """Runs the command; CalledProcessError where it fails."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env=environment)
        # per child, where RUSAGE_CHILDREN holds the maximum over all children so far
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        output.seek(0)
        unit = 1 if sys.platform == "darwin" else 1024
        return Run(seconds, usage.ru_maxrss * unit, output.read())


def report_command(trace: Path, folder: Path) -> list[str]:
    """The tool's command line for a full report."""
    report = ["report", str(trace), "-o", str(folder / "r.html"), "--json", str(folder / "r.json"), "--force"]
    return [sys.executable, "-m", "nsys_triage", *report, "--quiet"]


def compare(trace: Path, runs: int) -> str:
    """One line of the table for the trace."""
    floors, reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            measured = run([sys.executable, "-m", "tests.bench.floor", str(trace)])
            floors.append(sum(json.loads(measured.output).values()))
            reports.append(run(report_command(trace, Path(folder))))
        html_bytes = (Path(folder) / "r.html").stat().st_size
    floor = statistics.median(floors)
    wall = statistics.median(report.seconds for report in reports)
    peak = statistics.median(report.peak_bytes for report in reports)
    return (
        f"{trace.name:32} {trace.stat().st_size / 1e6:9.0f} {floor:8.2f} {wall:8.2f} {wall / floor:7.2f}"
        f" {peak / 1e6:9.0f} {html_bytes / 1e3:9.0f}"
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser(prog="run", description="Compare the tool with the floor.")
    parser.add_argument("traces", nargs="*", type=Path, help="exports; without any, one is made")
    parser.add_argument("--kernels", type=int, nargs="+", default=[1_000_000], help="of the traces to make")
    parser.add_argument("--shape", choices=SHAPES, default="training")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args(arguments)


def main() -> None:
    """Prints the table."""
    options = parse()
    titles = ("trace", "MB", "floor s", "tool s", "ratio", "peak MB", "HTML kB")
    widths = (-32, 9, 8, 8, 7, 9, 9)
    heading = " ".join(f"{t:<{-w}}" if w < 0 else f"{t:>{w}}" for t, w in zip(titles, widths, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        traces = list(options.traces)
        for kernels in [] if traces else options.kernels:
            traces.append(Path(folder) / f"{options.shape}-{kernels}.sqlite")
            make_trace(traces[-1], Plan(kernels, SHAPES[options.shape], processes=options.processes))
        startup = [run([sys.executable, "-m", "nsys_triage", "--help"]).seconds for _ in range(options.runs)]
        sys.stdout.write(f"{heading}\n")
        for trace in traces:
            sys.stdout.write(f"{compare(trace, options.runs)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"--help: {statistics.median(startup):.2f} s\n")


if __name__ == "__main__":
    main()
