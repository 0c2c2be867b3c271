"""Which joiner takes a message: all messages of a vehicle go to the same one."""

from collections.abc import Sequence

from anonymizer.cluster.positions.bridge_queue import parts_by_topic
from anonymizer.codecs.paths import JsonPath
from anonymizer.codecs.record_parts import VehicleReader
from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.records.topics import RecordRoute, RecordRouter
from anonymizer.settings import StreamSettings
from anonymizer.settings.streams import sharing

_NO_SECRET = b""
"""The digests of vehicles divide messages, and go nowhere."""
_NUMBER_BYTES = 8


class VehicleRouting:
    """Divides messages among joiners, equally in every bridge and after every restart.

    Streams that read a topic in common have the joiner of a vehicle in common, too: the message is
    for all of them.

    Messages that no joiner will keep, because they belong to no stream or name no usable vehicle,
    go by their topic: one of the joiners counts them.
    """

    def __init__(self, streams: Sequence[StreamSettings], *, max_id_chars: int) -> None:
        self._router = RecordRouter(
            streams, secret=_NO_SECRET, max_id_chars=max_id_chars, names=_leads(streams)
        )
        self._reader_of = {
            (i, j): VehicleReader(JsonPath.of(path))
            for i, stream in enumerate(streams)
            for j, source in enumerate(stream.sources)
            if (path := source.vehicle_path) is not None
        }

    def parts_of(self, messages: PackedDeliveries, n_joiners: int) -> IntArray:
        """Return the joiner of each message, shape (n,)."""
        found = parts_by_topic(messages, n_joiners)
        stream, routes_of = messages.stream, self._router.routes_of
        for row, (start, end, payload, stop) in enumerate(messages.columns.bounds.tolist()):
            routes = routes_of(stream[start:end].decode("utf-8", "surrogatepass"))
            if not routes:
                continue
            route = routes[0]  # all name the vehicle alike: the settings require it
            vehicle = self._named(route, stream[payload:stop]) if route.topic else route.vehicle
            if vehicle:
                found[row] = int.from_bytes(vehicle[:_NUMBER_BYTES]) % n_joiners
        return found

    def _named(self, route: RecordRoute, payload: bytes) -> bytes:
        """Return the key of the vehicle that a payload names, empty if it names none."""
        vehicle = self._reader_of[route.stream, route.source].read(payload)
        return self._router.key(route.stream, vehicle)

    def forget(self, *, at_s: float) -> None:
        """Forget vehicles that are silent, see `RouteCache.forget`."""
        self._router.forget(at_s=at_s)


def _leads(streams: Sequence[StreamSettings]) -> list[str]:
    """Return, for each stream, the name of the first one that reads a topic in common with it.

    In common also by way of further streams.
    """
    lead = {stream.name: place for place, stream in enumerate(streams)}
    for one, another in sharing(streams):
        first, other = sorted((lead[one.name], lead[another.name]))
        if first != other:
            lead = {name: first if place == other else place for name, place in lead.items()}
    return [streams[lead[stream.name]].name for stream in streams]
