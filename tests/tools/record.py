"""Records a small job with a real nsys, without a GPU.

    python3 tests/tools/record.py NSYS_ROOT OUT.nsys-rep

NSYS_ROOT is a folder made by `fetch_nsys.py`, such as DIR/2022.4.2. The job is `nvtx_job.py`. It runs in name
spaces of its own, under a root folder that holds nothing but the system's programs: the report tells no host,
user, path, environment or other process of the machine it was recorded on, and is checked for them.
Needs root, or a kernel that lets users make name spaces. `sample_traces/nvtx_osrt_only.nsys-rep` was made so.
"""

import argparse
import getpass
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = Path(__file__).with_name("nvtx_job.py")
HOST_NAME = "localhost"
# bound into the new root as far as they exist; nothing of /home, /root, /etc or /var
SYSTEM_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/dev", "/sys")

# run as the first process of the new name spaces, with the new root as its working folder
_ENTER = r"""
set -e
hostname "$HOST_NAME"
for folder in $SYSTEM_FOLDERS; do
    [ -e "$folder" ] || continue
    mkdir -p ".$folder"
    mount --rbind "$folder" ".$folder"
done
mkdir -p nsys python proc tmp
mount --rbind "$NSYS_ROOT" nsys
mount --rbind "$PYTHON_ROOT" python
mount -t proc proc proc
exec chroot . /usr/bin/env -i HOME=/job PYTHONPATH=/job PYTHONDONTWRITEBYTECODE=1 $LIBRARIES \
    sh -c 'cd /job && exec "$@"' sh "$@"
"""


def nsys_programs(root: Path) -> tuple[Path, Path]:
    """`nsys` and `QdstrmImporter` below a folder made by `fetch_nsys.py`, relative to it."""
    folder = root / "usr/lib/nsight-systems"
    nsys = next(folder.glob("target-linux-*/nsys"))
    importer = next(folder.glob("host-linux-*/QdstrmImporter"))
    return nsys.relative_to(root), importer.relative_to(root)


def profile_command(nsys: Path, output: Path, job: list[str]) -> list[str]:
    """The `nsys profile` line for a machine without a GPU."""
    options = ["-t", "nvtx,osrt", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true"]
    return [str(nsys), "profile", *options, "-o", str(output), *job]


def run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Runs a command; where it fails, ends with its messages."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=env)
    if done.returncode:
        raise SystemExit(f"record: {command[0]} failed\n{done.stdout}{done.stderr}")


def import_command(root: Path, at: Path, stream: Path) -> tuple[list[str], str]:
    """The line that turns a `.qdstrm` into a report, and its LD_LIBRARY_PATH; `at` is `root` seen there."""
    importer = nsys_programs(root)[1]
    # the package links libssh by a relative link that holds only within the unpacked folder
    libssh = next((root / "usr/lib").glob("*/libssh.so.4")).relative_to(root)
    return [str(at / importer), "-i", str(stream)], f"{(at / importer).parent}:{(at / libssh).parent}"


def record_here(root: Path, output: Path, job: list[str]) -> Path:
    """Records a command as it is run here: the `.qdstrm` that Debian's nsys leaves."""
    # else it leaves a folder in /tmp
    env = {**os.environ, "TMPDIR": str(output.parent)}
    run(profile_command(root / nsys_programs(root)[0], output, job), env=env)
    return output.with_suffix(".qdstrm")


def import_here(root: Path, stream: Path) -> Path:
    """Turns a `.qdstrm` into the report beside it."""
    command, libraries = import_command(root, root, stream)
    # it keeps a folder in the home folder
    run(command, env={"LD_LIBRARY_PATH": libraries, "HOME": str(stream.parent)})
    return stream.with_suffix(".nsys-rep")


def run_isolated(root: Path, new_root: Path, command: list[str], libraries: str = "") -> None:
    """Runs a command within `new_root`, in its folder /job, apart from everything else on the machine."""
    enter = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--kill-child"]
    if os.geteuid():
        enter += ["--user", "--map-root-user"]
    env = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOST_NAME": HOST_NAME,
        "SYSTEM_FOLDERS": " ".join(SYSTEM_FOLDERS),
        "NSYS_ROOT": str(root),
        "PYTHON_ROOT": str(Path(sys.base_prefix).resolve()),
        "LIBRARIES": f"LD_LIBRARY_PATH={libraries}" if libraries else "",
    }
    run([*enter, "sh", "-c", _ENTER, "sh", *command], cwd=new_root, env=env)


def record_isolated(root: Path, new_root: Path) -> tuple[Path, Path]:
    """Records the job within `new_root`, an empty folder; returns the report and an export of it."""
    import nvtx  # type: ignore[import-untyped]

    job = new_root / "job"
    job.mkdir()
    shutil.copy(JOB, job / JOB.name)
    shutil.copytree(Path(nvtx.__file__).parent, job / "nvtx", ignore=shutil.ignore_patterns("__pycache__"))
    at, stream = Path("/nsys"), Path("/job/trace.qdstrm")
    python = f"/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    record = profile_command(at / nsys_programs(root)[0], stream.with_suffix(""), [python, JOB.name])
    run_isolated(root, new_root, record)
    neutral_release(job / stream.name)
    importing, libraries = import_command(root, at, stream)
    run_isolated(root, new_root, importing, libraries)
    report, export = stream.with_suffix(".nsys-rep"), stream.with_suffix(".sqlite")
    nsys = str(at / nsys_programs(root)[0])
    run_isolated(root, new_root, [nsys, "export", "--type=sqlite", f"--output={export}", str(report)])
    return job / report.name, job / export.name


def neutral_release(stream: Path) -> None:
    """Gives the kernel release in a raw stream a neutral ending of the same length."""
    release = platform.release()
    number = re.match(r"[\d.]+", release)
    if number:
        rest = len(release) - number.end()
        neutral = number[0] + ("-generic" + "x" * rest)[:rest]
        data = stream.read_bytes()
        stream.write_bytes(data.replace(release.encode(), neutral.encode()))


def private_words(folder: Path, root: Path) -> list[bytes]:
    """What must not be in a report: names, folders and environment of this machine."""
    words = {
        socket.gethostname(),
        platform.release(),
        str(Path.home()),
        getpass.getuser(),
        str(folder),
        str(root),
    }
    words |= {
        str(Path.cwd()),
        str(Path(sys.prefix)),
        str(Path(sys.base_prefix)),
        str(Path(__file__).parents[2]),
    }
    words |= {value for value in os.environ.values() if len(value) > 5}
    # a user or host called `root` or `vm` would be found in any file
    return sorted(word.encode() for word in words if len(word) > 4)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("root", type=Path, metavar="NSYS_ROOT")
    parser.add_argument("output", type=Path, metavar="OUT.nsys-rep")
    chosen = parser.parse_args()
    root = chosen.root.resolve()
    with tempfile.TemporaryDirectory(prefix="record-") as name:
        folder = Path(name).resolve()
        report, export = record_isolated(root, folder)
        # parts of a report are compressed: the export shows them too
        data = report.read_bytes() + export.read_bytes()
        found = [word for word in private_words(folder, root) if word in data]
        if found:
            raise SystemExit(f"record: {len(found)} names of this machine are in the report")
        shutil.copy(report, chosen.output)
    sys.stdout.write(f"{chosen.output} ({chosen.output.stat().st_size} bytes)\n")


if __name__ == "__main__":
    main()
