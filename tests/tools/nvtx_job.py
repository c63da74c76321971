"""A small job without a GPU: batches read from files, steps in NVTX ranges, a checkpoint now and then.

`record.py` runs it under nsys; it needs nvtx 0.2.10, which the nsys versions of Debian can record.
"""

import os
import tempfile
import threading
import time
from pathlib import Path

import nvtx  # type: ignore[import-untyped]

STEPS = 12
BATCH_BYTES = 1 << 20
CHECKPOINT_EVERY = 5


def load(folder: Path, step: int) -> bytes:
    """Reads the batch of one step."""
    with nvtx.annotate("load batch"):
        time.sleep(0.004)
        return (folder / f"batch{step % 3}").read_bytes()


def compute(batch: bytes) -> int:
    """Stands for the work on one batch."""
    with nvtx.annotate("compute"):
        return sum(batch[:200_000])


def checkpoint(folder: Path, batch: bytes) -> None:
    """Writes a file and waits until it is on the disk."""
    with nvtx.annotate("checkpoint"), (folder / "checkpoint").open("wb") as file:
        file.write(batch)
        file.flush()
        os.fsync(file.fileno())


def main() -> None:
    """Runs all steps, with a second thread that waits for the last."""
    done = threading.Event()
    watcher = threading.Thread(target=done.wait)
    watcher.start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for index in range(3):
            (folder / f"batch{index}").write_bytes(bytes([index + 1]) * BATCH_BYTES)
        for step in range(STEPS):
            with nvtx.annotate("step"):
                batch = load(folder, step)
                compute(batch)
                if step % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
                    checkpoint(folder, batch)
    done.set()
    watcher.join()


if __name__ == "__main__":
    main()
