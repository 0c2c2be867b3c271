"""Association: which devices that are followed one by one are in which pieces of a region.

A region says that each of its pieces holds at least one device of its group, and how many the group
has. A device that is alone near a piece must be in it, and is therefore in no other. Multiplying
what each device says alone would lose that; to enumerate all assignments takes too long.
Belief propagation between devices and pieces comes close to it (Williams and Lau [1]_).

References
----------
.. [1] J. Williams, R. Lau, "Approximate evaluation of marginal association probabilities with
   belief propagation", IEEE Transactions on Aerospace and Electronic Systems 50(4), 2014.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray

TINY = 1e-9
"""Unknown devices in a piece of which none is expected."""
_HALVINGS = 24
_ROUNDS = 8
"""Exchanges of messages for each halving; they go on from the last ones."""
_LAST_ROUNDS = 40
_LOG_ODDS = (-12.0, 12.0)


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
        Number of members.

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
    All odds of being a member have the same factor, such that the expected number of members is
    `size`. Messages are damped by half. O(devices * pieces), some hundred times.
    """
    n, m = inside.shape
    low, high = _LOG_ODDS
    message = np.ones((n + 1, m))
    odds = 1.0
    for _ in range(_HALVINGS):
        odds = np.exp((low + high) / 2)
        if _exchange(inside, outside, unknown, odds, message, _ROUNDS) < size:
            low = (low + high) / 2
        else:
            high = (low + high) / 2
    _exchange(inside, outside, unknown, odds, message, _LAST_ROUNDS)
    factor = odds * message
    total = np.ones(n + 1)
    for j in range(n):
        total[j] = outside[j] + (inside[j] * factor[j]).sum()
    return factor, total, (unknown + TINY) * factor[n]


@kernel
def _exchange(
    inside: FloatArray,
    outside: FloatArray,
    unknown: FloatArray,
    odds: float,
    message: FloatArray,
    rounds: int,
) -> float:
    """Exchange messages; return how many members are expected with them."""
    n, m = inside.shape
    share = np.empty((n, m))
    for _ in range(rounds):
        none_of = -odds * (unknown + TINY)
        for j in range(n):
            within = odds * inside[j] * message[j]
            total = outside[j] + within.sum()
            for p in range(m):
                here, others = odds * inside[j, p], max(total - within[p], 0.0)
                share[j, p] = min(here / (here + others + 1e-300), 1.0 - TINY)
                none_of[p] += np.log1p(-share[j, p])
        _answer(share, none_of, message)
    members = (odds * (unknown + TINY) * message[n]).sum()
    for j in range(n):
        member = (odds * inside[j] * message[j]).sum()
        members += member / (outside[j] + member + 1e-300)
    return float(members)


@inner_kernel
def _answer(share: FloatArray, none_of: FloatArray, message: FloatArray) -> None:
    """Move each message half way to how much more likely a piece is held if the device is in it."""
    n, m = share.shape
    for p in range(m):
        for j in range(n):
            held = -np.expm1(none_of[p] - np.log1p(-share[j, p]))
            message[j, p] = (message[j, p] + 1.0 / max(held, TINY)) / 2
        message[n, p] = (message[n, p] + 1.0 / max(-np.expm1(none_of[p]), TINY)) / 2
