"""The better method: same promise, less information lost, as good as the time allows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.local_search import improve, search_from
from anonymizer.algorithms.records.optimal_cuts import split
from anonymizer.algorithms.records.outlining import partition_of
from anonymizer.algorithms.records.partition import partition_cost
from anonymizer.algorithms.records.problem import Problem, pose
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import Tally, blank_tally
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema

_LONG_SEARCH = 2_000
"""From so many records on, a search takes all the time it is given; below, it ends by itself."""
_WARM_TURNS = 8
"""How often a search goes on that is there to compile its kernels."""


def best(
    problem: Problem,
    order: IntArray,
    *,
    dm_weight: float = 0.0,
    keep_going: Callable[[], bool],
    left: Callable[[], float] | None = None,
    seed: int,
    progress: Callable[[float], None] = lambda _loss: None,
) -> Int32Array:
    """Return the class of each record in the cheapest partition found in the time there is.

    Parameters
    ----------
    problem
        What a class must keep, and how information loss is counted.
    order
        All records, those that are alike near each other: see `hilbert_order`.
    dm_weight
        What is made small is GCP + `dm_weight` x DM / (n k). DM is the sum of squared class sizes,
        so that DM / (n k) is 1 where every class has k records, and 3 where each has 3 k: with
        0.01, classes of 3 k must be better by 0.02 of GCP than classes of k.
    keep_going
        Asked every 50 ms or so; once False, the best so far is returned.
    left
        Share of the time that is left, 1 at first and 0 at last, by which the search cools; None:
        not known. The same time gives better classes where it is. Not asked where records are so
        few that the search ends by itself.
    seed
        Equal seeds give equal classes where `keep_going` is always True and `left` is not asked.
    progress
        Told the GCP so far.

    Returns
    -------
    class_of
        Dense from 0; all keep the promise. `SUPPRESSED` everywhere where no classes were found,
        nowhere where the whole table can be one class, and else for what fits in none, as far as
        there was time to look.

    Notes
    -----
    The order is swept, then cut where it costs least, then classes are improved by local search.
    O(n columns) memory: at six columns about 300 bytes a record.
    """
    first = sweep(problem, order)[order]
    if (first == SUPPRESSED).all():
        return first
    # In the order, the members of a class lie near each other in memory too.
    placed = replace(
        problem,
        cells=problem.cells[order],
        person=problem.person[order] if len(problem.person) else problem.person,
    )
    q = problem.n_qis
    tally = blank_tally(placed, dm_weight * q / problem.k)
    class_of = _cheaper(first, split(first, tally, keep_going=keep_going), tally)
    found = improve(
        search_from(class_of, tally, keep_going=keep_going),
        keep_going=keep_going,
        left=left if problem.n >= _LONG_SEARCH else None,
        rng=np.random.default_rng(seed),
        progress=lambda loss: progress(loss / (problem.n * q)),
    )
    out = np.empty_like(found)
    out[order] = found
    return out


def warm_up(schema: Schema, promise: Promise) -> None:
    """Compile the kernels of a search on made records, before its time is counted.

    Seconds where they were never compiled on this machine, milliseconds else.
    """
    number = np.arange(2 * promise.k, dtype=np.int32)

    def made(attributes: tuple[Attribute, ...]) -> Int32Array:
        columns = [number % attribute.size for attribute in attributes]
        return np.column_stack(columns) if columns else np.zeros((len(number), 0), np.int32)

    records = Records(made(schema.qis), made(schema.sensitive), number)
    turns = iter(range(_WARM_TURNS))
    best(
        pose(records, schema, promise),
        number.astype(np.int64),
        keep_going=lambda: next(turns, None) is not None,
        seed=0,
    )


def _cheaper(first: Int32Array, cut: Int32Array | None, tally: Tally) -> Int32Array:
    """Return the one of two partitions that costs less; the second may not be there."""
    if cut is None:
        return first
    before = partition_cost(partition_of(first, tally), tally)
    return cut if partition_cost(partition_of(cut, tally), tally) < before else first
