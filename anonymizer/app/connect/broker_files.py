"""Files of a Mosquitto for one ecosystem: its configuration, access rules and passwords."""

import base64
import hashlib
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from anonymizer.app.connect.ecosystems import Ecosystem
from anonymizer.pipeline.positions.decode.topics import subscription
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import MOSQUITTO_LIMITS

GATEWAY, ANALYST = "gateway", "analyst"
"""Users of every broker."""
PUBLIC, OWN = "public", "own"
"""Further readers: a user who reads the copy for the public alone, and every device, which reads
what it has sent itself."""
_OF_THE_PUBLIC = "public/#"
_OWN = "pattern readwrite"
DROPS = "$SYS/broker/publish/messages/dropped"
_ROUNDS = 101
"""As `mosquitto_passwd`: a random password of 192 bits needs no slow digest."""


class Certificate(NamedTuple):
    """Files of the broker's certificate and key, for devices elsewhere."""

    certificate: Path
    key: Path


def mosquitto_lines(folder: Path, *, port: int, tls: Certificate | None) -> Iterator[str]:
    """Yield the configuration, apart from a bridge; `port` is open to this machine alone."""
    yield "# Of this machine alone: passwords are not encrypted here."
    yield f"listener {port} 127.0.0.1"
    if tls is not None:
        yield "# Client ids of devices are their user names, so none takes another's session over."
        yield "listener 8883"
        yield "use_username_as_clientid true"
        yield f"certfile {tls.certificate.resolve()}"
        yield f"keyfile {tls.key.resolve()}"
    yield "allow_anonymous false"
    yield f"password_file {folder / 'passwords'}"
    yield f"acl_file {folder / 'mosquitto.acl'}"
    yield "# Mosquitto's defaults drop messages silently."
    yield from MOSQUITTO_LIMITS
    yield "max_packet_size 70000"
    yield "memory_limit 800000000"
    yield "persistence true"
    yield f"persistence_location {folder}/"
    if os.geteuid() == 0:
        yield "# Started by root, it would become a user who cannot read this folder."
        yield "user root"


def reads_own(lines: Iterable[str]) -> bool:
    """Return whether by these rules a device may read what it has sent."""
    return any(line.startswith(_OWN) for line in lines)


def rules(settings: Settings, ecosystem: Ecosystem, readers: Collection[str]) -> Iterator[str]:
    """Yield the access rules: each user may do what it must, and analysts see nothing raw.

    `readers`: `PUBLIC` and `OWN`, or none of them.
    """
    raw = [subscription(each.topic) for each in settings.inputs]
    trees = [tree_of(settings.output.topic), tree_of(settings.broker.status_topic)]
    yield f"user {GATEWAY}"
    yield from (f"topic read {each}" for each in raw)
    yield from (f"topic write {each}/#" for each in trees)
    yield f"topic read {settings.topics.probe}"
    if PUBLIC in readers:
        yield f"topic write {_OF_THE_PUBLIC}"
    if settings.broker.drops_topic:
        yield f"topic read {settings.broker.drops_topic}"
    yield ""
    yield "# A denial takes precedence over any other rule."
    yield f"user {ANALYST}"
    yield from (f"topic read {each}/#" for each in trees)
    yield f"topic deny {ecosystem.raw}"
    yield f"topic deny {settings.topics.probe}"
    yield ""
    if PUBLIC in readers:
        yield f"user {PUBLIC}"
        yield f"topic read {_OF_THE_PUBLIC}"
        yield ""
    if ecosystem.has_users:
        yield "# A device writes under its own name alone: its user name is the id that counts."
        yield f"{_OWN if OWN in readers else 'pattern write'} {ecosystem.rule}"
    else:
        yield "# It speaks for all devices: whoever has its password can make up as many."
        yield f"user {ecosystem.publisher}"
        yield f"topic write {ecosystem.rule}"


def tree_of(topic: str) -> str:
    """Return the topic below which a topic and those beside it are."""
    return topic.rpartition("/")[0] or topic


def new_password() -> str:
    """Return a random password."""
    return secrets.token_urlsafe(24)


def passwords_lines(password_of: Mapping[str, str]) -> list[str]:
    """Return the lines of a password file of Mosquitto (`$7$`: PBKDF2 with SHA-512)."""
    return [f"{user}:{_digest(password)}" for user, password in password_of.items()]


def _digest(password: str) -> str:
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS, dklen=64)
    return f"$7${_ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"
