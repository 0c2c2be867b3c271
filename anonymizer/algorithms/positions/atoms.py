"""Atoms: small connected pieces of the network, the smallest area to which a device is localized.

Anybody can compute them from the network and the settings. A region made of atoms that hold one
device each is a map of where devices are; atoms that several devices share are not. The network is
therefore cut at several levels, and each group uses the smallest atoms that give its members enough
company.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.grouping import form_groups
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import starts_of

LEVELS = (1, 1.5, 2, 3, 4, 6, 8, 12, 16)
"""Sizes of the atoms at each level, in multiples of the smallest."""
AREA_LEVEL = 3
"""Level whose atoms are areas: three times the smallest places, about 300 m in a city."""


LARGE_LEVEL = 4
"""Level from which on atoms are large: four times the smallest places, about 350 m in a city."""


class Atoms(NamedTuple):
    """Small connected pieces of the network: the smallest area to which a device is localized.

    Attributes
    ----------
    at
        Atom of each node, negative if its component is too small for one, shape (nodes,).
    first_node_of, node
        Nodes of each atom in compressed sparse rows. An atom may contain nodes of another atom
        as connectors.
    """

    at: IntArray
    first_node_of: IntArray
    node: Int32Array


def cut_into_atoms(
    forest: SpanningForest,
    *,
    min_nodes: int,
    metres_at: FloatArray | None = None,
    min_metres: float = 0.0,
) -> Atoms:
    """Cut a network into connected atoms, each just large enough.

    Parameters
    ----------
    forest
        Spanning forest of the network.
    min_nodes
        Fewest nodes that belong to an atom. Connectors do not count: an observer knows that a
        device is not at a node that its atom merely contains as a connector.
    metres_at, min_metres
        Road metres that each node stands for, and the fewest that an atom covers.

    Notes
    -----
    The same walk as in `form_groups`, with one device at every node, each of which demands
    `min_nodes`. O(nodes), once.
    """
    n_nodes = len(forest.parent_of)
    pieces = form_groups(
        forest,
        np.ones(n_nodes, np.int32),
        np.full(n_nodes, min_nodes, np.int32),
        min_nodes=min_nodes,
        max_nodes=n_nodes,
        metres_at=metres_at,
        min_metres=min_metres,
    )
    return Atoms(pieces.group_at, pieces.first_node_of, pieces.node)


def _with_small_components(atoms: Atoms, network: RoadNetwork) -> Atoms:
    """Return the atoms, plus one for each component that is too small for a full atom."""
    stray = np.flatnonzero(atoms.at < 0)
    by_component = stray[np.argsort(network.component_of[stray], kind="stable")]
    _, sizes = np.unique(network.component_of[by_component], return_counts=True)
    at = atoms.at.copy()
    at[by_component] = len(atoms.first_node_of) - 1 + np.repeat(np.arange(len(sizes)), sizes)
    return Atoms(
        at,
        np.concatenate([atoms.first_node_of, atoms.first_node_of[-1] + np.cumsum(sizes)]),
        np.concatenate([atoms.node, by_component.astype(np.int32)]),
    )


class Levels(NamedTuple):
    """Several cuts of one network, from small atoms to large ones.

    Attributes
    ----------
    at
        Atom of each node at each level, shape (levels, nodes).
    first_atom_of
        Number of the atom at which each level begins in `first_node_of`, shape (levels,).
    first_node_of, node
        Nodes of all atoms of all levels in compressed sparse rows.
    is_large
        Which nodes are in a component that is large enough for a full atom of the lowest level,
        shape (nodes,).
    """

    at: Int32Array
    first_atom_of: IntArray
    first_node_of: IntArray
    node: Int32Array
    is_large: BoolArray


def stack_levels(cuts: Sequence[Atoms], network: RoadNetwork) -> Levels:
    """Return the levels that consist of these cuts.

    A component that is too small for an atom gets one of its own: no group is formed there, but a
    member of a group can move there and has to be covered.
    """
    is_large = cuts[0].at >= 0
    cuts = [_with_small_components(cut, network) for cut in cuts]
    n_atoms = [len(cut.first_node_of) - 1 for cut in cuts]
    sizes = np.concatenate([np.diff(cut.first_node_of) for cut in cuts])
    return Levels(
        np.stack([cut.at for cut in cuts]).astype(np.int32),
        starts_of(np.array(n_atoms, np.int64))[:-1],
        starts_of(sizes),
        np.concatenate([cut.node for cut in cuts]),
        is_large,
    )


def cut_into_levels(
    network: RoadNetwork,
    forest: SpanningForest,
    *,
    min_nodes: int,
    metres_at: FloatArray | None = None,
    min_metres: float = 0.0,
    sizes: Sequence[float] = LEVELS,
) -> Levels:
    """Cut a network into atoms at several levels.

    Parameters
    ----------
    network, forest
        The network and its spanning forest.
    min_nodes, metres_at, min_metres
        Of the smallest atoms, as in `cut_into_atoms`.
    sizes
        Sizes of the levels in multiples of the smallest, rising.
    """
    cuts = [
        cut_into_atoms(
            forest,
            min_nodes=round(size * min_nodes),
            metres_at=metres_at,
            min_metres=size * min_metres,
        )
        for size in sizes
    ]
    return stack_levels(cuts, network)


class Company(NamedTuple):
    """How many devices must share the atoms of a group's members, each member included.

    Attributes
    ----------
    place_devices
        In the atom of a member, on average over the group.
    area_devices
        In the atom of a member at level `AREA_LEVEL`, or at the level of the group if that is
        higher.
    """

    place_devices: float = 1.0
    area_devices: float = 1.0


def lowest_shared_level(
    levels: Levels,
    present: Int32Array,
    first_member_of: IntArray,
    place: Int32Array,
    company: Company,
) -> IntArray:
    """Return the lowest level at which members share their atoms, shape (groups,).

    Parameters
    ----------
    present
        Nodes of all devices present, shape (devices,).
    first_member_of, place
        Node of each member in compressed sparse rows; all members are present.
    company
        How many devices must share the atoms. If no level has so many, it is the highest one.

    Notes
    -----
    With d devices per node, an atom of m nodes has 1 / (1 - exp(-dm)) times as many devices if it
    is known to hold any, and a member has dm others in its atom on average. An adversary who
    follows a device is content with a guess that is close, in an area of a nodes, say. Its belief
    is then 1 / (d max(a, m)) times that without a release, up to a factor: where devices are many,
    places may be smaller than that area, where they are few, they must be larger.
    O((devices + members) levels).
    """
    n_levels, sizes = len(levels.at), np.diff(first_member_of)
    shared_by = np.empty((n_levels, len(sizes)))
    for i, at in enumerate(levels.at):
        n_in = np.bincount(at[present])
        shared_by[i] = np.add.reduceat(n_in[at[place]], first_member_of[:-1]) / sizes
    in_area = shared_by[np.maximum(np.arange(n_levels), min(AREA_LEVEL, n_levels - 1))]
    enough = (shared_by >= company.place_devices) & (in_area >= company.area_devices)
    enough[-1] = True
    lowest: IntArray = enough.argmax(axis=0)
    return lowest
