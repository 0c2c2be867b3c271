"""Decorators that compile a function with numba: the only place where kernels are declared."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core.dispatcher import Dispatcher

from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.kernel_cache import KernelCache, current_background, keep_on_disk

_SHORT = 64
P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba at first use, cache the result on disk, release the GIL.

    The types of the plain function stay visible to the type checker. With NUMBA_DISABLE_JIT=1
    the plain function runs, so that branch coverage can be measured.

    Raises
    ------
    TypeError
        If the function returns a NamedTuple. numba crashes if a signal handler raises (Ctrl-C, the
        time limit of a test) while such a kernel runs. A plain tuple is safe.
    """
    if hasattr(function.__annotations__.get("return"), "_fields"):
        raise TypeError(f"{function.__name__} returns a NamedTuple, in place of a plain tuple")
    return _compiled(function, counts_references=True)


def inner_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that only other kernels call, that allocates nothing and returns numbers.

    The caller owns the arrays, so the kernel need not count references to them. Unpacking a tuple
    of arrays then costs nothing; with counting it often costs more than the kernel itself. numba
    refuses to compile such a kernel if it allocates.
    """
    return _compiled(function, counts_references=False)


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an `inner_kernel` into each kernel that calls it: for what runs for every byte.

    A call passes seven numbers for each array, which takes longer than a few lines of work. Each
    place that calls it gets a copy, which takes time to compile.
    """
    return _compiled(function, counts_references=False, is_inlined=True)


def meanwhile(plain: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let another function run where a kernel would as Python, see `kernel_background`.

    It returns the same. For kernels that the event loop calls for every byte that arrives: as
    Python they take a hundred times as long, and the loop stands still.
    """

    def said(kernel: Callable[P, R]) -> Callable[P, R]:
        stated: Any = kernel
        if isinstance(stated, Dispatcher):
            stated.in_python = plain  # type: ignore[attr-defined]  # ours, not numba's
        return kernel

    return said


def runs_as_python(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel is still being compiled in the background, see `kernel_background`.

    It takes a hundred times as long until then.
    """
    return (
        current_background() is not None
        and isinstance(kernel, Dispatcher)
        and not KernelCache(kernel).is_filled()
    )


def _compiled(
    function: Callable[P, R], *, counts_references: bool, is_inlined: bool = False
) -> Callable[P, R]:
    # `_nrt` is a switch of numba that its documentation and types leave out. It is set for every
    # kernel, because a kernel without it inherits it from the first kernel that calls it.
    options: dict[str, Any] = {"nogil": True, "_nrt": counts_references}
    options["forceinline"] = is_inlined
    # None is handed on as a function pointer, the only use of this wrapper.
    options["no_cfunc_wrapper"] = True
    compiled: Callable[P, R] = njit(**options)(function)
    if isinstance(compiled, Dispatcher):  # not where NUMBA_DISABLE_JIT is set
        keep_on_disk(compiled)
    return compiled


@inner_kernel
def copy_items(
    source: Int32Array | IntArray, target: Int32Array | IntArray, at: int, n: int
) -> None:
    """Copy the first `n` items of an array to index `at` of another.

    numba's slice assignment takes almost two seconds to compile: it can say which shapes differ.
    """
    for i in range(n):
        target[at + i] = source[i]


@inner_kernel
def sort_in_place(items: Int32Array | IntArray) -> None:
    """Sort in place; by insertion where the array is short, which is the usual case here.

    numba's own sort takes longer to compile than most kernels that call it. Longer arrays are
    heapsorted. O(n log n).
    """
    n = len(items)
    if n <= _SHORT:
        for i in range(1, n):
            item, at = items[i], i
            while at > 0 and items[at - 1] > item:
                items[at] = items[at - 1]
                at -= 1
            items[at] = item
        return
    for start in range(n // 2 - 1, -1, -1):
        _sift_down(items, start, n)
    for end in range(n - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        _sift_down(items, 0, end)


@inner_kernel
def _sift_down(items: Int32Array | IntArray, at: int, end: int) -> None:
    """Move an item down the heap `items[:end]` until it is no smaller than its children."""
    item = items[at]
    child = 2 * at + 1
    while child < end:
        if child + 1 < end and items[child + 1] > items[child]:
            child += 1
        if items[child] <= item:
            break
        items[at] = items[child]
        at, child = child, 2 * child + 1
    items[at] = item
