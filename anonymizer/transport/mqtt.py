"""MQTT 5 and 3.1.1 with paho-mqtt: the only module that knows the client library.

paho opens, maintains and ends a session. Its sockets, network loop, threads and queues are not
used: the bytes come from a `Wire` of the running loop, and packets that carry data bypass paho
(see `anonymizer.transport.packets`). Each connection has its own paho client, so that no state
passes from one connection to the next.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paho.mqtt.client import Client, ConnectFlags
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from anonymizer.pipeline.ports import Loss, Outgoing
from anonymizer.transport.connecting import Access
from anonymizer.transport.mqtt_session import Session
from anonymizer.transport.packets import MalformedPacketError
from anonymizer.transport.wire import Wire

if TYPE_CHECKING:
    from paho.mqtt.client import SocketLike

    from anonymizer.settings import BrokerSettings


_MOST_FILTERS = 8
"""In one SUBSCRIBE or UNSUBSCRIBE: AWS IoT Core closes the connection at more."""
_TAKEN_OVER = 0x8E
"""Reason with which an MQTT 5 broker disconnects a client whose id another one has used."""


class _PacketSocket:
    """A stand-in for paho's non-blocking socket: whole packets in, whole packets out."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._incoming = b""

    def feed(self, packet: bytes) -> None:
        self._incoming = packet

    def recv(self, buffer_size: int) -> bytes:
        data, self._incoming = self._incoming[:buffer_size], self._incoming[buffer_size:]
        return data

    def send(self, buffer: bytes | bytearray) -> int:
        self._wire.write(bytes(buffer))
        return len(buffer)

    def close(self) -> None:
        self._wire.close()

    def fileno(self) -> int:
        return -1

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001  the signature of a socket
        """Do nothing: it never blocks."""


class _Client(Client):
    """A paho client that is given its connection instead of opening one."""

    def __init__(
        self, packet_socket: _PacketSocket, settings: "BrokerSettings", client_id: str
    ) -> None:
        version5 = settings.version == "5"
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=MQTTProtocolVersion.MQTTv5 if version5 else MQTTProtocolVersion.MQTTv311,
            clean_session=None if version5 else settings.session_expiry_s == 0,
            reconnect_on_failure=False,
        )
        self._packet_socket = packet_socket

    def _create_socket(self) -> "SocketLike":
        return self._packet_socket


class PahoControl:
    """Handles the packets that carry no data with paho: opens, maintains and ends a session."""

    def __init__(
        self,
        session: Session,
        settings: "BrokerSettings",
        *,
        client_id: str,
        access: Access,
        subscriptions: Sequence[tuple[str, int]],
        will: Outgoing | None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._access = access
        self._subscriptions = subscriptions
        self._asked: dict[int, list[str]] = {}
        self._socket = _PacketSocket(session.wire)
        self._client = _Client(self._socket, settings, client_id)
        self._client.username_pw_set(settings.username, access.password)
        if will is not None:
            self._client.will_set(will.topic, will.payload, qos=1, retain=will.retain)
        # Set before CONNECT: the backlog of a kept session can arrive together with CONNACK.
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_disconnect = self._on_disconnect

    def connect(self) -> None:
        """Send CONNECT."""
        host, port, keepalive_s = self._access.host, self._access.port, self._settings.keepalive_s
        if self._settings.version != "5":
            self._client.connect(host, port, keepalive_s)
            return
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.ReceiveMaximum = self._settings.receive_maximum
        if self._settings.session_expiry_s:
            properties.SessionExpiryInterval = self._settings.session_expiry_s
        anew = self._settings.session_expiry_s == 0
        self._client.connect(host, port, keepalive_s, clean_start=anew, properties=properties)

    def take(self, packet: bytes) -> None:
        """Handle one packet; raise `MalformedPacketError` if it is malformed."""
        self._socket.feed(packet)
        try:
            self._client.loop_read()
        except Exception as error:
            # The parser runs on untrusted bytes: whatever it raises, the packet is malformed.
            raise MalformedPacketError("a packet that the library cannot read") from error
        if self._client.want_write():
            self._client.loop_write()

    def unsubscribe(self) -> None:
        """Unsubscribe from all topics."""
        topics = [topic for topic, _ in self._subscriptions]
        for first in range(0, len(topics), _MOST_FILTERS):
            self._client.unsubscribe(topics[first : first + _MOST_FILTERS])

    def disconnect(self) -> None:
        """Send DISCONNECT, then close the wire."""
        # The wire reports the loss of the connection, after everything has been sent.
        self._client.on_disconnect = None
        self._client.disconnect()

    def _on_connect(
        self,
        _client: Client,
        _userdata: Any,  # noqa: ANN401  paho's signature
        flags: ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            self._session.end(f"refused: {reason}", Loss.REFUSED)
            return
        self._session.accept(
            receive_maximum=getattr(properties, "ReceiveMaximum", 0xFFFF),
            max_packet_bytes=getattr(properties, "MaximumPacketSize", None),
            keepalive_s=getattr(properties, "ServerKeepAlive", self._settings.keepalive_s),
            resumed=flags.session_present,
        )
        # Also if the broker kept the session: it may have the filters of older settings, or lack
        # those that another client with this id has removed.
        wanted: list[Any] = list(self._subscriptions)
        if self._settings.version == "5":
            # Retained messages are wanted once, not at every renewal.
            once = partial(SubscribeOptions, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
            wanted = [(topic, once(qos=qos)) for topic, qos in wanted]
        if not wanted:
            self._session.open()
        for first in range(0, len(wanted), _MOST_FILTERS):
            _, mid = self._client.subscribe(wanted[first : first + _MOST_FILTERS])
            if mid is not None:
                topics = self._subscriptions[first : first + _MOST_FILTERS]
                self._asked[mid] = [topic for topic, _ in topics]

    def _on_subscribe(
        self,
        _client: Client,
        _userdata: Any,  # noqa: ANN401  paho's signature
        mid: int,
        reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        topics = self._asked.pop(mid, [])
        self._session.refused += [
            f"{topic}: {reason}"
            for topic, reason in zip(topics, reasons, strict=False)
            if reason.is_failure
        ]
        if self._asked:
            return
        if len(self._session.refused) < len(self._subscriptions):
            self._session.open()
        else:
            told = "; ".join(self._session.refused)
            self._session.end(f"subscription refused: {told}", Loss.REFUSED)

    def _on_disconnect(self, *arguments: Any) -> None:  # noqa: ANN401  paho's signature
        *_, reason, _properties = arguments
        taken = reason.value == _TAKEN_OVER
        self._session.end(f"disconnected: {reason}", Loss.TAKEN_OVER if taken else Loss.CLOSED)
