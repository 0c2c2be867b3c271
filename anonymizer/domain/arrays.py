"""Array types that cross module boundaries, compressed sparse rows, and columns that grow."""

from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

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


def distinct(items: NDArray[_Item]) -> NDArray[_Item]:
    """Return the different items, in order: `np.unique` hashes, and takes 20 times as long."""
    ordered: NDArray[_Item] = np.sort(items)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def check_indices(index: NDArray[np.integer[Any]], n: int) -> None:
    """Check stored indices before a kernel follows them: below `n`; negative ones stand for none.

    Raises `ValueError` if one is not.
    """
    if len(index) and index.max() >= n:
        raise ValueError("a stored index is out of range")


def digest_of(*parts: bytes | NDArray[Any] | None) -> bytes:
    """Return 16 bytes that are equal for equal content, types and shapes alone."""
    digest = blake2b(digest_size=16)
    for part in parts:
        array = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
        if array is None:
            digest.update(b"none;")
            continue
        digest.update(f"{array.dtype.str}{array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()
