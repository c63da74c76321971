"""Options that several commands share, as decorators, and what they stand for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorated = Callable[..., Any]

PATH = click.Path(path_type=Path)


def _together(*options: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Several option decorators as one; help shows them in this order."""

    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


cache_dir_option = click.option(
    "--cache-dir",
    type=PATH,
    metavar="DIR",
    help="Folder for finished exports [default: NSYS_TRIAGE_CACHE, else the user's cache folder].",
)

nsys_option = click.option(
    "--nsys",
    type=PATH,
    metavar="PATH",
    help="The nsys to export with [default: NSYS_TRIAGE_NSYS, else PATH, else the usual install folders].",
)

export_options = _together(
    nsys_option,
    cache_dir_option,
    click.option("--keep-sqlite", type=PATH, metavar="FILE", help="Keep a copy of the SQLite export there."),
    click.option(
        "--export-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="End an export that takes longer [default: no limit].",
    ),
)
"""`nsys`, `cache_dir`, `keep_sqlite`, `export_timeout`."""

window_option = click.option(
    "--window",
    default="auto",
    show_default=True,
    metavar="auto|all|START:END|nvtx:NAME",
    help="Part of the capture to judge: its steady state, all of it, from START to END in seconds, or the "
    "time within NVTX ranges of that name.",
)

judging_options = _together(
    click.option(
        "--threshold",
        "thresholds",
        multiple=True,
        metavar="RULE.NAME=VALUE",
        help="Judge by another threshold, as host-sync.share=0.1; may be given again. `nsys-triage explain RULE` "
        "shows a rule's thresholds, their units and defaults.",
    ),
    click.option(
        "--fail-on",
        multiple=True,
        metavar="high|medium|low|RULE",
        help="End with exit code 1 where a finding is at least that severe, or that rule fired; may be given "
        "again. All outputs are written all the same.",
    ),
    click.option(
        "--config",
        type=PATH,
        metavar="FILE",
        help='TOML file with window = "...", fail_on = ["..."] and [thresholds.RULE] tables of NAME = VALUE; '
        "options win over it.",
    ),
)
"""`thresholds`, `fail_on`, `config`."""

force_option = click.option("--force", is_flag=True, help="Overwrite files that exist.")

verbosity_options = _together(
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Print only errors, what --fail-on stopped at, and outputs that go to stdout.",
    ),
    click.option("-v", "--verbose", count=True, help="Say what is done; -vv also shows tracebacks."),
)
"""`quiet`, `verbose`."""
