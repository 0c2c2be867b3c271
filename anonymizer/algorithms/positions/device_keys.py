"""Keys of devices: numbers that are equal in every process, in which slots are not."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import Int32Array

KeyArray: TypeAlias = NDArray[np.uint64]
Keys: TypeAlias = Callable[[Int32Array], KeyArray]
"""Returns the key of the device in each slot."""


def slots_as_keys(slot: Int32Array) -> KeyArray:
    """Return the slots themselves, where every device keeps its slot."""
    return slot.astype(np.uint64)
