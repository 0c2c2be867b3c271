"""Criteria and information loss of one equivalence class.

`class_keeps` and `class_loss` define the criteria and the cost for every method that forms classes.
They are written to be read; a method may keep running counts where that is faster, and is tested
against them. `why_impossible` tells whether a table can meet the criteria at all.

References
----------
.. [1] L. Sweeney, "k-anonymity: a model for protecting privacy", 2002.
.. [2] A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2006.
.. [3] N. Li, T. Li and S. Venkatasubramanian, "t-closeness", 2007.
.. [4] J. Xu et al., "Utility-based anonymization using local recoding", 2006 (certainty penalty).
"""

from math import inf

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.problem import Codes, Cost, Problem, ProblemArrays
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Schema

_RANGE, _SET = int(Cost.RANGE), int(Cost.SET)
ROUNDING = 1e-9
"""Tolerance by which a limit may be missed."""


def loss(problem: Problem, member: IntArray) -> float:
    """Return the information loss of one record of the class `member`, summed over its QIs.

    Between 0 and `n_qis`; GCP is the sum over all records, over n times `n_qis`. Columns count by
    their weights.
    """
    return class_loss(problem.arrays, problem.n_qis, member)


def total_loss(problem: Problem, class_of: Int32Array) -> float:
    """Return the loss of all records; a suppressed one loses all."""
    classes = classes_of(class_of)
    lost = sum(len(classes[c]) * loss(problem, classes[c]) for c in range(len(classes)))
    return lost + problem.n_qis * float((class_of == SUPPRESSED).sum())


@kernel
def class_keeps(problem: ProblemArrays, k: int, member: IntArray) -> bool:
    """Return whether the records `member` may be one class. O(m log m)."""
    cells, rule, person, codes = problem.cells, problem.rule, problem.person, problem.codes
    n_persons = len(member) if len(person) == 0 else len(np.unique(person[member]))
    if n_persons < k:
        return False
    for c in range(len(rule)):
        if not column_keeps(cells[:, c][member], rule[c], person, n_persons, codes, member):
            return False
    return True


@inner_kernel
def distance(times: Int32Array, n: int, rule: np.void, codes: Codes) -> float:
    """Return the earth mover's distance of a class's values to the usual ones, 0 to 1.

    Numbers are moved along the ranks of those that occur in the table (section 4.2 of [3]_), so
    that one far away widens no distance; a category to any other costs 1. `times` is how often the
    class of `n` values has each code, shape (size,). O(size).
    """
    usual, first = codes.usual, rule["first_position"]
    moved, work, n_ranks = 0.0, 0.0, 0
    for v in range(len(times)):
        off = times[v] / n - usual[first + v]
        if rule["numeric"] == 0:
            work += abs(off) / 2
        elif usual[first + v] > 0:
            moved += off
            work += abs(moved)
            n_ranks += 1
    return work / max(n_ranks - 1, 1)


@inner_kernel
def keeps_without(times: Int32Array, n: int, most: int, rule: np.void, codes: Codes) -> bool:
    """Return whether a column meets its criteria whichever `margin` of the members leave.

    Parameters
    ----------
    times
        How often the class of `n` members, no two of one person, has each code, shape (size,).
    most
        The largest of them, where shares are bounded.

    Notes
    -----
    Those that leave are the worst choice. For l and entropy it is the members with the rarest
    values: what they leave majorizes what any others leave, and entropy is Schur-concave. For
    shares it is anybody but those with the mode; for spread, so many at one end and the rest at
    the other. The distance is bounded from above: by the greatest excess of each value, or beyond
    each gap. O(size of the domain times the margin), and O(1) where shares alone are bounded.
    """
    margin, n_left = rule["margin"], n - rule["margin"]
    if n_left <= 0 or (rule["share"] < 1 and most > rule["share"] * n_left + ROUNDING):
        return False
    if rule["left"] > 0 and _values_without(times, margin, rule["missing"]) < rule["left"]:
        return False
    if rule["entropy"] > 0 and _entropy_without(times, n, margin) < rule["entropy"] - ROUNDING:
        return False
    if rule["spread"] > 0 and not _is_wide_without(times, rule, codes):
        return False
    if rule["closeness"] == inf:
        return True
    off = _greatest_distance(times, n, margin, rule, codes)
    return bool(off <= rule["closeness"] + ROUNDING)


@inner_kernel
def _values_without(times: Int32Array, margin: int, missing: int) -> int:
    """Return how many values are left when the members with the rarest ones leave."""
    n_values, leaving = 0, margin
    for code in range(len(times)):
        n_values += times[code] > 0 and code != missing
    for count in range(1, margin + 1):
        for code in range(len(times)):
            if times[code] == count <= leaving and code != missing:
                leaving -= count
                n_values -= 1
    return n_values


@inner_kernel
def _entropy_without(times: Int32Array, n: int, margin: int) -> float:
    """Return the entropy that is left when the members with the rarest values leave."""
    n_log_n, next_rarest, leaving = 0.0, n, margin
    for count in times:
        if count > margin:
            next_rarest = min(next_rarest, count)
        if count > 1:
            n_log_n += count * np.log(count)
    for count in range(1, margin + 1):
        for times_of in times:
            if times_of == count <= leaving:
                leaving -= count
                n_log_n -= count * np.log(count)
            elif times_of == count:
                next_rarest = min(next_rarest, count)
    if leaving > 0:  # some of those with the next value leave, too
        rest = next_rarest - leaving
        n_log_n += rest * np.log(rest) - next_rarest * np.log(next_rarest)
    return float(np.log(n - margin) - n_log_n / (n - margin))


@inner_kernel
def _is_wide_without(times: Int32Array, rule: np.void, codes: Codes) -> bool:
    """Return whether the spread is left when members at the ends leave."""
    margin, missing = rule["margin"], rule["missing"]
    position, first = codes.position, rule["first_position"]
    for n_low in range(margin + 1):
        low = _code_at(times, n_low, 1, missing)
        high = _code_at(times, margin - n_low, -1, missing)
        if low < 0 or high < 0:
            return False
        if not position[first + high] - position[first + low] >= rule["spread"] - ROUNDING:
            return False
    return True


@inner_kernel
def _code_at(times: Int32Array, rank: int, step: int, missing: int) -> int:
    """Return the code of the member at a rank from the lower end, or the upper; -1 if none is."""
    code = 0 if step > 0 else len(times) - 1
    for _ in range(len(times)):
        if code != missing:
            rank -= times[code]
            if rank < 0:
                return code
        code += step
    return -1


@inner_kernel
def _greatest_distance(
    times: Int32Array, n: int, margin: int, rule: np.void, codes: Codes
) -> float:
    """Return an upper bound on `distance` whichever members leave; exact where none does."""
    usual, first, n_left = codes.usual, rule["first_position"], n - margin
    below, usual_below, work, n_ranks = 0, 0.0, 0.0, 0
    for v in range(len(times)):
        below += times[v]
        usual_below += usual[first + v]
        if rule["numeric"] == 0:
            work += max(times[v] / n_left - usual[first + v], 0.0)
        elif usual[first + v] > 0:
            most_below = min(below / n_left, 1.0)
            least_below = max(below - margin, 0) / n_left
            work += max(most_below - usual_below, usual_below - least_below)
            n_ranks += 1
    return work / max(n_ranks - 1, 1)


@kernel
def column_keeps(
    code: Int32Array,
    rule: np.void,
    person: Int32Array,
    n_persons: int,
    codes: Codes,
    member: IntArray,
) -> bool:
    """Return whether one column of a class meets its criteria."""
    position = codes.position
    if len(person) > 0:  # a person who repeats a value has it once
        who = person[member]
        width = np.int64(who.max()) + 1
        code = (np.unique(code * width + who) // width).astype(np.int32)
    ordered = np.sort(code)
    first = rule["first_position"]
    n, n_distinct, most, entropy = len(ordered), 0, 0, 0.0
    lo, hi = inf, -inf
    start = 0
    while start < n:
        end = start
        while end < n and ordered[end] == ordered[start]:
            end += 1
        value, times = ordered[start], end - start
        most = max(most, times)
        if value != rule["missing"]:
            n_distinct += 1
            lo = min(lo, position[first + value])
            hi = max(hi, position[first + value])
        entropy -= times / n * np.log(times / n)
        start = end
    if n_distinct < rule["distinct"] or most > rule["share"] * n_persons + ROUNDING:
        return False
    if rule["spread"] > 0 and not hi - lo >= rule["spread"] - ROUNDING:
        return False
    if entropy < rule["entropy"] - ROUNDING:
        return False
    return _is_distributed(ordered, most, rule, codes)


@kernel
def _is_distributed(ordered: Int32Array, most: int, rule: np.void, codes: Codes) -> bool:
    """Return whether a column meets t-closeness, and its criteria with its margin."""
    if rule["closeness"] == inf and rule["margin"] == 0:
        return True
    times = np.zeros(rule["size"], np.int32)
    for value in ordered:
        times[value] += 1
    if rule["margin"] > 0:
        return bool(keeps_without(times, len(ordered), most, rule, codes))
    return bool(distance(times, len(ordered), rule, codes) <= rule["closeness"] + ROUNDING)


@kernel
def class_loss(problem: ProblemArrays, n_qis: int, member: IntArray) -> float:
    """Return the information loss of one record of a class, summed over its QIs. O(m log m)."""
    cells, rule, codes = problem.cells, problem.rule, problem.codes
    total = 0.0
    for c in range(n_qis):
        code = cells[:, c][member]
        lo, hi = code.min(), code.max()
        total += column_loss(rule[c], len(np.unique(code)), lo, hi, codes)
    return total


@inner_kernel
def column_loss(rule: np.void, n_distinct: int, lo: int, hi: int, codes: Codes) -> float:
    """Return the loss of one QI whose codes in a class are `n_distinct` from `lo` to `hi`.

    0 to its weight, see `Cost`. O(1), or the height of the hierarchy.
    """
    position, ancestor, n_leaves = codes.position, codes.ancestor, codes.n_leaves
    if lo == hi:
        return 0.0
    weight, whole = rule["weight"], rule["whole"]
    if hi == rule["missing"]:  # beside a value
        return float(weight)
    if rule["form"] == _RANGE:
        first = rule["first_position"]
        return float(weight * ((position[first + hi] - position[first + lo]) / whole))
    if rule["form"] == _SET:
        return float(weight * ((n_distinct - 1) / whole))
    level = 0
    of_lo, of_hi = (
        rule["first_ancestor"] + lo * rule["height"],
        rule["first_ancestor"] + hi * rule["height"],
    )
    while ancestor[of_lo + level] != ancestor[of_hi + level]:
        level += 1
    below = n_leaves[rule["first_leaves"] + ancestor[of_lo + level]]
    return float(weight * (below / whole))


def why_impossible(problem: Problem, schema: Schema) -> str | None:
    """Return why no class of these records can keep the promise; None if no reason is known.

    One line that names the attribute, but no value: "sex has 2 values, d = 3".

    Notes
    -----
    For k, d, l, and without a margin spread, the answer is exact: where there is no reason, the
    whole table is a class. Bounds on shares and entropy are tried on the number of values alone;
    t-closeness is always kept by the whole table. O(n columns).
    """
    if problem.n_persons < problem.k:
        return f"there are {problem.n_persons:,} persons, k = {problem.k}"
    for c, name in enumerate(_names(problem, schema)):
        reason = _why(problem, c, "d" if c < problem.n_qis else "l")
        if reason:
            return f"{name} {reason}"
    return None


def above_their_bound(problem: Problem, schema: Schema) -> list[str]:
    """Return the columns of which one value has a larger share of the whole table than of a class.

    With its share, but no value: "country: one value has 89.6 % of the table, 50 % of a class at
    most". The mean share over all records of a release is that of the table, so that at least one
    class is above the bound unless records are suppressed. O(codes).
    """
    names = _names(problem, schema)
    found = []
    for rule, name in zip(problem.rule, names, strict=True):
        usual = problem.usual[rule["first_position"] :][: rule["size"]].max(initial=0.0)
        if usual > rule["share"] + ROUNDING:
            shares = f"{usual:.1%} of the table, {rule['share']:.1%} of a class at most"
            found.append(f"{name}: one value has {shares}")
    return found


def _names(problem: Problem, schema: Schema) -> tuple[str, ...]:
    """Return the name of each column; of a source's joint tuples, the names in brackets."""
    n_tuples = len(problem.rule) - len(schema.qis) - len(schema.sensitive)
    sources = [source for source in schema.sources if len(source) > 1][:n_tuples]
    return (
        *(a.name for a in schema.qis),
        *("(" + ", ".join(schema.qis[j].name for j in source) + ")" for source in sources),
        *(a.name for a in schema.sensitive),
    )


def _why(problem: Problem, c: int, letter: str) -> str | None:
    """Return what is wrong with one column."""
    rule = problem.rule[c]
    present: IntArray = np.flatnonzero(np.bincount(problem.cells[:, c]))
    real = present[present != rule["missing"]]
    if len(real) < rule["distinct"]:
        return f"has {len(real)} {_values(len(real))}, {letter} = {rule['distinct']}"
    times = np.sort(np.bincount(problem.cells[:, c])[real])
    n_left = int((np.cumsum(times) > rule["margin"]).sum())
    if n_left < rule["left"]:
        without = f"without any {rule['margin']} persons"
        return f"has {n_left} {_values(n_left)} {without}, {letter} = {rule['left']}"
    if rule["spread"] > 0:
        ends = problem.position[rule["first_position"] + real[[0, -1]]] if len(real) else [0, -1]
        if not ends[1] - ends[0] >= rule["spread"] - ROUNDING:
            return f"spans less than the {rule['spread']:g} asked for"
    n = len(present)
    if rule["share"] * n < 1 - ROUNDING:
        return f"has {n} {_values(n)}, and none may be more than {rule['share']:g} of a class"
    if np.log(n) < rule["entropy"] - ROUNDING:
        return f"has {n} {_values(n)}, entropy-l = {np.exp(rule['entropy']):g}"
    return None


def _values(n: int) -> str:
    return "value" if n == 1 else "values"
