"""Best borders: of each quasi-identifier, where a cut of some records saves most, by a sample.

The merit of a cut is the loss that it saves, times the entropy of the two parts.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, sort_in_place
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.problem import Cost, ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

SAMPLED = 512
"""Records by which a cut is chosen."""
_NEVER = -1
_DENSE = 2
"""A sample is sorted by counting where it has up to so many codes a record."""
_NO_CODE_YET = 2**31 - 1
_SET = int(Cost.SET)


class Sample(NamedTuple):
    """Members by which a cut is chosen, and the outline of those that were joined.

    `cells`: of each, shape (members, qis); `code`, `ordered`: of those sorted by a column, and
    which they are; `n_below`: for sorting; `up_to`: loss of all up to each; `least`, `most`,
    `n_all`: of the whole sample; `lo`, `hi`, `n_codes`, `lost`: of the outline; `open`: columns in
    which it may still widen; `seen`: outline in which each code was last seen; `merit`, `border`:
    the best cut of each column; `look`: outlines so far, shape (1,).
    """

    cells: Int32Array
    code: IntArray
    ordered: IntArray
    n_below: IntArray
    up_to: FloatArray
    least: IntArray
    most: IntArray
    n_all: IntArray
    lo: IntArray
    hi: IntArray
    n_codes: IntArray
    lost: FloatArray
    open: IntArray
    seen: IntArray
    merit: FloatArray
    border: IntArray
    look: IntArray


def blank_sample(q: int, n_codes: int) -> Sample:
    """Return a sample without members; `n_codes`: of all columns of the problem."""
    least, most, n_all, lo, hi, n_codes_of, open_, border = np.zeros((8, q), np.int64)
    return Sample(
        cells=np.zeros((SAMPLED, q), np.int32),
        code=np.zeros(SAMPLED, np.int64),
        ordered=np.zeros(SAMPLED, np.int64),
        n_below=np.zeros(_DENSE * SAMPLED + 2, np.int64),
        up_to=np.zeros(SAMPLED),
        least=least,
        most=most,
        n_all=n_all,
        lo=lo,
        hi=hi,
        n_codes=n_codes_of,
        lost=np.zeros(q),
        open=open_,
        seen=np.full(n_codes, _NEVER, np.int64),
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

    The merit is the loss saved, times the entropy of the two parts.
    """
    m = min(n, SAMPLED)
    fewest = max(k * m // n, 1)
    whole = _draw(first, n, m, problem, n_qis, sample)
    code, ordered, up_to = sample.code, sample.ordered, sample.up_to
    for c in range(n_qis):
        sample.merit[c], sample.border[c] = 0.0, 0
        if sample.least[c] == sample.most[c]:
            continue
        _sort(c, m, sample)
        total, n_open = 0.0, _start(n_qis, sample)
        for i in range(m - fewest):
            n_left = _join(ordered[i], n_open, problem, sample, sample.look[0])
            if n_left < 0:
                n_left, total = ~n_left, _sum(sample.lost, n_qis)
            n_open = n_left
            up_to[i] = (i + 1) * total
        total, n_open = 0.0, _start(n_qis, sample)
        for i in range(m - 1, fewest - 1, -1):
            n_left = _join(ordered[i], n_open, problem, sample, sample.look[0])
            if n_left < 0:
                n_left, total = ~n_left, _sum(sample.lost, n_qis)
            n_open = n_left
            if code[i] == code[i - 1] or m - i < fewest:
                continue
            after = up_to[i - 1] + (m - i) * total
            share = i / m
            entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
            saved = (m * whole - after) * entropy
            if saved > sample.merit[c]:
                sample.merit[c], sample.border[c] = saved, code[i - 1]


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
    for c in range(n_qis):
        sample.lo[c], sample.hi[c], sample.n_codes[c] = _NO_CODE_YET, -1, 0
        sample.lost[c], sample.open[c] = 0.0, c
    return n_qis


@inner_kernel
def _join(i: int, n_open: int, problem: ProblemArrays, sample: Sample, look: int) -> int:
    """Widen an outline by a member; return in how many columns it may still, `~` that if it did."""
    lo, hi, n_codes, open_ = sample.lo, sample.hi, sample.n_codes, sample.open
    widened, x = False, 0
    while x < n_open:
        c = open_[x]
        code = sample.cells[i, c]
        rule = problem.rule[c]
        wider = code < lo[c] or code > hi[c]
        if rule["form"] == _SET and sample.seen[rule["first_position"] + code] != look:
            sample.seen[rule["first_position"] + code] = look
            n_codes[c] += 1
            wider = True
        x += 1
        if wider:
            widened = True
            lo[c], hi[c] = min(lo[c], code), max(hi[c], code)
            sample.lost[c] = column_loss(rule, n_codes[c], lo[c], hi[c], problem.codes)
            ends = lo[c] == sample.least[c] and hi[c] == sample.most[c]
            if ends and n_codes[c] == sample.n_all[c]:
                x, n_open = x - 1, n_open - 1
                open_[x] = open_[n_open]
    return ~n_open if widened else n_open


@inner_kernel
def _sum(lost: FloatArray, n_qis: int) -> float:
    total = 0.0
    for c in range(n_qis):
        total += lost[c]
    return total
