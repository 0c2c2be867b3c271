"""How a compiled kernel is declared, in one place."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba at first use, keep the result on disk, release the GIL.

    The types of the plain function stay visible to the type checker. With NUMBA_DISABLE_JIT=1
    the plain function runs, which is how branch coverage sees inside.
    """
    return _compiled(function, counts_references=True)


def inner_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that other kernels call, allocates nothing and returns numbers alone.

    The caller holds its arrays, so it counts no references to them. Unpacking a tuple of arrays
    costs nothing then; else it would often cost more than what the kernel does. numba refuses to
    compile one that allocates.
    """
    return _compiled(function, counts_references=False)


def _compiled(function: Callable[P, R], *, counts_references: bool) -> Callable[P, R]:
    # numba's own switch, which its documentation and types leave out. Said of every kernel: one
    # that does not say takes after the kernel that first calls it.
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": counts_references}
    compiled: Callable[P, R] = njit(**options)(function)
    return compiled
