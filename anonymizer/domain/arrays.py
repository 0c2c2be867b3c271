"""Array types that cross module boundaries, compressed sparse rows, and columns that grow."""

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int8Array: TypeAlias = NDArray[np.int8]
Int32Array: TypeAlias = NDArray[np.int32]
RecordArray: TypeAlias = NDArray[np.void]
UInt8Array: TypeAlias = NDArray[np.uint8]
_Item = TypeVar("_Item", bound=np.generic)


def starts_of(sizes: IntArray) -> IntArray:
    """Return the start of each row of compressed sparse rows, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def with_room(items: NDArray[_Item], n: int) -> NDArray[_Item]:
    """Return an array of at least `n` items that begins with these; the rest is zero."""
    if len(items) >= n:
        return items
    wider = np.zeros((max(n, 2 * len(items)), *items.shape[1:]), items.dtype)
    wider[: len(items)] = items
    return wider
