"""Road networks with privacy zones.

Not imported by `anonymizer.networks` itself, so that loading a network imports no compiler.
"""

import numpy as np

from anonymizer.algorithms.positions.protection import ZonedNetwork, Zones
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import SettingsError


def with_zones(network: RoadNetwork, zones: Zones) -> ZonedNetwork:
    """Return a network with its privacy zones.

    Raises
    ------
    SettingsError
        If there are zones and the network has no coordinates.
    """
    if not len(zones):
        return ZonedNetwork(network, zones, np.zeros(network.n_nodes, bool))
    if not network.has_coordinates:
        raise SettingsError("zones: the network has no coordinates")
    return ZonedNetwork(network, zones, zones.contains(network.lat, network.lon))
