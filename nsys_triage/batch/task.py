"""One piece of work: from a task to its outcome, in whatever process it runs. Errors are outcomes too."""

import logging
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from nsys_triage.analyze import analyze
from nsys_triage.batch import remote, unfinished
from nsys_triage.batch.messages import (
    Done,
    Exporting,
    Failed,
    FailureKind,
    JobTask,
    Looked,
    LookTask,
    Options,
    Outcome,
    packed,
    task_of,
)
from nsys_triage.errors import (
    CacheError,
    ExportError,
    InputError,
    NsysMissingError,
    TriageError,
    UsageError,
    WindowError,
)
from nsys_triage.ingest import ExportSettings, Source, open_source
from nsys_triage.ingest.cache import content_identity
from nsys_triage.ingest.files import base_name, why
from nsys_triage.ingest.identify import identify
from nsys_triage.metrics.rank_parts import RANK_VARIABLES, WORLD_VARIABLES, environment_number
from nsys_triage.metrics.window import parse_window
from nsys_triage.render.html import render_html
from nsys_triage.result.codec import encode
from nsys_triage.rules.run import RuleSettings
from nsys_triage.trace import metadata
from nsys_triage.trace.read import Database
from nsys_triage.trace.sqlite import load_trace

_log = logging.getLogger(__name__)
_KINDS: Final[tuple[tuple[type[TriageError], FailureKind], ...]] = (
    (WindowError, "window"),
    (ExportError, "export"),
    (NsysMissingError, "export"),
)


def run_packed(data: bytes) -> bytes:
    """`run` on a packed task, giving a packed outcome: what is sent to other processes and machines."""
    return packed(run(task_of(data)))


def run(task: LookTask | JobTask) -> Outcome:
    """The outcome of a task. An error of any kind is an outcome too."""
    try:
        return look(task) if isinstance(task, LookTask) else job(task)
    except CacheError:
        # its message names the folder, which must not get into the output
        return Failed(
            "export",
            "the cache folder for exports cannot be used: see `nsys-triage doctor`, or name another with --cache-dir.",
        )
    except TriageError as error:
        return Failed(_kind(error), _said(error))
    except MemoryError:
        return Failed("memory", "memory ran out: run it with --jobs 1, or where there is more.")
    except OSError as error:
        return Failed("input", f"it cannot be read: {why(error)}: check it and run the same command again.")
    except Exception as error:  # a fault of ours in one trace must not cost the others
        _log.warning("internal error", exc_info=True)
        return Failed(
            "internal",
            f"internal error ({type(error).__name__}): run `nsys-triage report -vv` on it and report what it prints.",
        )


def _said(error: TriageError) -> str:
    """The message, with the batch's own option in it."""
    return str(error).replace("--export-timeout", "--timeout")


def _kind(error: TriageError) -> FailureKind:
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), "input")


# --- look -------------------------------------------------------------------------------------------------------


def look(task: LookTask) -> Outcome:
    """What the file is, its content's identity and its rank. One that is still being written has failed as such."""
    place = os.fsdecode(task.place)
    with remote.local_copy(place) as path:
        local = not remote.is_url(place)
        soon = unfinished.beside(path) if local else None
        if soon:
            return Failed("unfinished", soon)
        try:
            found = _looked(path, task)
        except InputError as error:
            soon = unfinished.refused(path) if local else None
            return Failed("unfinished", soon) if soon else Failed("input", str(error))
        if local:
            soon = unfinished.changed(path, task.size_bytes, task.version)
        elif remote.version_of(place) != (task.size_bytes, task.version):
            soon = (
                f"{base_name(path)} is still being written: run the same command again when it is complete."
            )
        return Failed("unfinished", soon) if soon else found


def _looked(path: Path, task: LookTask) -> Looked:
    identity = identify(path)
    content = content_identity(path)
    version = str(identity.capture_version) if identity.capture_version else None
    if identity.kind == "report" and not task.export:
        return Looked("report", content, capture_version=version)
    export = path if identity.kind == "sqlite" else open_source(path, _settings(task.exporting)).path
    database = Database(export)
    session = metadata.session(database)
    info = metadata.capture_info(
        database,
        session,
        file=identity.file,
        kind=identity.kind,
        capture_version=version,
        filtered=identity.filtered,
    )
    return Looked(
        kind=identity.kind,
        content=content,
        filtered=info.filtered,
        capture_version=info.capture_version,
        ranks_read=True,
        rank=environment_number(info.environment, RANK_VARIABLES),
        world_size=environment_number(info.environment, WORLD_VARIABLES),
        started_ns=info.started_epoch_ns,
    )


def _settings(exporting: Exporting) -> ExportSettings:
    return ExportSettings(
        nsys=Path(os.fsdecode(exporting.nsys)) if exporting.nsys else None,
        cache_dir=Path(os.fsdecode(exporting.cache_dir)) if exporting.cache_dir else None,
        timeout_s=exporting.timeout_s,
    )


# --- job --------------------------------------------------------------------------------------------------------


def job(task: JobTask) -> Outcome:
    """The result as JSON and as a page. Where single ranks of several are to blame, the failure says which."""
    with ExitStack() as stack:
        paths = [stack.enter_context(remote.local_copy(os.fsdecode(place))) for place in task.places]
        sources, bad = _opened(paths, _settings(task.exporting))
        if bad:
            return _blamed(bad, len(paths))
        try:
            result = analyze(sources, parse_window(task.options.window), settings=rule_settings(task.options))
        except UsageError:  # the window, not the file
            raise
        except InputError:
            bad = _unreadable(sources) if len(sources) > 1 else {}
            if not bad:
                raise
            return _blamed(bad, len(paths))
        return Done(encode(result), render_html(result).encode())


def rule_settings(options: Options) -> RuleSettings:
    """The thresholds as the rules take them."""
    split = {name.partition(".")[::2]: value for name, value in options.thresholds.items()}
    return RuleSettings({(rule, threshold): value for (rule, threshold), value in split.items()})


def _opened(
    paths: list[Path], settings: ExportSettings
) -> tuple[list[Source], dict[int, tuple[FailureKind, str]]]:
    sources, bad = [], {}
    for index, path in enumerate(paths):
        try:
            sources.append(open_source(path, settings))
        except CacheError:
            raise
        except TriageError as error:
            bad[index] = (_kind(error), _said(error))
    return sources, bad


def _unreadable(sources: list[Source]) -> dict[int, tuple[FailureKind, str]]:
    """The traces of a job that cannot be read, one after the other so that one alone is in memory."""
    bad: dict[int, tuple[FailureKind, str]] = {}
    for index, source in enumerate(sources):
        try:
            load_trace(
                source.path, file=source.file, kind=source.kind, capture_version=source.capture_version
            )
        except InputError as error:
            bad[index] = ("input", str(error))
    return bad


def _blamed(bad: dict[int, tuple[FailureKind, str]], count: int) -> Failed:
    kind, reason = next(iter(bad.values()))
    members = {index: text for index, (_, text) in bad.items()} if count > 1 else {}
    return Failed(kind, reason, members)
