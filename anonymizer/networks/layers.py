"""Several networks as one: roads for cars, footways for walkers and a lake for boats.

No road leads from one to another, so density, regions, verification and attacks need not know that
there are several: a region is within one of them, and k counts the devices there. Only map matching
asks whose network a position belongs to.
"""

from collections.abc import Sequence

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray, starts_of
from anonymizer.domain.network import CHARACTER_BYTES, Layer, RoadNetwork, Shapes
from anonymizer.errors import InputError
from anonymizer.networks.construction import components_by_size
from anonymizer.unfolding import check_width

MOST_LAYERS = 16


def joined(sources: Sequence[str], networks: Sequence[RoadNetwork]) -> RoadNetwork:
    """Return networks as one, with a layer for each.

    Nodes are named by the number of their network, from 1, and their own name: `2/8a1f8d2c0d97fff`.

    Parameters
    ----------
    sources
        What each was loaded from.
    networks
        At least one.

    Raises
    ------
    InputError
        If one has no coordinates, if two have the same source, or if there are more than
        `MOST_LAYERS`.
    """
    if len(set(sources)) < len(sources):
        raise InputError("names a network twice")
    if len(sources) > MOST_LAYERS:
        raise InputError(f"names more than {MOST_LAYERS} networks")
    if not all(each.has_coordinates for each in networks):
        raise InputError("several networks must all have coordinates")
    first = starts_of(np.array([each.n_nodes for each in networks]))
    arcs = starts_of(np.array([len(each.neighbour_of) for each in networks]))
    first_arc_of = np.concatenate(
        [each.first_arc_of[:-1] + at for each, at in zip(networks, arcs[:-1], strict=True)]
        + [arcs[-1:]]
    ).astype(np.int32)
    neighbour_of = np.concatenate(
        [each.neighbour_of + at for each, at in zip(networks, first[:-1], strict=True)]
    ).astype(np.int32)
    names = [each.node_id.astype(np.str_) for each in networks]
    widest = max(each.dtype.itemsize // CHARACTER_BYTES for each in names)
    check_width(sum(map(len, names)), widest + len(f"{MOST_LAYERS}/"))
    has_ways = any(each.way_of is not None for each in networks)
    return RoadNetwork(
        node_id=np.concatenate(
            [np.char.add(f"{number}/", each) for number, each in enumerate(names, 1)]
        ),
        lat=np.concatenate([each.lat for each in networks]),
        lon=np.concatenate([each.lon for each in networks]),
        first_arc_of=first_arc_of,
        neighbour_of=neighbour_of,
        length_m=np.concatenate([each.length_m for each in networks]),
        speed_mps=np.concatenate([each.speed_mps for each in networks]),
        drivable=np.concatenate([each.drivable for each in networks]),
        component_of=components_by_size(first_arc_of, neighbour_of),
        shapes=_shapes(networks),
        way_of=np.concatenate([_ways(each) for each in networks]) if has_ways else None,
        # Loads of two sources are in units of their own.
        load_at=None,
        reach_m=max(each.reach_m for each in networks),
        layers=tuple(
            Layer(source, slice(int(a), int(b)), each.reach_m)
            for source, each, a, b in zip(sources, networks, first[:-1], first[1:], strict=True)
        ),
        inner=_inner(networks),
        account="; ".join(
            f"{source}: {each.account}"
            for source, each in zip(sources, networks, strict=True)
            if each.account
        ),
    )


def _inner(networks: Sequence[RoadNetwork]) -> BoolArray | None:
    if all(each.inner is None for each in networks):
        return None
    none = [np.zeros(each.n_nodes, np.bool_) for each in networks]
    return np.concatenate(
        [
            nothing if each.inner is None else each.inner
            for each, nothing in zip(networks, none, strict=True)
        ]
    )


def _ways(network: RoadNetwork) -> IntArray:
    none = np.zeros(len(network.neighbour_of), np.int64)
    return none if network.way_of is None else network.way_of


def _shapes(networks: Sequence[RoadNetwork]) -> Shapes | None:
    drawn = [each.shapes for each in networks if each.shapes is not None]
    if not drawn:
        return None
    n_corners = [
        np.zeros(len(each.neighbour_of), np.int64)
        if each.shapes is None
        else np.diff(each.shapes.first_corner_of)
        for each in networks
    ]
    return Shapes(
        starts_of(np.concatenate(n_corners)),
        np.concatenate([each.lat for each in drawn]),
        np.concatenate([each.lon for each in drawn]),
    )
