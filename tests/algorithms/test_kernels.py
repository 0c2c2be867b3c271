"""Kernels without reference counting: they cannot allocate, and they release what they borrow."""

import importlib
import signal
import sys
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numba.core.errors import NumbaError

import anonymizer
from anonymizer.algorithms.digit_sort import N_DIGITS, sort_by_digits
from anonymizer.algorithms.kernels import (
    copy_items,
    inner_kernel,
    kernel,
    sort_in_place,
)
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.kernel_cache import KernelCache


@inner_kernel
def _total(pair: tuple[FloatArray, FloatArray]) -> float:
    one, other = pair
    return float(one[1:].sum() + other.sum())


@inner_kernel
def _allocating(n: int) -> float:
    return float(np.zeros(n).sum())


@kernel
def _copies(n: int, pair: tuple[FloatArray, FloatArray]) -> FloatArray:
    out = np.zeros(n)
    for i in range(n):
        out[i] = _total(pair)
    return out


@kernel
def _outer(n: int) -> float:
    return _allocating(n)


@pytest.mark.compiled
def test_a_kernel_that_counts_no_references_cannot_allocate() -> None:
    with pytest.raises(NumbaError):
        _outer(3)


@pytest.mark.compiled
def test_an_inner_kernel_leaves_the_reference_counts_of_its_arguments_unchanged() -> None:
    pair = (np.arange(3.0), np.ones(2))
    before = [sys.getrefcount(array) for array in pair]
    assert _copies(1000, pair).tolist() == [5.0] * 1000
    assert [sys.getrefcount(array) for array in pair] == before


class _Pair(NamedTuple):
    one: FloatArray
    other: FloatArray


def test_a_kernel_that_returns_a_named_tuple_is_refused() -> None:
    def pair(n: int) -> _Pair:
        return _Pair(np.ones(n), np.zeros(n))

    with pytest.raises(TypeError, match="pair returns a NamedTuple"):
        kernel(pair)


@kernel
def _slow_pair(n: int) -> tuple[FloatArray, FloatArray]:
    total = 0.0
    for i in range(n):
        total += np.sqrt(i % 7)
    return np.full(3, total), np.full(2, total)


class _TimeIsUpError(Exception):
    pass


@pytest.mark.compiled
def test_a_signal_handler_that_raises_while_a_kernel_runs_does_not_crash() -> None:
    _slow_pair(1)

    def stop(*_: object) -> None:
        raise _TimeIsUpError

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
        # numba goes on to convert the second array, and Python then notices the exception.
        with pytest.raises((_TimeIsUpError, SystemError)):
            _slow_pair(100_000_000)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.compiled
def test_a_cache_of_a_type_that_has_been_renamed_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def ratio(pair: _Pair) -> float:
        return float(pair.one[0] / pair.other[0])

    pair = _Pair(np.ones(1), np.full(1, 2.0))
    assert kernel(ratio)(pair) == 0.5
    [path] = tmp_path.rglob("*.nbc")
    content = path.read_bytes()[16:].replace(b"_Pair", b"_Gone")
    path.write_bytes(blake2b(content, digest_size=16).digest() + content)
    assert kernel(ratio)(pair) == 0.5
    assert b"_Gone" not in path.read_bytes()


_INNER = """
from anonymizer.algorithms.kernels import inner_kernel
FACTOR = 2.0
@inner_kernel
def scaled(x: float) -> float:
    return 2.0 * x
"""
_CALLER = """
from anonymizer.scaling_of_a_test import (
    FACTOR,
    scaled,
)
from anonymizer.algorithms.kernels import kernel
@kernel
def twice_scaled(x: float) -> float:
    return scaled(x) * FACTOR
"""


@pytest.mark.compiled
def test_a_kernel_is_compiled_anew_when_what_it_imports_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anonymizer, "__path__", [*anonymizer.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "calling_of_a_test.py").write_text(_CALLER)
    found = []
    for text in (_INNER, _INNER.replace("2.0 * x", "3.0 * x"), _INNER.replace("= 2.0", "= 5.0")):
        (tmp_path / "scaling_of_a_test.py").write_text(text)
        importlib.invalidate_caches()
        for name in ("scaling_of_a_test", "calling_of_a_test"):
            monkeypatch.delitem(sys.modules, f"anonymizer.{name}", raising=False)
        module = importlib.import_module("anonymizer.calling_of_a_test")
        found.append(module.twice_scaled(1.0))
        assert KernelCache(module.twice_scaled).is_filled()
    assert found == [4.0, 6.0, 10.0]


@given(st.lists(st.integers(-9, 9), max_size=300), st.sampled_from([np.int32, np.int64]))
def test_sorting_in_place_orders_short_and_long_arrays(items: list[int], kind: type) -> None:
    array: Int32Array | IntArray = np.array(items, kind)
    sort_in_place(array)
    assert array.tolist() == sorted(items)


@given(st.lists(st.integers(0, 9) | st.integers(0, 2**31 - 1), max_size=300))
def test_sorting_by_digits_orders_small_and_large_numbers(items: list[int]) -> None:
    array = np.array(items, np.int32)
    sort_by_digits(array, np.empty(len(items), np.int32), np.empty(N_DIGITS, np.int64))
    assert array.tolist() == sorted(items)


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(0, 5))
def test_copied_items_stand_where_they_were_sent_and_nothing_else_changes(
    items: list[int], at: int
) -> None:
    target = np.full(at + len(items) + 1, -1)
    copy_items(np.array(items, np.int64), target, at, len(items))
    assert target.tolist() == [-1] * at + items + [-1]
