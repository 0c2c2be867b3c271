"""A connection on which nothing arrives: recognized by the counts, and reported in one log line.

It is no fault of the gateway, so readiness does not depend on it: devices may be off at night.
"""

LIKELY = (
    "no device publishes to these topics (compare a device's own topic, level by level), or the"
    " access rules of the broker let this user subscribe but not read"
)
"""What is likely to be wrong."""


class SilentConnection:
    """Watches one connection. It reports once, and again only after a lost connection.

    Parameters
    ----------
    after_s
        How long a connection must have been up without a message; 0: it never reports.
    """

    def __init__(self, *, after_s: float) -> None:
        self._after_s = after_s
        self._since: tuple[float, int] | None = None
        self._settled = not after_s

    def see(self, n_arrived: int, *, connected: bool, at_s: float) -> bool:
        """Take in the state of the connection; return whether its silence is to be reported.

        Parameters
        ----------
        n_arrived
            How many messages have arrived, since any time.
        connected
            Whether the connection is up.
        at_s
            Seconds of a monotonic clock.
        """
        if not connected:
            self._since, self._settled = None, not self._after_s
            return False
        if self._since is None:
            self._since = at_s, n_arrived
        began_s, n_before = self._since
        if self._settled or n_arrived != n_before:
            self._settled = True
            return False
        self._settled = at_s - began_s >= self._after_s
        return self._settled
