"""Attacks on counts: trajectories recovered from them, and whether a device is in them.

Counts of devices by cell and time have no names. Still, devices move little between two times, so
that an assignment of the counts of one time to those of the next recovers trajectories [1]_. And
an adversary who knows where somebody was can find out whether that person is counted [2]_.

References
----------
.. [1] F. Xu, Z. Tu, Y. Li, P. Zhang, X. Fu, D. Jin, "Trajectory recovery from ash: user privacy is
   not preserved in aggregated mobility data", WWW 2017.
.. [2] A. Pyrgelis, C. Troncoso, E. De Cristofaro, "Knock knock, who's there? Membership inference
   on aggregate location data", NDSS 2018.
.. [3] N. D'Silva, T. Shahi, Ø. T. D. Husveg, A. Sanjeeve, E. Buchholz, S. S. Kanhere, "Demystifying
   trajectory recovery from ash: an open-source evaluation and enhancement", SIN 2024.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray


def recover_trajectories(
    counts: IntArray,
    x_m: FloatArray,
    y_m: FloatArray,
    *,
    habits: bool = False,
    rng: np.random.Generator | None = None,
) -> IntArray:
    """Return the cells of the devices that counts show, shape (devices at first, times).

    Parameters
    ----------
    counts
        Devices by time and cell, shape (times, cells).
    x_m, y_m
        Middle of each cell, shape (cells,).
    habits
        Expects a device also where most recovered devices went next from its cell [3]_.
    rng
        Assigns at random in place of the nearest: what chance recovers. None: the attack.

    Notes
    -----
    As in the paper, the cost of an assignment is the distance from where a device would be if it
    went on at its velocity [1]_; the velocity counts half, because traffic stops. A device for
    which there is no count left stays where it is. With `habits` the velocity counts in full, as
    in [3]_; habits are of the days before there, and of the times before here, so that a recording
    needs no whole days. O(times * devices^3) at worst.
    """
    at = np.repeat(np.arange(len(x_m)), counts[0])
    found = [at]
    before = at
    inertia = 1.0 if habits else 0.5
    went = np.zeros((len(x_m), len(x_m)), np.int64)
    far_m = np.hypot(np.subtract.outer(x_m, x_m), np.subtract.outer(y_m, y_m))
    for n_in in counts[1:]:
        target = np.repeat(np.arange(len(x_m)), n_in)
        if rng is not None:
            row = rng.permutation(len(at))[: len(target)]
            column = rng.permutation(len(target))[: len(row)]
        else:
            ahead_x = x_m[at] + inertia * (x_m[at] - x_m[before])
            ahead_y = y_m[at] + inertia * (y_m[at] - y_m[before])
            cost = np.hypot(ahead_x[:, None] - x_m[target], ahead_y[:, None] - y_m[target])
            if habits:
                cost = np.minimum(cost, _off_habit(went, far_m)[at[:, None], target])
            row, column = linear_sum_assignment(cost)
        before, at = at, at.copy()
        at[row] = target[column]
        np.add.at(went, (before, at), 1)
        found.append(at)
    return np.stack(found, axis=1)


def _off_habit(went: IntArray, far_m: FloatArray) -> FloatArray:
    """Return how far each cell is from the most frequent next one of a cell, infinite for none.

    Parameters
    ----------
    went
        Recovered moves from each cell to each, shape (cells, cells).
    far_m
        Distance of two cells, same shape.
    """
    most = went.max(axis=1)
    habit = (went == most[:, None]) & (most > 0)[:, None]
    off = np.full(far_m.shape, np.inf)
    for cell in np.flatnonzero(most).tolist():
        off[cell] = far_m[habit[cell]].min(axis=0)
    return off


def recovered_share(trajectories: IntArray, cell: IntArray) -> float:
    """Return the share of true positions that are on the trajectory that fits its device best.

    No two devices have the same trajectory; as in the paper, most positions agree.

    Parameters
    ----------
    trajectories
        From `recover_trajectories`, shape (trajectories, times).
    cell
        True cell of each device, negative where it is not counted, shape (devices, times).
    """
    agree = np.zeros((len(trajectories), len(cell)))
    for t in range(cell.shape[1]):
        agree += (trajectories[:, t, None] == cell[:, t]) & (cell[:, t] >= 0)
    row, column = linear_sum_assignment(-agree)
    return float(agree[row, column].sum() / max(int((cell >= 0).sum()), 1))


def membership_auc(read: FloatArray, is_in: BoolArray) -> float:
    """Return the area under the curve of guessing whether a device is in counts; .5 is chance.

    Parameters
    ----------
    read
        Counts of several groups of devices in the cells in which the device was, at the times when
        it was there, shape (groups, times).
    is_in
        Whether the device is in each group, some are and some are not, shape (groups,).

    Notes
    -----
    The adversary knows the mean and the variance of each count over groups, and where the device
    was; a count above its mean speaks for the device, the more the less it varies. This is the
    strongest prior of the paper [2]_; it needs no training.
    """
    from scipy.stats import rankdata  # noqa: PLC0415  a third of a second, for this alone

    varies = read.std(axis=0)
    known = varies > 0
    score = ((read - read.mean(axis=0))[:, known] / varies[known] ** 2).sum(axis=1)
    rank = rankdata(score)
    n_in, n_out = int(is_in.sum()), int((~is_in).sum())
    return float((rank[is_in].sum() - n_in * (n_in + 1) / 2) / (n_in * n_out))
