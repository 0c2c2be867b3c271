"""Retained topics for analysts: the network, the cells of the counts, the groups that live now.

All are cut to what the broker takes. What still does not fit is not sent, and `Unsent` says so.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import structlog

from anonymizer.app.gateway.sides import GatewaySide, Service
from anonymizer.app.gateway.unsent import Unsent
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks.publication import NetworkAbout, parts
from anonymizer.outputs.current.current_groups import CurrentGroups
from anonymizer.outputs.registry import asked_for, copies_asked_for
from anonymizer.pipeline.ports import CuttingLink, Outgoing
from anonymizer.settings import CurrentSettings, Settings

_BYTES_AT_ONCE = 1 << 20
_TIMEOUT_S = 30.0
_CURRENT_TIMEOUT_S = 1.0
_MOST_PARTS = 10**6
_MOST_LOST = 8
"""Connections in succession that may end while the network is published. Each time it is cut
smaller; where that does not help, the broker ends them for another reason."""
_PAUSE_S = 600.0
"""Pause after that."""


class _Described(NamedTuple):
    """What describes the network, in messages that belong together."""

    what: str
    messages: Sequence[Outgoing]
    about: NetworkAbout | None = None
    """Announces the messages when the broker has all of them."""


class NetworkTopics:
    """Publishes what describes the network whenever the broker is connected.

    The broker may have lost what it retained. Nothing is kept in memory in between.

    Parameters
    ----------
    network
        With coordinates.
    unsent
        Is told what the broker does not take.
    """

    def __init__(
        self, settings: Settings, network: RoadNetwork, link: CuttingLink, unsent: Unsent
    ) -> None:
        self._settings = settings
        self._network = network
        self._link = link
        self._unsent = unsent
        self._connected = asyncio.Event()
        self._log = structlog.get_logger()

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        return GatewaySide(
            services=[Service("network topics", self.run)], connected=self._connected.set
        )

    async def run(self) -> None:
        """Publish after each connection, until cancelled."""
        n_lost = 0
        while True:
            await self._connected.wait()
            self._connected.clear()
            described = await asyncio.to_thread(list, self._all())
            taken = [await self._publish(each) for each in described]
            n_lost = n_lost + 1 if None in taken else 0
            if n_lost == _MOST_LOST:
                self._log.error("not published", reason="the broker ends the connection")
                await asyncio.sleep(_PAUSE_S)
                n_lost = 0
            elif not all(taken) and not self._connected.is_set():
                topics = [
                    each.what
                    for each, is_taken in zip(described, taken, strict=True)
                    if not is_taken
                ]
                self._log.warning(
                    "not published", topics=topics, reason="the broker did not take it"
                )

    def _all(self) -> Iterator[_Described]:
        """Yield what outputs and copies retain, and the parts of the network."""
        settings, network, link = self._settings, self._network, self._link
        for output in asked_for(settings):
            if found := output(settings, network).retained(link.part_bytes):
                yield _Described(found[0].topic, found)
        for copies in copies_asked_for(settings):
            if found := copies.retained(settings, network, link.part_bytes):
                yield _Described(found[0].topic, found)
        if settings.public_network.enabled:
            topic = settings.topics.network
            room = link.part_bytes(f"{topic}/parts/{network.n_nodes + network.n_roads}")
            about, bodies = parts(network, most_bytes=room)
            found = [
                Outgoing(f"{topic}/parts/{i}", body, retain=True) for i, body in enumerate(bodies)
            ]
            yield _Described(topic, found, about)

    async def _publish(self, described: _Described) -> bool | None:
        """Publish; return whether the broker took it, None if the connection was lost."""
        what, messages, about = described
        fits = self._unsent.note(what, fits=all(map(self._link.takes, messages)))
        if not fits and about is not None:
            why = self._unsent.why
            messages, about = (), msgspec.structs.replace(about, parts=0, problem=why)
        if fits or about is not None:
            last = [] if about is None else [Outgoing(what, about.encoded(), retain=True)]
            for some in (*_slices(messages), last):
                taken = await self._link.publish(some, qos=1, timeout_s=_TIMEOUT_S)
                if not all(taken):
                    return None if None in taken else False
        return True


def _slices(messages: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Yield messages in lists of about `_BYTES_AT_ONCE`."""
    some: list[Outgoing] = []
    n_bytes = 0
    for message in messages:
        some.append(message)
        n_bytes += len(message.payload)
        if n_bytes >= _BYTES_AT_ONCE:
            yield some
            some, n_bytes = [], 0
    if some:
        yield some


class CurrentTopic:
    """Publishes the groups that live now at every interval.

    Parameters
    ----------
    unsent
        Is told what the broker does not take.
    now
        Returns unix seconds by the clock of the published times.
    """

    def __init__(
        self,
        settings: CurrentSettings,
        groups: CurrentGroups,
        link: CuttingLink,
        unsent: Unsent,
        *,
        now: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._link = link
        self._unsent = unsent
        self._now = now

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        service = Service("current topic", self.run, last=self.close)
        return GatewaySide(services=[service], sees=[self._groups.see])

    async def run(self) -> None:
        """Publish until cancelled; messages that are not accepted follow at the next interval."""
        while True:
            await asyncio.sleep(self._settings.every_s)
            room = self._link.part_bytes(f"{self._groups.topic}/{_MOST_PARTS}")
            await self._publish(self._groups.messages(now=self._now(), part_bytes=room))

    async def close(self) -> None:
        """State that there are no groups any more."""
        await self._publish(self._groups.close(now=self._now()))

    async def _publish(self, messages: list[Outgoing]) -> None:
        # Without one of its parts a snapshot is not complete, so it ends nothing for a reader.
        fitting = [each for each in messages if self._link.takes(each)]
        self._unsent.note(self._groups.topic, fits=len(fitting) == len(messages))
        await self._link.publish(fitting, qos=0, timeout_s=_CURRENT_TIMEOUT_S)
