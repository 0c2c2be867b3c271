"""Which joiner takes a message: all messages of a vehicle go to the same one."""

from collections.abc import Sequence

from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.positions.bridge_queue import parts_by_topic
from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.settings import StreamSettings

_NO_SECRET = b""
"""The digests of vehicles divide messages, and go nowhere."""
_NUMBER_BYTES = 8


class VehicleRouting:
    """Divides messages among joiners, equally in every bridge and after every restart.

    Messages that no joiner will keep, because they belong to no stream or name no usable vehicle,
    go by their topic: one of the joiners counts them.

    Parameters
    ----------
    streams
        As declared; the topics name the vehicles.
    max_id_chars
        Longer ids are not usable.
    """

    def __init__(self, streams: Sequence[StreamSettings], *, max_id_chars: int) -> None:
        self._router = RecordRouter(streams, secret=_NO_SECRET, max_id_chars=max_id_chars)

    def parts_of(self, messages: PackedDeliveries, n_joiners: int) -> IntArray:
        """Return the joiner of each message, shape (n,)."""
        found = parts_by_topic(messages, n_joiners)
        stream, route_of = messages.stream, self._router.route
        bounds = messages.columns.bounds[:, :2].tolist()
        for row, (start, end) in enumerate(bounds):
            route = route_of(stream[start:end].decode("utf-8", "surrogatepass"))
            if route is not None and route.vehicle:
                found[row] = int.from_bytes(route.vehicle[:_NUMBER_BYTES]) % n_joiners
        return found

    def forget(self, *, at_s: float) -> None:
        """Forget vehicles that are silent, see `RouteCache.forget`."""
        self._router.forget(at_s=at_s)
