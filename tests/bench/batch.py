"""The batch on a thousand traces: killed midway and run again; and what a second process is worth.

python -m tests.bench.batch big [TRACES]      1000 by default, 5 % of them bad, 2 % copies, 10 jobs of 2 ranks
python -m tests.bench.batch speed [TRACES]    60 by default: --jobs 1 against --jobs 2, after one run to warm up
"""

import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.batch import folders
from tests.batch.checks import check
from tests.batch.commands import batch, results, start, wait_for

_SAMPLES: Final = Path(__file__).parents[2] / "sample_traces"
_PEAK: Final = re.compile(r"the largest process used (.+)")


def big(folder: Path, traces: int) -> dict[str, object]:
    """Makes the folder, kills the batch with SIGKILL at two fifths, runs it again, and checks all of the output."""
    made = folders.make(folder / "traces", traces, bad=traces // 20, copies=traces // 50, jobs=10)
    out = folder / "out"
    began = time.monotonic()
    process = start(made.folder, "-o", out, "-q")
    wait_for(lambda: len(results(out)) >= made.jobs * 2 // 5, process, limit_s=3_600)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    first = results(out)
    killed_s = time.monotonic() - began
    began = time.monotonic()
    code, said, err = batch(made.folder, "-o", out, "-v")
    assert code == 4, err
    assert f"{made.jobs - len(first)} new" in said, said
    assert {name: when for name, when in results(out).items() if name in first} == first
    check(out, made)
    return {
        "files": traces,
        "jobs": made.jobs,
        "bad": len(made.bad),
        "before_the_kill": len(first),
        "until_the_kill_s": round(killed_s, 1),
        "rest_s": round(time.monotonic() - began, 1),
        "largest_worker": _peak(err),
        "pool_process_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000,
        "index_bytes": (out / "index.html").stat().st_size,
        "load": os.getloadavg(),
    }


def speed(folder: Path, traces: int) -> dict[str, object]:
    """Wall time of the same traces with one process and with two, three times in turn, the best of each."""
    (folder / "traces").mkdir()
    samples = sorted(_SAMPLES.glob("[dhil]*.sqlite"))
    for number in range(traces):
        sample = samples[number % len(samples)]
        folders.variant(sample, folder / f"traces/{sample.stem}_{number}.sqlite", number)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for jobs, taken in times.items():
            out = folder / "out"
            began = time.monotonic()
            code, _, err = batch(folder / "traces", "-o", out, "--jobs", str(jobs))
            taken.append(time.monotonic() - began)
            assert code == 0, err
            shutil.rmtree(out)
    one, two = min(times[1]), min(times[2])
    return {
        "traces": traces,
        "jobs_1_s": round(one, 1),
        "jobs_2_s": round(two, 1),
        "ratio": round(one / two, 2),
        "load": os.getloadavg(),
    }


def _peak(err: str) -> str | None:
    found = _PEAK.search(err)
    return found[1] if found else None


def main() -> None:
    """Command line."""
    runs = {"big": (big, 1000), "speed": (speed, 60)}
    run, count = runs[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder), int(sys.argv[2]) if len(sys.argv) > 2 else count)
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
