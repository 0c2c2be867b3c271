"""What stored groups, places and numbers follow from: digests, compared before a state is used.

An index into something derived means nothing where that is derived from other settings, by another
version, or from another network.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anonymizer import __version__
from anonymizer.domain.arrays import digest_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version

if TYPE_CHECKING:
    from anonymizer.algorithms.positions.districts import Districts
    from anonymizer.settings import Settings

_OF_NO_GROUP = {
    "broker", "cluster", "http", "kafka", "log", "output", "public_network", "shapes", "store",
    "streams", "watch",
}  # fmt: skip
"""Tables on which no group depends. Any other does until somebody has shown that it does not."""


def formed_under(settings: "Settings") -> bytes:
    """Return a digest, 16 bytes, of the settings and the version under which groups are formed.

    Not of where files lie, which differs from one machine to the next.
    """
    tables = settings.model_dump(exclude=_OF_NO_GROUP)
    del tables["network"]["source"]
    said = [__version__, settings.follows_intervals, _without_paths(tables)]
    return digest_of(json.dumps(said, sort_keys=True).encode())


def _without_paths(said: object) -> object:
    if isinstance(said, Mapping):
        return {str(key): _without_paths(each) for key, each in said.items()}
    if isinstance(said, list | tuple | set | frozenset):
        return [_without_paths(each) for each in said]
    return None if isinstance(said, Path) else said


def network_digest(network: RoadNetwork) -> str:
    """Return a digest, 32 hexadecimal digits, of a network and of what is derived from it.

    Coordinates and lengths count as in `network_version`: to 1 cm, whatever the machine.
    """
    return digest_of(
        network_version(network).encode(),
        network.drivable,
        network.component_of,
        np.rint(network.speed_mps * 100.0),
        network.way_of,
        network.load_at,
        repr([each.nodes for each in network.layers]).encode(),
    ).hex()


def places_digest(network: RoadNetwork, districts: "Districts") -> str:
    """Return a digest, 32 hexadecimal digits, of what stored numbers of places stand for.

    Nodes, roads and districts: routes, passages and homes are told by these numbers.
    """
    said = network_digest(network)
    return digest_of(said.encode(), districts.of_node, districts.number_of).hex()
