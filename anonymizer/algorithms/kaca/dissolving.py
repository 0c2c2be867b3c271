"""Classes whose members lie nearer to other classes are given up."""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray


@kernel
def dissolve(
    feature: FloatArray,
    class_of: Int32Array,
    first_of: IntArray,
    member: IntArray,
    mean: FloatArray,
    near: IntArray,
) -> float:
    """Hand out the members of classes to near ones where that lowers the sum of squares, in place.

    Parameters
    ----------
    feature
        Of each record, shape (n, features).
    class_of
        Changed in place, shape (n,).
    first_of, member
        The same classes in compressed sparse rows.
    mean
        Of each class, shape (classes, features).
    near
        Classes that may take them, shape (classes, some); itself is passed over.

    Returns
    -------
    saved
        What the sum of squares fell by, at the least.

    Notes
    -----
    As where three trucks of a class left at 8:00 and two at 8:05, and at either minute there are
    enough. The squared distance to the mean of a class is more than a record adds to it, also
    when others join it, as the mean follows them. A class that has been added to stays, and one
    that was given up takes nobody, so that the means compared are those of the beginning.
    O(n near features).
    """
    n_classes = len(first_of) - 1
    fixed = np.zeros(n_classes, np.bool_)
    gone = np.zeros(n_classes, np.bool_)
    to = np.empty(len(member), np.int32)
    saved = 0.0
    for a in range(n_classes):
        if fixed[a]:
            continue
        now, then = 0.0, 0.0
        for at in range(first_of[a], first_of[a + 1]):
            now += _squared(feature[member[at]], mean[a])
            nearest = np.inf
            for b in near[a]:
                if b != a and not gone[b]:
                    distance = _squared(feature[member[at]], mean[b])
                    if distance < nearest:
                        nearest, to[at] = distance, b
            then += nearest
        if then < now:
            saved += now - then
            gone[a] = True
            for at in range(first_of[a], first_of[a + 1]):
                class_of[member[at]] = to[at]
                fixed[to[at]] = True
    return saved


@kernel
def _squared(one: FloatArray, other: FloatArray) -> float:
    squared = 0.0
    for f in range(len(one)):
        squared += (one[f] - other[f]) * (one[f] - other[f])
    return squared
