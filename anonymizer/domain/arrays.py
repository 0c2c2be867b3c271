"""Names of the array types that cross module boundaries."""

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
