"""The moves of the local search: each changes a few classes, and only for the better.

Better is what changes the costs by less than a goal: below nothing, or, while the search is hot,
now and then a little above it.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.drawing import below, n_left, near, unit
from anonymizer.algorithms.records.evicting import evict
from anonymizer.algorithms.records.leaving import all_leave, costly_leave, one_leaves
from anonymizer.algorithms.records.pricing import Float32Array, UInt64Array
from anonymizer.algorithms.records.recutting import NO_CLASS, recut
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

_NOTHING = -1e-9
"""Less than this is a gain, and no rounding."""
_MOST_DRAWS = 20
"""That a move uses up."""
_TRIES = 3

# So many moves of a thousand are of each kind, all others narrow a class; measured on Adult.
_CUT, _RECUT, _DISSOLVE, _SEND_ONE = 70, 110, 10, 50


@kernel
def make_moves(
    heat: float,
    work: int,
    draws: IntArray,
    order: Int32Array,
    rank: Int32Array,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    seen: RecordArray,
    of_record: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
    stay: IntArray,
    journal: RecordArray,
    outline_before: RecordArray,
    costs: Float32Array,
) -> int:
    """Make moves until the random numbers or the work is used up; return what is left of it.

    Parameters
    ----------
    heat
        How much worse a move may make it: this times a random number of mean 1. 0: not at all.
    work
        Roughly 10 ns each.
    """
    while work > 0 and n_left(draws) >= _MOST_DRAWS:
        i = below(draws, len(of_record))
        a, kind = int(of_record[i]["number"]), below(draws, 1000)
        goal = _NOTHING - heat * np.log(unit(draws))
        work -= 50
        if a < 0:
            continue
        kind -= _CUT + _RECUT
        if kind < 0:
            b = NO_CLASS if kind < -_RECUT else _near_class(i, a, draws, order, rank, of_record)
            work -= _recut(
                a,
                b,
                draws,
                rank,
                cells,
                rule,
                person,
                position,
                usual,
                ancestor,
                n_leaves,
                head,
                column,
                seen,
                of_record,
                of_class,
                outline,
                bits,
                prices,
            )
            continue
        kind -= _DISSOLVE
        if kind < 0:
            a = _small_class(draws, head, of_class)
            n_go, n_stay = all_leave(a, of_record, of_class, journal)
        elif kind < _SEND_ONE:
            n_go, n_stay = one_leaves(i, of_record, of_class, stay, journal)
        else:
            n_go, n_stay = costly_leave(
                i,
                draws,
                cells,
                rule,
                ancestor,
                head,
                column,
                of_record,
                of_class,
                outline,
                stay,
                journal,
            )
        work -= 10 * n_stay + 60 * n_go
        if n_go > 0:
            evict(
                a,
                n_go,
                n_stay,
                goal,
                order,
                rank,
                cells,
                rule,
                person,
                position,
                usual,
                ancestor,
                n_leaves,
                head,
                column,
                seen,
                of_record,
                of_class,
                outline,
                bits,
                prices,
                stay,
                journal,
                outline_before,
                costs,
            )
    return work


@kernel
def _small_class(draws: IntArray, head: RecordArray, of_class: RecordArray) -> int:
    """Return the smaller one of two classes."""
    a, b = below(draws, head[0]["n_classes"]), below(draws, head[0]["n_classes"])
    return a if of_class[a]["size"] <= of_class[b]["size"] else b


@kernel
def _near_class(
    i: int, a: int, draws: IntArray, order: Int32Array, rank: Int32Array, of_record: RecordArray
) -> int:
    """Return the class of a record near `i`, or its own class `a`."""
    by = below(draws, len(rank))
    j = near(i, order[by], rank[by], draws)
    b = a if j < 0 else int(of_record[j]["number"])
    return a if b < 0 else b


@kernel
def _recut(
    a: int,
    b: int,
    draws: IntArray,
    rank: Int32Array,
    cells: Int32Array,
    rule: RecordArray,
    person: Int32Array,
    position: FloatArray,
    usual: FloatArray,
    ancestor: Int32Array,
    n_leaves: Int32Array,
    head: RecordArray,
    column: RecordArray,
    seen: RecordArray,
    of_record: RecordArray,
    of_class: RecordArray,
    outline: RecordArray,
    bits: UInt64Array,
    prices: Float32Array,
) -> int:
    """Cut a class in two, or two anew; return the work."""
    size = of_class[a]["size"] + (0 if b == NO_CLASS else of_class[b]["size"])
    if a == b or size < 2 * head[0]["k"]:
        return 0
    spread_by = np.full(_TRIES, -1)
    for t in range(_TRIES):
        c, plain = below(draws, len(rule)), below(draws, 2) == 0
        if rule[c]["distinct"] > 1 and not plain:
            spread_by[t] = c
    recut(
        a,
        b,
        _NOTHING,
        below(draws, len(rank)),
        spread_by,
        rank,
        cells,
        rule,
        person,
        position,
        usual,
        ancestor,
        n_leaves,
        head,
        column,
        seen,
        of_record,
        of_class,
        outline,
        bits,
        prices,
    )
    return int(12 * _TRIES * size)
