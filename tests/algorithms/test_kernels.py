"""Kernels without reference counting: they cannot allocate, and they release what they borrow."""

import os
import sys

import numpy as np
import pytest
from numba.core.errors import NumbaError

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)


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


@compiled
def test_a_kernel_that_counts_no_references_cannot_allocate() -> None:
    with pytest.raises(NumbaError):
        _outer(3)


@compiled
def test_an_inner_kernel_leaves_the_reference_counts_of_its_arguments_unchanged() -> None:
    pair = (np.arange(3.0), np.ones(2))
    before = [sys.getrefcount(array) for array in pair]
    assert _copies(1000, pair).tolist() == [5.0] * 1000
    assert [sys.getrefcount(array) for array in pair] == before
