"""Access control for HTTP: the bearer token, and a rate limit for each client address."""

import hmac
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, IPv6Network, ip_address

from fastapi import HTTPException, Request
from starlette.types import Scope

_MAX_CLIENTS = 10_000
_MINUTE_S = 60.0


def bearer(token: str | None) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that rejects requests without the token; None: it rejects none."""

    async def check(request: Request) -> None:
        if token is not None:
            require_token(request, token)

    return check


def is_operator(request: Request, token: str | None) -> bool:
    """Return whether a request presents the token; None: there is none, so no request does.

    Raises `HTTPException` if it presents another one: its sender must not take public counts for
    exact ones.
    """
    if token is None or "authorization" not in request.headers:
        return False
    require_token(request, token)
    return True


def require_token(request: Request, token: str) -> None:
    """Reject a request without the token."""
    scheme, _, shown = request.headers.get("authorization", "").partition(" ")
    # In constant time: the duration of a refusal must not reveal a matching prefix.
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        shown.strip().encode(), token.encode()
    ):
        raise HTTPException(401, "a bearer token is needed", headers={"WWW-Authenticate": "Bearer"})


_PREFIX_BITS = 64
"""Of an IPv6 address: one household or machine has them all, and may use each."""


def address_of(scope: Scope) -> str:
    """Return what tells a client from others: its IPv4 address, or IPv6 network of 64 bits.

    It is the address of the connection, or the one that a proxy in `http.trusted_proxies` states.
    """
    host = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or IPv6Network((address, _PREFIX_BITS), strict=False))
    return str(address)


class RateLimit:
    """Token buckets: a limit of requests for each client, see `address_of`.

    Parameters
    ----------
    per_minute
        Capacity of a bucket, and requests added to it in a minute.

    Notes
    -----
    Behind a proxy that is not in `http.trusted_proxies`, all clients have one address. At most
    10,000 clients are remembered; the least recent is forgotten first, which refills its bucket.
    """

    def __init__(self, per_minute: int, *, monotonic: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._monotonic = monotonic
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """Return 0 if a request of a client is allowed, else the seconds to wait."""
        left, _ = self._now(client)
        return 0.0 if left >= 1 else (1 - left) * _MINUTE_S / self._per_minute

    def count(self, client: str) -> None:
        """Count a request of a client, also one beyond the limit."""
        left, now = self._now(client)
        self._left.pop(client, None)
        self._left[client] = (left - 1, now)
        if len(self._left) > _MAX_CLIENTS:
            self._left.popitem(last=False)

    def _now(self, client: str) -> tuple[float, float]:
        """Return the requests that a client has left, and the time."""
        now, full = self._monotonic(), float(self._per_minute or 0)
        left, before = self._left.get(client, (full, now))
        return min(full, left + (now - before) * full / _MINUTE_S), now

    @property
    def check(self) -> Callable[[Request], Awaitable[None]]:
        """A dependency that rejects requests beyond the limit."""

        async def check(request: Request) -> None:
            client = address_of(request.scope)
            wait_s = self.wait_s(client)
            if wait_s > 0:
                raise HTTPException(
                    429,
                    f"At most {self._per_minute} requests a minute are answered; wait.",
                    headers={"Retry-After": str(math.ceil(wait_s))},
                )
            if self._per_minute is not None:
                self.count(client)

        return check
