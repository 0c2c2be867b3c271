"""`python -m benchmarks.least_loss`: a loss that no release of ARX's table can be below.

Each record is charged an amount, such that no class is charged more than it loses. Then a release
loses at least what all records are charged. Needs the real data in `$ANONYMIZER_DATA`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.status import Status

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.cover import leaves_of
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from benchmarks.known_tables import table_of

PASSES = 300
"""So many show that the bar of ARX's table at k = 10 cannot be reached."""
_FIRST_STEP = 0.3
_LAST_STEP = 1e-4
_ROUNDING = 1e-12
_MOST_TURNS = 1_000
"""Of one label. Each lowers the highest charges; two or three suffice."""


class Labels(NamedTuple):
    """The nodes of the hierarchies. A label is one of each column."""

    first: IntArray
    """First node of each column, and the number of all, shape (columns + 1,)."""
    lo: Int32Array
    hi: Int32Array
    loss: FloatArray
    """`lo`, `hi`, `loss`: first and last code below each node, and its loss."""


class Tuples(NamedTuple):
    """The distinct tuples, those with the highest charges first."""

    charge: FloatArray
    before: FloatArray
    """`charge`, `before`: the charge of each, and what it was at first."""
    times: IntArray
    cells: Int32Array
    """`times`, `cells`: how many records have each, and its codes."""
    k: int
    """Least number of records of a class."""


class Path(NamedTuple):
    """Working memory: the label being built, column by column."""

    node: IntArray
    loss: FloatArray
    """`node`, `loss`: the next node of each column, and the loss of the nodes before it."""
    tuples: Int32Array
    n_tuples: IntArray
    """`tuples`, `n_tuples`: the tuples within these nodes, shape (columns + 1, tuples), and how
    many they are."""
    top: IntArray
    n_top: IntArray
    """`top`, `n_top`: the tuples with the highest charges within a label, and how many records of
    each."""


def charges(
    problem: Problem, *, passes: int, progress: Callable[[int, float], None] = lambda *_: None
) -> FloatArray:
    """Return charges of the records, such that no class of k or more is charged more than it loses.

    Parameters
    ----------
    problem
        All its quasi-identifiers have hierarchies, and these are the cost. Of its criteria only k
        is looked at.
    passes
        The more, the higher the charges. O(labels with k records) each, less a lot that is skipped.
    progress
        Called with the number of each pass and the best sum of charges so far.

    Raises
    ------
    ValueError
        If a quasi-identifier has no hierarchy.

    Notes
    -----
    The dual of a linear program that chooses classes. A class has a label, and loses at least the
    loss of that for each member. It is charged too much only if the k highest charges within the
    label come to more than k times its loss: if they do not, the k-th highest is at most the loss,
    and further members are charged no more than they lose.

    Charges are raised by a step. Then label after label is looked at, and where the k highest
    charges come to too much they are lowered (projections onto half-spaces [1]_). Lowering never
    breaks what holds elsewhere, so the charges are valid after one pass. The steps get smaller.

    References
    ----------
    .. [1] A. Nedic and D. P. Bertsekas, "Incremental subgradient methods for nondifferentiable
       optimization", 2001.
    """
    tuples, tuple_of, times = np.unique(
        problem.cells[:, : problem.n_qis], axis=0, return_inverse=True, return_counts=True
    )
    labels, ways = _labels(problem)
    cells = np.ascontiguousarray(tuples[:, ways], dtype=np.int32)
    found = charge = np.zeros(len(cells))
    for number, step in enumerate(np.geomspace(_FIRST_STEP, _LAST_STEP, passes)):
        order = np.argsort(-charge, kind="stable")
        raised = charge[order] + step
        sorted_tuples = Tuples(raised, raised.copy(), times[order], cells[order], problem.k)
        _lower(sorted_tuples, labels, _blank_path(*cells.shape))
        charge = np.empty_like(raised)
        charge[order] = raised
        if times @ charge > times @ found:
            found = charge
        progress(number, float(times @ found))
    per_record: FloatArray = found[tuple_of.ravel()]
    return per_record


def _labels(problem: Problem) -> tuple[Labels, IntArray]:
    """Return the nodes of all columns, and the columns in their order: most nodes first."""
    rules, arrays = problem.rule[: problem.n_qis], problem.arrays
    leaves, nodes = leaves_of(arrays), []
    for rule in rules:
        if rule["form"] != Cost.TAXONOMY:
            raise ValueError("a quasi-identifier has no hierarchy")
        first, n = int(rule["first_ancestor"]), int(rule["size"]) * int(rule["height"])
        below = leaves[rule["first_leaves"] + np.unique(problem.ancestor[first : first + n])]
        ranges = np.unique(below, axis=0).tolist()
        lost = [column_loss(rule, 2, lo, hi, arrays.codes) if lo < hi else 0 for lo, hi in ranges]
        nodes.append((np.array(ranges, np.int32), np.array(lost, np.float64)))
    ways = np.argsort([-len(loss) for _, loss in nodes], kind="stable")
    lo, hi = np.concatenate([nodes[c][0] for c in ways]).T
    starts = np.cumsum([0, *(len(nodes[c][1]) for c in ways)])
    return Labels(starts, lo.copy(), hi.copy(), np.concatenate([nodes[c][1] for c in ways])), ways


def _blank_path(n: int, q: int) -> Path:
    return Path(
        np.zeros(q + 1, np.int64),
        np.zeros(q + 1),
        np.zeros((q + 1, n), np.int32),
        np.zeros(q + 1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
    )


@kernel
def _lower(tuples: Tuples, labels: Labels, path: Path) -> None:
    """Lower the charges until no label is charged more than it loses."""
    n_tuples, n_columns = tuples.cells.shape
    path.n_tuples[0] = n_tuples
    for t in range(n_tuples):
        path.tuples[0, t] = t
    c, path.node[0] = 0, labels.first[0]
    while c >= 0:
        node = path.node[c]
        if node == labels.first[c + 1]:
            c -= 1
            continue
        path.node[c] += 1
        loss = path.loss[c] + labels.loss[node]
        if _narrow(c, node, tuples, labels, path) <= tuples.k * loss + _ROUNDING:
            continue  # a further column cannot make it too much
        if c + 1 < n_columns:
            c += 1
            path.node[c], path.loss[c] = labels.first[c], loss
            continue
        for _ in range(_MOST_TURNS):
            if not _lower_highest(c + 1, loss, tuples, path):
                break
        else:
            raise RuntimeError("the charges within a label did not become low enough")


@inner_kernel
def _narrow(c: int, node: int, tuples: Tuples, labels: Labels, path: Path) -> float:
    """Find the tuples of the path within a further node; return their k highest charges at first.

    Negative infinity for fewer than k records. O(tuples of the path).
    """
    within, lo, hi = path.tuples, labels.lo[node], labels.hi[node]
    m, left, total = 0, tuples.k, 0.0
    for x in range(path.n_tuples[c]):
        t = within[c, x]
        if lo <= tuples.cells[t, c] <= hi:
            within[c + 1, m] = t
            m += 1
            n = min(tuples.times[t], left)
            total += n * tuples.before[t]
            left -= n
    path.n_tuples[c + 1] = m
    return total if left == 0 else -np.inf


@inner_kernel
def _lower_highest(c: int, loss: float, tuples: Tuples, path: Path) -> bool:
    """Lower the k highest charges until they come to k times the loss; return whether any was.

    The tuples of the label are those of column `c` of the path.
    """
    charge, before, times, _, k = tuples
    top, n_top = path.top, path.n_top
    m, n = 0, 0
    for x in range(path.n_tuples[c]):
        t = path.tuples[c, x]
        if n >= k and before[t] <= charge[top[m - 1]]:
            break  # charges only fall
        if n >= k and charge[t] <= charge[top[m - 1]]:
            continue
        y = m
        while y > 0 and charge[top[y - 1]] < charge[t]:
            top[y] = top[y - 1]
            y -= 1
        top[y] = t
        m += 1
        n += times[t]
        while n - times[top[m - 1]] >= k:
            m -= 1
            n -= times[top[m]]
    total, left, weight = 0.0, k, 0.0
    for y in range(m):
        n_top[y] = min(times[top[y]], left)
        left -= n_top[y]
        total += n_top[y] * charge[top[y]]
        weight += n_top[y] ** 2 / times[top[y]]
    if total <= k * loss + _ROUNDING:
        return False
    for y in range(m):
        charge[top[y]] -= (total - k * loss) / weight * n_top[y] / times[top[y]]
    return True


def main(arguments: Sequence[str]) -> None:
    """Raise the charges, and print the bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.least_loss", description=__doc__)
    parser.add_argument("--k", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--passes", type=int, default=PASSES, help="each takes about a second")
    options = parser.parse_args(arguments)
    console = Console()
    records, schema = table_of("arx")
    for k in options.k:
        problem = make_problem(records, schema, Promise(k=k, d=1), cost=Cost.TAXONOMY)
        with console.status(f"k = {k}") as status:

            def show(done: int, total: float, status: Status = status) -> None:
                status.update(f"pass {done}: {total / records.qi.size:.5f}")

            charged = charges(problem, passes=options.passes, progress=show)
        console.print(f"k = {k}: no release loses less than {charged.sum() / records.qi.size:.5f}")


if __name__ == "__main__":
    main(sys.argv[1:])
