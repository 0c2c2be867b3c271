"""`[http]`: metrics, health, the live map and the API."""

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from anonymizer.settings.base import AddressRange, AtLeastOne, Group, HostName


class HttpSettings(Group):
    """The HTTP side: metrics, health and the live map."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port of the live map, metrics and health; 0: any that is free."""
    token: SecretStr | None = None
    """Bearer token required by the live map and the API; the API must have one if `host` is not
    this machine. Prefer ANONYMIZER__HTTP__TOKEN in the environment, or `token_file`. None: no
    token is required."""
    token_file: Path | None = None
    """A file whose first line is the token. None: `token` is used."""
    requests_per_minute: AtLeastOne | None = 300
    """Requests that the API accepts from one address; an IPv6 network of 64 bits counts as one.
    None: no limit."""
    trusted_proxies: tuple[AddressRange, ...] = ()
    """Addresses (`10.0.0.7`) or networks (`10.0.0.0/24`) of reverse proxies. Only requests that
    come from them are attributed to the address in `X-Forwarded-For`."""
    allowed_hosts: tuple[HostName, ...] = ()
    """Names under which clients reach the gateway, without a port. Other names in a request are
    refused (421), except `localhost`, `host` and any IP address. `*`: every name is accepted."""
    map: bool = True
    """Whether to serve the live map at `/`. It shows what is published, and counts."""
    raw_view: bool = False
    """Whether clients with the token see true positions on the map: for the auditor only."""
    tiles: str | None = None
    """Map tiles below the roads, `https://host/{z}/{x}/{y}.png`. Each viewer's browser then
    reveals to that host which places are viewed. None: no request to any other host."""
    tiles_attribution: str = ""
    """Attribution required by the owner of the tiles."""

    @property
    def tiles_origin(self) -> str | None:
        """Scheme and host of `tiles`; None: there are none."""
        return None if self.tiles is None else "/".join(self.tiles.split("/")[:3])

    @field_validator("tiles")
    @classmethod
    def _tiles_are_an_address(cls, tiles: str | None) -> str | None:
        # The host becomes part of a header, so it must not contain anything that ends one.
        wanted = r"https?://[A-Za-z0-9.-]+(:\d+)?/[!-~]*"
        if tiles is not None and not (
            re.fullmatch(wanted, tiles) and all(part in tiles for part in ("{z}", "{x}", "{y}"))
        ):
            raise ValueError("must be http[s]://host[:port]/... with {z}, {x} and {y}")
        return tiles

    @model_validator(mode="after")
    def _the_raw_view_has_a_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("set token or token_file, not both")
        if self.token is not None and not self.token.get_secret_value().strip():
            raise ValueError("token must not be empty")
        if self.raw_view and not (self.map and (self.token or self.token_file)):
            raise ValueError("raw_view needs map, and token or token_file")
        return self
