"""What the export says of the capture: versions, times, settings, and its own diagnostics.

Private by construction: only rows whose names are listed here are looked at, and of a diagnostic message only
the wording that nsys is known to use is taken.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from nsys_triage.trace import environment, versions
from nsys_triage.trace.model import CaptureInfo, Diagnostic
from nsys_triage.trace.read import Database

_FILTER_KEYS: Final = ("EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT")
_SALT: Final = b"nsys-triage host"
_VERSION: Final = re.compile(r"20\d\d\.\d{1,2}\.\d{1,2}(?:\.\d{1,6})?(?![\d.])")
_INSTALLED: Final = re.compile(rf"(?<![\d.])({_VERSION.pattern})")
_ISO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_EVENT_TYPE: Final = re.compile(r"[A-Za-z0-9_]{1,40}")
_GRAPH_MODES: Final = {"graph": "graph", "node": "node"}
OTHER_MESSAGE: Final = "other message"
# what nsys writes, and nothing behind it: the rest of a message may name files, hosts or users (section 9.4)
_WORDINGS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"Not all [A-Za-z][A-Za-z /-]{0,40} events might have been collected\.?",
        r"CUDA profiling might have not been started correctly\.?",
        r"No [A-Za-z][A-Za-z /-]{0,40} events collected\.(?: Does the process use [A-Za-z /-]{1,40}\?)?",
        r"Reached the size limit on recording trace events",
        r"Scheduling information is absent",
        r"Unable to collect [A-Za-z][A-Za-z /-]{0,60} samples",
        r"Installed CUDA driver version \([0-9.]{1,12}\) is not supported by this build",
        r"Unified Memory cannot be traced on devices that don't support peer-to-peer",
    )
)


@dataclass(frozen=True, slots=True)
class Session:
    """Times of the capture as recorded; None where the export has none."""

    time_shift_ns: int
    started_utc: str | None
    started_epoch_ns: int | None
    system_clock_ns: int | None
    duration_ns: int | None


def _pairs(database: Database, source: versions.Source, wanted: str) -> list[tuple[str, str]]:
    """Names and values of a table of settings, where the name matches."""
    pattern = re.compile(wanted)
    return [(row["name"], row["value"]) for row in database.rows(source) if pattern.fullmatch(row["name"])]


def _integer(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def session(database: Database) -> Session:
    """When the capture began, how long it was, and by how much the export shifted its times."""
    shift = dict(_pairs(database, versions.EXPORT_METADATA, "EXPORT_CONFIG_TIME_SHIFT")).get(
        "EXPORT_CONFIG_TIME_SHIFT"
    )
    starts = database.rows(versions.SESSION_START)
    epoch_ns = next((row["utc_epoch_ns"] for row in starts if row["utc_epoch_ns"]), None)
    texts = [row["utc_time"] for row in starts]
    durations = [row["duration_ns"] for row in database.rows(versions.ANALYSIS_DETAILS)]
    return Session(
        time_shift_ns=_integer(shift) or 0,
        started_utc=_iso(epoch_ns) or next((f"{time}Z" for time in texts if _ISO_TIME.fullmatch(time)), None),
        started_epoch_ns=epoch_ns,
        system_clock_ns=next((row["system_clock_ns"] for row in starts if row["system_clock_ns"]), None),
        duration_ns=max((value for value in durations if value and value > 0), default=None),
    )


def capture_info(
    database: Database, times: Session, *, file: str, kind: str, capture_version: str | None, filtered: bool
) -> CaptureInfo:
    """The facts of the capture that may be known."""
    export = dict(_pairs(database, versions.EXPORT_METADATA, "EXPORT_[A-Z_]+"))
    capture = _pairs(
        database,
        versions.CAPTURE_METADATA,
        r"(?:PROCESS_\d+:)?(?:CAPTURE_EVENT_TYPE|CUDA_GRAPH_TRACE_OPTIONS:MODE|ENVIRONMENT_VARIABLE)",
    )
    system = dict(_pairs(database, versions.SYSTEM, "Hostname|DeviceEnvironment|TargetInstallDir"))
    modes = [_GRAPH_MODES.get(value.lower()) for name, value in capture if name.endswith(":MODE")]
    variables = environment.select(_environment_entries(capture, system))
    return CaptureInfo(
        file=file,
        kind=kind,
        exporter_version=export.get("EXPORT_PRODUCT_VERSION") or None,
        capture_version=capture_version or _installed_version(system.get("TargetInstallDir", "")),
        schema_version=export.get("EXPORT_SCHEMA_VERSION") or None,
        started_utc=times.started_utc,
        started_epoch_ns=times.started_epoch_ns,
        system_clock_ns=times.system_clock_ns,
        duration_ns=times.duration_ns,
        filtered=filtered or any(export.get(key) for key in _FILTER_KEYS),
        captured=frozenset(
            value
            for name, value in capture
            if name.endswith("CAPTURE_EVENT_TYPE") and _EVENT_TYPE.fullmatch(value)
        ),
        graph_trace_mode=next((mode for mode in modes if mode), None),
        environment=variables.allowed,
        secret_variables=variables.secret_count,
        private_variables=variables.private_count,
        host_key=_host_key(system.get("Hostname", "")),
        diagnostics=_diagnostics(database),
    )


def _environment_entries(capture: Sequence[tuple[str, str]], system: dict[str, str]) -> list[str]:
    entries = [value for name, value in capture if name.endswith("ENVIRONMENT_VARIABLE")]
    return entries or environment.split_block(system.get("DeviceEnvironment", ""))


def _installed_version(folder: str) -> str | None:
    """The nsys version in the path of an official installation."""
    match = _INSTALLED.search(folder)
    return match[1] if match else None


def _iso(epoch_ns: int | None) -> str | None:
    if epoch_ns is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=epoch_ns // 1000)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _host_key(host: str) -> str | None:
    return blake2b(host.encode(), digest_size=8, salt=_SALT).hexdigest() if host else None


def _diagnostics(database: Database) -> tuple[Diagnostic, ...]:
    """Messages of nsys, each once, the gravest first; one entry per severity for those of unknown wording."""
    counted: Counter[tuple[int, str]] = Counter()
    for row in database.rows(versions.DIAGNOSTICS):
        matches = (wording.match(row["text"]) for wording in _WORDINGS)
        text = next((match[0] for match in matches if match), OTHER_MESSAGE)
        counted[row["severity"] or 0, text] += 1
    # 3 error, 2 warning, 1 info, then 4 verbose
    order = sorted(counted.items(), key=lambda item: (item[0][0] == 4, -item[0][0], item[0][1]))
    return tuple(Diagnostic(severity, text, count) for (severity, text), count in order)
