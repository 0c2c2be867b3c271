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
from anonymizer.transport.broker_profile import AskedFilters, BrokerManners, BrokerProfile
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
        manners: BrokerManners | None = None,
        asked: AskedFilters | None = None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._access = access
        self._manners = manners or BrokerManners()
        self._filters = asked or AskedFilters()
        self._n_wanted = len(subscriptions)
        self._subscriptions = [
            each for each in subscriptions if not self._filters.is_left_out(each[0])
        ]
        session.refused += [
            f"{topic}: the broker ends the connection"
            for topic, _ in subscriptions
            if self._filters.is_left_out(topic)
        ]
        self._most = 1 if self._filters.one_by_one else _MOST_FILTERS
        self._asked: dict[int, list[str]] = {}
        self._n_asked = 0
        self._socket = _PacketSocket(session.wire)
        self._client = _Client(self._socket, settings, client_id)
        self._client.username_pw_set(settings.username, access.password)
        if will is not None:
            retains, qos = self._manners.now
            self._client.will_set(will.topic, will.payload, qos=qos, retain=will.retain and retains)
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
            self._manners.refused(reason.value)
            self._session.end(f"refused: {reason}", Loss.REFUSED)
            return
        profile = _profile_of(properties)
        if self._settings.version == "5":
            self._manners.announced(profile)
        self._session.accept(profile, self._manners.now, resumed=flags.session_present)
        self._subscribe()

    @property
    def unanswered(self) -> list[str]:
        """Filters that were asked for and have no answer yet."""
        return [topic for topics in self._asked.values() for topic in topics]

    def _subscribe(self) -> None:
        """Ask for filters: all in portions, or only the next one."""
        # Also if the broker kept the session: it may have the filters of older settings, or lack
        # those that another client with this id has removed.
        wanted: list[Any] = list(self._subscriptions)
        if self._settings.version == "5":
            # Retained messages are wanted once, not at every renewal.
            once = partial(SubscribeOptions, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
            wanted = [(topic, once(qos=qos)) for topic, qos in wanted]
        if not wanted:
            self._session.open()
        while self._n_asked < len(wanted):
            first, self._n_asked = self._n_asked, self._n_asked + self._most
            _, mid = self._client.subscribe(wanted[first : self._n_asked])
            if mid is not None:
                topics = self._subscriptions[first : self._n_asked]
                self._asked[mid] = [topic for topic, _ in topics]
            if self._filters.one_by_one:
                break

    def _on_subscribe(
        self,
        _client: Client,
        _userdata: Any,  # noqa: ANN401  paho's signature
        mid: int,
        reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        topics = self._asked.pop(mid, [])
        self._session.answers |= {
            topic: str(reason) for topic, reason in zip(topics, reasons, strict=False)
        }
        self._session.refused += [
            f"{topic}: {reason}"
            for topic, reason in zip(topics, reasons, strict=False)
            if reason.is_failure
        ]
        if self._n_asked < len(self._subscriptions):
            self._subscribe()
        if self._asked:
            return
        if len(self._session.refused) < self._n_wanted:
            self._session.open()
        else:
            told = "; ".join(self._session.refused)
            self._session.end(f"subscription refused: {told}", Loss.REFUSED)

    def _on_disconnect(self, *arguments: Any) -> None:  # noqa: ANN401  paho's signature
        *_, reason, _properties = arguments
        self._manners.refused(reason.value)
        taken = reason.value == _TAKEN_OVER
        self._session.end(f"disconnected: {reason}", Loss.TAKEN_OVER if taken else Loss.CLOSED)


def _profile_of(properties: Properties | None) -> BrokerProfile:
    """Return what the broker announces; everything, if it says nothing."""

    def said(name: str, default: Any) -> Any:  # noqa: ANN401  paho's values
        return getattr(properties, name, default)

    return BrokerProfile(
        max_qos=said("MaximumQoS", 2),
        retains=bool(said("RetainAvailable", 1)),
        max_packet_bytes=said("MaximumPacketSize", None),
        receive_maximum=said("ReceiveMaximum", 0xFFFF),
        wildcards=bool(said("WildcardSubscriptionAvailable", 1)),
        shared=bool(said("SharedSubscriptionAvailable", 1)),
        subscription_ids=bool(said("SubscriptionIdentifierAvailable", 1)),
        topic_aliases=said("TopicAliasMaximum", 0),
        keepalive_s=said("ServerKeepAlive", None),
        session_expiry_s=said("SessionExpiryInterval", None),
        assigned_id=said("AssignedClientIdentifier", None),
    )
