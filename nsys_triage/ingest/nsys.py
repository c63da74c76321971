"""Finds the installed copies of nsys and asks them what they are."""

import logging
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from nsys_triage.errors import NsysMissingError, UsageError
from nsys_triage.ingest.files import base_name, shell_name
from nsys_triage.ingest.messages import READS_ALL_UNNAMED, newer_than_nsys
from nsys_triage.ingest.version import Version

NSYS_VARIABLE: Final = "NSYS_TRIAGE_NSYS"
# where the installers of Nsight Systems, CUDA, the HPC SDK and the distributions put it
INSTALL_PATTERNS: Final = (
    "/opt/nvidia/nsight-systems*/*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/local/cuda*/nsight-systems-*/bin/nsys",
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Systems/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
    "/usr/lib/nsight-systems/target-linux-*/nsys",
    "/usr/lib/*/nsight-systems/target-linux-*/nsys",
    "/usr/local/bin/nsys",
    "/usr/bin/nsys",
)
LOOKED_IN: Final = (
    f"the variable {NSYS_VARIABLE}, PATH, /opt/nvidia/nsight-systems, /opt/nvidia/hpc_sdk, /usr/local/cuda*, "
    "/usr/lib/nsight-systems"
)
# below a folder given instead of the program: an install folder, or a distribution's package unpacked
_IN_FOLDER: Final = ("nsys", "bin/nsys", "target-linux-*/nsys", "usr/lib/nsight-systems/target-linux-*/nsys")
_ASK_TIMEOUT_S: Final = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Nsys:
    """An installed nsys that answers."""

    path: Path
    version: Version


def find_nsys(given: Path | None = None) -> list[Nsys]:
    """Every nsys that can be used, in order of preference; empty where there is none.

    One that is named (`given`, else the variable NSYS_TRIAGE_NSYS) is the only one considered; otherwise the
    one on PATH comes first, then the usual install folders, newest version first. Raises `UsageError` where
    the named one does not exist and `NsysMissingError` where it does not answer as nsys does.
    """
    named = given or (Path(os.environ[NSYS_VARIABLE]) if os.environ.get(NSYS_VARIABLE) else None)
    if named is not None:
        return [_named(named, "--nsys" if given else NSYS_VARIABLE)]
    on_path = shutil.which("nsys")
    first = [found for found in [_ask(Path(on_path))] if found] if on_path else []
    others = [found for found in map(_ask, _installed()) if found]
    others.sort(key=lambda nsys: (nsys.version, str(nsys.path)), reverse=True)
    return _without_repeats([*first, *others])


def choose_nsys(given: Path | None, file: str, capture: Version | None) -> Nsys:
    """The first nsys that can read the report.

    `capture` is the version in the report's header, None where it says none. Raises `NsysMissingError` where
    there is no nsys, and `ExportError` where the report is newer than each of them.
    """
    candidates = find_nsys(given)
    if not candidates:
        raise NsysMissingError(missing_sentence(file))
    needed = capture.release if capture else READS_ALL_UNNAMED
    chosen = next((nsys for nsys in candidates if nsys.version.release >= needed), None)
    newest = max(candidates, key=lambda nsys: nsys.version)
    if chosen is None and capture is not None:
        raise newer_than_nsys(file, capture, newest.version)
    return chosen or newest  # the header hides the version: let nsys say


def missing_sentence(file: str) -> str:
    """What to say where a report has to be exported and there is no nsys."""
    return (
        f"{file} has to be exported with nsys, which was not found (looked at --nsys, {LOOKED_IN}): "
        f"install Nsight Systems, or run `{export_command(file)}` where "
        "it is installed and give the .sqlite that it writes."
    )


def export_command(file: str) -> str:
    """The command line that exports a report by hand, wherever there is an nsys."""
    stem = file.removesuffix(".nsys-rep").removesuffix(".qdrep")
    return f"nsys export --type=sqlite --output={shell_name(stem + '.sqlite')} {shell_name(file)}"


@cache
def knows_include_json(program: Path) -> bool:
    """Whether this nsys leaves JSON payloads (those of NCCL) out of an export unless asked for them."""
    return "--include-json" in (_output(program, "export", "--help") or "")


def _named(path: Path, source: str) -> Nsys:
    program = _program(path)
    if program is None:
        raise UsageError(
            f"{source} names {base_name(path)}, where no nsys is: give the path of the program nsys."
        )
    found = _ask(program)
    if found is None:
        raise NsysMissingError(
            f"{source} names {base_name(path)}, which does not answer `--version` as nsys does: give the "
            "path of the program nsys."
        )
    return found


def _program(path: Path) -> Path | None:
    """The program that was named by its path, its install folder, or its name on PATH."""
    try:
        if path.is_dir():
            return next(
                (hit for pattern in _IN_FOLDER for hit in sorted(path.absolute().glob(pattern))), None
            )
        if path.is_file():
            return path.absolute()
    except OSError:  # below a folder that may not be entered
        return None
    on_path = shutil.which(path) if len(path.parts) == 1 else None
    return Path(on_path).absolute() if on_path else None


def _installed() -> Iterable[Path]:
    for pattern in INSTALL_PATTERNS:
        yield from sorted(Path("/").glob(pattern.removeprefix("/")))


def _without_repeats(found: list[Nsys]) -> list[Nsys]:
    """The same program under several names counts once, under the first."""
    seen: dict[Path, Nsys] = {}
    for nsys in found:
        seen.setdefault(nsys.path.resolve(), nsys)
    return list(seen.values())


def _ask(program: Path) -> Nsys | None:
    answer = _output(program.absolute(), "--version")
    version = Version.find(answer) if answer and "Nsight Systems" in answer else None
    if version is None:
        _log.info("%s does not answer as nsys does", program)
        return None
    return Nsys(program.absolute(), version)


def _output(program: Path, *arguments: str) -> str | None:
    """What a program prints; None where it cannot be run. Takes 10 to 35 ms with nsys 2022.4 and 2023.4."""
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, no shell
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.info("%s cannot be run: %s", program, error)
        return None
    return done.stdout.decode("utf-8", "replace")
