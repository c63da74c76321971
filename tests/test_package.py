"""The stranger's path: what is built holds everything, and the wheel alone makes a report."""

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from nsys_triage import __version__

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "data_loader_stall.sqlite"
LEFT_OUT = (".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", "*.triage.html")


def succeed(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a command prints; where it fails, the test does, with its messages."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def files_of(folder: Path, below: str) -> set[str]:
    """Names of all files that git would keep below a folder."""
    found = (
        path for path in (folder / below).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was made from it."""
    # a copy: building writes nothing into the checkout
    copy = tmp_path_factory.mktemp("source") / "project"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    target = tmp_path_factory.mktemp("built")
    succeed(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, copy, cwd=copy)
    return target


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_wheel_holds_the_package_the_templates_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        info = {name.partition(".dist-info/")[2] for name in archive.namelist() if ".dist-info/" in name}
    templates = {f"nsys_triage/{name}" for name in files_of(ROOT, "templates")}
    assert names == files_of(ROOT, "nsys_triage") | templates
    assert {
        "nsys_triage/py.typed",
        "nsys_triage/result/result-1.schema.json",
        "nsys_triage/templates/report.html.j2",
        "nsys_triage/templates/static/report.css",
    } <= names
    assert "licenses/LICENSE" in info
    assert wheel.name == f"nsys_triage-{__version__}-py3-none-any.whl"


def imported(folder: str) -> set[str]:
    """Top-level names of everything that the files of a folder import."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    return {name.partition(".")[0] for name in found}


def test_everything_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {
        group: {re.split(r"[^\w-]", line)[0].lower() for line in lines}
        for group, lines in {"": project["dependencies"], **extras}.items()
    }
    providers = packages_distributions()
    for folder, groups in {"nsys_triage": ("", "dask"), "tests": ("", "dask", "test")}.items():
        declared = set().union(*(names[group] for group in groups))
        others = imported(folder) - set(sys.stdlib_module_names) - {"nsys_triage", "tests"}
        undeclared = {
            name for name in others if not {d.lower() for d in providers.get(name, [name])} & declared
        }
        assert undeclared == set()


def test_sdist_holds_what_the_tests_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        name
        for folder in ("nsys_triage", "templates", "tests", "sample_traces")
        for name in files_of(ROOT, folder)
    }
    assert wanted <= names
    assert {"README.md", "LICENSE", "pyproject.toml", ".ci/run"} <= names


def test_installed_wheel_makes_a_report_far_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    succeed(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    programs = tmp_path / "venv" / "bin"
    succeed(programs / "pip", "install", "-q", wheel, cwd=tmp_path)
    trace = tmp_path / "copied trace" / "job.sqlite"
    trace.parent.mkdir()
    shutil.copy(SAMPLE, trace)
    page = tmp_path / "job.html"
    # nothing of the checkout or of the test environment can be found from here
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    said = succeed(programs / "nsys-triage", "report", trace, "-o", page, cwd=Path("/"), env=env)
    assert "job.html" in said
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert html.rstrip().endswith("</html>")
    assert "A100-SXM4-80GB" in html
    module = succeed(programs / "python", "-m", "nsys_triage", "--version", cwd=Path("/"), env=env)
    assert module == f"nsys-triage {__version__}\n"
    where = succeed(
        programs / "python", "-c", "import nsys_triage; print(nsys_triage.__file__)", cwd=Path("/"), env=env
    )
    assert where.startswith(str(tmp_path))
    assert [path.name for path in trace.parent.iterdir()] == ["job.sqlite"]
