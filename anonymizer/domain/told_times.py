"""The times of which something was published: each window is published once, whatever the clock."""

import math

_MOST_SHARED = 0.5
"""Of a window, at most so much may be in the one published before it: clocks are also set by
fractions of a second."""


class ToldTimes:
    """The times of which something was published: nothing more is published of them.

    They are those that readers see, so they go back when the wall clock is put back.
    """

    def __init__(self, until_s: float = -math.inf) -> None:
        self.until_s = until_s
        """Unix seconds."""

    def has(self, starts_s: float, ends_s: float) -> bool:
        """Return whether something was published of a window with these times."""
        return self.until_s - starts_s > _MOST_SHARED * (ends_s - starts_s)

    def take(self, starts_s: float, ends_s: float) -> bool:
        """Return whether a window may be published, which it then is."""
        if self.has(starts_s, ends_s):
            return False
        self.until_s = max(self.until_s, ends_s)
        return True
