"""Best borders: of each quasi-identifier, where a cut of some records saves most, by a sample.

The merit of a cut is the loss that it saves, times the entropy of the two parts.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, inner_kernel, sort_in_place
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.problem import Cost, Problem, ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

SAMPLED = 512
"""Records by which a cut is chosen."""
_NEVER = -1
_DENSE = 2
"""A sample is sorted by counting where it has up to so many codes a record."""
_AT_ONCE = 8
_NO_CODE_YET = 2**31 - 1
_SET = int(Cost.SET)


class Sample(NamedTuple):
    """Members by which a cut is chosen, and the outline of those that were joined.

    `cells`: of each, shape (members, places); `code`, `ordered`: of those sorted by a column, and
    which they are; `n_below`: for sorting; `up_to`: loss of all up to each; `even`: entropy of a
    cut before each; `least`, `most`, `n_all`: of the whole sample; `lo`, `hi`, `n_codes`, `lost`:
    of the outline; `open`: columns in which it may still widen; `sets`: those whose codes are
    counted; `seen`: outline in which each code was last seen; `merit`, `border`: the best cut of
    each column; `look`: outlines so far, shape (1,). Places are columns, and nothing up to a
    multiple of eight: a processor widens eight columns at once.
    """

    cells: Int32Array
    code: IntArray
    ordered: IntArray
    n_below: IntArray
    up_to: FloatArray
    even: FloatArray
    least: IntArray
    most: IntArray
    n_all: IntArray
    lo: Int32Array
    hi: Int32Array
    n_codes: IntArray
    lost: FloatArray
    open: IntArray
    sets: IntArray
    seen: IntArray
    merit: FloatArray
    border: IntArray
    look: IntArray


def blank_sample(problem: Problem) -> Sample:
    """Return a sample without members."""
    q = problem.n_qis
    n_places = -(-q // _AT_ONCE) * _AT_ONCE
    least, most, n_all, n_codes, open_, border = np.zeros((6, q), np.int64)
    lo, hi = np.zeros((2, n_places), np.int32)
    return Sample(
        cells=np.zeros((SAMPLED, n_places), np.int32),
        code=np.zeros(SAMPLED, np.int64),
        ordered=np.zeros(SAMPLED, np.int64),
        n_below=np.zeros(_DENSE * SAMPLED + 2, np.int64),
        up_to=np.zeros(SAMPLED),
        even=np.zeros(SAMPLED),
        least=least,
        most=most,
        n_all=n_all,
        lo=lo,
        hi=hi,
        n_codes=n_codes,
        lost=np.zeros(q),
        open=open_,
        sets=np.flatnonzero(problem.rule["form"][:q] == _SET),
        seen=np.full(len(problem.position), _NEVER, np.int64),
        merit=np.zeros(q),
        border=border,
        look=np.zeros(1, np.int64),
    )


@inner_kernel
def find_borders(
    first: int,
    n: int,
    k: int,
    problem: ProblemArrays,
    n_qis: int,
    sample: Sample,
) -> None:
    """Set the best cut of each quasi-identifier: its merit, 0 if there is none, and last code.

    There is none where two parts would need more values than there are.

    The merit is the loss saved, times the entropy of the two parts.
    """
    m = min(n, SAMPLED)
    fewest = max(k * m // n, 1)
    whole = _draw(first, n, m, problem, n_qis, sample)
    for i in range(fewest, m - fewest + 1):
        share = i / m
        sample.even[i] = -share * np.log(share) - (1 - share) * np.log(1 - share)
    for c in range(n_qis):
        sample.merit[c], sample.border[c] = 0.0, 0
        rule = problem.rule[c]
        both = 2 * rule["distinct"]  # what two parts need; of some rows there may be more values
        if sample.least[c] < sample.most[c] and rule["size"] >= both:
            _sort(c, m, sample)
            if n > m or _n_values(m, rule["missing"], sample) >= both:
                _find_border(c, m, fewest, m * whole, problem, n_qis, sample)


@inner_kernel
def _n_values(m: int, missing: int, sample: Sample) -> int:
    """Return how many values there are in the column by which a sample is sorted."""
    n, before = 0, missing
    for code in sample.code[:m]:
        n += code not in (before, missing)
        before = code
    return n


@inner_kernel
def _find_border(
    c: int, m: int, fewest: int, whole: float, problem: ProblemArrays, n_qis: int, sample: Sample
) -> None:
    """Set the best cut of a column, by which the sample is sorted; `whole`: loss of all of it.

    Losses are measured where a cut may be, between two codes; beyond the last such place nobody
    is joined.
    """
    code, ordered, up_to = sample.code, sample.ordered, sample.up_to
    n_sets = len(sample.sets)
    first, last = max(_run(1, m, sample), fewest), min(m - _run(-1, m, sample), m - fewest)
    total, n_open, wider = 0.0, _start(n_qis, sample), False
    for i in range(last):
        wider |= _join(ordered[i], sample)
        if n_sets > 0:
            wider |= _count_codes(ordered[i], problem, sample)
        if code[i] == code[i + 1]:
            continue
        if wider:
            n_open, wider = _measure(n_open, problem, sample), False
            total = _sum(sample.lost, n_qis)
        up_to[i] = (i + 1) * total
    total, n_open, wider = 0.0, _start(n_qis, sample), False
    for i in range(m - 1, first - 1, -1):
        wider |= _join(ordered[i], sample)
        if n_sets > 0:
            wider |= _count_codes(ordered[i], problem, sample)
        if code[i] == code[i - 1] or i > last:
            continue
        if wider:
            n_open, wider = _measure(n_open, problem, sample), False
            total = _sum(sample.lost, n_qis)
        saved = (whole - (up_to[i - 1] + (m - i) * total)) * sample.even[i]
        if saved > sample.merit[c]:
            sample.merit[c], sample.border[c] = saved, code[i - 1]


@inner_kernel
def _run(step: int, m: int, sample: Sample) -> int:
    """Return how many members have the first code, or by a step of -1 the last; not all have."""
    at = 0 if step > 0 else m - 1
    n = 1
    while sample.code[at + n * step] == sample.code[at]:
        n += 1
    return n


@inner_kernel
def _draw(
    first: int,
    n: int,
    m: int,
    problem: ProblemArrays,
    n_qis: int,
    sample: Sample,
) -> float:
    """Take every so-manieth row of a part into the sample; return the loss of all of it."""
    least, most, n_all, seen = sample.least, sample.most, sample.n_all, sample.seen
    sample.look[0] += 1
    for c in range(n_qis):
        least[c], most[c], n_all[c] = _NO_CODE_YET, -1, 0
    for i in range(m):
        row = first + i * n // m
        for c in range(n_qis):
            code = problem.cells[row, c]
            sample.cells[i, c] = code
            least[c], most[c] = min(least[c], code), max(most[c], code)
            if problem.rule[c]["form"] == _SET:
                at = problem.rule[c]["first_position"] + code
                n_all[c] += seen[at] != sample.look[0]
                seen[at] = sample.look[0]
    for c in range(n_qis):
        sample.lost[c] = column_loss(problem.rule[c], n_all[c], least[c], most[c], problem.codes)
    return _sum(sample.lost, n_qis)


@inner_kernel
def _sort(c: int, m: int, sample: Sample) -> None:
    """Order a sample by a column; write its codes, too."""
    cells, code, ordered, n_below = sample.cells, sample.code, sample.ordered, sample.n_below
    least = sample.least[c]
    width = sample.most[c] - least + 1
    if width <= _DENSE * m:
        for x in range(width + 1):
            n_below[x] = 0
        for i in range(m):
            n_below[cells[i, c] - least + 1] += 1
        for x in range(width):
            n_below[x + 1] += n_below[x]
        for i in range(m):
            x = cells[i, c] - least
            ordered[n_below[x]], code[n_below[x]] = i, cells[i, c]
            n_below[x] += 1
        return
    for i in range(m):
        code[i] = np.int64(cells[i, c]) * m + i
    sort_in_place(code[:m])
    for i in range(m):
        ordered[i] = code[i] % m
        code[i] //= m


@inner_kernel
def _start(n_qis: int, sample: Sample) -> int:
    """Begin an outline; return in how many columns it may widen."""
    sample.look[0] += 1
    for c in range(len(sample.lo)):
        sample.lo[c], sample.hi[c] = _NO_CODE_YET, -1
    for c in range(n_qis):
        sample.n_codes[c], sample.lost[c], sample.open[c] = 0, 0.0, c
    return n_qis


@inlined_kernel
def _join(i: int, sample: Sample) -> bool:
    """Widen an outline by a member; return whether it got wider. Losses are those before."""
    lo, hi, cells = sample.lo, sample.hi, sample.cells
    changed = np.int32(0)
    for c in range(len(lo)):
        code = cells[i, c]
        low, high = min(lo[c], code), max(hi[c], code)
        changed |= (low ^ lo[c]) | (high ^ hi[c])
        lo[c], hi[c] = low, high
    return bool(changed != 0)


@inner_kernel
def _count_codes(i: int, problem: ProblemArrays, sample: Sample) -> bool:
    """Count the codes of a member that an outline lacks; return whether there were any."""
    seen, look, found = sample.seen, sample.look[0], False
    for x in range(len(sample.sets)):
        c = sample.sets[x]
        at = problem.rule[c]["first_position"] + sample.cells[i, c]
        if seen[at] != look:
            seen[at] = look
            sample.n_codes[c] += 1
            found = True
    return found


@inlined_kernel
def _measure(n_open: int, problem: ProblemArrays, sample: Sample) -> int:
    """Bring the losses of an outline up to date; return in how many columns it may still widen."""
    lo, hi, n_codes, open_ = sample.lo, sample.hi, sample.n_codes, sample.open
    x = 0
    while x < n_open:
        c = open_[x]
        sample.lost[c] = column_loss(problem.rule[c], n_codes[c], lo[c], hi[c], problem.codes)
        ends = lo[c] == sample.least[c] and hi[c] == sample.most[c]
        if ends and n_codes[c] == sample.n_all[c]:
            n_open -= 1
            open_[x] = open_[n_open]
        else:
            x += 1
    return n_open


@inner_kernel
def _sum(lost: FloatArray, n_qis: int) -> float:
    total = 0.0
    for c in range(n_qis):
        total += lost[c]
    return total
