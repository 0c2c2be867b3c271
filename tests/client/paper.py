"""A street and messages about it, small enough to work out by hand.

Four nodes in a row, 1 km apart, on the equator; roads between neighbours.
"""

import json

import numpy as np

from anonymizer.client import Cells, Network, Releases
from anonymizer.client.messages import Collector
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import from_arrays

STEP_DEG = 0.009
NAMES = [10, 11, 12, 13]


def street() -> RoadNetwork:
    n = len(NAMES)
    return from_arrays(
        node_id=np.array(NAMES),
        lat=np.zeros(n),
        lon=STEP_DEG * np.arange(n, dtype=np.float64),
        u=np.arange(n - 1),
        v=np.arange(1, n),
        length_m=np.full(n - 1, 1000.0),
        speed_mps=np.full(n - 1, 10.0),
        forward=np.ones(n - 1, np.bool_),
        backward=np.ones(n - 1, np.bool_),
    )


def halves(network: Network) -> Cells:
    """Return two cells: west with the first two nodes, east with the others."""
    box = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    return Cells(network, ("west", "east"), (box, box), np.array([0, 0, 1, 1]))


def message(
    names: str, region: list[int], time: float = 0.0, until: float = 30.0, **fields: object
) -> bytes:
    """Return a message about a group; each letter is a pseudonym."""
    body = {"time": time, "until": until, "k": 2, "region": region, "pseudonyms": list(names)}
    return json.dumps({"v": 1, "group": names, **body, **fields}).encode()


def snapshot(time: float, *groups: bytes, part: int = 0, of: int = 1) -> bytes:
    """Return a part of the snapshot of current groups."""
    body = {"v": 1, "time": time, "network": "n", "part": part, "of": of}
    return json.dumps({**body, "groups": [json.loads(each) for each in groups]}).encode()


def releases(*messages: bytes, network: Network | None = None) -> Releases:
    """Return the releases of messages in their order."""
    collector = Collector()
    for each in messages:
        assert collector.take(each)
    return Releases(collector.columns, network, collector.left_out)
