"""`nsys-triage batch`: many traces at once, on this machine or on a Dask cluster, into one folder."""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nsys_triage import units
from nsys_triage.cli.console import set_up_logging
from nsys_triage.cli.judging import Judging, judging
from nsys_triage.cli.options import (
    PATH,
    cache_dir_option,
    judging_options,
    nsys_option,
    verbosity_options,
    window_option,
)
from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.batch.collect import Collected
    from nsys_triage.batch.inputs import Found, Unreadable
    from nsys_triage.batch.pool import Executor
    from nsys_triage.batch.run import Ran, Request
    from nsys_triage.batch.store import Store

EXIT_GATE: Final = 1
EXIT_SOME_FAILED: Final = 4
EXIT_INTERRUPTED: Final = 130
_SIZES: Final = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}
_SHOWN: Final = 10  # failures and skipped files on the terminal
BatchProgress = Callable[[str, int, int], None]

EPILOG = """\b
Examples:
  nsys-triage batch traces/ -o triage
  nsys-triage batch traces/ 'more/**/*.nsys-rep' -o triage --jobs 8 --timeout 600
  nsys-triage batch traces/ -o triage --dry-run
  nsys-triage batch s3://bucket/traces -o triage --dask tcp://scheduler:8786

\b
Exit codes: 0 done; 1 --fail-on stopped it; 2 wrong usage; 4 done, and some
inputs failed; 130 Ctrl-C: what is done is kept.
"""


class _Bytes(click.ParamType[int]):
    """A size of memory: `4G`, `512M`, `2.5GiB`."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The size in bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", str(value).strip().upper())
        size = round(float(found[1]) * _SIZES[found[2]]) if found and found[2] in _SIZES else 0
        if size < 1:
            self.fail(f"{value!r} is no size of memory, as 4G or 512M.", param, ctx)
        return size


@click.command("batch", epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=PATH,
    metavar="OUT",
    help="Folder for reports, tables and the page on all jobs.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes at once [default: by cores and memory].",
)
@click.option(
    "--memory",
    type=_Bytes(),
    metavar="SIZE",
    help="Memory that one process may use, as 4G [default: an equal part of four fifths of what is available].",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time that one input may take [default: no limit].",
)
@click.option("--no-group", is_flag=True, help="Judge every trace by itself, also the ranks of one job.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be done; nothing is written, and reports are not exported.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Do part I (from 0) of N, for array jobs; tables are made by a run without it.",
)
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster with that scheduler.")
@click.option(
    "--scheduler-file",
    type=PATH,
    metavar="FILE",
    help="Run on the Dask cluster whose scheduler wrote that file.",
)
@window_option
@judging_options
@nsys_option
@cache_dir_option
@click.option("--force", is_flag=True, help="Do again what is done; use OUT although it holds other files.")
@verbosity_options
def command(
    inputs: tuple[str, ...],
    output: Path,
    jobs: int | None,
    memory: int | None,
    timeout: float | None,
    no_group: bool,
    dry_run: bool,
    shard: str | None,
    dask: str | None,
    scheduler_file: Path | None,
    window: str,
    thresholds: tuple[str, ...],
    fail_on: tuple[str, ...],
    config: Path | None,
    nsys: Path | None,
    cache_dir: Path | None,
    force: bool,
    quiet: bool,
    verbose: int,
) -> int:
    """Judge many traces: files, folders (with all below them), globs, URLs.

    OUT gets index.html on all jobs, tables in Parquet, and jobs/ with a report and a JSON result each. Ranks of one job
    in one folder become one job. Run again, it does only what is new, changed or failed.
    """
    set_up_logging(verbose)
    asked = judging(window, thresholds, fail_on, config)
    if dask and scheduler_file:
        raise UsageError("give --dask or --scheduler-file, not both.")
    part = _shard(shard)
    from nsys_triage.batch import inputs as arguments
    from nsys_triage.batch.store import Store

    # in the local pool the budget ends an export too
    export_s = timeout if dask or scheduler_file else None
    request = _request(asked, not no_group, force, part, nsys, cache_dir, export_s)
    files, unreadable = arguments.find(inputs, output)
    if not files and not unreadable:
        raise UsageError(
            "there is no report and no export (.nsys-rep, .qdrep, .sqlite) in what was given: check the paths."
        )
    store = Store(output)
    with _executor(jobs, memory, timeout, dask, scheduler_file, len(files), loud=verbose > 0) as executor:
        if dry_run:
            return _dry_run(files, unreadable, store, executor, request, quiet or verbose > 0)
        store.prepare(force=force)
        with store.locked("all" if part is None else f"{part[0]}-{part[1]}"):
            return _batch(
                files, unreadable, store, executor, request, asked, quiet, show=not quiet and not verbose
            )


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if not found or not int(found[1]) < int(found[2]):
        raise UsageError(f"--shard {text}: give I/N with I from 0 and below N, as 0/16.")
    return int(found[1]), int(found[2])


def _request(
    asked: Judging,
    group: bool,
    force: bool,
    shard: tuple[int, int] | None,
    nsys: Path | None,
    cache_dir: Path | None,
    timeout: float | None,
) -> "Request":
    from nsys_triage.batch.messages import Exporting, Options
    from nsys_triage.batch.run import Request
    from nsys_triage.ingest.cache import Cache

    thresholds = {f"{rule}.{name}": value for (rule, name), value in sorted(asked.thresholds.items())}
    exporting = Exporting(
        nsys=os.fsencode(nsys.absolute()) if nsys else None,
        cache_dir=os.fsencode(Cache.locate(cache_dir).folder),
        timeout_s=timeout,
    )
    # what is not UTF-8 becomes U+FFFD, as in the names that traces hold
    window = os.fsencode(asked.window).decode("utf-8", "replace")
    return Request(Options(window, thresholds), exporting, group, force, shard)


@contextmanager
def _executor(
    jobs: int | None,
    memory: int | None,
    timeout: float | None,
    dask: str | None,
    scheduler_file: Path | None,
    files: int,
    *,
    loud: bool,
) -> "Iterator[Executor]":
    if dask or scheduler_file:
        from nsys_triage.batch.dask import DaskPool

        with DaskPool(dask, scheduler_file) as cluster:
            yield cluster
        return
    from nsys_triage.batch import machine
    from nsys_triage.batch.pool import Budget, LocalPool

    count = max(1, min(jobs or machine.default_jobs(memory), files))
    with LocalPool(count, Budget(memory or machine.default_budget(count), timeout), loud=loud) as pool:
        logging.getLogger(__name__).info(
            "%d processes of %s each", count, units.size(pool.budget.memory_bytes)
        )
        yield pool
        logging.getLogger(__name__).info("the largest process used %s", units.size(pool.most_bytes))


def _dry_run(
    files: "list[Found]",
    unreadable: "list[Unreadable]",
    store: "Store",
    executor: "Executor",
    request: "Request",
    silent: bool,
) -> int:
    from nsys_triage.batch.run import look_at, plan_for, plan_lines

    with _progress(not silent) as progress:
        seen = look_at(files, store, executor, request, progress, export=False, keep=False)
    for line in plan_lines(plan_for(files, unreadable, seen, store, request)):
        click.echo(line)
    return 0


def _batch(
    files: "list[Found]", unreadable: "list[Unreadable]", store: "Store", executor: "Executor", request: "Request",
    asked: Judging, quiet: bool, *, show: bool,
) -> int:  # fmt: skip
    from nsys_triage.batch.run import look_at, plan_for, run_plan

    with _progress(show) as progress:
        try:
            seen = look_at(files, store, executor, request, progress, export=True)
            plan = plan_for(files, unreadable, seen, store, request)
            ran = run_plan(plan, store, executor, request, progress)
            if request.shard is not None:
                return _end_of_part(ran, request.shard, quiet)
            from nsys_triage.batch.collect import collect

            found = collect(ran, store, asked.gates, progress)
        except KeyboardInterrupt:
            click.echo(
                f"nsys-triage: interrupted: {units.plural(len(store.done()), 'result')} kept;"
                " run the same command again to go on.",
                err=True,
            )
            return EXIT_INTERRUPTED
    return _end(found, ran, store, quiet)


def _end_of_part(ran: "Ran", shard: tuple[int, int], quiet: bool) -> int:
    """Says how a part ended; returns the exit code."""
    from nsys_triage.batch.plan import named

    failed = [row for row in ran.failures if row.kind != "unfinished"]
    part = f"part {shard[0]} of {shard[1]}"
    later = "a run without --shard tries again, and lists in failures.parquet and index.html what fails"
    if not quiet:
        _say_failures("failed", [named(row) for row in failed], most=None)  # nothing else lists them yet
        if failed:
            click.echo(f"nsys-triage: {later}.", err=True)
        click.echo(f"{part}: {units.plural(ran.new, 'new result')}; {len(failed)} of its own inputs failed")
    elif failed:
        click.echo(f"nsys-triage: {part}: {units.plural(len(failed), 'input')} failed: {later}.", err=True)
    return EXIT_SOME_FAILED if failed else 0


def _end(found: "Collected", ran: "Ran", store: "Store", quiet: bool) -> int:
    """Says how it ended; returns the exit code."""
    from nsys_triage.batch.plan import named

    failed = [row for row in found.failures if row.kind != "unfinished"]
    unfinished = [row for row in found.failures if row.kind == "unfinished"]
    if not quiet:
        _say_failures("skipped", [named(row) for row in unfinished])
        _say_failures("failed", [named(row) for row in failed])
        cannot = f", {found.cannot_judge} of them without GPU work" if found.cannot_judge else ""
        click.echo(
            f"{units.plural(found.jobs, 'job')}{cannot}, {ran.new} new; {len(failed)} failed, {len(unfinished)} skipped"
        )
        if found.left_over:
            belong = "belongs" if found.left_over == 1 else "belong"
            files = units.plural(found.left_over, "file")
            click.echo(f"{files} of earlier runs in jobs/ {belong} to no job on the page")
        click.echo(f"Page {click.format_filename(store.folder / 'index.html')}")
    elif failed:
        click.echo(
            f"nsys-triage: {units.plural(len(failed), 'input')} failed:"
            " failures.parquet and index.html say which and why.",
            err=True,
        )
    if found.stopped:
        label, gates = found.stopped[0]
        more = f" and {len(found.stopped) - 1} more" if len(found.stopped) > 1 else ""
        click.echo(f"nsys-triage: failed on {', '.join(gates)} in {label}{more}.", err=True)
        return EXIT_GATE
    return EXIT_SOME_FAILED if failed else 0


def _say_failures(what: str, texts: list[str], most: int | None = _SHOWN) -> None:
    for text in texts[:most]:
        click.echo(f"nsys-triage: {what}: {text}", err=True)
    if most is not None and len(texts) > most:
        click.echo(
            f"nsys-triage: {what}: {len(texts) - most} more, in failures.parquet and index.html", err=True
        )


@contextmanager
def _progress(wanted: bool) -> Iterator[BatchProgress]:
    """Count, rate and remaining time on stderr, where that is a terminal and progress is wanted."""
    if not wanted or not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many are done per second."""

        def render(self, task: Task) -> Text:
            """The rate, once there is one."""
            speed = task.finished_speed or task.speed
            return Text(units.per_second(speed) if speed else "")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=120) as bar:
        task = bar.add_task("", total=None)
        now = ""

        def show(what: str, done: int, total: int) -> None:
            nonlocal now
            if what != now:  # a new stage has a rate of its own
                now = what
                bar.reset(task, total=total, description=what)
            bar.update(task, completed=done, total=total)

        yield show
