"""A network as its source has it: the nodes that were put into long roads are taken out again."""

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray, starts_of
from anonymizer.domain.hops import Walks, walks_of
from anonymizer.domain.network import Layer, RoadNetwork, Shapes
from anonymizer.networks.construction import components_by_size, simple_arcs
from anonymizer.networks.drawn_roads import ranges


def network_for(mode: str, network: RoadNetwork) -> RoadNetwork:
    """Return the network whose nodes a mode of regions names: ADKA knows junctions alone."""
    return as_loaded(network) if mode == "adka" else network


def as_loaded(network: RoadNetwork) -> RoadNetwork:
    """Return a network without the nodes that were put into its long roads.

    It is the network that is loaded with `max_spacing_m=0`, and has its version. O(arcs log arcs).
    """
    inner = network.inner
    if inner is None:
        return network
    walks = walks_of(network)
    length_m = np.add.reduceat(network.length_m[walks.arc], walks.first_arc_of[:-1])
    begin = walks.arc[walks.first_arc_of[:-1]]
    kept = simple_arcs(network.n_nodes, walks.tail, walks.head, length_m, network.drivable[begin])
    junction = np.flatnonzero(~inner)
    number = np.cumsum(~inner) - 1
    tail, head = number[walks.tail[kept]], number[walks.head[kept]].astype(np.int32)
    first_arc_of = starts_of(np.bincount(tail, minlength=len(junction))).astype(np.int32)
    begin = begin[kept]
    return RoadNetwork(
        node_id=network.node_id[junction],
        lat=network.lat[junction],
        lon=network.lon[junction],
        first_arc_of=first_arc_of,
        neighbour_of=head,
        length_m=length_m[kept],
        speed_mps=network.speed_mps[begin],
        drivable=network.drivable[begin],
        component_of=components_by_size(first_arc_of, head),
        shapes=_shapes(network, walks, kept),
        way_of=None if network.way_of is None else network.way_of[begin],
        load_at=None if network.load_at is None else network.load_at[junction],
        reach_m=network.reach_m,
        layers=tuple(_with_junctions(layer, inner) for layer in network.layers),
        account=network.account,
    )


def _with_junctions(layer: Layer, inner: BoolArray) -> Layer:
    first, end = (int((~inner[:at]).sum()) for at in (layer.nodes.start, layer.nodes.stop))
    return layer._replace(nodes=slice(first, end))


def _shapes(network: RoadNetwork, walks: Walks, kept: IntArray) -> Shapes | None:
    """Return the corners of the kept walks whose tail is the smaller junction."""
    shapes = network.shapes
    if shapes is None:
        return None
    n_arcs = np.diff(walks.first_arc_of)[kept]
    n_arcs[walks.tail[kept] > walks.head[kept]] = 0
    arc = walks.arc[ranges(walks.first_arc_of[:-1][kept], n_arcs)]
    walk = np.repeat(np.arange(len(kept)), n_arcs)
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    turned = tail[arc] > network.neighbour_of[arc]
    drawn = np.where(turned, network.opposite_arcs()[arc], arc)
    n_corners = np.diff(shapes.first_corner_of)[drawn]
    corner = ranges(shapes.first_corner_of[:-1][drawn], n_corners, turned)
    n_of_walk = np.bincount(walk, weights=n_corners, minlength=len(kept)).astype(np.int64)
    return Shapes(starts_of(n_of_walk), shapes.lat[corner], shapes.lon[corner])
