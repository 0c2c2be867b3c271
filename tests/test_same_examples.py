"""Property tests meet the same examples in every run."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def _examples() -> list[tuple[int, float, str]]:
    met = []

    @settings(max_examples=200, database=None)
    @given(st.integers(0, 10**6), st.floats(0, 1000), st.text(max_size=12))
    def meet(number: int, share: float, word: str) -> None:
        met.append((number, share, word))

    meet()
    return met


def test_examples_do_not_depend_on_what_was_loaded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _examples()
    path = tmp_path / "full_of_numbers.py"
    values = [*range(1000, 1400), *(each + 0.25 for each in range(300)), "gather", "a word"]
    path.write_text("".join(f"X{i} = {value!r}\n" for i, value in enumerate(values)))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, path.stem, module)
    assert _examples() == before
