"""What a method that forms equivalence classes is given, and the time budget of a search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from anonymizer.algorithms.kaca.features import Feature
    from anonymizer.algorithms.records.problem import Problem
    from anonymizer.domain.arrays import IntArray
    from anonymizer.domain.promises import Promise
    from anonymizer.domain.records import Records, Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Task:
    """Input of a method.

    Attributes
    ----------
    records, schema
        The records to partition.
    promise, problem
        The criteria of a class, as numbers and as arrays.
    dm_weight
        Weight of the discernibility metric relative to the information loss.
    prefer_share, share_price
        Preferred largest share of a value in a class, and its price, see `local_search.best`. Only
        a search uses them.
    time_left
        Returns the share of the time budget that is left, from 1 down to 0. A search stops at 0.
        None: there is no limit, and the search ends by itself.
    work
        Work that a search may do in place of the time, see `Effort`: equal tasks then have equal
        classes, however fast or busy the machine.
    progress, spent
        Called with the information loss so far, and at last with the work that a search did.
    seed
        Seed of everything random.
    target, numeric_target
        What a model will learn from the release, one label or number per record, and which of
        the two it is. None: there is no target. Only a model that `learns` uses it.
    features
        Distance between records, one entry per quasi-identifier. Empty: the defaults. Only
        a model of clusters uses it.
    usual_qi
        Where the records are a part of a table: how often each code of each quasi-identifier
        occurs in all of it. Only a model of cells uses it.
    """

    records: "Records"
    schema: "Schema"
    promise: "Promise"
    problem: "Problem"
    dm_weight: float = 0.0
    prefer_share: float = 1.0
    share_price: float = 0.0
    time_left: Callable[[], float] | None = None
    work: int | None = None
    progress: Callable[[float], None] = lambda _loss: None
    spent: Callable[[int], None] = lambda _work: None
    seed: int = 0
    target: "ArrayLike | None" = None
    numeric_target: bool = False
    features: "Sequence[Feature]" = ()
    usual_qi: "Sequence[IntArray] | None" = None


class TimeBudget:
    """Time budget of one search, by a clock that is passed in; serves as `Task.time_left`."""

    def __init__(self, budget_s: float, clock: Callable[[], float]) -> None:
        self._budget_s, self._clock, self._began_s = budget_s, clock, clock()
        self.ended_search, self.was_asked = False, False
        """Whether a search asked for more time than there was; and whether one asked at all."""

    def __call__(self) -> float:
        """Return the share of the budget that is left."""
        self.was_asked = True
        used_s = self._clock() - self._began_s
        if used_s >= self._budget_s:
            self.ended_search = True
            return 0.0
        return 1 - used_s / self._budget_s
