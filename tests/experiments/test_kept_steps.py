import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.errors import InputError
from experiments.kept_steps import FILE, KeptSteps, PartialResults


@dataclass(frozen=True, slots=True)
class Found:
    n: int
    value: float


def counted(kept: KeptSteps, steps: list[int]) -> tuple[list[Found], list[int]]:
    """Return the results of steps, and which of them were found anew."""
    anew: list[int] = []

    def find(step: int) -> Found:
        anew.append(step)
        return Found(step, step / 7)

    return [kept.result(Found, f"step {s}", lambda s=s: find(s)) for s in steps], anew  # type: ignore[misc]


@given(n=st.integers(0, 12), torn=st.integers(0, 400))
def test_whatever_is_torn_off_a_second_run_finds_the_rest_and_ends_as_the_first(
    tmp_path_factory: pytest.TempPathFactory, n: int, torn: int
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    whole, _ = counted(KeptSteps(folder, {"seed": 1}), list(range(n)))
    file = folder / FILE
    left = file.read_bytes()[: max(0, file.stat().st_size - torn)]
    file.write_bytes(left)
    again, anew = counted(KeptSteps(folder, {"seed": 1}), list(range(n)))
    assert again == whole
    assert anew == list(range(n))[n - len(anew) :]
    assert len(anew) >= n - len(left.splitlines())
    assert not counted(KeptSteps(folder, {"seed": 1}), list(range(n)))[1]


def test_a_step_is_in_the_file_as_soon_as_it_is_found(tmp_path: Path) -> None:
    kept = KeptSteps(tmp_path / "deep" / "out", {})
    for n in range(3):
        counted(kept, [n])
        lines = (tmp_path / "deep" / "out" / FILE).read_text().splitlines()
        assert [json.loads(line)["result"]["n"] for line in lines] == list(range(n + 1))


def test_results_of_other_options_are_dropped(tmp_path: Path) -> None:
    counted(KeptSteps(tmp_path, {"seed": 1}), [1, 2])
    assert KeptSteps(tmp_path, {"seed": 1}).n_kept == 2
    assert counted(KeptSteps(tmp_path, {"seed": 2}), [1])[1] == [1]
    assert KeptSteps(tmp_path, {"seed": 2}).n_kept == 1
    assert KeptSteps(tmp_path, {"seed": 1}).n_kept == 0


def test_numbers_of_numpy_are_kept_as_they_are(tmp_path: Path) -> None:
    value = float(np.float64(0.1) + np.float64(0.2))
    for _ in range(2):
        found = KeptSteps(tmp_path, {}).result(Found, "a", lambda: Found(np.int64(3), value))  # type: ignore[arg-type]
        assert found == Found(3, value)


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    assert counted(KeptSteps(None, {}), [1])[1] == [1]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="taken"):
        KeptSteps(tmp_path / "taken", {})


def test_writing_takes_at_most_a_tenth_of_the_time() -> None:
    now, spent = 0.0, 0.0

    def write(_found: int) -> None:
        nonlocal now, spent
        now += 3.0
        spent += 3.0

    partial = PartialResults(write, clock=lambda: now)
    for step in range(2_000):
        now += 0.5
        partial(step)
    assert 0.05 * now < spent < 0.1 * now


@pytest.mark.parametrize(("error", "written"), [(KeyboardInterrupt, [2]), (ValueError, [])])
def test_who_interrupts_gets_what_is_found_and_a_fault_writes_nothing(
    error: type[BaseException], written: list[int]
) -> None:
    found: list[int] = []

    def run() -> None:
        with PartialResults(found.append) as partial:
            partial(1)
            partial(2)
            raise error

    with pytest.raises(error):
        run()
    assert found == written
