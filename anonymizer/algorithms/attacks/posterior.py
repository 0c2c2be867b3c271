"""Marginals of a uniform distribution over one-to-one assignments.

Rows are groups of interchangeable pseudonyms, each of which takes as many devices as it has
members; columns are devices, each of which goes to one row. A device's share in a row is the
probability that it goes there. Within a row pseudonyms are interchangeable, so each of its m
members has the device with a probability of share / m.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

_TOLERANCE = 1e-7
_MAX_ROUNDS = 500


def exact_shares(allowed: BoolArray, capacity: IntArray) -> FloatArray:
    """Return the shares by counting all assignments, same shape as `allowed`.

    Parameters
    ----------
    allowed
        Whether a device may go to a row, shape (devices, rows).
    capacity
        Devices that each row takes, all of them together, shape (rows,). Some assignment must
        exist.

    Notes
    -----
    A dynamic programme over devices whose state is how full each row is, forwards and
    backwards: O(devices * rows * product of (capacity + 1)). This is the permanent of the
    pseudonym-device matrix with its equal rows merged, where Ryser's formula would take
    O(2^pseudonyms).
    """
    return _exact_shares(allowed, capacity)


def log_states(capacity: IntArray) -> float:
    """Return the logarithm of how many states `exact_shares` goes through for each device."""
    return float(np.log1p(capacity).sum())


def balanced_shares(row: IntArray, device: IntArray, capacity: IntArray) -> FloatArray:
    """Return approximate shares by balancing a sparse matrix, shape (edges,).

    Parameters
    ----------
    row, device
        The allowed pairs, each of which is part of some full assignment, shape (edges,).
    capacity
        Devices that each row takes, shape (rows,); their sum is the number of devices.

    Returns
    -------
    share
        A device's shares sum to 1, a row's to its capacity within about 1e-7 of it (or what
        500 rounds reach). No member of a row of m is told from the others by more than 1 / m.

    Notes
    -----
    Sinkhorn and Knopp's alternating scaling finds the matrix of maximum entropy with these
    sums [1]_. It is the mean-field counterpart of the Bethe approximation of the permanent
    [2]_; the counts themselves are #P-hard. O(edges) a round.

    References
    ----------
    .. [1] R. Sinkhorn, P. Knopp, "Concerning nonnegative matrices and doubly stochastic
       matrices", Pacific Journal of Mathematics 21(2), 1967.
    .. [2] P. O. Vontobel, "The Bethe permanent of a nonnegative matrix", IEEE Transactions on
       Information Theory 59(3), 2013.
    """
    n_devices = int(device.max()) + 1
    return _balance(row, device, capacity.astype(np.float64), n_devices, _MAX_ROUNDS, _TOLERANCE)


@kernel
def _exact_shares(allowed: BoolArray, capacity: IntArray) -> FloatArray:
    n_devices, n_rows = allowed.shape
    stride = np.ones(n_rows, np.int64)
    for r in range(1, n_rows):
        stride[r] = stride[r - 1] * (capacity[r - 1] + 1)
    n = stride[-1] * (capacity[-1] + 1)
    # ways_to[d, s]: of giving the first d devices away so that the rows are as full as s says;
    # ways_on[d, s]: of giving the others away from there.
    ways_to = np.zeros((n_devices + 1, n))
    ways_on = np.zeros((n_devices + 1, n))
    ways_to[0, 0] = 1.0
    ways_on[n_devices, n - 1] = 1.0
    for d in range(n_devices):
        _give(ways_to[d], ways_to[d + 1], allowed[d], capacity, stride, False)
    for d in range(n_devices - 1, -1, -1):
        _give(ways_on[d + 1], ways_on[d], allowed[d], capacity, stride, True)
    share = np.zeros((n_devices, n_rows))
    for d in range(n_devices):
        for r in range(n_rows):
            for s in range(n - stride[r]):
                if allowed[d, r] and (s // stride[r]) % (capacity[r] + 1) < capacity[r]:
                    share[d, r] += ways_to[d, s] * ways_on[d + 1, s + stride[r]]
    total: float = ways_to[n_devices, n - 1]
    return share / total


@kernel
def _give(
    ways: FloatArray,
    ways_then: FloatArray,
    allowed: BoolArray,
    capacity: IntArray,
    stride: IntArray,
    back: bool,  # noqa: FBT001  a kernel takes no keywords
) -> None:
    """Add up the ways after one device more (`back`: before one more)."""
    for r in range(len(capacity)):
        for s in range(len(ways) - stride[r]):
            if allowed[r] and (s // stride[r]) % (capacity[r] + 1) < capacity[r]:
                fuller = s + stride[r]
                if back:
                    ways_then[s] += ways[fuller]
                else:
                    ways_then[fuller] += ways[s]


@kernel
def _balance(
    row: IntArray,
    device: IntArray,
    capacity: FloatArray,
    n_devices: int,
    max_rounds: int,
    tolerance: float,
) -> FloatArray:
    share = np.ones(len(row))
    row_sum = np.empty(len(capacity))
    device_sum = np.empty(n_devices)
    for _ in range(max_rounds):
        row_sum[:] = 0.0
        for e in range(len(row)):
            row_sum[row[e]] += share[e]
        if np.all(np.abs(row_sum - capacity) <= tolerance * capacity):
            break
        device_sum[:] = 0.0
        for e in range(len(row)):
            share[e] *= capacity[row[e]] / row_sum[row[e]]
            device_sum[device[e]] += share[e]
        for e in range(len(row)):
            share[e] /= device_sum[device[e]]
    return share
