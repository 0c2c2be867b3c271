"""Who may ask: those who show the bearer token, where there is one.

How often one client may ask.
"""

import hmac
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request

from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings


def read_token(settings: HttpSettings) -> str | None:
    """Return the token that requests must show; None: none is needed.

    Raises
    ------
    SettingsError
        If its file cannot be used; the message names the setting.
    """
    if settings.token_file is None:
        return settings.token.get_secret_value() if settings.token else None
    try:
        lines = settings.token_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingsError("http.token_file: cannot be read") from None
    if not lines or not lines[0].strip():
        raise SettingsError("http.token_file: is empty")
    return lines[0].strip()


def bearer(token: str | None) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that refuses requests without the token; None: refuses nobody."""

    async def check(request: Request) -> None:
        if token is None:
            return
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        # In constant time: how long a refusal takes must not tell how much of it was right.
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            shown.strip().encode(), token.encode()
        ):
            raise HTTPException(
                401, "a bearer token is needed", headers={"WWW-Authenticate": "Bearer"}
            )

    return check


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
