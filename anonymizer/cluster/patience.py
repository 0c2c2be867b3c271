"""How long to wait before Kafka is tried again."""

import time

_FIRST_S, _MOST_S = 0.5, 10.0
_WELL_S = 60.0
"""Time without a failure after which it is waited for shortly again."""


class Patience:
    """Waits twice as long after each failure, up to ten seconds."""

    def __init__(self) -> None:
        self._wait_s, self._failed_at = _FIRST_S, time.monotonic()

    def next_s(self) -> float:
        """Return for how long to wait after a failure, in seconds."""
        now = time.monotonic()
        if now - self._failed_at > _WELL_S:
            self._wait_s = _FIRST_S
        self._failed_at = now + self._wait_s
        wait_s, self._wait_s = self._wait_s, min(_MOST_S, 2 * self._wait_s)
        return wait_s
