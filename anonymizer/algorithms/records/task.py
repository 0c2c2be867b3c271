"""What a method that forms equivalence classes is given, and the time budget of a search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymizer.algorithms.records.former import Former
    from anonymizer.algorithms.records.problem import Problem
    from anonymizer.domain.arrays import IntArray
    from anonymizer.domain.records import Records


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelTarget:
    """What a model will learn from a release."""

    values: "NDArray[Any]"
    """One label or number per record, shape (n,)."""
    is_numeric: bool = False
    """Whether they are numbers."""

    def only(self, rows: "IntArray") -> "ModelTarget":
        """Return what is to be learned of some records."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Task:
    """Input of a method."""

    former: "Former"
    """What is the same for all records of a release."""
    records: "Records"
    problem: "Problem"
    """`records`, `problem`: the records to partition, and the criteria of a class as arrays."""
    target: ModelTarget | None = None
    """None: there is none. Only a model that `learns` uses it."""
    time_left: Callable[[], float] | None = None
    """Returns the share of the time budget that is left, from 1 down to 0. A search stops at 0.
    None: there is no limit, and the search ends by itself."""
    work: int | None = None
    """Work that a search may do in place of the time, see `Effort`: equal tasks then have equal
    classes, however fast or busy the machine."""
    progress: Callable[[float], None] = lambda _loss: None
    spent: Callable[[int], None] = lambda _work: None
    """`progress`, `spent`: called with the information loss so far, and at last with the work that
    a search did."""


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
