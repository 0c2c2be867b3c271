"""Local search: improves a partition step by step; every step keeps the promise.

The search starts at the cheapest of five partitions: the sweep along an order, boxes, the cheapest
cuts of the order in which they lie, the agglomeration of near records, and, where losses are those
of hierarchies, repeated full-domain levels. Its classes are then improved by simulated annealing
[1]_: the longer the search, the lower the information loss. A large table is searched in blocks of
whole classes.

References
----------
.. [1] S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi, "Optimization by simulated annealing", 1983.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.kernels import runs_as_python
from anonymizer.algorithms.records.agglomeration import agglomerate
from anonymizer.algorithms.records.boxes import boxes
from anonymizer.algorithms.records.classes import SUPPRESSED, by_class, without_gaps
from anonymizer.algorithms.records.draws import draw
from anonymizer.algorithms.records.effort import Effort
from anonymizer.algorithms.records.full_domain import repeated_levels
from anonymizer.algorithms.records.leaving import Scratch, blank_scratch
from anonymizer.algorithms.records.moves import admit, make_moves
from anonymizer.algorithms.records.neighbors import Neighbors, neighbors_of
from anonymizer.algorithms.records.optimal_cuts import split
from anonymizer.algorithms.records.ordering import numbered
from anonymizer.algorithms.records.partition import (
    Orders,
    Partition,
    partition_cost,
    partition_of,
    redraw_all,
)
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import Tally, blank_tally
from anonymizer.domain.arrays import Int32Array, IntArray, starts_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema

_WORK_PER_CALL = 2_000_000
_DRAWS_PER_CALL = 20_000
_MOST_AT_ONCE = 512
_REDRAWN = 0.02
_WORK_PER_RECORD = 8_000
"""Of the first round without a time limit; each further one is twice as long."""
_FULL_WORK = 40_000
"""From this much work per record on, the search starts at its highest temperature."""
_HEAT = 0.4
_LEAST_GAIN = 1e-3
_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Search:
    """A partition and the working memory of the moves."""

    orders: Orders
    tally: Tally
    partition: Partition
    scratch: Scratch
    """`orders`, `tally`, `partition`, `scratch`: the arguments of the kernels."""

    @property
    def class_of(self) -> Int32Array:
        """The class of each record at present."""
        return self.partition.of_record["number"].copy()

    @property
    def loss(self) -> float:
        """The information loss of all records at present."""
        head = self.tally.head
        classes = self.partition.of_class[: int(head[0]["n_classes"])]
        return float((classes["size"] * classes["loss"]).sum())

    @property
    def cost(self) -> float:
        """The cost of all classes at present."""
        return partition_cost(self.partition, self.tally)


def search_from(
    class_of: Int32Array,
    tally: Tally,
    neighbors: Neighbors,
    *,
    keep_going: Callable[[], bool] = lambda: True,
) -> Search:
    """Return a search that starts at a partition, after suppressed records have been assigned.

    If time runs out, the remaining ones stay suppressed. Similar records must be near each other.
    O(n columns log n); 8 bytes for each record and column, plus 60 bytes for each record.
    """
    cells, rule, head = tally.problem.cells, tally.problem.rule, tally.head
    partition = partition_of(class_of, tally, covering=True)
    distinguished = np.flatnonzero((np.arange(len(rule)) < head["n_qis"]) | (rule["distinct"] > 1))
    order = np.empty((len(distinguished) + 1, len(cells)), np.int32)
    order[0] = np.arange(len(cells))
    for row, c in enumerate(distinguished, start=1):
        order[row] = by_class(cells[:, c])
    rank = np.empty_like(order)
    for there, back in zip(order, rank, strict=True):
        back[there] = order[0]
    scratch, orders = (
        blank_scratch(tally, partition, _MOST_AT_ONCE),
        Orders(order, rank, neighbors),
    )
    left_out, n = class_of == SUPPRESSED, len(class_of)
    at = 0 if left_out.any() and not left_out.all() else n
    while at < n:
        at = admit(at, orders, tally, partition, scratch)
        if at < n and not keep_going():
            break
    if head[0]["share_price"] > 0:
        redraw_all(tally, partition)  # what joining made an upper bound becomes exact
    return Search(orders, tally, partition, scratch)


def improve(
    search: Search,
    *,
    effort: Effort,
    cools: bool,
    heat: float = _HEAT,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> Int32Array:
    """Return the class of each record in the cheapest partition found; see `best`.

    `cools`: whether to cool once until the effort ends, if it is known when.

    Notes
    -----
    Simulated annealing: while the search is hot, a move may raise the cost slightly, and less so
    as it cools. If its end is known, it cools once until then, from a temperature that rises with
    the number of moves possible; if not, it runs in rounds: a cold one, then longer and longer ones
    that are heated again, until a round gains less than a thousandth.
    """
    cheapest, least = search.class_of, search.cost
    head = search.tally.head
    n, k = len(cheapest), int(head[0]["k"])
    hottest = heat * k * least / max(n, 1)
    if cools and effort.is_limited:
        while effort.goes_on():
            left = effort.left()
            full = _FULL_WORK * n * (1 - left)
            warmth = left**2 * min(1.0, effort.used / full if full > 0 else 0.0)
            most = _WORK_PER_CALL if effort.work is None else effort.work - effort.used
            effort.spend(_moves(search, hottest * warmth, most, rng, progress))
        return search.class_of if search.cost < least else cheapest

    for number in range(_MOST_ROUNDS):
        length, used = n * (_WORK_PER_RECORD << number), 0
        while used < length and effort.goes_on():
            warmth = (1 - used / length) ** 2 if number > 0 else 0.0
            work = _moves(search, hottest * warmth, length - used, rng, progress)
            effort.spend(work)
            used += work
        cost = search.cost
        gained = least - cost
        if gained > 0:
            cheapest, least = search.class_of, cost
        if used < length or (number > 0 and gained < _LEAST_GAIN * least):
            break
    return cheapest


def _moves(
    search: Search,
    heat: float,
    work: int,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> int:
    """Make moves for about 20 ms; return the work done."""
    given = min(work, _WORK_PER_CALL)
    tally, partition = search.tally, search.partition
    draws = draw(rng, _DRAWS_PER_CALL)
    left = make_moves(heat, given, draws, search.orders, tally, partition, search.scratch)
    rule = tally.problem.rule
    if (rule["share"] < 1).any() and rng.random() < _REDRAWN:
        redraw_all(tally, partition)  # bounds on frequent values get loose
    progress(search.loss)
    return max(given - int(left), 1)


_LONG_SEARCH = 2_000
"""From this many records on, a search uses all its time; below, it ends by itself."""
_BLOCK, _LEAST_BLOCK, _BLOCK_PER_WORK = 100_000, 400, 6
"""Most records of a block, fewest in units of k, and so many for each unit of work a record. A
large one has 70 MB of working memory at six columns; a small one stays in the cache, and its moves
take half as long."""
_FOR_BOXES, _FOR_NEIGHBORS, _FOR_AGGLOMERATION = 0.5, 0.25, 0.25
"""Largest shares of what is left that a search uses before its moves; boxes only of its time."""
_FOR_FEW_NEIGHBORS, _FEW_WORK = 0.05, 5_000
"""With less work a record than that, moves gain more than further neighbours."""
_FOR_LEVELS = {True: 0.5, False: 0.1}
"""Share of what is left for levels, by whether k is large: below that, more of it gains nothing."""
_MOSTLY = 0.5
"""Share of the quasi-identifiers with hierarchies from which levels find more than moves would."""
_LARGE_K = 20
"""From this k on, levels find more than moves, and heat loses more of it than moves gain."""
_SPLIT_WORK, _AGGLOMERATION_WORK = 6, 150
"""Work for each record added to a class, and for each record and column, measured, in the unit of
`make_moves`."""
_WARM_TURNS = 60
"""Length of a search whose purpose is to compile the kernels, beside a turn for each QI."""


def best(
    problem: Problem,
    order: IntArray,
    *,
    dm_weight: float = 0.0,
    prefer_share: float = 1.0,
    share_price: float = 0.0,
    keep_going: Callable[[], bool] = lambda: True,
    time_left: Callable[[], float] | None = None,
    work: int | None = None,
    seed: int,
    progress: Callable[[float], None] = lambda _loss: None,
    spent: Callable[[int], None] = lambda _work: None,
) -> Int32Array:
    """Return the class of each record in the cheapest partition found in the time there is.

    The search minimizes GCP + `dm_weight` x DM / (n k). DM is the sum of squared class sizes, so
    that DM / (n k) is 1 where every class has k records, and 3 where each has 3 k. A record costs
    `share_price` more GCP for each column in which its class has a value with more than
    `prefer_share`, see `blank_tally`.

    `order`: all records, similar ones near each other, see `hilbert_order`. `keep_going`,
    `time_left`, `work`: see `Effort`; asked every 50 ms or so. Where it is known when the search
    ends, it gives better classes in the same time. Equal work and seeds give equal classes, however
    fast or busy the machine. `progress` is called with the GCP so far, and `spent` at last with the
    work done.

    Classes are dense from 0; all keep the promise. `SUPPRESSED` everywhere where no classes were
    found, nowhere where the whole table can be one class, and else for what fits in none, as far as
    there was time to look.

    Notes
    -----
    Sweep and boxes, about 4 us a record, are made whatever the work, so that more records never
    lose more. What a move costs does not depend on how many classes there are. Memory: 100 bytes
    a record, and for a block at six columns 700 bytes a record.
    """
    effort = Effort(keep_going, time_left, work)
    q = problem.n_qis

    def tally_of(part: Problem) -> Tally:
        return blank_tally(
            part,
            dm_weight * q / problem.k,
            prefer_share=prefer_share,
            share_price=share_price * q if prefer_share < 1 else 0.0,
        )

    class_of, order = _first_classes(problem, order, tally_of(problem), effort)
    if (class_of == SUPPRESSED).all():
        return class_of
    rng, lost = np.random.default_rng(seed), 0.0
    n_classes, n_done = 0, 0
    for block in _blocks(class_of[order], problem, work):
        own = order[block]

        def told(loss: float, before: float = lost, done: int = n_done + len(own)) -> None:
            progress((before + loss) / (done * q))

        own_effort = effort.portion(len(own) / (problem.n - n_done))
        # In the order, the members of a class lie near each other in memory too.
        placed = _only(problem, own)
        found, loss = _searched(
            without_gaps(class_of[own]), tally_of(placed), own_effort, rng, told
        )
        effort.spend(own_effort.used)
        found[found != SUPPRESSED] += n_classes
        class_of[own] = found
        n_classes = int(found.max(initial=n_classes - 1)) + 1
        n_done, lost = n_done + len(own), lost + loss
    spent(effort.used)
    return class_of


def _only(problem: Problem, member: IntArray) -> Problem:
    """Return the problem of some of its records, in the given order; persons keep their numbers.

    Of joint tuples, of which a table has as many as records, those that occur are numbered anew, in
    their order: what is held for each code of the part is then no larger than the part.
    """
    person = problem.person[member] if len(problem.person) else problem.person
    part = replace(problem, cells=problem.cells.take(member, axis=0), person=person)
    if problem.plain.all():
        return part
    rule, codes = problem.rule.copy(), []
    for c, one in enumerate(problem.rule):
        if problem.plain[c]:
            kept = np.arange(one["size"])
        else:
            number = numbered(part.cells[:, c, None])
            kept = np.empty(int(number.max(initial=-1)) + 1, np.int64)
            kept[number], part.cells[:, c] = part.cells[:, c].copy(), number
        rule[c]["size"] = len(kept)
        codes.append(one["first_position"] + kept)
    rule["first_position"] = starts_of(rule["size"])[:-1]
    of = np.concatenate(codes)
    return replace(part, rule=rule, position=problem.position[of], usual=problem.usual[of])


def _first_classes(
    problem: Problem, order: IntArray, tally: Tally, effort: Effort
) -> tuple[Int32Array, IntArray]:
    """Return the cheaper of sweep and boxes, and an order in which its classes lie side by side."""
    swept = sweep(problem, order)
    keep_going = effort.until(1 - _FOR_BOXES) if effort.work is None else lambda: True
    boxed, by_box = boxes(problem, order, keep_going=keep_going)
    if _cheaper(swept, boxed, tally) is boxed:
        return boxed, by_box
    return swept, order


def _blocks(class_of: Int32Array, problem: Problem, work: int | None) -> list[slice]:
    """Return stretches of whole classes, of up to about `_BLOCK` records; one if persons repeat.

    `class_of`: of the records in an order in which classes lie side by side; `work`: for all.
    """
    n, most = len(class_of), _BLOCK
    if work is not None:
        least = max(_LEAST_BLOCK * problem.k, 2 * _LONG_SEARCH)
        most = min(max(_BLOCK_PER_WORK * work // n, least), _BLOCK)
    n_blocks = 1 if len(problem.person) else max(round(n / most), 1)
    begins = np.flatnonzero(np.r_[True, class_of[1:] != class_of[:-1]])
    asked = np.arange(1, n_blocks) * n // n_blocks
    cuts = np.unique(begins[np.searchsorted(begins, asked, side="right") - 1])
    edges = [0, *cuts[cuts > 0].tolist(), n]
    return [slice(begin, end) for begin, end in pairwise(edges)]


def _searched(
    first: Int32Array,
    tally: Tally,
    effort: Effort,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> tuple[Int32Array, float]:
    """Return the classes of a block, and their loss, from a first partition into stretches."""
    n, n_columns = tally.problem.cells.shape
    q, k = int(tally.head[0]["n_qis"]), int(tally.head[0]["k"])

    def split_spends(n_added: int) -> None:
        effort.spend(_SPLIT_WORK * n_added)

    cut = split(first, tally, keep_going=effort.goes_on, spend=split_spends)
    class_of = _cheaper(first, cut, tally)
    is_long = n >= _LONG_SEARCH
    little = effort.work is not None and effort.work < _FEW_WORK * n
    share = _FOR_FEW_NEIGHBORS if little else _FOR_NEIGHBORS
    until = effort.left() * (1 - share) if is_long else 0.0
    neighbors = neighbors_of(tally.problem, q, keep_going=effort.until(until), spend=effort.spend)
    work = _AGGLOMERATION_WORK * n * n_columns
    if effort.work is None or work <= _FOR_AGGLOMERATION * (effort.work - effort.used):
        effort.spend(work)
        merged = agglomerate(tally, neighbors, keep_going=effort.goes_on)
        class_of = _cheaper(class_of, merged, tally)
    heat = _HEAT
    if (tally.problem.rule["form"][:q] == Cost.TAXONOMY).mean() >= _MOSTLY:
        leveled = _by_levels(tally, neighbors, effort, rng)
        if _cheaper(class_of, leveled, tally) is leveled:
            class_of = leveled
            heat *= k < _LARGE_K
    search = search_from(class_of, tally, neighbors, keep_going=effort.goes_on)
    moves = effort.portion(1.0)
    found = improve(search, effort=moves, cools=is_long, heat=heat, rng=rng, progress=progress)
    effort.spend(moves.used)
    return found, search.loss


def _by_levels(
    tally: Tally, neighbors: Neighbors, effort: Effort, rng: np.random.Generator
) -> Int32Array:
    """Return a partition by levels, in a share of what is left; who fits none joins a class."""
    n_qis, k = int(tally.head[0]["n_qis"]), int(tally.head[0]["k"])
    own = effort.portion(_FOR_LEVELS[k >= _LARGE_K])
    class_of = repeated_levels(tally.problem, n_qis, k=k, effort=own, rng=rng)
    effort.spend(own.used)
    return search_from(class_of, tally, neighbors, keep_going=effort.goes_on).class_of


def has_kernels() -> bool:
    """Return whether a search runs as machine code, see `kernels.runs_as_python`."""
    return not runs_as_python(make_moves)


def warm_up(schema: Schema, promise: Promise) -> None:
    """Compile the kernels of a search on synthetic records, before its time budget starts.

    Seconds if they were never compiled on this machine, otherwise milliseconds.
    """
    number = np.arange(2 * promise.k, dtype=np.int32)

    def made(attributes: tuple[Attribute, ...]) -> Int32Array:
        columns = [number % attribute.size for attribute in attributes]
        return np.column_stack(columns) if columns else np.zeros((len(number), 0), np.int32)

    records = Records(made(schema.qis), made(schema.sensitive), number)
    turns = iter(range(_WARM_TURNS + len(schema.qis)))
    best(
        make_problem(records, schema, promise),
        number.astype(np.int64),
        keep_going=lambda: next(turns, None) is not None,
        seed=0,
    )


def _cheaper(first: Int32Array, other: Int32Array | None, tally: Tally) -> Int32Array:
    """Return the cheaper of two partitions, or the one that leaves no records out."""
    if other is None or (other == SUPPRESSED).any():
        return first
    if (first == SUPPRESSED).any():
        return other
    before = partition_cost(partition_of(first, tally), tally)
    return other if partition_cost(partition_of(other, tally), tally) < before else first
