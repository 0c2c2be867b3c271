"""Echoes: what is published, once more in the formats of the inputs, coarser.

An echo is made from the bytes of a published message and from the public network, and from nothing
else. Whoever has these can write it, so it tells nothing more: not where in its region a device is,
not by which input it came, not when it reported.
"""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.codecs import CoarsePoint, Encoder
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import NodeIndex, RoadNetwork
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import PSEUDONYM

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_DIGITS = 5
"""Decimals of a degree, 1.1 m."""


class RegionCircle(NamedTuple):
    """A circle on the map: its centre in WGS84 degrees, and its radius in whole metres."""

    lat: float
    lon: float
    radius_m: int


class _Message(msgspec.Struct, frozen=True):
    """A message about a group, or about one device."""

    time: float
    region: list[int | str]
    pseudonyms: tuple[str, ...] = ()
    pseudonym: str = ""


class _Echo(NamedTuple):
    """Topic and format of an echo.

    Attributes
    ----------
    of_kafka
        Whether it is a topic of Kafka, in which the key names the pseudonym.
    """

    topic: str
    encode: Encoder
    of_kafka: bool

    def message(self, circle: RegionCircle, time: float, name: str) -> Outgoing:
        """Return what it says of a pseudonym."""
        topic = f"{self.topic}/{name}" if self.of_kafka else self.topic.replace(PSEUDONYM, name)
        payload = self.encode(CoarsePoint(*circle, time, name, topic))
        return (
            Outgoing(self.topic, payload, key=name) if self.of_kafka else Outgoing(topic, payload)
        )


class Echoes:
    """Writes the echoes of published messages."""

    def __init__(self, settings: "Settings", network: RoadNetwork) -> None:
        self._echoes_of: dict[str, list[_Echo]] = {}
        for each in settings.inputs:
            if each.echo is not None:
                source = settings.output.topic if each.kind == "mobile" else settings.topics.fixed
                echo = _Echo(each.echo, each.make_encoder(), each.kafka is not None)
                self._echoes_of.setdefault(source, []).append(echo)
        self._circles = RegionCircles(network) if self._echoes_of else None
        self._decode = msgspec.json.Decoder(_Message).decode

    def of(self, messages: Iterable[Outgoing]) -> list[Outgoing]:
        """Return the echoes of messages about groups or devices, in their order.

        About 0.1 ms a message of 200 nodes, and 5 to 30 µs a pseudonym.
        """
        if self._circles is None:
            return []
        found = []
        for message in messages:
            echoes = self._echoes_of.get(message.topic)
            if echoes is None:
                continue
            body = self._decode(message.payload)
            circle = self._circles.of(body.region)
            for echo in echoes:
                names = body.pseudonyms or (body.pseudonym,)
                found += [echo.message(circle, body.time, name) for name in names]
        return found


class RegionCircles:
    """The circles around regions.

    Notes
    -----
    The centre is that of the box around the nodes of the region. The radius reaches every place on
    a road from which a node of the region is the nearer end: half of the longest road of each node
    is added to its distance. A device can be farther away by as much as its position is off the
    road (`network.snap_limit_m`).
    """

    def __init__(self, network: RoadNetwork) -> None:
        self._index = NodeIndex(network.node_id)
        self._lat = network.lat
        # From the first node, so that no region is cut by the date line.
        self._lon_0 = float(network.lon[0])
        self._lon = _wrapped(network.lon - self._lon_0)
        tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
        self._reach_m = np.zeros(network.n_nodes)
        np.maximum.at(self._reach_m, tail, network.length_m / 2)

    def of(self, region: Sequence[int | str]) -> RegionCircle:
        """Return the circle of a region, given the names of its nodes in any order."""
        node: IntArray = self._index.find(np.array(region))
        lat, lon = self._lat[node], self._lon[node]
        centre_lat = round(float(lat.min() + lat.max()) / 2, _DIGITS)
        middle = np.array([(lon.min() + lon.max()) / 2 + self._lon_0])
        centre_lon = round(float(_wrapped(middle)[0]), _DIGITS)
        distance_m = haversine_m(centre_lat, centre_lon, lat, lon + self._lon_0)
        radius_m = max(1, ceil(float((distance_m + self._reach_m[node]).max())))
        return RegionCircle(centre_lat, centre_lon, radius_m)


def _wrapped(degrees: FloatArray) -> FloatArray:
    """Return longitudes from -180 up to 180, same shape."""
    return (degrees + 180.0) % 360.0 - 180.0
