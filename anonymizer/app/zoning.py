"""The network that regions are made of: the one that was loaded, less the privacy zones."""

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError
from anonymizer.networks import without_nodes
from anonymizer.settings import Settings, zones_of


def open_network(settings: Settings, network: RoadNetwork) -> RoadNetwork:
    """Return the network without any road at a node in a zone; nodes keep their numbers.

    Raises
    ------
    SettingsError
        If there are zones and the network has no coordinates.
    """
    if not settings.zones:
        return network
    if not network.has_coordinates:
        raise SettingsError("zones: the network has no coordinates")
    return without_nodes(network, zones_of(settings.zones).contains(network.lat, network.lon))
