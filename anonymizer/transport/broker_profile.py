"""What a broker can do: as it says when it accepts a connection, or as lost connections have shown.

MQTT 5 lets a broker announce its limits [1]_, and a link that speaks 3.1.1 asks in MQTT 5. Managed
brokers have limits that they do not announce: they end the connection at what they do not take.

References
----------
.. [1] "MQTT Version 5.0", OASIS, 2019, section 3.2.2.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_NO_RETAIN, _NO_QOS = 0x9A, 0x9B
"""Reasons of MQTT 5 for which a broker refuses a connection because of its last will."""
_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProfile:
    """What a broker announces in MQTT 5; the defaults are what holds where it says nothing."""

    max_qos: int = 2
    retains: bool = True
    max_packet_bytes: int | None = None
    receive_maximum: int = 0xFFFF
    wildcards: bool = True
    shared: bool = True
    subscription_ids: bool = True
    topic_aliases: int = 0
    keepalive_s: int | None = None
    """Time between two pings; None: as the client asked."""
    session_expiry_s: int | None = None
    """How long it keeps a session; None: as the client asked."""
    assigned_id: str | None = None
    """Id that it has given to the client; None: none."""

    def lines(self) -> Iterator[str]:
        """Yield what it says, in words."""
        yield f"largest QoS {self.max_qos}"
        yield "retained messages" if self.retains else "no retained messages"
        packet = self.max_packet_bytes
        yield f"packets up to {packet:,} bytes" if packet else "packets of any size"
        yield f"{self.receive_maximum:,} messages in flight"
        yield "wildcards" if self.wildcards else "no wildcards in filters"
        yield "shared subscriptions" if self.shared else "no shared subscriptions"
        if not self.subscription_ids:
            yield "no subscription identifiers"
        yield f"{self.topic_aliases:,} topic aliases"
        if self.keepalive_s is not None:
            yield f"a ping every {self.keepalive_s:,} s" if self.keepalive_s else "no pings"
        if self.session_expiry_s is not None:
            yield f"sessions kept for {self.session_expiry_s:,} s"
        if self.assigned_id is not None:
            yield "client ids of its own"


class Manners(NamedTuple):
    """How far a link goes with a broker."""

    retains: bool
    """Whether the last will and other messages are to be retained."""
    qos: int
    """QoS of the last will, and the largest at which is published."""


_FULL = Manners(retains=True, qos=1)
_TRIED = (
    _FULL,
    Manners(retains=False, qos=1),
    Manners(retains=True, qos=0),
    Manners(retains=False, qos=0),
)
"""In this order, with a broker that ends connections."""


class BrokerManners:
    """Learns over the connections of a link how far its broker goes.

    A broker that says what it does not take is believed. One that just ends the connection, before
    it has accepted it or at the first retained message, may be about to stop: less is tried, and
    where that is taken, everything once more. Only if that ends again the broker does not take it.
    """

    def __init__(self) -> None:
        self._announced = self._refused = _FULL
        self._tried = 0
        self._accepted = 0
        """Which of `_TRIED` was taken, and is to be confirmed; 0: none."""
        self._certain = False

    @property
    def now(self) -> Manners:
        """How far to go at the next connection."""
        limits = (_TRIED[self._tried], self._announced, self._refused)
        return Manners(all(each.retains for each in limits), min(each.qos for each in limits))

    def announced(self, profile: BrokerProfile) -> None:
        """Take in what the broker says when it accepts a connection."""
        self._announced = Manners(profile.retains, min(profile.max_qos, 1))

    def refused(self, code: int) -> None:
        """Take in the reason for which it refuses or ends a connection."""
        if code == _NO_RETAIN:
            self._refused = self._refused._replace(retains=False)
        elif code == _NO_QOS:
            self._refused = self._refused._replace(qos=0)

    def ended(self) -> None:
        """Note that it has ended the connection without a reason, before it took a message."""
        if self._accepted:
            self._tried, self._accepted, self._certain = self._accepted, 0, True
        elif not self._certain:
            self._tried = (self._tried + 1) % len(_TRIED)

    def taken(self) -> bool:
        """Note that it has taken a message; return whether to connect anew, to try more again."""
        if self._certain or not self._tried:
            self._accepted = 0
            return False
        self._tried, self._accepted = 0, self._tried
        return True


class AskedFilters:
    """Learns which filters a broker does not answer, but ends the connection at."""

    def __init__(self) -> None:
        self.one_by_one = False
        """Whether each is asked for alone, after the answer to the one before."""
        self._n_ended: dict[str, int] = {}

    def ended_at(self, filters: list[str]) -> None:
        """Note which filters were asked for, without an answer, when it ended the connection."""
        if self.one_by_one and len(filters) == 1:
            self._n_ended[filters[0]] = self._n_ended.get(filters[0], 0) + 1
        self.one_by_one = self.one_by_one or bool(filters)

    def ended_later(self) -> None:
        """Note that a connection has ended on which messages flowed: all are asked for again."""
        self._n_ended.clear()

    def is_left_out(self, topic: str) -> bool:
        """Return whether a filter has cost so many connections that it is not asked for."""
        return self._n_ended.get(topic, 0) >= _TWICE


def lacking(profile: BrokerProfile, manners: Manners, *, session_expiry_s: int) -> list[str]:
    """Return what is missing with a broker, in sentences.

    Parameters
    ----------
    profile
        What it says.
    manners
        How far the link goes with it.
    session_expiry_s
        How long it should keep the session of the gateway, in seconds.
    """
    found = []
    if not manners.retains:
        found.append(
            "the broker retains nothing: who comes later gets no status and no network, so give"
            " analysts the network as a file (anonymizer network export)"
        )
    if not manners.qos:
        found.append(
            "the broker takes QoS 0 alone: what is published while it or the network fails is lost"
        )
    kept_s = profile.session_expiry_s
    if kept_s is not None and kept_s < session_expiry_s:
        found.append(
            f"the broker keeps a session for {kept_s:,} s, not the {session_expiry_s:,} s of"
            " broker.session_expiry_s: what waits longer is lost"
        )
    return found
