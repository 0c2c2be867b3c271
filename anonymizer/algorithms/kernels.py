"""How a compiled kernel is declared, in one place."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba at first use, keep the result on disk, release the GIL.

    The types of the plain function stay visible to the type checker. With NUMBA_DISABLE_JIT=1
    the plain function runs, which is how branch coverage sees inside.
    """
    compiled: Callable[P, R] = njit(cache=True, nogil=True)(function)
    return compiled
