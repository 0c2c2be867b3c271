"""Array types that cross module boundaries, and compressed sparse rows."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int8Array: TypeAlias = NDArray[np.int8]
Int32Array: TypeAlias = NDArray[np.int32]
RecordArray: TypeAlias = NDArray[np.void]
UInt8Array: TypeAlias = NDArray[np.uint8]


def starts_of(sizes: IntArray) -> IntArray:
    """Return the start of each row of compressed sparse rows, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
