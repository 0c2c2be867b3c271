"""Machine code on disk: whatever other processes do, a kernel never runs the code of another."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config, njit
from numba.core.bytecode import FunctionIdentity

from anonymizer import kernel_cache
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray
from anonymizer.kernel_cache import KernelCache, folders_for, keep_on_disk

pytestmark = pytest.mark.compiled

STRIPES = np.arange(12.0).reshape(6, 2)
ONE_ITEM_SIZE: tuple[Any, ...] = (
    STRIPES[:, 0].copy(),
    STRIPES[:, 0],
    STRIPES[:, 0].astype(np.int64),
)
"""numba does not notice if the code for one of these runs on another."""
SEVERAL_AT_ONCE = """
import json, sys, time
import numpy as np
from pathlib import Path
from anonymizer.algorithms.kernels import inner_kernel, kernel

@inner_kernel
def plus(x, y):
    return x + y

@kernel
def total(x):
    sum = 0.0
    for i in range(len(x)):
        sum = plus(sum, x[i])
    return sum

stripes = np.arange(12.0).reshape(6, 2)
arrays = [stripes[:, 0].copy(), stripes[:, 0], stripes[:, 0].astype(np.int64)]
number, n = int(sys.argv[1]), int(sys.argv[2])
Path(f"ready-{number}").touch()
while len(list(Path().glob("ready-*"))) < n:
    time.sleep(0.02)
order = np.roll(np.arange(len(arrays)), number)
found = {int(i): float(total(arrays[i])) for i in order}
kernels = [total, plus]
json.dump([[found[i] for i in range(len(arrays))],
           sum(sum(each.stats.cache_misses.values()) for each in kernels)], sys.stdout)
"""
ONE_NAME = """
import sys
import numpy as np
from anonymizer.algorithms.kernels import kernel

def scaled_by(factor):
    @kernel
    def inner(x):
        total = 0.0
LINES
        return factor * total

    @kernel
    def outer(x):
        return inner(x) + inner(x + 1.0)

    return outer

for factor in sys.argv[1:]:
    print(scaled_by(float(factor))(2.0) / float(factor))
"""


def make_total(
    folders: Callable[[Path], Iterable[Path]] = folders_for, *, longest_wait_s: float = 60.0
) -> Any:  # noqa: ANN401  numba has no types
    """Return a kernel that this process has not called yet."""

    def total(x: FloatArray) -> float:
        found = 0.0
        for i in range(len(x)):
            found += x[i]
        return found

    compiled = njit(total)
    keep_on_disk(compiled, folders=folders, longest_wait_s=longest_wait_s)
    return compiled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the kernels of this test keep their code."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    folder = Path(KernelCache(make_total()).cache_path)
    assert folder.parent == tmp_path
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.nbc"))


def n_compiled(total: Any) -> int:  # noqa: ANN401
    return sum(total.stats.cache_misses.values())


def started(program: Path, *arguments: str) -> "subprocess.Popen[str]":
    environ = os.environ | {"NUMBA_CACHE_DIR": str(program.parent), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, str(program), *arguments]
    return subprocess.Popen(
        command, env=environ, cwd=program.parent, stdout=subprocess.PIPE, text=True
    )


def test_processes_that_start_at_once_all_compute_right_and_compile_each_signature_once(
    tmp_path: Path,
) -> None:
    program = tmp_path / "at_once.py"
    program.write_text(SEVERAL_AT_ONCE)
    n = 3
    processes = [started(program, str(number), str(n)) for number in range(n)]
    seen = [json.loads(process.communicate()[0]) for process in processes]
    right = [float(array.sum()) for array in ONE_ITEM_SIZE]
    assert [found for found, _ in seen] == [right] * n
    n_signatures = len(ONE_ITEM_SIZE) + 2  # `plus` is called with a number of either kind
    assert sum(misses for _, misses in seen) <= n_signatures + 1
    assert not list(tmp_path.rglob("*.lock"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_functions_of_one_name_that_two_processes_compiled_stay_apart_in_a_third(
    tmp_path: Path,
) -> None:
    program = tmp_path / "one_name.py"
    # So long that it is not inlined: only then its name is looked up.
    lines = "\n".join(f"        total += np.sin(x * {i}.5) * total" for i in range(24))
    program.write_text(ONE_NAME.replace("LINES", "        total += x\n" + lines))
    both = [started(program, "1"), started(program, "2")]
    [one], [other] = [process.communicate()[0].split() for process in both]
    assert one == other
    assert started(program, "1", "2").communicate()[0].split() == [one, other]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_number_its_functions_as_its_parent_does() -> None:
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(sender, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    number = int(os.read(receiver, 99))
    os.close(receiver)
    os.close(sender)
    assert abs(number - next(FunctionIdentity._unique_ids)) > 1000


def test_code_that_lies_under_the_name_of_another_signature_is_compiled_anew(folder: Path) -> None:
    right = [float(array.sum()) for array in ONE_ITEM_SIZE]
    assert [make_total()(array) for array in ONE_ITEM_SIZE] == right
    paths = files(folder)
    for path, other in zip(paths, paths[1:] + paths[:1], strict=True):
        shutil.copy(other, path)
    assert [make_total()(array) for array in ONE_ITEM_SIZE] == right
    assert len({path.read_bytes() for path in paths}) == len(ONE_ITEM_SIZE)


def halved(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damaged", [bytes, halved, flipped])
def test_a_damaged_file_is_written_anew(folder: Path, damaged: Callable[[bytes], bytes]) -> None:
    array = ONE_ITEM_SIZE[0]
    right = make_total()(array)
    [path] = files(folder)
    path.write_bytes(b"" if damaged is bytes else damaged(path.read_bytes()))
    again, after = make_total(), make_total()
    assert (again(array), n_compiled(again)) == (right, 1)
    assert (after(array), n_compiled(after)) == (right, 0)


def test_what_a_killed_process_left_is_no_obstacle_and_goes_after_a_while(folder: Path) -> None:
    array = ONE_ITEM_SIZE[0]
    make_total()(array)
    [path] = files(folder)
    half = path.with_name(f"{path.name}.1.tmp")
    older = path.with_name(path.name.replace(KernelCache(make_total())._stamp, "0" * 16))
    for each in (half, older, path.with_name(f"{path.name}.lock")):
        each.write_bytes(halved(path.read_bytes()))
    total = make_total()
    assert (total(array), n_compiled(total)) == (array.sum(), 0)
    make_total()(ONE_ITEM_SIZE[1])
    assert half.exists()
    assert older.exists()
    for each in (half, older, path):
        os.utime(each, (0, 0))
    make_total()(ONE_ITEM_SIZE[2])
    assert not half.exists()
    assert not older.exists()
    assert path.exists()  # it is what the kernel is now


def test_where_nothing_can_be_written_kernels_compile_and_load_what_is_there(
    folder: Path,
) -> None:
    array, other, *_ = ONE_ITEM_SIZE
    make_total()(array)
    nowhere = Path("/proc/nobody")
    total = make_total(lambda _: [nowhere, folder])
    assert (total(array), n_compiled(total)) == (array.sum(), 0)
    total = make_total(lambda _: [nowhere])
    assert (total(other), n_compiled(total)) == (other.sum(), 1)
    assert len(files(folder)) == 1


def test_a_folder_that_is_given_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "package" / "module.py"
    source.parent.mkdir()
    source.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(config, "CACHE_DIR", "")
    beside, of_user = folders_for(source)
    assert beside == source.parent / "__pycache__"
    assert of_user == tmp_path / "user" / "anonymizer" / "package"
    assert list(folders_for(tmp_path / "gone.py")) != [beside]
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "given"))
    [given] = folders_for(source)
    assert given.parent == tmp_path / "given"


def test_packages_have_one_folder_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "given"))
    for place in ("here", "there"):
        source = tmp_path / place / "outer" / "inner" / "module.py"
        source.parent.mkdir(parents=True)
        for folder in (source.parent, source.parent.parent):
            (folder / "__init__.py").touch()
        assert list(folders_for(source)) == [tmp_path / "given" / "outer.inner"]


def test_machine_code_that_was_shipped_is_loaded_and_never_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array, other, *_ = ONE_ITEM_SIZE
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    make_total()(array)
    [path] = files(folder)
    path.rename(shipped / path.name)
    monkeypatch.setattr(kernel_cache, "SHIPPED", shipped)
    nowhere = [Path("/proc/nobody")]
    total = make_total(lambda _: nowhere)
    assert KernelCache(total).is_filled()
    assert (total(array), n_compiled(total)) == (array.sum(), 0)
    assert (total(other), n_compiled(total)) == (other.sum(), 1)
    total._cache.flush()
    assert [each.name for each in shipped.iterdir()] == [path.name]


def test_a_process_that_was_stopped_while_it_compiled_holds_up_no_other_for_long(
    folder: Path,
) -> None:
    array = ONE_ITEM_SIZE[0]
    make_total()(array)
    [path] = files(folder)
    path.unlink()
    with path.with_name(f"{path.name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        total = make_total(longest_wait_s=0.1)
        began = time.monotonic()
        assert total(array) == array.sum()
        assert time.monotonic() - began >= 0.1
    assert files(folder) == [path]


def test_code_that_checks_bounds_is_kept_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_total()(ONE_ITEM_SIZE[0])
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    make_total()(ONE_ITEM_SIZE[0])
    assert len(files(folder)) == 2


def test_a_kernel_that_is_called_with_constants_items_and_counts_is_compiled_once_for_all(
    folder: Path,
) -> None:
    total = make_total()

    @kernel
    def of_two(x: FloatArray) -> float:
        item = np.full(1, 3, np.int32)[0]
        return float(power(total(x), 2) + power(total(x), item) + power(total(x), len(x)))

    @kernel
    def power(x: float, n: int) -> float:
        return x**n

    assert of_two(np.ones(4)) == 4.0**2 + 4.0**3 + 4.0**4
    assert len(power.signatures) == 1  # type: ignore[attr-defined]
    assert len(files(folder)) == 3


@pytest.mark.usefixtures("folder")
def test_a_cache_is_filled_once_any_signature_is_compiled_and_can_be_emptied() -> None:
    total = make_total()
    assert not KernelCache(total).is_filled()
    total(ONE_ITEM_SIZE[0])
    assert KernelCache(total).is_filled()
    total._cache.flush()
    assert not KernelCache(total).is_filled()
