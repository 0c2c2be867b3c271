"""Radix sort of the nodes of a region, some dozen to some thousand."""

from anonymizer.algorithms.kernels import copy_items, inner_kernel
from anonymizer.domain.arrays import Int32Array, IntArray

_BITS = 8
N_DIGITS = 1 << _BITS


@inner_kernel
def sort_by_digits(items: Int32Array, spare: Int32Array, ends: IntArray) -> None:
    """Sort some dozen items or more, none of them negative, from the lowest digit on (radix sort).

    `spare` is no shorter; `ends` has the shape (N_DIGITS,). O(n) for each digit.
    """
    n, largest, shift = len(items), 0, 0
    for item in items:
        largest = max(largest, item)
    while largest >> shift:
        for digit in range(N_DIGITS):
            ends[digit] = 0
        for item in items:
            ends[(item >> shift) & (N_DIGITS - 1)] += 1
        for digit in range(1, N_DIGITS):
            ends[digit] += ends[digit - 1]
        for i in range(n - 1, -1, -1):
            digit = (items[i] >> shift) & (N_DIGITS - 1)
            ends[digit] -= 1
            spare[ends[digit]] = items[i]
        copy_items(spare, items, 0, n)
        shift += _BITS
