"""Fetches the two versions of nsys that Debian ships, without installing anything.

    python3 tests/tools/fetch_nsys.py DIR        # DIR/2022.4.2 and DIR/2023.4.4

Prints the path of each `nsys`, oldest first. `apt-get` works on lists, sources and a cache of its own in a
temporary folder; the sources are the machine's own with another suite and component, so that a mirror, a
proxy and the keys of the machine apply. Standard library only. What is there already is not fetched again.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUITES = {"bookworm": "2022.4.2", "trixie": "2023.4.4"}
PACKAGES = ("nsight-systems", "nsight-systems-target")
# QdstrmImporter links against it; taken from the machine's own suite, since trixie's needs a newer C library
LIBRARY = "libssh-4"
DEBIAN_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# hooks that would touch the machine (one deletes its cached packages), and folders that are set anew
LEFT_OUT = ("APT::Update::", "DPkg::", "Dir", "Acquire::IndexTargets::deb::DEP-11")


def machine_codename() -> str:
    """The code name of the machine's own Debian release."""
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r'^VERSION_CODENAME="?([a-z]+)', release, re.MULTILINE)
    if not found:
        raise SystemExit("fetch_nsys: /etc/os-release names no release: this needs Debian's apt-get")
    return found[1]


def _from_deb822(text: str, codename: str) -> tuple[str, str] | None:
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        for line in stanza.splitlines():
            if not line.startswith("#") and ":" in line and not line[0].isspace():
                key, value = line.split(":", 1)
                fields[key.lower()] = value.strip()
        if "deb" in fields.get("types", "").split() and codename in fields.get("suites", "").split():
            return fields["uris"].split()[0], fields.get("signed-by", "")
    return None


def _from_one_line(text: str, codename: str) -> tuple[str, str] | None:
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s", line)
        if found and found[3] == codename:
            signed = re.search(r"signed-by=(\S+)", found[1] or "")
            return found[2], signed[1] if signed else ""
    return None


def machine_source(codename: str) -> tuple[str, str]:
    """Address and key file of the machine's own archive."""
    folder = Path("/etc/apt")
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        read = {".sources": _from_deb822, ".list": _from_one_line}.get(path.suffix)
        found = read(path.read_text(encoding="utf-8"), codename) if read and path.is_file() else None
        if found:
            return found[0], found[1] or (str(DEBIAN_KEYS) if DEBIAN_KEYS.exists() else "")
    raise SystemExit(f"fetch_nsys: no source for {codename} in {folder}")


def apt_environment(work: Path, suite: str) -> dict[str, str]:
    """Environment in which `apt-get` uses nothing of the machine but its network settings and its keys."""
    codename = machine_codename()
    address, keys = machine_source(codename)
    signed = f"Signed-By: {keys}\n" if keys else ""
    entries = [(suite, "non-free"), (codename, "main")]
    (work / "sources").mkdir()
    (work / "sources" / "nsys.sources").write_text(
        "\n".join(f"Types: deb\nURIs: {address}\nSuites: {s}\nComponents: {c}\n{signed}" for s, c in entries)
    )
    for name in ("lists/partial", "cache/archives/partial", "state"):
        (work / name).mkdir(parents=True)
    (work / "state" / "status").touch()
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True).stdout
    kept = [line for line in dump.splitlines() if not line.startswith(LEFT_OUT)]
    own = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": work / "sources",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": work / "state",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "state" / "status",
        "Dir::Cache": work / "cache",
        "Dir::Cache::archives": work / "cache" / "archives",
        # the unprivileged user of apt cannot write into a private temporary folder
        "APT::Sandbox::User": "root",
    }
    config = work / "apt.conf"
    config.write_text("\n".join([*kept, *(f'{key} "{value}";' for key, value in own.items())]) + "\n")
    return {**os.environ, "APT_CONFIG": str(config)}


def run(command: list[str], cwd: Path, env: dict[str, str]) -> None:
    """Runs a command; where it fails, ends with its messages."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"fetch_nsys: {shlex.join(command)} failed\n{done.stdout}{done.stderr}")


def nsys_of(root: Path) -> Path | None:
    """The program below an unpacked version."""
    return next(iter(sorted(root.glob("usr/lib/**/target-linux-*/nsys"))), None)


def fetch(suite: str, version: str, folder: Path) -> Path:
    """Fetches and unpacks one version into `folder/version`; returns its `nsys`."""
    target = folder / version
    present = nsys_of(target)
    if present:
        return present
    with tempfile.TemporaryDirectory(prefix="fetch-nsys-") as name:
        work = Path(name)
        env = apt_environment(work, suite)
        run(["apt-get", "-q", "update"], work, env)
        (work / "deb").mkdir()
        run(["apt-get", "-q", "download", *PACKAGES, LIBRARY], work / "deb", env)
        fresh = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=folder))
        try:
            for package in sorted((work / "deb").glob("*.deb")):
                run(["dpkg", "-x", str(package), str(fresh)], work, env)
            if nsys_of(fresh) is None:
                raise SystemExit(f"fetch_nsys: no nsys in the packages of {suite}")
            fresh.chmod(0o755)
            shutil.rmtree(target, ignore_errors=True)
            fresh.rename(target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    found = nsys_of(target)
    if found is None:
        raise SystemExit(f"fetch_nsys: no nsys below {target}")
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to unpack")
    folder: Path = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for suite, version in SUITES.items():
        sys.stdout.write(f"{fetch(suite, version, folder)}\n")


if __name__ == "__main__":
    main()
