"""Retained topics for analysts: the network, the cells of the counts, the groups that live now."""

import asyncio
from collections.abc import Callable

import structlog

from anonymizer.algorithms.positions.trip_classes import n_cells_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.errors import InputError
from anonymizer.networks.publication import parts
from anonymizer.pipeline.ports import Link, Outgoing
from anonymizer.pipeline.positions.counts.counting import cells_message
from anonymizer.pipeline.positions.out.current_groups import CurrentGroups
from anonymizer.settings import CurrentSettings, Settings

_PARTS_AT_ONCE = 8
_TIMEOUT_S = 30.0
_CURRENT_TIMEOUT_S = 1.0


class NetworkTopics:
    """Publishes what describes the network whenever the broker is connected.

    The broker may have lost what it retained. Nothing is kept in memory in between.

    Parameters
    ----------
    settings
        The whole settings.
    network
        With coordinates.
    link
        Where to publish.
    """

    def __init__(self, settings: Settings, network: RoadNetwork, link: Link) -> None:
        self._settings = settings
        self._network = network
        self._link = link
        self._connected = asyncio.Event()
        self._log = structlog.get_logger()

    def connected(self) -> None:
        """Publish: the broker has just been connected."""
        self._connected.set()

    async def run(self) -> None:
        """Publish after each connection, until cancelled."""
        while True:
            await self._connected.wait()
            self._connected.clear()
            try:
                messages = await asyncio.to_thread(self._messages)
            except InputError as error:
                self._log.warning("network not published", reason=str(error))
                return
            if not await self._publish(messages) and not self._connected.is_set():
                self._log.warning("network not published", reason="the broker did not take it")

    def _messages(self) -> list[Outgoing]:
        """Return the cells of counts and trips, the parts of the network, and what it is."""
        settings, network, found = self._settings, self._network, []
        cells: dict[str, int] = {}
        if settings.counts.enabled:
            cells[settings.topics.counts] = settings.counts.cells
        if settings.trips_out.every_s:
            cells[settings.topics.trips] = n_cells_of(network, settings.counts.k)
        if cells:
            version = network_version(network)
            found += [cells_message(*each, network, version=version) for each in cells.items()]
        if settings.public_network.enabled:
            topic = settings.topics.network
            about, bodies = parts(network)
            found += [
                Outgoing(f"{topic}/parts/{i}", body, retain=True) for i, body in enumerate(bodies)
            ]
            found.append(Outgoing(topic, about.encoded(), retain=True))
        return found

    async def _publish(self, messages: list[Outgoing]) -> bool:
        for first in range(0, len(messages), _PARTS_AT_ONCE):
            some = messages[first : first + _PARTS_AT_ONCE]
            if not all(await self._link.publish(some, qos=1, timeout_s=_TIMEOUT_S)):
                return False
        return True


class CurrentTopic:
    """Publishes the groups that live now at every interval.

    Parameters
    ----------
    settings
        Topic, interval and size of a part.
    groups
        What holds now.
    link
        Where to publish.
    now
        Returns unix seconds by the clock of the published times.
    """

    def __init__(
        self,
        settings: CurrentSettings,
        groups: CurrentGroups,
        link: Link,
        *,
        now: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._link = link
        self._now = now

    async def run(self) -> None:
        """Publish until cancelled; messages that are not accepted follow at the next interval."""
        while True:
            await asyncio.sleep(self._settings.every_s)
            await self._publish(self._groups.messages(now=self._now()))

    async def close(self) -> None:
        """State that there are no groups any more."""
        await self._publish(self._groups.close(now=self._now()))

    async def _publish(self, messages: list[Outgoing]) -> None:
        await self._link.publish(messages, qos=0, timeout_s=_CURRENT_TIMEOUT_S)
