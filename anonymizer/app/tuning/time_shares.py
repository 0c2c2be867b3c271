"""Time shares: one time budget, divided among the configurations that are still to try."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from anonymizer.algorithms.records.task import TimeBudget

TUNE_TIME_BUDGET_S = 600.0
"""Default time budget of `tune`, for all configurations together."""


@dataclass(slots=True)
class RowTime:
    """Time of the configurations of one row, in the process that tries them."""

    deadline_s: float = inf
    """No configuration begins that is expected to end after it."""
    end_s: float = inf
    """Time by which the row should end."""
    rest_s: float = 0.0
    """Expected time of a configuration apart from its searches: the longest that any row needed. 0:
    nothing is known yet."""
    clock: Callable[[], float] = time.monotonic
    """Returns seconds that never go back, the same in all processes."""
    search_s: float = inf
    """Most work of a search of a table, in seconds (`work_in`): by work, not by the clock, equal
    configurations have equal trials, however busy the machine is."""
    searched_s: float = 0.0
    """Time spent searching so far."""
    _began_s: float | None = None
    _n_begun: int = 0

    def begins(self) -> bool:
        """Return whether another configuration begins; count it if so."""
        now = self.clock()
        if self._began_s is None:
            self._began_s = now
        if self._n_begun:
            others_s = now - self._began_s - self.searched_s
            self.rest_s = max(self.rest_s, others_s / self._n_begun)
        begins = now + self.rest_s < self.deadline_s
        self._n_begun += begins
        return begins

    def search_budget(
        self, longest_s: float, *, n_configurations: int, n_searches: int
    ) -> TimeBudget:
        """Return the time budget of the next search of a stream.

        Parameters
        ----------
        longest_s
            Its time budget where time is not short.
        n_configurations, n_searches
            Number of them left in the row, this one included.
        """
        left_s = self.end_s - self.clock() - n_configurations * self.rest_s
        return TimeBudget(min(longest_s, max(left_s, 0.0) / n_searches), self.clock)


class TimeShares:
    """Divides the time until a deadline among the configurations that have not begun.

    A configuration gets an equal share of the time that the processes still have, so that time
    which earlier ones did not use goes to later ones.

    Parameters
    ----------
    deadline_s
        End of the time budget by the clock; infinite if there is none.
    n_waiting
        Number of configurations that have not begun.
    n_processes
        Number of rows of configurations that are tried at the same time.
    clock
        Returns seconds that never go back, the same in all processes.
    search_s
        See `RowTime`.
    """

    def __init__(
        self,
        deadline_s: float,
        *,
        n_waiting: int,
        n_processes: int,
        clock: Callable[[], float] = time.monotonic,
        search_s: float = inf,
    ) -> None:
        self._deadline_s, self._clock, self._search_s = deadline_s, clock, search_s
        self._n_waiting, self._n_processes = n_waiting, n_processes
        self._end_s_of: dict[int, float] = {}

    def begin(self, row: int, n: int, *, rest_s: float) -> RowTime:
        """Return the time of a row of n configurations that begins now.

        `rest_s`: expected time of a configuration apart from its searches.
        """
        now, end_s = self._clock(), inf
        if self._deadline_s < inf:
            n_free = self._n_processes - len(self._end_s_of)
            free_from = [now] * n_free + [max(each, now) for each in self._end_s_of.values()]
            time_s = sum(max(self._deadline_s - each, 0.0) for each in free_from)
            end_s = min(now + n * time_s / self._n_waiting, self._deadline_s)
        self._n_waiting -= n
        self._end_s_of[row] = end_s
        return RowTime(self._deadline_s, end_s, rest_s, self._clock, self._search_s)

    def end(self, row: int) -> None:
        """Free the process of a row."""
        del self._end_s_of[row]
