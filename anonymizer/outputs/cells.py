"""The cells in which counts and trips are told: messages that say where each is."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.outputs.message_kind import MessageKind, features_of, object_of
from anonymizer.pipeline.ports import PART_BYTES, Outgoing

_DIGITS = 6
_CELL = object_of({"cell": {"type": "integer"}, "nodes": {"type": "integer"}}, "cell", "nodes")
CELLS = MessageKind(
    "Cells",
    "The cells of counts or trips, as GeoJSON boxes. What does not fit into one message is on the "
    "topics behind this one, /1 and so on.",
    object_of(
        {
            "type": {"const": "FeatureCollection"},
            "network": {"type": "string"},
            "part": {"type": "integer", "minimum": 0},
            "of": {"type": "integer", "minimum": 2},
            "features": features_of(_CELL),
        },
        *("type", "network", "features"),
    ),
)


def cells_of(
    topic: str, n_cells: int, network: RoadNetwork, part_bytes: Callable[[str], int]
) -> list[Outgoing]:
    """Return the retained messages about cells; `part_bytes`: largest payload for a topic."""
    room = part_bytes(f"{topic}/cells/{n_cells}")
    version = network_version(network)
    return cells_messages(topic, n_cells, network, version=version, part_bytes=room)


def cells_messages(
    topic: str, n_cells: int, network: RoadNetwork, *, version: str, part_bytes: int = PART_BYTES
) -> list[Outgoing]:
    """Return the retained messages that say where the cells are: GeoJSON, a box for each.

    They are behind `topic`, that of the figures about the cells; `n_cells` is a power of two. The
    first is on `/cells`; of what needs more than `part_bytes`, the rest is on `/cells/1` and so on.

    Notes
    -----
    A box surrounds the nodes of its cell; a cell without nodes is left out.
    """
    cell = compact_parts(network, n_cells)
    order = np.argsort(cell, kind="stable")
    numbers, start = np.unique(cell[order], return_index=True)
    corners = [
        edge.reduceat(degrees[order], start).round(_DIGITS).tolist()
        for degrees in (network.lon, network.lat)
        for edge in (np.minimum, np.maximum)
    ]
    features = [
        {
            "type": "Feature",
            "id": number,
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]],
            },
            "properties": {"cell": number, "nodes": n_nodes},
        }
        for number, w, e, s, n, n_nodes in zip(
            numbers.tolist(),
            *corners,
            np.diff(np.append(start, len(cell))).tolist(),
            strict=True,
        )
    ]
    room = part_bytes - len(_cells_body(version, [], n_cells, n_cells))
    each = max(1, room // max(len(msgspec.json.encode(feature)) + 1 for feature in features))
    parts = [features[first : first + each] for first in range(0, len(features), each)]
    return [
        Outgoing(
            f"{topic}/cells/{i}" if i else f"{topic}/cells",
            _cells_body(version, part, i, len(parts)),
            retain=True,
        )
        for i, part in enumerate(parts)
    ]


def _cells_body(version: str, features: Sequence[dict[str, Any]], part: int, n_parts: int) -> bytes:
    head = {"type": "FeatureCollection", "network": version}
    several = {"part": part, "of": n_parts} if n_parts > 1 else {}
    return msgspec.json.encode({**head, **several, "features": features})
