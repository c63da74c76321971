"""How time and memory grow with the ranks of a job: by hand, not a test.

One trace is made and copied for every rank with another RANK in its captured environment; every fiftieth kernel is a
collective. Prints wall time and peak memory of `nsys-triage report` on 8, 64 and 512 of them.
"""

import argparse
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

from tests.bench.make_trace import SHAPES, Plan, make_trace
from tests.bench.run import run

COLLECTIVE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
EVERY = 50


def make_rank(base: Path, folder: Path, rank: int, world: int) -> Path:
    """A copy of the base trace that says it is that rank."""
    path = folder / f"rank{rank}.sqlite"
    shutil.copyfile(base, path)
    with sqlite3.connect(path) as database:
        of_rank = (("RANK", rank), ("WORLD_SIZE", world))
        rows = [("PROCESS_0:ENVIRONMENT_VARIABLE", f'{name}="{value}"') for name, value in of_rank]
        database.executemany("INSERT INTO META_DATA_CAPTURE (name, value) VALUES (?, ?)", rows)
    database.close()
    return path


def add_collectives(path: Path) -> None:
    """Every fiftieth kernel becomes an all-reduce."""
    with sqlite3.connect(path) as database:
        (last,) = database.execute("SELECT max(id) FROM StringIds").fetchone()
        database.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (last + 1, COLLECTIVE))
        database.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = ? WHERE rowid % ? = 0", (last + 1, EVERY)
        )
    database.close()


def main() -> None:
    """Make the traces, run the reports, print a line per number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=50_000, help="kernels per rank")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ranks-") as temporary:
        folder = Path(temporary)
        base = folder / "base.sqlite"
        make_trace(base, Plan(options.kernels, SHAPES["training"]))
        add_collectives(base)
        sys.stdout.write("ranks        s   s/rank  peak MB\n")
        for count in options.ranks:
            traces = [make_rank(base, folder, rank, count) for rank in range(count)]
            report = ["report", *map(str, traces), "-o", str(folder / "job.html"), "--force", "--quiet"]
            done = run([sys.executable, "-m", "nsys_triage", *report])
            each, peak = done.seconds / count, done.peak_bytes >> 20
            sys.stdout.write(f"{count:>5} {done.seconds:>8.1f} {each:>8.3f} {peak:>8}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
