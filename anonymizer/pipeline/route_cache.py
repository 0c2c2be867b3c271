"""Cache of the routes of records by topic, bounded by bytes and by age.

Topics contain device ids, and a device chooses its topics: each may have 65,535 bytes.
"""

from collections.abc import Callable
from sys import getsizeof
from typing import TypeVar

Route = TypeVar("Route")

MAX_BYTES = 128 * 1024 * 1024
"""Room for about 300,000 topics of 40 characters."""
ENTRY_BYTES = 256
"""Size of an entry without its topic and the device id in its route; a test measures it."""


class RouteCache(dict[str, Route]):
    """Routes by topic; `cache[topic]` finds the route of a topic that is not cached.

    Parameters
    ----------
    find
        Returns the route of a topic. It may keep a part of the topic, once.
    max_bytes
        Largest size of the cache. Topics that were used least recently are forgotten first.

    Notes
    -----
    There are two generations. New topics, and those of the older generation that are used again,
    enter the younger one. When that is full or old it becomes the older one, and the previous older
    one is forgotten as a whole. A hit therefore costs no more than in a plain dictionary. Two
    threads may use the cache; what both find at the same time may then be found again. Topics of
    positions, of which there are many more, are kept by `names.NameTable`.
    """

    def __init__(self, find: Callable[[str], Route], *, max_bytes: int = MAX_BYTES) -> None:
        super().__init__()
        self._find = find
        self._max_bytes = max_bytes
        self._older: dict[str, Route] = {}
        self._n_bytes = 0
        self._since_s: float | None = None

    @property
    def n_topics(self) -> int:
        """Number of topics in both generations; some may be in both."""
        return len(self) + len(self._older)

    def __missing__(self, topic: str) -> Route:
        """Return the route of a topic that is not in the younger generation, and put it there."""
        older = self._older  # another thread may replace it meanwhile
        route = older[topic] if topic in older else self._find(topic)
        n_bytes = ENTRY_BYTES + 2 * getsizeof(topic)
        if self._n_bytes + n_bytes > self._max_bytes // 2:
            self._turn()
        if n_bytes <= self._max_bytes // 2:
            self[topic] = route
            self._n_bytes += n_bytes
        return route

    def forget(self, *, at_s: float, kept_s: float) -> None:
        """Forget the topics that were last used `kept_s` ago or earlier.

        It must be called often, because the age of a topic is rounded up to the time between two
        calls. `at_s` are the seconds of a monotonic clock.
        """
        if self._since_s is None:
            self._since_s = at_s
        elif at_s - self._since_s >= kept_s:  # nothing was forgotten for as long: too late
            self.clear()
            self._older = {}
            self._n_bytes = 0
            self._since_s = at_s
        elif at_s - self._since_s >= kept_s / 2:
            self._turn()
            self._since_s = at_s

    def _turn(self) -> None:
        self._older = dict(self)
        self.clear()
        self._n_bytes = 0

    def __repr__(self) -> str:
        """Return the size alone: topics contain device ids."""
        return f"RouteCache({self.n_topics} topics)"
