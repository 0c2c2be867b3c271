"""Connecting to a broker: address, client id, credentials, TLS, and the backoff after a failure."""

import asyncio
import hashlib
import random
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from anonymizer.errors import TransportError
from anonymizer.transport.wire import Wire

if TYPE_CHECKING:
    from anonymizer.settings import BrokerSettings

_PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
_SPEAKS = {"mqtts": "TLS", "ws": "WebSocket", "wss": "WebSocket and TLS"}
_MUTE = (TimeoutError, ConnectionResetError, ConnectionAbortedError, ssl.SSLError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Address of the broker, and the credentials to present."""

    host: str
    port: int
    tls: ssl.SSLContext | None  # None: the connection is not encrypted
    password: str | None = field(repr=False)
    websocket: str | None = None
    """Address of the WebSocket; None: MQTT without one."""


def read_access(settings: "BrokerSettings") -> Access:
    """Read the password and certificates from their files at every call, so that they can rotate.

    It blocks on the file system, so it must not run on the event loop.

    Raises `TransportError` if a file cannot be used; the message names the setting.
    """
    parts = urlsplit(settings.url)
    over_http = parts.scheme in {"ws", "wss"}
    return Access(
        host=parts.hostname or "",
        port=parts.port or _PORTS[parts.scheme],
        tls=_tls(settings) if parts.scheme in {"mqtts", "wss"} else None,
        password=_password(settings),
        # Without a path, the usual one: HiveMQ and EMQX answer no other, and Mosquitto any.
        websocket=urlunsplit(parts._replace(path=parts.path or "/mqtt")) if over_http else None,
    )


async def open_wire(
    access: Access, wire: Wire, *, timeout_s: float, close_timeout_s: float
) -> None:
    """Connect a wire to a broker, so that MQTT can be spoken over it.

    `timeout_s`, `close_timeout_s`: deadlines of the TLS handshake, and of closing TLS. The caller
    bounds the whole.

    Raises `OSError` or `TransportError` if there is no connection.
    """
    over = None
    if access.websocket is not None:
        from anonymizer.transport.websocket import WebSocket  # noqa: PLC0415  few brokers need it

        over = WebSocket(wire, access.websocket)
    await asyncio.get_running_loop().create_connection(
        lambda: wire if over is None else over,
        access.host,
        access.port,
        ssl=access.tls,
        ssl_handshake_timeout=timeout_s if access.tls else None,
        ssl_shutdown_timeout=close_timeout_s if access.tls else None,
    )
    if over is None:
        return
    try:
        await over.opened
    except BaseException:  # also if cancelled: no half-open connection may remain
        over.close()
        raise


def client_id_of(settings: "BrokerSettings", *, key: bytes, role: str = "") -> str:
    """Return the client id of a connection: `broker.client_id`, its role, and 128 random bits.

    Parameters
    ----------
    settings
        Settings of the broker; a long `client_id` has no other random bits.
    key
        Secret of 16 to 64 random bytes. An equal key, role and `client_id` give an equal id, so a
        changed `client_id` gives other random bits. The id reveals nothing of the key.
    role
        Distinguishes the connections of one gateway.
    """
    name = "-".join(filter(None, [settings.client_id, role]))
    if not settings.random_client_id:
        return name
    person = b"mqtt client id"
    digits = hashlib.blake2b(name.encode(), digest_size=16, key=key, person=person).hexdigest()
    return f"{name}-{digits}"


def backoff_s(settings: "BrokerSettings", *, attempt: int, rng: random.Random) -> float:
    """Return the seconds to wait after a failed attempt, which is counted from 1.

    Uniform between the smallest wait and a bound that doubles with each attempt up to the
    largest wait, so that the many clients of a restarted broker do not return all at once.
    """
    return settings.reconnect_max_s / 60 * rng.uniform(1.0, min(60.0, 2.0 ** min(attempt, 64)))


def reason_of(error: Exception) -> str:
    """Return the reason why a connection failed, in words suitable for a log."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or "unknown"  # absent if Python itself raised it
        return f"TLS failed: {reason.replace('_', ' ').lower()}"
    if isinstance(error, ConnectionResetError):
        return "Connection reset by peer"  # TLS has no words for it
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)


def is_mute(error: Exception) -> bool:
    """Return whether a connection failed as if the peer spoke something else than the client."""
    return isinstance(error, _MUTE) and not isinstance(error, ssl.SSLCertVerificationError)


def doubting(reason: str, *, url: str) -> str:
    """Return a reason with the question whether the port is the one of this URL."""
    over = _SPEAKS.get(urlsplit(url).scheme, "plain TCP")
    return f"{reason}; does this port speak MQTT over {over}, as the URL says?"


def _password(settings: "BrokerSettings") -> str | None:
    if settings.password_file is None:
        return settings.password.get_secret_value() if settings.password else None
    try:
        lines = settings.password_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise TransportError("broker.password_file cannot be read") from None
    if not lines:
        raise TransportError("broker.password_file is empty")
    return lines[0]


def _tls(settings: "BrokerSettings") -> ssl.SSLContext:
    """Return a context that always verifies the broker's certificate and name."""
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except OSError:
        raise TransportError("broker.ca_file cannot be used") from None
    if settings.url.startswith("mqtts") and (stated := urlsplit(settings.url).query):
        context.set_alpn_protocols([stated.partition("=")[2]])
    if settings.cert_file is not None:
        try:
            # An empty password, because without one OpenSSL would prompt on the terminal.
            context.load_cert_chain(settings.cert_file, settings.key_file, password="")
        except OSError:
            raise TransportError("broker.cert_file or broker.key_file cannot be used") from None
    return context
