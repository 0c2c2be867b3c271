"""The wheel: built, installed into an empty environment, and used from there.

The environment takes the dependencies of the running one from its site-packages, and the package
from the wheel alone: nothing is downloaded, and a file that the wheel lacks is missed. Kernels run
as plain Python, or from the machine code in the wheel: an empty environment would compile them all.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path

import httpx
import pytest

import anonymizer
from anonymizer.extras import DISTRIBUTION
from tests.console import ROOT

PACKAGES = ("anonymizer", "simulator", "experiments")
DEADLINE_S = 90.0
COMPILED_S = 900.0
"""A machine that has compiled nothing compiles what is to be in the wheel."""


@dataclass(frozen=True)
class Installed:
    """A wheel, and an environment into which it is installed."""

    wheel: Path
    bin: Path
    packages: Path

    def run(self, *command: str) -> str:
        """Run a program of the environment to its end, and return what it prints."""
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.wheel.parent,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def variables(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        return kept | {"NUMBA_DISABLE_JIT": "1", "COLUMNS": "100", "PYTHONWARNINGS": "error"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"))


def build(folder: Path, variables: Mapping[str, str], *, root: Path = ROOT) -> Path:
    """Build a wheel of a tree into a folder, with variables."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run(
        [*command, str(folder)],
        cwd=root,
        env=os.environ | variables,
        check=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    [wheel] = folder.glob("*.whl")
    return wheel


def install(folder: Path, **variables: str) -> Installed:
    """Build a wheel with variables, and install it below a folder."""
    wheel = build(folder, variables)
    venv.create(folder / "env", symlinks=True)
    python = folder / "env" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    told = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True)
    packages = Path(told.stdout.strip())
    # With the pip that is here: to install one into the environment takes longer than all else.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    pip += ["--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=DEADLINE_S)
    # A path in a .pth file comes last, and the .pth files behind it, such as that of an editable
    # install, do not count.
    paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in paths))
    return Installed(wheel, python.parent, packages)


def test_the_wheel_has_every_file_of_the_packages_and_no_other(installed: Installed) -> None:
    sources = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = {
        name for name in zipfile.ZipFile(installed.wheel).namelist() if ".dist-info/" not in name
    }
    assert names == sources
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_a_wheel_of_another_copy_of_the_tree_has_the_same_bytes(
    tmp_path: Path, installed: Installed
) -> None:
    """Whatever the folder, the times and modes of the files, and the order in which they lie."""
    copy = tmp_path / "copy"
    files = ["pyproject.toml", "README.md", "LICENSE", "NOTICE", "tools", *PACKAGES]
    for name in reversed(files):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, copy / name)
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o077)
        os.utime(path, (1e9, 1e9))
    moment = {"SOURCE_DATE_EPOCH": "1796000000"}
    first, second = (
        build(tmp_path / name, moment, root=root).read_bytes()
        for name, root in (("first", ROOT), ("second", copy))
    )
    assert first == second
    assert first != installed.wheel.read_bytes(), "it has the moment that is stated"


def test_the_metadata_has_the_version_the_licences_and_the_extras(installed: Installed) -> None:
    version = anonymizer.__version__
    # Another distribution is called anonymizer; the packages and the commands are this one's.
    info = installed.packages / f"anonymizer_gateway-{version}.dist-info"
    metadata = PathDistribution(info).metadata
    assert metadata["Name"] == DISTRIBUTION
    assert metadata["Version"] == version
    assert metadata["License-Expression"] == "Apache-2.0"
    for name in ("LICENSE", "NOTICE"):
        assert (info / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()
    assert (info / "licenses" / "anonymizer/web/static/vendor/leaflet/LICENSE").is_file()
    assert {"tables", "learn", "all"} <= set(metadata.get_all("Provides-Extra") or ())


def test_the_packages_are_imported_from_the_wheel_and_work(installed: Installed) -> None:
    code = """
import anonymizer, experiments, simulator
print(anonymizer.__file__, experiments.__file__, simulator.__file__, sep="\\n")
import polars
people = polars.DataFrame({"age": [34, 36, 51, 58]})
print(anonymizer.anonymize(people, qi="age", k=2, max_share=1, max_source_share=1, time_budget_s=0))
for name in anonymizer.__all__:
    getattr(anonymizer, name)
"""
    *files, made = installed.run("python", "-c", code).splitlines()
    assert len(files) == len(PACKAGES)
    assert all(Path(file).is_relative_to(installed.packages) for file in files)
    assert made == "AnonymizedTable(4 of 4 rows published in 2 classes of 2 or more)"


def test_the_commands_start(installed: Installed) -> None:
    assert installed.run("anonymizer", "--version") == f"anonymizer {anonymizer.__version__}\n"
    told = installed.run("anonymizer", "--help")
    assert all(command in told for command in ("serve", "demo", "cloak", "anonymize", "audit"))
    assert "trace" in installed.run("simulator", "--help")
    # The descriptions of settings are read from the source files.
    schema = json.loads(installed.run("anonymizer", "schema"))
    assert schema == json.loads((ROOT / "docs" / "settings.schema.json").read_text())


@pytest.mark.soak  # what it serves is in the wheel, and `tests/app/test_demo.py` runs a demo
def test_the_demo_runs_and_serves_the_live_map(installed: Installed) -> None:
    options = ["--duration", "2", "--headless", "--devices", "50", "--network", "grid:10x10"]
    static = ROOT / "anonymizer" / "web" / "static"
    process = subprocess.Popen(
        [installed.bin / "anonymizer", "demo", *options],
        cwd=installed.wheel.parent,
        env=installed.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout
            lines = iter(process.stdout.readline, "")
            url = next(line.split()[1] for line in lines if line.startswith("map "))
            with httpx.Client(base_url=url, trust_env=False, timeout=DEADLINE_S) as client:
                assert "<html" in client.get("/").text
                for path in static.rglob("*"):
                    if path.is_file() and path.name not in {"index.html", "LICENSE"}:
                        name = path.relative_to(static).as_posix()
                        served = client.get(f"/map/static/{name}")
                        assert served.content == path.read_bytes(), name
            told, errors = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert re.search(r"unaccounted for +0\b", told)


@pytest.mark.compiled
@pytest.mark.soak
def test_a_demo_of_a_wheel_with_machine_code_compiles_nothing(tmp_path: Path) -> None:
    code, cache = tmp_path / "code", tmp_path / "cache"
    level = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
    made = [sys.executable, "-m", "tools.machine_code", str(code)]
    subprocess.run(made, cwd=ROOT, env=os.environ | level, check=True, timeout=COMPILED_S)
    installed = install(tmp_path, ANONYMIZER_MACHINE_CODE=str(code))
    # So long that there are windows of records.
    done = subprocess.run(
        [installed.bin / "anonymizer", "demo", "--headless", "--duration", "14"],
        cwd=tmp_path,
        env=installed.variables() | {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in cache.rglob("*.nbc*")] == []
