"""Topics to which a broker lets nobody publish, asked in MQTT 5 without publishing anything.

A message at QoS 2 is published when its sender releases it. The broker says before that, in PUBREC,
whether it takes it [1]_. So an empty message goes to each topic and is never released. Some brokers
pass it on before that; it expires at once, so that HiveMQ, one of them, drops it. Of others readers
may get an empty message, not retained.

At QoS 0 no broker says what it refuses, and in MQTT 3.1.1 none does at any QoS: it acknowledges
what it drops. What a user may do does not depend on the version, so that is asked in MQTT 5, too.

References
----------
.. [1] "MQTT Version 5.0", OASIS 2019, 4.3.3.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import LinkCounts
from anonymizer.transport.connecting import Access, open_wire, read_access
from anonymizer.transport.exactly_once import ExactlyOnce
from anonymizer.transport.mqtt import PahoControl
from anonymizer.transport.mqtt_session import Session, SessionMemory
from anonymizer.transport.packet_sizes import PacketSizes
from anonymizer.transport.packets import MAX_PAYLOAD_BYTES, PUBREC
from anonymizer.transport.quarantine import Quarantine
from anonymizer.transport.unsettled import Receipts

if TYPE_CHECKING:
    from anonymizer.settings import BrokerSettings

_ANSWER_S = 10.0
_PUBLISH_ONCE = b"\x34"
"""PUBLISH at QoS 2, not retained."""
_EXPIRES_AT_ONCE = b"\x05\x02" + bytes(4)
"""The properties: a Message Expiry Interval of 0 s."""
_MOST_OF_A_BYTE = 0x7F
_KIND, _ONCE = PUBREC >> 8, 2
_FAILS = 0x80
_REASONS = {0x87: "not authorized", 0x90: "topic name invalid", 0x97: "quota exceeded"}


async def refused_topics(
    settings: "BrokerSettings", topics: Sequence[str], *, client_id: str
) -> Mapping[str, str] | None:
    """Return why the broker refuses messages on those of some topics on which it does.

    `client_id`: of a connection of its own. None: it does not say, as it speaks no MQTT 5 or no
    QoS 2, or cannot be reached.
    """
    settings = settings.model_copy(update={"version": "5", "session_expiry_s": 0})
    try:
        async with asyncio.timeout(_ANSWER_S):
            access = await asyncio.to_thread(read_access, settings)
            return await _asked(settings, access, topics, client_id=client_id)
    except (OSError, TransportError):  # a timeout is an OSError
        return None


async def _asked(
    settings: "BrokerSettings", access: Access, topics: Sequence[str], *, client_id: str
) -> Mapping[str, str] | None:
    receipts, said = Receipts(), asyncio.Queue[int]()
    session = _AskingSession(
        settings,
        control=lambda made: _Asking(made, settings, access, said, client_id=client_id),
        deliver=lambda _: None,
        receiving=False,
        memory=SessionMemory(
            receipts, ExactlyOnce(receipts), Quarantine(lambda *_: None), PacketSizes()
        ),
        counts=LinkCounts(),
        max_payload_bytes=MAX_PAYLOAD_BYTES,
    )
    try:
        await open_wire(access, session.wire, timeout_s=_ANSWER_S, close_timeout_s=_ANSWER_S)
        session.connect()
        await session.decided.wait()
        if not session.usable or session.profile.max_qos < _ONCE:
            return None
        found = {}
        for mid, topic in enumerate(topics, start=1):
            session.wire.write(_question(topic, mid))
            if (reason := await said.get()) >= _FAILS:
                found[topic] = _REASONS.get(reason, f"reason {reason:#x}")
        await session.disconnect()
    finally:
        session.end("asked")
    return found


def _question(topic: str, mid: int) -> bytes:
    """Return an empty PUBLISH at QoS 2, not retained, that expires at once."""
    name = topic.encode()
    body = len(name).to_bytes(2) + name + mid.to_bytes(2) + _EXPIRES_AT_ONCE
    length = bytearray()
    rest = len(body)
    while rest > _MOST_OF_A_BYTE:
        length.append(rest & _MOST_OF_A_BYTE | _MOST_OF_A_BYTE + 1)
        rest >>= 7
    return _PUBLISH_ONCE + bytes([*length, rest]) + body


class _AskingSession(Session):
    """A session that publishes at QoS 2, so that a broker may answer with PUBREC."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  those of a session
        super().__init__(*arguments, **options)
        self._reader.left_to_the_library |= {_KIND >> 4}


class _Asking(PahoControl):
    """A control that takes what the broker says to messages at QoS 2, and releases none."""

    def __init__(
        self,
        session: Session,
        settings: "BrokerSettings",
        access: Access,
        said: "asyncio.Queue[int]",
        *,
        client_id: str,
    ) -> None:
        super().__init__(
            session, settings, client_id=client_id, access=access, subscriptions=(), will=None
        )
        self._said = said

    def take(self, packet: bytes) -> None:
        """Handle one packet."""
        if packet[0] != _KIND:
            super().take(packet)
        else:
            # Fixed header of two bytes, identifier, and a reason unless it is success.
            self._said.put_nowait(packet[4] if len(packet) > len(b"....") else 0)
