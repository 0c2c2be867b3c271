"""`[broker]`: the MQTT broker and the credentials for it."""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from anonymizer.settings.base import Group, NotNegative, OutputTopic, is_loopback

_ALPN = re.compile(r"alpn=[A-Za-z0-9./_-]{1,255}")
_RANDOM_CHARS = 32
"""An id of so many characters is taken for random: 128 bits in hexadecimal digits."""


class BrokerSettings(Group):
    """The MQTT broker and the credentials for it."""

    receive_maximum: ClassVar[int] = 2000
    """Most QoS 1 messages in flight from the broker to the gateway (MQTT 5)."""

    url: str = "mqtt://127.0.0.1:1883"
    """`mqtts://host[:port]` for TLS; `mqtt://host[:port]` on this machine. Over WebSocket:
    `wss://host[:port][/path]` and `ws://`, path `/mqtt` unless stated (extra `websockets`). It must
    not contain credentials. `mqtts://host:443?alpn=NAME`: with this protocol name in TLS, by which
    managed brokers know MQTT on port 443."""
    allow_plaintext: bool = False
    """Allows `mqtt://` and `ws://` to another machine: anyone on the path can read positions and
    passwords."""
    version: Literal["5", "3.1.1"] = "5"
    client_id: Annotated[str, Field(min_length=1, max_length=200)] = "anonymizer"
    """Beginning of the ids under which the broker knows the gateway's connections. A second client
    with an id disconnects the first one, so an id must not be guessed: 32 random digits are
    appended to each. They are kept in the store of records; without streams they are drawn at every
    start. Nothing is appended to a name of 32 characters or more, which must itself be random, for
    example from `openssl rand -hex 16`."""
    username: str | None = None
    """The gateway's name at the broker. None: anonymous."""
    password: SecretStr | None = None
    """Prefer ANONYMIZER__BROKER__PASSWORD in the environment, or `password_file`."""
    password_file: Path | None = None
    """A file whose first line is the password. None: `password` is used."""
    ca_file: Path | None = None
    """Certificate authority of the broker (PEM). None: the system's authorities."""
    cert_file: Path | None = None
    """Client certificate (PEM). None: no client certificate."""
    key_file: Path | None = None
    """Key of the client certificate (PEM). None: it is in `cert_file`."""
    keepalive_s: Annotated[int, Field(ge=5, le=3600)] = 30
    """Time between two pings. A broker that is silent for twice as long is reconnected, and so is
    one that answers a ping without having acknowledged a message sent this long before it. It is
    also the longest wait before the next attempt to connect, which doubles with each attempt, from
    a sixtieth of this on."""
    session_expiry_s: Annotated[int, Field(ge=0, le=0xFFFFFFFE)] = 0
    """How long the broker keeps undelivered messages while the gateway is not connected.
    0: not at all, which suits live positions (MQTT 3.1.1: any other value means forever)."""
    status_topic: OutputTopic = "anonymizer/status"
    """Retained: `online`, `offline`, or `lost` by last will. Other reports of the gateway are
    beside it, and `anonymizer/probe`, by which gateways notice each other: they alone must be
    allowed to publish and to read there. Of two with one topic the younger ends."""
    drops_topic: OutputTopic | None = None
    """Topic on which the broker publishes how many messages it has dropped; Mosquitto:
    `$SYS/broker/publish/messages/dropped`. They are exported as a metric. None: not counted."""
    max_backlog_s: NotNegative = 0.0
    """Positions that may have waited longer in the broker, in seconds, are suppressed as overload;
    otherwise devices that state no time would appear where they were. 10 is usual. It is measured
    with probes that the gateway sends itself on `anonymizer/probe`. 0: not measured."""

    @property
    def reconnect_max_s(self) -> float:
        """Longest wait before the next attempt to connect."""
        return float(self.keepalive_s)

    @property
    def random_client_id(self) -> bool:
        """Whether random digits are appended to `client_id`."""
        return len(self.client_id) < _RANDOM_CHARS

    @field_validator("url")
    @classmethod
    def _url_names_a_broker(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            # The library's message quotes the address, with a password if it contains one.
            raise ValueError("must be an address with a port between 0 and 65535") from None
        if parts.scheme not in {"mqtt", "mqtts", "ws", "wss"} or not parts.hostname:
            raise ValueError(
                "must be mqtt://host[:port] or mqtts://host[:port], or ws:// or wss://"
            )
        is_alpn = parts.scheme == "mqtts" and _ALPN.fullmatch(parts.query)
        if parts.query and parts.scheme in {"mqtt", "mqtts"} and not is_alpn:
            raise ValueError("may end with ?alpn=NAME after mqtts://host:port, and nothing else")
        if parts.username or parts.password:
            raise ValueError("must not contain credentials; set username and password_file")
        return url

    @model_validator(mode="after")
    def _plaintext_stays_on_this_machine(self) -> Self:
        parts = urlsplit(self.url)
        plain = parts.scheme in {"mqtt", "ws"}
        if plain and not self.allow_plaintext and not is_loopback(parts.hostname):
            raise ValueError(
                f"url: must be {parts.scheme}s:// off this machine, or set allow_plaintext"
            )
        return self

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        if self.password is not None and self.password_file is not None:
            raise ValueError("set password or password_file, not both")
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("key_file needs cert_file")
        return self
