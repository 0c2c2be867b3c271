"""Association: which devices that are followed one by one are in which pieces of a region.

A region says that each of its pieces holds at least one device of its group, and how many the group
has. A device that is alone near a piece must be in it, and is therefore in no other. Multiplying
what each device says alone would lose that. Here all assignments of devices to pieces are summed,
device by device: what matters about those before is which pieces they hold, and how many of them
are in a piece that another one holds (as in the exact form of joint probabilistic data association
[1]_).

References
----------
.. [1] Y. Bar-Shalom, F. Daum, J. Huang, "The probabilistic data association filter", IEEE Control
   Systems Magazine 29(6), 2009.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray

TINY = 1e-9
"""Unknown devices in a piece of which none is expected; no factor is above its inverse."""
MOST_PIECES = 10
"""More pieces are taken in parts, each as if the others said nothing about how many it holds."""


@kernel
def associate(
    inside: FloatArray, outside: FloatArray, unknown: FloatArray, size: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how many times as likely each place of each device becomes.

    Parameters
    ----------
    inside
        Probability that a device is in a piece and may be a member, shape (devices, pieces).
    outside
        Probability that it is no member, shape (devices,).
    unknown
        Expected number of other devices in each piece that may be members, shape (pieces,).
    size
        Number of members. A group with fewer members than pieces is taken to have as many.

    Returns
    -------
    factor
        Of being in each piece, shape (devices + 1, pieces); the last row is that of a device of
        which nothing is known. In relation to 1 for being no member.
    total
        What the probabilities of each device add up to after it, shape (devices + 1,).
    new
        Expected number of unknown devices in each piece after it, shape (pieces,).

    Notes
    -----
    O(devices * pieces * 2^pieces * (size - pieces + 1)).
    """
    n, m = inside.shape
    factor = np.ones((n + 1, m))
    n_parts = -(-m // MOST_PIECES)
    for part in range(n_parts):
        first, end = part * m // n_parts, (part + 1) * m // n_parts
        elsewhere = outside.copy()
        for j in range(n):
            for p in range(m):
                if not first <= p < end:
                    elsewhere[j] += inside[j, p]
        more = max(int(np.round(size)) - m, 0)
        factor[:, first:end] = _factors(
            np.ascontiguousarray(inside[:, first:end]),
            elsewhere,
            unknown[first:end] + TINY,
            more,
            n_parts == 1,
        )
    total = np.ones(n + 1)
    for j in range(n):
        total[j] = outside[j] + (inside[j] * factor[j]).sum()
    return factor, total, (unknown + TINY) * factor[n]


@kernel
def _factors(
    inside: FloatArray,
    outside: FloatArray,
    unknown: FloatArray,
    more: int,
    exactly: bool,  # noqa: FBT001  a kernel takes no keywords
) -> FloatArray:
    """Return `factor` for pieces that hold `more` devices than there are pieces, or up to so many.

    The weights of all assignments of the first devices are by state: the pieces that they hold, in
    bits, and how many of them are in a piece that an earlier one holds.
    """
    n, m = inside.shape
    n_states = 2**m * (more + 1)
    before, after = np.zeros((n + 1, n_states)), np.zeros((n + 1, n_states))
    before[0, 0] = 1.0
    for p in range(m):
        _add_unknown(before[0], unknown[p], p, more)
    for j in range(n):
        _add_device(before[j], before[j + 1], inside[j], outside[j], more)
    after[n, -1] = 1.0
    if not exactly:
        after[n, n_states - more - 1 :] = 1.0
    for j in range(n - 1, -1, -1):
        _take_device(after[j + 1], after[j], inside[j], outside[j], more)
    factor = np.empty((n + 1, m))
    for j in range(n + 1):
        rest = after[min(j + 1, n)]
        out = 0.0
        for s in range(n_states):
            out += before[j, s] * rest[s]
        for p in range(m):
            held = 0.0
            for s in range(n_states):
                then = _with_one_in(s, p, more)
                if then >= 0:
                    held += before[j, s] * rest[then]
            factor[j, p] = min(held / max(out, 1e-300), 1.0 / TINY)
    return factor


@inner_kernel
def _with_one_in(state: int, piece: int, more: int) -> int:
    """Return the state with another device in a piece, -1 if there is one too many."""
    held, extra = state // (more + 1), state % (more + 1)
    if not held >> piece & 1:
        return state + (1 << piece) * (more + 1)
    return state + 1 if extra < more else -1


@inner_kernel
def _add_unknown(weight: FloatArray, expected: float, piece: int, more: int) -> None:
    """Put any number of unknown devices in a piece that no other device holds yet."""
    for s in range((1 << piece) * (more + 1)):
        then, each = s, weight[s]
        for count in range(1, more + 2):
            then = _with_one_in(then, piece, more)
            if then < 0:
                break
            each *= expected / count
            weight[then] += each


@inner_kernel
def _add_device(
    weight: FloatArray, then: FloatArray, inside: FloatArray, outside: float, more: int
) -> None:
    """Set the weights with one device more, such that the largest is 1."""
    largest = 0.0
    for s in range(len(weight)):
        if weight[s] > 0.0:
            then[s] += weight[s] * outside
            for p in range(len(inside)):
                to = _with_one_in(s, p, more) if inside[p] > 0.0 else -1
                if to >= 0:
                    then[to] += weight[s] * inside[p]
    for s in range(len(weight)):
        largest = max(largest, then[s])
    for s in range(len(weight)):
        then[s] /= max(largest, 1e-300)


@inner_kernel
def _take_device(
    then: FloatArray, weight: FloatArray, inside: FloatArray, outside: float, more: int
) -> None:
    """Set the weights of what is still missing before a device, such that the largest is 1."""
    largest = 0.0
    for s in range(len(weight)):
        weight[s] = then[s] * outside
        for p in range(len(inside)):
            to = _with_one_in(s, p, more) if inside[p] > 0.0 else -1
            if to >= 0:
                weight[s] += then[to] * inside[p]
        largest = max(largest, weight[s])
    for s in range(len(weight)):
        weight[s] /= max(largest, 1e-300)
