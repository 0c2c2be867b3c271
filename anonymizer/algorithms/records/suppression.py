"""Suppression under a limit: which few records to drop so that the others lose less.

Records are dropped for two reasons: where a value is too frequent for a bound on shares or on
entropy, and where a record is so unlike the others that the members of its class lose more than it
holds. A dropped record counts as one that is generalized fully. Whether a choice pays is tried with
the method that forms the classes.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import ROUNDING, class_loss
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

_SLACKS = (0.02, 0.05, 0.1)
"""Parts of a bound on shares that are tried to be left free: classes at the bound are wide."""
_LARGEST_CLASS = 256
"""Members of larger classes are not tried one by one: it takes the square of their number."""
_FEWER = 4
"""Where dropping all that seemed to pay does not pay, this part of them is tried."""
_MOST_VALUES = 100
"""Too frequent values that are thinned out one after the other."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Trial:
    """Records that are kept, rising; their problem and classes; who has none; the cost of all."""

    kept: IntArray
    problem: Problem
    class_of: Int32Array
    n_left_out: int
    cost: float


def form_within_limit(
    problem_of: Callable[[IntArray], Problem],
    form: Callable[[IntArray, Problem], Int32Array],
    *,
    n: int,
    most: int,
    n_trials: int,
    again: bool = False,
    keep_going: Callable[[], bool] = lambda: True,
) -> tuple[IntArray, Int32Array]:
    """Return the records that are kept, rising, and the class of each of them.

    `problem_of` returns the problem of the given records alone, `form` the class of each of them,
    or `SUPPRESSED`; it is called up to `n_trials` times, at least once. At most `most` of `n`
    records are left out. `again`: form classes again although nothing pays to be dropped.
    `keep_going` is asked before each further trial; once False, the best so far is returned.

    Notes
    -----
    First the fewest records are dropped with which every bound on shares and entropy can be kept,
    or, if that costs less with the sweep, some more of the same values or none; none where the
    limit does not suffice. Then, trial by trial, that member of each class is dropped without which
    the others save more than it holds, the dearest first, while the cost of all records falls. A
    heuristic; `form` may leave out more than `most` where it finds no classes for them.
    """
    kept = within_limit(problem_of, n, most)
    found = _trial(problem_of, form, kept, n)
    divisor = 1
    for _ in range(n_trials - 1):
        dear = _dear(found, most)
        dropped = dear[: -(-len(dear) // divisor)]
        if not (len(dropped) or again) or not keep_going():
            break
        other = _trial(problem_of, form, np.delete(found.kept, dropped), n)
        if other.cost < found.cost - ROUNDING and other.n_left_out <= max(most, found.n_left_out):
            found, divisor = other, 1
        elif divisor > 1:
            break
        else:
            divisor = _FEWER
    return found.kept, found.class_of


def within_limit(problem_of: Callable[[IntArray], Problem], n: int, most: int) -> IntArray:
    """Return the records to keep, rising, so that bounds on shares and entropy can be kept.

    All, where no more than `most` that go would be enough, or classes of them lose no more.
    """
    everyone = np.arange(n)
    least = _within_bounds(problem_of, everyone, most, 0.0)
    if least is None or len(least) == n:
        return everyone
    slacks = [*_SLACKS, *_slacks_within(problem_of(everyone), n - len(least), most)]
    choices = [least, *(_within_bounds(problem_of, everyone, most, slack) for slack in slacks)]
    choices.append(everyone)  # where classes are found for nearly all of them

    def by_sweep(_kept: IntArray, problem: Problem) -> Int32Array:
        return sweep(problem, _order(problem))

    trials = [_trial(problem_of, by_sweep, kept, n) for kept in choices if kept is not None]
    return min(trials, key=lambda trial: (trial.n_left_out > most, trial.cost)).kept


def _slacks_within(problem: Problem, least: int, most: int) -> list[float]:
    """Return slacks with which the tightest bound takes a third, or more, or all of the limit."""
    surplus = [_surplus(problem, c, 0.0) for c in range(len(problem.rule))]
    worst = max(range(len(surplus)), key=lambda c: surplus[c][1])
    share, n = float(problem.rule[worst]["share"]), problem.n
    times = int((problem.cells[:, worst] == surplus[worst][0]).sum())
    rest = [least + (most - least) * third // 3 for third in (1, 2, 3)]
    return [1 - (times - x) / (n - x) / share for x in rest if x < times and share < 1]


def least_dropped(problem: Problem) -> int:
    """Return how many records must at least be dropped to keep the bounds on shares and entropy.

    If a value of c records may have a share s of the others, x of them must go, so that
    c - x <= s (n - x). Persons of several records are counted by their records.
    """
    return max((_surplus(problem, c, 0.0)[1] for c in range(len(problem.rule))), default=0)


def _surplus(problem: Problem, c: int, slack: float) -> tuple[int, int]:
    """Return the most frequent code of a column, and how many of its records are too many.

    Where that many are gone, another code may be too frequent.
    """
    times = np.bincount(problem.cells[:, c])
    code = int(times.argmax())
    share, entropy = float(problem.rule[c]["share"]), float(problem.rule[c]["entropy"])
    too_many = 0
    if times[code] > (share + ROUNDING) * problem.n:
        bound = share * (1 - slack)
        too_many = int(np.ceil((times[code] - bound * problem.n) / (1 - bound) - ROUNDING))
    if entropy > 0 and _entropy(times) < entropy - ROUNDING:
        # The mean entropy of classes is at most that of all their records.
        second = int(np.partition(times, -2)[-2]) if len(times) > 1 else 0
        choices = range(1, max(int(times[code]) - second, 1) + 1)
        least = entropy * (1 + slack) - ROUNDING
        at = bisect_left(choices, True, key=lambda x: _entropy_without(times, code, x) >= least)
        too_many = max(too_many, choices[min(at, len(choices) - 1)])
    return code, too_many


def _entropy(times: IntArray) -> float:
    share = times[times > 0] / times.sum()
    return float(-(share * np.log(share)).sum())


def _entropy_without(times: IntArray, code: int, x: int) -> float:
    left = times.copy()
    left[code] -= x
    return _entropy(left) if left.any() else 0.0


def _within_bounds(
    problem_of: Callable[[IntArray], Problem], kept: IntArray, most: int, slack: float
) -> IntArray | None:
    """Return the records with which all bounds can be kept; None: too many must go."""
    n = len(kept)
    for _ in range(_MOST_VALUES):
        problem = problem_of(kept)
        surplus = [_surplus(problem, c, slack) for c in range(len(problem.rule))]
        above = [c for c, (_, x) in enumerate(surplus) if x > 0]
        if not above:
            return kept
        worst = max(above, key=lambda c: surplus[c][1])
        code, x = surplus[worst]
        if n - len(kept) + x > most or x >= len(kept):
            return None
        # A record that is too frequent in several columns helps all of them. Among equals those
        # are taken that lie evenly along the curve: every class has to give up as many.
        among = [problem.cells[:, c] == surplus[c][0] for c in above]
        order = _order(problem)
        holders = order[problem.cells[order, worst] == code]
        helps = np.sum(among, axis=0)[holders]
        spread = np.arange(len(holders)) * x % len(holders)
        gone = holders[np.lexsort((spread, -helps))[:x]]
        kept = np.delete(kept, gone)
    return None


def _dear(found: _Trial, most: int) -> IntArray:
    """Return places in `found.kept` that it pays to drop, dearest first, at most one a class."""
    member, first_of, ends = _members(found.class_of)
    problem = found.problem
    saved, record = _savings(problem.arrays, problem.n_qis, member, first_of, ends)
    worth = np.flatnonzero(saved > problem.n_qis + ROUNDING)
    ranked = record[worth[np.argsort(-saved[worth], kind="stable")]]
    return ranked[: max(most - found.n_left_out, 0)]


@kernel
def _savings(
    problem: ProblemArrays, n_qis: int, member: IntArray, first_of: IntArray, ends: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return, for each class, the loss that most is saved by one member's going, and which it is.

    O(sum of the squares of the sizes of classes).
    """
    saved = np.zeros(len(first_of))
    record = np.zeros(len(first_of), np.int64)
    for c in range(len(first_of)):
        own = member[first_of[c] : ends[c]]
        m = len(own)
        if m < 2 or m > _LARGEST_CLASS:
            continue
        whole = m * class_loss(problem, n_qis, own)
        for i in range(m):
            rest = np.concatenate((own[:i], own[i + 1 :]))
            gain = whole - (m - 1) * class_loss(problem, n_qis, rest)
            if gain > saved[c]:
                saved[c], record[c] = gain, own[i]
    return saved, record


def _trial(
    problem_of: Callable[[IntArray], Problem],
    form: Callable[[IntArray, Problem], Int32Array],
    kept: IntArray,
    n: int,
) -> _Trial:
    problem = problem_of(kept)
    class_of = form(kept, problem)
    member, first_of, ends = _members(class_of)
    lost = _lost(problem.arrays, problem.n_qis, member, first_of, ends)
    n_left_out = n - len(member)
    return _Trial(kept, problem, class_of, n_left_out, lost + problem.n_qis * float(n_left_out))


def _members(class_of: Int32Array) -> tuple[IntArray, IntArray, IntArray]:
    """Return the records of all classes, and where each class begins and ends among them."""
    order = np.argsort(class_of, kind="stable")
    member = order[np.searchsorted(class_of[order], 0) :]
    first_of = np.flatnonzero(np.diff(class_of[member], prepend=SUPPRESSED))
    return member, first_of, np.append(first_of[1:], len(member))


@kernel
def _lost(
    problem: ProblemArrays, n_qis: int, member: IntArray, first_of: IntArray, ends: IntArray
) -> float:
    """Return the loss of all records that have a class."""
    total = 0.0
    for c in range(len(first_of)):
        own = member[first_of[c] : ends[c]]
        total += len(own) * class_loss(problem, n_qis, own)
    return total


def _order(problem: Problem) -> IntArray:
    codes = np.ascontiguousarray(problem.cells[:, : problem.n_qis])
    return hilbert_order(codes, problem.rule["size"][: problem.n_qis].tolist())
