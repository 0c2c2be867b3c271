"""Statements of device-owned zones on their way through a cluster, from bridges to sources.

Every bridge passes on every statement, because a shared subscription gets no retained messages. A
source applies them in the tick to which they belong, and keeps those of each bridge apart.
"""

from collections.abc import Collection
from typing import Any

from anonymizer.cluster.positions.raw_batches import Raw
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones


class ZoneStatements:
    """Statements that wait for the tick in which they take effect.

    `zones`: takes them in.
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

        `bridges`: those that are there.
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
