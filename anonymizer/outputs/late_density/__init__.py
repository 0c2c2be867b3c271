"""The public's copy: about how many devices were where, coarse and late.

Every quarter of an hour it takes what holds then, spreads the devices of each region evenly over
its nodes, and adds up by cells. It is published a quarter of an hour later. It is made of published
messages and of the public network alone: whoever reads these learns nothing more from it, and who
reads it alone sees no group, no pseudonym and no region.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import NodeIndex, RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.domain.told_times import ToldTimes
from anonymizer.outputs.cells import CELLS, cells_of
from anonymizer.outputs.copies import Copy
from anonymizer.outputs.current.current_groups import LiveMessages
from anonymizer.outputs.message_kind import CONTRACT_VERSION, Channel, MessageKind, schema_of
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings

EVERY_S = 900
"""Seconds from one density to the next, and from its time to its publication."""
_DIGITS = 1


class DensityMessage(msgspec.Struct, frozen=True, kw_only=True):
    """About how many mobile devices were in each cell."""

    v: int = CONTRACT_VERSION
    time: float
    """When, unix seconds; it is published a quarter of an hour later."""
    network: str
    """Version of the network."""
    devices: list[float]
    """Expected devices in each cell, those of a region evenly over its nodes."""


class LateDensity(Copy):
    """Writes the densities of messages about mobile devices, in the order of their times."""

    name = "density"

    def __init__(self, settings: "Settings", network: RoadNetwork) -> None:
        self._groups_topic, self._topic = settings.output.topic, settings.topics.density
        self._n_cells = settings.counts.cells
        self._cell_of = compact_parts(network, self._n_cells)
        self._index = NodeIndex(network.node_id)
        self._version = network_version(network)
        self._live = LiveMessages(grace_s=2 * settings.tick.interval_s)
        self._time = msgspec.json.Decoder(_Time).decode
        self._region = msgspec.json.Decoder(_Region).decode
        self._turn: int | None = None
        self._told = ToldTimes()
        self._held: list[Outgoing] = []
        """What was made at the last turn, and is published at the next one."""

    @staticmethod
    def channels(settings: "Settings") -> Iterator[Channel]:
        """Yield the topics of densities and of the cells."""
        topic = settings.topics.density
        yield Channel(topic, DENSITY, incoming=False)
        yield Channel(f"{topic}/cells", CELLS, incoming=False, retained=True)
        yield Channel(f"{topic}/cells/{{part}}", CELLS, incoming=False, retained=True)

    @staticmethod
    def retained(
        settings: "Settings", network: RoadNetwork, part_bytes: Callable[[str], int]
    ) -> list[Outgoing]:
        """Return the messages about the cells."""
        return cells_of(settings.topics.density, settings.counts.cells, network, part_bytes)

    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return the densities of the turns that these messages are the first ones after."""
        found = []
        for message in messages:
            if message.topic != self._groups_topic:
                continue
            turn = int(self._time(message.payload).time // EVERY_S)
            if self._turn is not None and turn > self._turn:
                if self._held:
                    found += self._held
                    self._told.take((self._turn - 1) * EVERY_S, self._turn * EVERY_S)
                is_told = self._told.has((turn - 1) * EVERY_S, turn * EVERY_S)
                self._held = [] if is_told else [self._made(float(turn * EVERY_S))]
            elif self._turn is not None and turn < self._turn:
                self._held.clear()  # the clock was put back
            self._turn = turn
            self._live.see([message])
        return found

    def _made(self, at_s: float) -> Outgoing:
        """Return the density at a time."""
        devices = np.zeros(self._n_cells)
        for n_devices, payload in self._live.held(now=at_s):
            devices += n_devices * self._shares(self._region(payload).region)
        body = DensityMessage(
            time=at_s, network=self._version, devices=devices.round(_DIGITS).tolist()
        )
        return Outgoing(self._topic, msgspec.json.encode(body))

    def _shares(self, region: Sequence[int | str]) -> FloatArray:
        """Return which share of a region's nodes is in each cell, shape (cells,)."""
        node = self._index.find(np.array(region))
        shares: FloatArray = np.bincount(self._cell_of[node], minlength=self._n_cells) / len(node)
        return shares


COPY = LateDensity


class _Time(msgspec.Struct, frozen=True):
    time: float


class _Region(msgspec.Struct, frozen=True):
    region: list[int | str]


DENSITY = MessageKind(
    "Density",
    "About how many devices were in each cell a quarter of an hour ago, by what was published.",
    schema_of(DensityMessage, also_required=("v",)),
    {
        "v": CONTRACT_VERSION,
        "time": 1800000000.0,
        "network": "bec64b210518afc4",
        "devices": [3.2, 0.4, 0.0, 12.5, 7.1, 0.0, 0.0, 1.8],
    },
)
