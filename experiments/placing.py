"""Where the nodes of a network stand on paper, and which part of it is worth drawing."""

from dataclasses import dataclass

import networkx as nx
import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork

SURROUNDINGS = 60
"""A picture shows about this many nodes besides its subject, or the whole network."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A square in the plane.

    Attributes
    ----------
    centre
        Shape (2,).
    half
        Half the length of a side, > 0.
    """

    centre: FloatArray
    half: float

    def contains(self, xy: FloatArray) -> BoolArray:
        """Return which points, shape (n, 2), lie inside; those at NaN do not."""
        inside: BoolArray = np.all(np.abs(xy - self.centre) <= self.half, axis=1)
        return inside

    def touches(self, segments: FloatArray) -> BoolArray:
        """Return which segments, shape (n, 2, 2), may cross the square; none at NaN does."""
        low, high = segments.min(axis=1), segments.max(axis=1)
        near = (low <= self.centre + self.half) & (high >= self.centre - self.half)
        touching: BoolArray = near.all(axis=1)
        return touching


def place_nodes(network: RoadNetwork, subject: Int32Array) -> FloatArray:
    """Return where nodes stand, shape (nodes, 2).

    With coordinates: metres east and north of the network's middle, O(nodes). Without: the
    subject and what surrounds it are laid out by their roads alone, the rest is at NaN;
    quadratic in the nodes laid out, seconds for 1,000.
    """
    if network.has_coordinates:
        return _plane(network)
    graph = _surroundings(network, subject)
    xy = np.full((network.n_nodes, 2), np.nan)
    for node, place in nx.kamada_kawai_layout(graph).items():
        xy[node] = place
    return xy


def window_around(xy: FloatArray, subject: Int32Array) -> Window:
    """Return the square around the subject and its surroundings, or around all that is placed."""
    placed = xy[~np.isnan(xy).any(axis=1)]
    shown = placed if len(placed) <= len(subject) + SURROUNDINGS else xy[subject]
    low, high = shown.min(axis=0), shown.max(axis=0)
    centre = (low + high) / 2
    reach = np.sort(np.abs(placed - centre).max(axis=1))[:SURROUNDINGS][-1]
    half = max(float((high - low).max()) / 2, float(reach))
    # Room for what is written beside nodes at the edge. Nodes may all stand in one place.
    return Window(centre, 1.2 * half or 1.0)


def _plane(network: RoadNetwork) -> FloatArray:
    lat, lon = network.lat - network.lat.mean(), network.lon - network.lon.mean()
    east = lon * np.cos(np.radians(network.lat.mean()))
    xy: FloatArray = np.radians(np.column_stack([east, lat])) * EARTH_RADIUS_M
    return xy


def _surroundings(network: RoadNetwork, subject: Int32Array) -> "nx.Graph[int]":
    """Return the graph of the subject and the nodes next to it, breadth first."""

    def neighbours(node: int) -> list[int]:
        first = network.first_arc_of
        found: list[int] = network.neighbour_of[first[node] : first[node + 1]].tolist()
        return found

    shown: list[int] = subject.tolist()
    seen = set(shown)
    for node in shown:  # grows while it is walked
        if len(shown) >= len(subject) + SURROUNDINGS:
            break
        fresh = [v for v in neighbours(node) if v not in seen]
        seen.update(fresh)
        shown.extend(fresh)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(shown)
    graph.add_edges_from((v, w) for v in shown for w in neighbours(v) if w in seen)
    return graph
