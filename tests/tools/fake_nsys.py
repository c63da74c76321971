"""A stand-in for nsys that does what the real one does rarely: hang, die, leave half an export.

The behaviours are those measured with nsys 2022.4.2 and 2023.4.4.
"""

import shlex
from pathlib import Path

from tests.tools.small_files import make_export, make_sqlite

_SCRIPT = r"""#!/bin/sh
if [ "$1" = --version ]; then
    echo "NVIDIA Nsight Systems version {version}-df9881f"
    exit 0
fi
if [ "$2" = --help ]; then
    echo "{help_text}"
    exit 0
fi
for argument; do
    case "$argument" in --output=*) output="${{argument#--output=}}" ;; esac
done
for argument; do printf '%s\n' "$argument"; done >> {log}
echo "--" >> {log}
{body}
"""

_PROGRESS = r"printf '\rProcessing 377 events: [=7%%      ]\rProcessing 377 events: [====100%%]\n' >&2"


class FakeNsys:
    """A script in `folder` that answers as nsys does; `calls()` are the exports that were asked for."""

    def __init__(self, folder: Path, version: str = "2023.4.4.54", *, include_json: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "nsys"
        self._folder = folder
        self._version = version
        self._help = "--include-json" if include_json else "--type"
        self._log = folder / "calls.log"
        self.export_ok()

    def _behave(self, body: str) -> "FakeNsys":
        script = _SCRIPT.format(
            version=self._version, help_text=self._help, log=shlex.quote(str(self._log)), body=body
        )
        self.path.write_text(script)
        self.path.chmod(0o755)
        return self

    def calls(self) -> list[list[str]]:
        """The arguments of each export."""
        text = self._log.read_text() if self._log.exists() else ""
        return [part.splitlines() for part in text.split("--\n") if part]

    def export_ok(self, delay_s: float = 0, **meta: str) -> "FakeNsys":
        """A complete export."""
        template = self._folder / "template.sqlite"
        template.unlink(missing_ok=True)
        make_export(template, **meta)
        return self._behave(f'{_PROGRESS}\nsleep {delay_s}\ncp {shlex.quote(str(template))} "$output"')

    def disk_full(self) -> "FakeNsys":
        """Code 0 and a file of 0 bytes: a small export on a full disk."""
        said = "Failed to close database connection: = database or disk is full"
        return self._behave(f'echo "{said}" >&2\n: > "$output"')

    def says(self, text: str, code: int = 1) -> "FakeNsys":
        """Only a message and a code."""
        return self._behave(f"echo {shlex.quote(text)} >&2\nexit {code}")

    def damaged(self, code: int = 1) -> "FakeNsys":
        """A partial database that opens, as a report that is damaged in the event data gives."""
        template = self._folder / "partial.sqlite"
        template.unlink(missing_ok=True)
        columns = "id INTEGER -- comment"
        make_sqlite(template, {"StringIds": columns, "PROCESSES": columns, "TARGET_INFO_SYSTEM_ENV": columns})
        said = "Exportation error: LZ4 decompression failed."
        return self._behave(f'cp {shlex.quote(str(template))} "$output"\necho "{said}" >&2\nexit {code}')

    def hangs(self) -> "FakeNsys":
        """Starts to write, and then neither it nor a child of it ends; both say their process numbers."""
        pids = shlex.quote(str(self._folder / "pids"))
        return self._behave(
            f': > "$output"\nsleep 600 &\necho "$$ $!" > {pids}.new\nmv {pids}.new {pids}\nwait\nsleep 600'
        )

    def pids(self) -> list[int]:
        """Process numbers of a script that hangs and of its child; empty until it has started."""
        path = self._folder / "pids"
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def killed(self, signal_name: str = "KILL") -> "FakeNsys":
        """Dies of a signal with the file begun."""
        return self._behave(f': > "$output"\nkill -{signal_name} $$\nsleep 5')

    def changes_the_report(self) -> "FakeNsys":
        """A good export of a report that somebody is still writing."""
        template = self._folder / "template.sqlite"
        return self._behave(f'cp {shlex.quote(str(template))} "$output"\necho more >> "$argument"')
