"""`[http]`: metrics, health, the live map and the API."""

from pathlib import Path
from typing import Annotated, Literal, Self
from unicodedata import category

from pydantic import AfterValidator, Field, SecretStr, model_validator

from anonymizer.settings.base import AddressRange, Group, HostName, is_loopback


def _is_a_line(text: str) -> str:
    if any(category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in text):
        raise ValueError("must be one line, without control characters")
    return text.strip()


Line = Annotated[str, Field(max_length=300), AfterValidator(_is_a_line)]
"""A line that the live map shows its visitors."""


class HttpSettings(Group):
    """The HTTP side: metrics, health and the live map."""

    host: str = "127.0.0.1"
    """Address at which the gateway listens. Empty: it does not."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port of the live map, metrics and health; 0: any that is free."""
    token: SecretStr | None = None
    """Bearer token required by the live map and the API; the API must have one if `host` is not
    this machine. Prefer ANONYMIZER__HTTP__TOKEN in the environment, or `token_file`. None: no
    token is required."""
    token_file: Path | None = None
    """A file whose first line is the token, of 10 characters or more, and which not everybody may
    read. None: `token` is used."""
    trusted_proxies: tuple[AddressRange, ...] = ()
    """Addresses (`10.0.0.7`) or networks (`10.0.0.0/24`) of reverse proxies. Only requests that
    come from them are attributed to the address in `X-Forwarded-For`."""
    allowed_hosts: tuple[HostName, ...] = ()
    """Names under which clients reach the gateway, without a port. Other names in a request are
    refused (421), except `localhost`, `host` and any IP address. `*`: every name is accepted."""
    map: Literal["published", "raw", "none"] = "published"
    """The live map at `/`. `published`: what is published, and counts. `raw`: also the true
    positions, to clients with the token: for the auditor only. `none`: there is no map."""
    run_by: Line = ""
    """Who runs the gateway and how to reach them, which the live map tells its visitors; https and
    mail addresses become links. Empty: the map says that nobody has said."""
    opt_out: Line = ""
    """How to take no part, told and linked likewise. Empty: the map says what devices can do."""

    @property
    def enabled(self) -> bool:
        """Whether the gateway listens."""
        return bool(self.host)

    @property
    def is_public(self) -> bool:
        """Whether others than users of this machine may see the live map."""
        reached = not is_loopback(self.host) or self.trusted_proxies or self.allowed_hosts
        return self.enabled and self.map != "none" and bool(reached)

    @property
    def raw_view(self) -> bool:
        """Whether the map shows true positions."""
        return self.map == "raw"

    @model_validator(mode="after")
    def _the_raw_view_has_a_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("set token or token_file, not both")
        if self.token is not None and not self.token.get_secret_value().strip():
            raise ValueError("token must not be empty")
        if self.raw_view and not (self.token or self.token_file):
            raise ValueError('map: "raw" needs token_file')
        return self
