"""Backlog: how long the input of a connection may have waited in the broker.

A broker hands its oldest messages on first. A gateway that reads too slowly would publish old
positions as present ones, because most devices state no time.
"""

import asyncio
import itertools
import secrets
from collections.abc import Callable, Iterable, Sequence
from math import inf

import numpy as np

from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Link, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.settings.base import Qos
from anonymizer.transport.other_gateways import MARK

_PER_BOUND = 5
"""Probes in the time that input may wait."""
_MAX_AWAITED = 1000
"""Probes that are remembered until they come back; the broker may have dropped them."""


class Backlog:
    """Measures the backlog by probes: messages that the gateway sends to itself.

    A probe waits in the broker behind the input that came before it. What arrives after a probe is
    therefore no older than the probe. The broker may keep a queue for each QoS, so each has probes.

    Parameters
    ----------
    topic
        Of the probes. The connection of the input must subscribe to it with the largest QoS of the
        input.
    link
        On which they are sent; not that of the input, on which acknowledgements may wait.
    qos
        The QoS of each input.
    """

    def __init__(
        self,
        broker: BrokerSettings,
        *,
        topic: str,
        link: Link,
        qos: Iterable[Qos],
        monotonic: Callable[[], float],
    ) -> None:
        self._topic, self._link = topic, link
        self._max_s = broker.max_backlog_s
        self._keeps_session = broker.session_expiry_s > 0
        self._monotonic = monotonic
        self._token = MARK + secrets.token_hex(16).encode()  # nobody else can make a probe
        self._numbers = itertools.count()
        self._awaited: dict[bytes, tuple[Qos, float]] = {}
        self.qos = frozenset(qos)
        """As given, each once."""
        self._known_s = dict.fromkeys(self.qos, -inf if self._keeps_session else inf)
        self.n_returned = 0
        """Probes that have come back."""

    @property
    def age_s(self) -> float:
        """How long what arrives now may have waited, in seconds; inf: it is not known.

        Not above 0 between two connections: then nothing waits.
        """
        return self._monotonic() - min(self._known_s.values())

    @property
    def problem(self) -> str:
        """Why input is refused, in words."""
        if not self._link.connected:
            return "broker: not connected for probes, so nobody knows how long positions waited"
        if self.n_returned:
            return f"broker: positions have waited there for more than {self._max_s:g} s"
        return f"broker: no probe comes back; may the gateway use {self._topic}?"

    @property
    def is_too_old(self) -> bool:
        """Whether what arrives now may have waited for longer than `max_backlog_s`."""
        return self.age_s > self._max_s

    def note_state(self, *, connected: bool) -> None:
        """Note that a connection begins or is lost: unless it is kept, the queue is new then."""
        if not self._keeps_session:
            self._awaited.clear()
            self._known_s = dict.fromkeys(self.qos, self._monotonic() if connected else inf)

    async def run(self) -> None:
        """Send probes until cancelled."""
        every_s = self._max_s / _PER_BOUND
        while True:
            if self._link.connected:
                for qos in self.qos:
                    await self._link.publish([self._probe(qos)], qos=qos, timeout_s=every_s)
            await asyncio.sleep(every_s)

    def _probe(self, qos: Qos) -> Outgoing:
        payload = b"%s %d" % (self._token, next(self._numbers))
        self._awaited[payload] = qos, self._monotonic()
        if len(self._awaited) > _MAX_AWAITED:
            del self._awaited[next(iter(self._awaited))]
        return Outgoing(self._topic, payload)

    def without_probes(
        self, deliveries: Sequence[Delivery]
    ) -> tuple[Sequence[Delivery], list[int]]:
        """Return a batch without what gateways send to themselves and each other, and receipts.

        The age afterwards is that of what arrives after this batch.
        """
        packed = PackedDeliveries.of(deliveries)
        rows = self._rows(packed)
        if not rows:
            return deliveries, []
        receipts = packed.columns.receipt[rows]
        for row in rows:
            _, _, start, stop = packed.columns.bounds[row].tolist()
            self._returned(packed.stream[start:stop])
        rest = packed.only(np.delete(np.arange(len(packed)), rows))
        return rest, receipts[receipts > 0].tolist()

    def _rows(self, packed: PackedDeliveries) -> list[int]:
        """Return the rows in a batch of what gateways say on the topic of probes."""
        bounds, rows, topic = packed.columns.bounds, list[int](), self._topic.encode()
        at = packed.stream.find(MARK)
        while at >= 0:
            row = int(np.searchsorted(bounds[:, 2], at, side="right")) - 1
            if row >= 0 and at < bounds[row, 3]:  # the bytes may hold more than this batch
                begin, end = bounds[row, :2].tolist()
                if packed.stream[begin:end] == topic:  # a device may have seen the token
                    rows.append(row)
            at = packed.stream.find(MARK, at + len(MARK))
        return rows

    def _returned(self, payload: bytes) -> None:
        if payload in self._awaited:
            qos, sent_s = self._awaited[payload]
            self._known_s[qos] = max(self._known_s[qos], sent_s)
            self.n_returned += 1
            # The broker has dropped the earlier ones that are still missing.
            self._awaited = {
                probe: (of, at_s)
                for probe, (of, at_s) in self._awaited.items()
                if of != qos or at_s > sent_s
            }
