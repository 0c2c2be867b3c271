"""Classes improved in rounds, each of which lowers the sum of squares."""

import numpy as np

from anonymizer.algorithms.kaca.class_merging import dense
from anonymizer.algorithms.kaca.dissolving import dissolve
from anonymizer.algorithms.kaca.features import means, nearest, sum_of_squares
from anonymizer.algorithms.kaca.local_improvement import linked, recut
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.problem import Problem
from anonymizer.domain.arrays import FloatArray, Int32Array

_NEAR = 6
_ROUNDS = 8
_ENOUGH = 0.02


def improve(
    problem: Problem,
    feature: FloatArray,
    class_of: Int32Array,
    *,
    by_size: bool,
    may_grow: bool,
) -> Int32Array:
    """Return classes with a smaller sum of squares that keep the promise as those given do.

    Parameters
    ----------
    feature
        Of each record, shape (n, features).
    class_of
        Classes from 0 up without a gap that keep the promise; `SUPPRESSED` stays.
    by_size
        Whether k records keep the promise, whichever they are.
    may_grow
        Whether a class that keeps the promise does so with any record more.

    Notes
    -----
    A round gives up classes whose members are better off in near ones (where classes may grow),
    then cuts each class, pooled with each of its six nearest, in two again. It is the last one
    when it saves less than 2 %, or the eighth. Expected O(n log n) a round.
    """
    p = problem
    out = class_of.copy()
    published = out != SUPPRESSED
    restless = np.ones(len(out), bool)  # records of a class that the last round changed
    total = sum_of_squares(feature, out)
    for _ in range(_ROUNDS):
        mean = means(feature[published], out[published])
        _, near = nearest(mean, mean, _NEAR + 1)
        before, classes = out.copy(), classes_of(out)
        saved = 0.0
        if may_grow:
            saved = dissolve(feature, out, classes.first_of, classes.member, mean, near)
        room = max(len(classes), len(out) // p.k + 1)
        active = np.zeros(room, bool)
        active[out[published & (restless | (out != before))]] = True
        _, cut = recut(
            feature, by_size, p.arrays, p.k, linked(out, room), len(classes), near, active
        )
        restless = published & active[out]
        out = dense(out)
        if saved + cut <= _ENOUGH * total:
            break
        total -= saved + cut
    return out
