"""How often one client may ask."""

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request

_MOST_CLIENTS = 10_000
_MINUTE_S = 60.0


class RateLimit:
    """A bucket of requests for each client, by the address of its connection.

    Parameters
    ----------
    per_minute
        Requests that a bucket holds, and that flow into it in a minute. None: there is no limit.
    monotonic
        Seconds by a clock that never goes back.

    Notes
    -----
    Behind a proxy all clients are one: set the limit there. The least recent of too many clients
    are forgotten, which fills their buckets.
    """

    def __init__(self, per_minute: int | None, *, monotonic: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._monotonic = monotonic
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """Take a request out of a client's bucket; return 0, or how long there is none."""
        if self._per_minute is None:
            return 0.0
        now, full = self._monotonic(), float(self._per_minute)
        left, before = self._left.pop(client, (full, now))
        left = min(full, left + (now - before) * full / _MINUTE_S)
        allowed = left >= 1
        self._left[client] = (left - allowed, now)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) * _MINUTE_S / full

    @property
    def check(self) -> Callable[[Request], Awaitable[None]]:
        """A dependency that refuses requests beyond the limit."""

        async def check(request: Request) -> None:
            wait_s = self.wait_s(request.client.host if request.client else "")
            if wait_s > 0:
                raise HTTPException(
                    429,
                    f"At most {self._per_minute} requests a minute are answered; wait.",
                    headers={"Retry-After": str(math.ceil(wait_s))},
                )

        return check
