"""Outlook: how much less a search would lose with twice its work, measured on a part."""

from collections.abc import Callable

import numpy as np

from anonymizer.algorithms.records.boxes import near_together
from anonymizer.algorithms.records.criteria import total_loss
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.problem import Problem
from anonymizer.domain.arrays import IntArray

_PART = 40
"""So many parts has a table."""
_FEWEST = 1_000
"""Records of a part: its classes at its borders are worse than they would be."""


def saved_by_twice_the_work(
    problem: Problem, problem_of: Callable[[IntArray], Problem], *, work: int, seed: int
) -> float | None:
    """Return the share of its loss that twice the work would save; None if it was not measured.

    Parameters
    ----------
    problem
        No person has two records. Columns that are not quasi-identifiers may be left out of its
        cells.
    problem_of
        Returns the problem of some of the records.
    work
        Of a search of the table, see `best`.

    Notes
    -----
    A part of near records, drawn by the seed, is searched with its share of the work, and with
    twice as much. That costs a thirteenth of the search. None for fewer than 10,000 records.
    """
    n, q = problem.n, problem.n_qis
    at_least = max(n // _PART, _FEWEST)
    if n < 10 * at_least or len(problem.person):
        return None
    part_of, _ = near_together(problem, problem.cells[:, :q], at_least=at_least)
    rng = np.random.default_rng(seed)
    own = np.flatnonzero(part_of == rng.integers(part_of.max() + 1))
    part = problem_of(own)
    sizes = [int(rule["size"]) for rule in problem.rule[:q]]
    order = hilbert_order(part.cells[:, :q].copy(), sizes)
    once, twice = (
        total_loss(part, best(part, order, work=times * work * len(own) // n, seed=seed))
        for times in (1, 2)
    )
    return 1 - twice / once if once else 0.0
