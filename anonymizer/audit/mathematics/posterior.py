"""Posterior probabilities: marginals of a uniform distribution over one-to-one assignments.

A row is a group of interchangeable pseudonyms and takes as many devices as it has members. Each
device goes to one row. A device's share in a row is the probability that it goes there; each of
the row's m members has the device with a probability of share / m.
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
        Number of devices that each row takes, shape (rows,); the sum is the number of devices.
        At least one assignment must exist.

    Notes
    -----
    A dynamic program over the devices, forwards and backwards, whose state is the fill level of
    each row: O(devices * rows * product of (capacity + 1)). It computes the permanent of the
    pseudonym-device matrix with equal rows merged, for which Ryser's formula would take
    O(2^pseudonyms).
    """
    return _exact_shares(allowed, capacity)


def log_states(capacity: IntArray) -> float:
    """Return the logarithm of the number of states that `exact_shares` visits for each device."""
    return float(np.log1p(capacity).sum())


def balanced_shares(row: IntArray, device: IntArray, capacity: IntArray) -> FloatArray:
    """Return approximate shares by balancing a sparse matrix, shape (edges,).

    Parameters
    ----------
    row, device
        The allowed pairs, each of which occurs in some full assignment, shape (edges,).
    capacity
        Number of devices that each row takes, shape (rows,); the sum is the number of devices.

    Returns
    -------
    share
        The shares of a device sum to 1. Those of a row sum to its capacity, within a relative
        error of about 1e-7 (or what 500 rounds achieve).

    Notes
    -----
    The alternating scaling of Sinkhorn and Knopp finds the matrix of maximum entropy with these
    sums [1]_. It is the mean-field counterpart of the Bethe approximation of the permanent
    [2]_; exact counting is #P-hard. O(edges) a round.

    References
    ----------
    .. [1] R. Sinkhorn, P. Knopp, "Concerning nonnegative matrices and doubly stochastic
       matrices", Pacific Journal of Mathematics 21(2), 1967.
    .. [2] P. O. Vontobel, "The Bethe permanent of a nonnegative matrix", IEEE Transactions on
       Information Theory 59(3), 2013.
    """
    n_devices = int(device.max()) + 1
    row, device = np.ascontiguousarray(row), np.ascontiguousarray(device)
    return _balance(row, device, capacity.astype(np.float64), n_devices, _MAX_ROUNDS, _TOLERANCE)


@kernel
def _exact_shares(allowed: BoolArray, capacity: IntArray) -> FloatArray:
    n_devices, n_rows = allowed.shape
    stride = np.ones(n_rows, np.int64)
    for r in range(1, n_rows):
        stride[r] = stride[r - 1] * (capacity[r - 1] + 1)
    n = stride[-1] * (capacity[-1] + 1)
    # ways_to[d, s]: number of ways to assign the first d devices so that the fill levels are s;
    # ways_on[d, s]: number of ways to assign the other devices from there.
    ways_to = np.zeros((n_devices + 1, n))
    ways_on = np.zeros((n_devices + 1, n))
    ways_to[0, 0] = 1.0
    ways_on[n_devices, n - 1] = 1.0
    for d in range(n_devices):
        _assign(ways_to[d], ways_to[d + 1], allowed[d], capacity, stride, False)
    for d in range(n_devices - 1, -1, -1):
        _assign(ways_on[d + 1], ways_on[d], allowed[d], capacity, stride, True)
    share = np.zeros((n_devices, n_rows))
    for d in range(n_devices):
        for r in range(n_rows):
            for s in range(n - stride[r]):
                if allowed[d, r] and (s // stride[r]) % (capacity[r] + 1) < capacity[r]:
                    share[d, r] += ways_to[d, s] * ways_on[d + 1, s + stride[r]]
    total: float = ways_to[n_devices, n - 1]
    return share / total


@kernel
def _assign(
    ways: FloatArray,
    ways_next: FloatArray,
    allowed: BoolArray,
    capacity: IntArray,
    stride: IntArray,
    back: bool,  # noqa: FBT001  a kernel takes no keywords
) -> None:
    """Add up the ways with one more device assigned (`back`: with one fewer)."""
    for r in range(len(capacity)):
        for s in range(len(ways) - stride[r]):
            if allowed[r] and (s // stride[r]) % (capacity[r] + 1) < capacity[r]:
                fuller = s + stride[r]
                if back:
                    ways_next[s] += ways[fuller]
                else:
                    ways_next[fuller] += ways[s]


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
