"""Members and readings of a layout, as the compiled reader looks them up and notes them."""

from anonymizer.algorithms.kernels import inlined_kernel, inner_kernel
from anonymizer.codecs.layouts import Role
from anonymizer.domain.arrays import IntArray, RecordArray
from anonymizer.pipeline.name_hashes import Bytes

_KIND = int(Role.KIND)


def name_place(low: int) -> int:
    """Return a number below 63 for the code of a name: most that are no members have other ones."""
    return (low ^ low >> 13 ^ low >> 26 ^ low >> 39) % 63


_place = inlined_kernel(name_place)


@inlined_kernel
def member_index(members: RecordArray, low: int, high: int) -> int:
    """Return the index of the member whose name has this code, -1 if the layout has none."""
    if len(members) and members[0]["places"] >> _place(low) & 1 == 0:
        return -1
    for j in range(len(members)):
        if members[j]["low"] == low and members[j]["high"] == high:
            return j
    return -1


@inlined_kernel
def has_kind(members: RecordArray, seen: int) -> bool:
    """Return whether the kind of the message is stated, if the layout asks for it.

    Bit j of `seen` says that member j is stated.
    """
    for j in range(len(members)):
        if members[j]["role"] == _KIND and seen >> j & 1 == 0:
            return False
    return True


@inner_kernel
def name_index(name: Bytes, names: Bytes, name_end: IntArray) -> int:
    """Return the index of a declared reading, -1 if it is not declared."""
    for j in range(len(name_end) - 1):
        begin = name_end[j]
        if name_end[j + 1] - begin == len(name):
            i = 0
            while i < len(name) and name[i] == names[begin + i]:
                i += 1
            if i == len(name):
                return j
    return -1


@inner_kernel
def is_noted(readings: RecordArray, n: int, row: int, attribute: int) -> bool:
    """Return whether the last position, `row`, has a reading of this attribute among the `n`."""
    at = n - 1
    while at >= 0 and readings[at]["row"] == row:
        if readings[at]["attribute"] == attribute:
            return True
        at -= 1
    return False


@inner_kernel
def note(readings: RecordArray, n: int, row: int, attribute: int, value: float) -> int:
    """Put down reading `n`; return how many there are now."""
    readings[n]["row"], readings[n]["attribute"], readings[n]["value"] = row, attribute, value
    return n + 1
