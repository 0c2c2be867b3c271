"""Windows of time: which has ended, and the largest k that was promised while it was under way."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_MOST_WINDOWS = 24
"""EndedWindows that end at one tick, where the clock is put forward."""


def promised_k(settings: "Settings") -> int:
    """Return how many devices each figure of counts, trips and streets is about, at least."""
    return settings.counts.k + settings.region.k_extra


class LargestK:
    """The largest k that was promised while each window was under way."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}

    def promise(self, k: int, windows: range) -> None:
        """Take in that these windows are under way, and the k of now."""
        for each in windows:
            self._of[each] = max(self._of.get(each, 0), k)

    def end(self, window: int, k: int) -> int:
        """Return the largest of a window, with the k of now, and forget it and those before."""
        largest = max(k, self._of.get(window, 0))
        self._of = {each: least for each, least in self._of.items() if each > window}
        return largest

    def state(self) -> list[tuple[int, int]]:
        """Return what changes from tick to tick."""
        return list(self._of.items())

    def restore(self, state: list[tuple[int, int]]) -> None:
        """Go on from a state."""
        self._of = dict(state)


class EndedWindows:
    """Says which windows have ended: each once, when nothing of it can follow.

    Window n covers [n, n + 1) times `every_s`, unix seconds. The one in which it begins is left
    out: nobody knows what is missing of it.

    Parameters
    ----------
    known_after_s
        Seconds after the end of a window in which something of it may still follow.
    n_ahead
        EndedWindows after the present one in which what is seen now may belong.
    """

    def __init__(self, every_s: float, known_after_s: float, *, n_ahead: int = 0) -> None:
        self._every_s, self._known_after_s, self._n_ahead = every_s, known_after_s, n_ahead
        self._largest = LargestK()
        self.next: int | None = None
        """The window that ends next; None: not begun."""

    def of(self, s: float) -> int:
        """Return the window of a time, unix seconds."""
        return math.floor(s / self._every_s)

    def begins(self, now: float) -> bool:
        """Return whether the first window begins: at first, and if the clock was put back.

        What was seen before is then of another time, and to be forgotten.
        """
        after = self.of(now) + 1
        if self.next is not None and self.next <= after:
            return False
        self.next = after
        return True

    def restart(self) -> None:
        """Forget the windows under way."""
        self.next = None

    def is_due(self, now: float) -> bool:
        """Return whether a window ends by this time."""
        return self.next is not None and self.of(now - self._known_after_s) > self.next

    def ended(self, now: float, *, k: int) -> list[tuple[int, int]]:
        """Return the windows that have ended, and the largest k promised in each.

        `k`: what is promised now. Of windows that a clock passes when it is put forward, nothing
        can have been seen.
        """
        if self.next is None:
            raise ValueError("no window has begun")
        present = self.of(now)
        self._largest.promise(k, range(present, present + 1 + self._n_ahead))
        first, after = self.next, self.of(now - self._known_after_s)
        self.next = max(first, after)
        return [
            (each, self._largest.end(each, k))
            for each in range(first, min(after, first + _MOST_WINDOWS))
        ]

    def state(self) -> list[Any]:
        """Return what changes from tick to tick."""
        return [self.next, self._largest.state()]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self.next, promised = state
        self._largest.restore(promised)
