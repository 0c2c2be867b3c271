"""Where on the network is a position? Nowhere, in a privacy zone."""

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.protection import keep_out
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings, zones_of


class Places:
    """Finds the node of each position, and keeps out what must not be told.

    Parameters
    ----------
    settings
        Snapping limit and zones.
    network
        With coordinates.
    """

    def __init__(self, settings: Settings, network: RoadNetwork) -> None:
        self._zones = zones_of(settings.zones)
        self._closed = self._zones.contains(network.lat, network.lon)
        self._locator = NodeLocator(network, limit_m=settings.network.snap_limit_m)

    def find(self, lat: FloatArray, lon: FloatArray) -> Int32Array:
        """Return the node of each position (WGS84 degrees), negative for nowhere, shape (n,)."""
        node = self._locator.locate(lat, lon)
        return keep_out(node, closed=self._closed, inside=self._zones.contains(lat, lon))
