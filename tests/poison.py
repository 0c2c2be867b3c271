"""A plug-in for pytest: memory that nobody has written yet is full of nonsense.

    NUMBA_DISABLE_JIT=1 python -m pytest -p tests.poison tests/pipeline

What `np.empty` returns is usually zero in a test, and the data of another device in a service. Here
it is what no test expects, in plain Python; numba looks `np.empty` up by identity, so kernels
that are compiled have MALLOC_PERTURB_ instead (`make soak` does both).
"""

from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTE = 0xCB
"""Fills what is not written, as in `make soak`: integers are far below zero then."""
_empty, _empty_like = np.empty, np.empty_like


def filled(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of nonsense in place of one that is not written yet."""
    if array.size and not array.dtype.hasobject and array.flags.forc:
        array.reshape(-1, order="A").view(np.uint8).fill(BYTE)
    return array


@wraps(_empty)  # numpy reads the text of its own functions
def empty(*args: Any, **kwargs: Any) -> NDArray[Any]:  # noqa: ANN401  as numpy has them
    """Return what `np.empty` returns, filled."""
    return filled(_empty(*args, **kwargs))


@wraps(_empty_like)
def empty_like(*args: Any, **kwargs: Any) -> NDArray[Any]:  # noqa: ANN401
    """Return what `np.empty_like` returns, filled."""
    return filled(_empty_like(*args, **kwargs))


np.empty, np.empty_like = empty, empty_like  # type: ignore[assignment, misc]
