"""Statements of device-owned zones on their way through a cluster, from bridges to sources.

Every bridge passes on every statement, because only a subscription of one's own gets retained
messages. A source takes those of a device, by its bridges apart, at the tick that they belong to.
"""

from collections.abc import Collection
from typing import Any
from zlib import crc32

import numpy as np

from anonymizer.cluster.positions.raw_batches import Raw
from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.settings import DeviceZoneSettings, InputSettings
from anonymizer.settings.base import id_levels


class ZoneRouting:
    """Divides statements among sources: each goes to that of its device's positions.

    Parameters
    ----------
    settings
        Of the statements.
    input_
        The input of the positions.
    """

    def __init__(self, settings: DeviceZoneSettings, input_: InputSettings) -> None:
        # The topic of positions, and from which levels of a statement's topic its id comes.
        self._topic = [each.encode() for each in input_.topic.split("/")]
        self._from_to = list(zip(id_levels(settings.topic), id_levels(input_.topic), strict=False))

    def parts_of(self, messages: PackedDeliveries, n_parts: int) -> IntArray:
        """Return the source of each message, shape (n,)."""
        found = np.zeros(len(messages), np.int64)
        for row, (start, end) in enumerate(messages.columns.bounds[:, :2].tolist()):
            topic, stated = self._topic.copy(), messages.stream[start:end].split(b"/")
            for level, at in self._from_to:
                topic[at] = stated[level]
            found[row] = crc32(b"/".join(topic)) % n_parts
        return found


class ZoneStatements:
    """Statements that wait for the tick in which they take effect.

    Parameters
    ----------
    zones
        Takes them in.
    """

    def __init__(self, zones: DeviceZones) -> None:
        self._zones = zones
        self._waiting: dict[int, dict[tuple[str, str], bytes]] = {}
        """The newest payload of each bridge and topic, by tick."""

    def put(self, raw: Raw) -> None:
        """Take in what a bridge passes on."""
        for batch in raw.arrivals:
            for delivery in batch.deliveries:
                waiting = self._waiting.setdefault(raw.tick, {})
                waiting[raw.bridge, delivery.topic] = delivery.payload

    def apply(self, tick: int, *, bridges: Collection[str]) -> None:
        """Let those of a tick and of the ticks before take effect.

        Parameters
        ----------
        bridges
            Those that are there.
        """
        for due in sorted(each for each in self._waiting if each <= tick):
            for (bridge, topic), payload in self._waiting.pop(due).items():
                self._zones.put([Delivery(topic, payload, 0)], by=bridge, beside=bridges)

    def state(self) -> list[Any]:
        """Return what changes with each input."""
        return [[tick, *key, payload] for tick, of in self._waiting.items()
                for key, payload in of.items()]  # fmt: skip

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self._waiting = {}
        for tick, bridge, topic, payload in state:
            self._waiting.setdefault(tick, {})[bridge, topic] = payload
