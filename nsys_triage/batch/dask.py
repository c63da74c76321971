"""The same tasks on a Dask cluster that is there already, whose workers have this package and see the same files."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from nsys_triage.batch.messages import Failed, Outcome, Task, outcome_of, packed
from nsys_triage.batch.task import run_packed
from nsys_triage.errors import UsageError
from nsys_triage.ingest.files import base_name

_CONNECT_S: Final = 30
_log = logging.getLogger(__name__)


class DaskPool:
    """A cluster as an executor. Budgets are the cluster's own; tasks of a worker that dies are done again by others."""

    def __init__(self, address: str | None, scheduler_file: Path | None) -> None:
        """Raises `UsageError` where Dask is not installed or no scheduler answers."""
        try:
            from distributed import Client, as_completed
        except ImportError as error:
            raise UsageError(
                "--dask and --scheduler-file need Dask: pip install 'nsys-triage[dask]'."
            ) from error
        self._as_completed: Any = as_completed
        where: dict[str, Any] = {"address": address} if address else {"scheduler_file": str(scheduler_file)}
        if scheduler_file is not None and not scheduler_file.is_file():
            raise UsageError(
                f"--scheduler-file {base_name(scheduler_file)} does not exist: start the scheduler with it first."
            )
        try:
            connect: Any = Client
            self._client: Any = connect(**where, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UsageError(
                f"no Dask scheduler answers ({type(error).__name__}): check the address, and that it runs."
            ) from error

    def __enter__(self) -> "DaskPool":
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Outcome]]:
        """The outcomes as they come, with the position of their task; results leave the cluster when they are here."""
        futures = {
            self._client.submit(run_packed, packed(task), pure=False, retries=1): number
            for number, task in enumerate(tasks)
        }
        if not futures:
            return
        try:
            coming = self._as_completed(
                list(futures), loop=self._client.loop, with_results=True, raise_errors=False
            )
            for future, data in coming:
                number = futures.pop(future)
                yield number, self._outcome(future, data)
                future.release()
        finally:
            if futures:
                self._client.cancel(list(futures), force=True)

    @staticmethod
    def _outcome(future: Any, data: Any) -> Outcome:
        if isinstance(data, bytes):
            return outcome_of(data)
        error = future.exception() if future.status == "error" else None
        _log.info("a task failed on the cluster: %s", type(error).__name__)
        if type(error).__name__ == "KilledWorker":
            return Failed(
                "crashed",
                "the workers that tried it died: give the workers more memory, and run the same command again.",
            )
        how = type(error).__name__ if error else future.status
        return Failed(
            "crashed",
            f"the cluster did not finish it ({how}): check that its workers have the same nsys-triage, and run again.",
        )
