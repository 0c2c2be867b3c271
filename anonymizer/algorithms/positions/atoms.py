"""Atoms: small connected pieces of the network, the smallest area to which a device is localized.

Anybody can compute them from the network and the settings. A region made of atoms that hold one
device each is a map of where devices are; atoms that several devices share are not. The network is
therefore cut at several levels, and each member of a group is published as the smallest atom in
which it has enough company.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.grouping import form_groups
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork

LEVELS = (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
"""Sizes of the atoms at each level, in multiples of the smallest. The last is for few devices."""
WIDER = LEVELS[-1] / LEVELS[-2]
_FEW = 1.5
"""Devices are few if there are fewer than so many for each of the largest other atoms."""
AREA_LEVEL = 3
"""Level whose atoms are areas: three times the smallest places, about 300 m in a city."""
_LARGE = 16
"""Size of large atoms, in multiples of the smallest: of those who drive two thirds are still in one
after a minute."""
_SMALLER = 0.95
"""Atoms that exceed a cap are cut anew so much smaller."""


class Atoms(NamedTuple):
    """Small connected pieces of the network: the smallest area to which a device is localized.

    `at`: atom of each node, negative if its component is too small for one, shape (nodes,). The
    nodes of each atom are in compressed sparse rows; an atom may contain nodes of another atom as
    connectors.
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

    `times`: size of the atoms of each level in multiples of the smallest, rising, shape (levels,).
    That of the highest level is the largest size asked for, also where the network is too small for
    such atoms: a member may have less company there than it needs. `at`: atom of each node at each
    level, shape (levels, nodes); `first_atom_of`: number of the atom at which each level begins in
    `first_node_of`; the nodes of all atoms are in compressed sparse rows. `is_large`: which nodes
    are in a component that is large enough for a full atom of the lowest level, shape (nodes,).
    `for_few`: which levels are for few devices alone, at most the highest, shape (levels,).
    """

    times: FloatArray
    at: Int32Array
    first_atom_of: IntArray
    first_node_of: IntArray
    node: Int32Array
    is_large: BoolArray
    for_few: BoolArray

    @property
    def largest(self) -> int:
        """The highest level that is not for few devices alone."""
        return int(np.flatnonzero(~self.for_few)[-1])

    @property
    def are_large(self) -> BoolArray:
        """Levels of atoms that who drives seldom leaves within a minute, shape (levels,)."""
        large: BoolArray = self.times >= _LARGE
        return large

    def are_few(self, n_devices: IntArray, n_largest: IntArray, *, k_extra: int) -> BoolArray:
        """Return where so few devices are published that the largest atoms give no company.

        `n_devices` and the number of atoms at level `largest`, same shape; `k_extra` of the devices
        may belong to the adversary, so nobody makes atoms smaller with so many.
        """
        few: BoolArray = n_devices - k_extra < _FEW * n_largest
        return few


def stack_levels(
    cuts: Sequence[Atoms],
    network: RoadNetwork,
    *,
    times: Sequence[float] = (1,),
    n_for_few: int = 0,
) -> Levels:
    """Return the levels that consist of these cuts, whose sizes are `times` the smallest.

    The highest `n_for_few` (none or one) are for few devices alone.

    A component that is too small for an atom gets one of its own: no group is formed there, but a
    member of a group can move there and has to be covered.
    """
    is_large = cuts[0].at >= 0
    cuts = [_with_small_components(cut, network) for cut in cuts]
    n_atoms = [len(cut.first_node_of) - 1 for cut in cuts]
    sizes = np.concatenate([np.diff(cut.first_node_of) for cut in cuts])
    return Levels(
        np.array(times, np.float64),
        np.stack([cut.at for cut in cuts]).astype(np.int32),
        starts_of(np.array(n_atoms, np.int64))[:-1],
        starts_of(sizes),
        np.concatenate([cut.node for cut in cuts]),
        is_large,
        np.arange(len(cuts)) >= len(cuts) - n_for_few,
    )


def cut_into_levels(
    network: RoadNetwork,
    forest: SpanningForest,
    *,
    min_nodes: int,
    metres_at: FloatArray | None = None,
    min_metres: float = 0.0,
    max_nodes: float = np.inf,
    cap: float = np.inf,
    sizes: Sequence[float] = LEVELS[:-1],
    wider: float = 1.0,
) -> Levels:
    """Cut a network into atoms at several levels.

    Parameters
    ----------
    min_nodes, metres_at, min_metres
        Of the smallest atoms, as in `cut_into_atoms`.
    max_nodes
        Nodes of the largest atoms. Levels beyond it are left out, except the lowest: a few of
        their atoms would be most of a small network.
    cap
        Nodes of a region at most. Below the size of the network the highest level is one of
        windows: atoms as large as the cap allows, where it allows any.
    sizes
        Sizes of the levels in multiples of the smallest, rising.
    wider
        Size of the atoms for few devices, in multiples of the largest other ones. 1, or a cap below
        the size of the network: there are none.
    """
    metres = network.n_nodes if metres_at is None else metres_at.sum()
    smallest = max(min_nodes, min_metres * network.n_nodes / max(metres, 1.0))

    def cut(size: float) -> Atoms:
        return cut_into_atoms(
            forest,
            min_nodes=round(size * min_nodes),
            metres_at=metres_at,
            min_metres=size * min_metres,
        )

    windows: list[Atoms] = []
    if cap < network.n_nodes:
        size, window = _largest_below(cap, cut, largest=max(cap / smallest, 1.0))
        windows, max_nodes = [window], min(max_nodes, size * smallest)
    kept = [size for size in sizes if size == sizes[0] or size * smallest <= max_nodes]
    if windows:
        times = [*kept, max(size, kept[-1])]
        return stack_levels([*map(cut, kept), *windows], network, times=times)
    for_few = [wider] if wider > 1 else []
    cuts = [*map(cut, kept), *(cut(each * kept[-1]) for each in for_few)]
    times = [*kept[:-1], sizes[-1], *(each * sizes[-1] for each in for_few)]
    return stack_levels(cuts, network, times=times, n_for_few=len(for_few))


def _largest_below(
    cap: float, cut: Callable[[float], Atoms], *, largest: float
) -> tuple[float, Atoms]:
    """Return the largest atoms of which none has more nodes than a cap, and their size.

    If there is none, the smallest ones.
    """
    size = largest
    while True:
        atoms = cut(size)
        if size == 1 or np.diff(atoms.first_node_of).max(initial=0) <= cap:
            return size, atoms
        size = max(_SMALLER * size, 1.0)


def lowest_level_with(levels: Levels, metres_at: FloatArray, least: FloatArray) -> IntArray:
    """Return the lowest level of which every atom has so much road, shape of `least`.

    `metres_at` are the road metres that each node stands for, shape (nodes,), `least` the metres
    for each member. Where no level has so much, the result is the number of levels. That for few
    devices is demanded by nobody.

    Notes
    -----
    Every atom, because a member keeps its level while it moves from one to another. As in
    `cut_into_atoms`, connectors do not count. Components too small for an atom do not, either.
    """
    large = levels.is_large
    shortest = [
        np.bincount(at[large], weights=metres_at[large])[np.unique(at[large])].min(initial=np.inf)
        for at in levels.at[: levels.largest + 1]
    ]
    # Cuts of different sizes are made apart: a larger one may have a shorter piece.
    rising = np.maximum.accumulate(np.minimum.accumulate(shortest[::-1])[::-1])
    found = np.searchsorted(rising, least).astype(np.int64)
    return np.where(found > levels.largest, len(levels.at), found)


class Company(NamedTuple):
    """How much company a member has in the atom as which it is published, itself included.

    The company of a device in an atom is the number of devices at its own node, and of other nodes
    of the atom at which there is any: where it stands, one device is as good as another, but all
    that stand at one other node are a single alternative to it.

    `place_devices` is that in the atom of each member, `area_devices` that in its atom at level
    `AREA_LEVEL`, or at its own level if that is higher.
    """

    place_devices: int = 1
    area_devices: int = 1

    def beyond(self, k_extra: int) -> "Company":
        """Return what to ask for so that this is left without so many devices of the adversary."""
        return Company(self.place_devices + k_extra, self.area_devices + k_extra)

    def where_many_stand(self) -> "Company":
        """Return half as many devices more; one that needs no company still needs none."""
        return Company(*(n + n // 2 for n in self))


def lowest_shared_level(
    levels: Levels,
    n_at: IntArray,
    place: Int32Array,
    company: Company,
    *,
    few: BoolArray | bool = False,
) -> IntArray:
    """Return the lowest level at which each member has enough company, shape (members,).

    `n_at` are the devices that count as company at each node, shape (nodes,), `place` the node of
    each member, which is counted there, shape (members,). Without enough company at any level, the
    level is the highest one; that for few devices only where `few`, shape (members,).

    Notes
    -----
    An adversary is content with a guess in an area of a nodes, say. With d occupied nodes per node,
    its belief in an atom of m nodes is about 1 / (d max(a, m)) times that without a release: where
    devices are many, places may be smaller than that area, where they are few, they must be larger.
    A level that asked for company on average over a group would let a full car park lend its
    company to a lonely member. O((nodes + members) levels).
    """
    n_levels, occupied = len(levels.at), np.flatnonzero(n_at)
    here = n_at[place] - 1
    shared_by = np.stack([here + np.bincount(at[occupied])[at[place]] for at in levels.at])
    in_area = shared_by[np.maximum(np.arange(n_levels), min(AREA_LEVEL, n_levels - 1))]
    enough = (shared_by >= company.place_devices) & (in_area >= company.area_devices)
    enough[levels.largest] |= np.logical_not(few)
    enough[-1] = True
    lowest: IntArray = enough.argmax(axis=0)
    return lowest


@kernel
def shared_levels(level: IntArray, first_member_of: IntArray, least: IntArray) -> IntArray:
    """Return levels raised until enough members of a group have each of them, or all have one.

    `level` is that of each member, `first_member_of` in compressed sparse rows; so many members of
    a group as `least` says have the same level, shape (levels,), not falling.

    Notes
    -----
    Who follows a group tells its members apart by the sizes of their atoms. Of one that drives
    among nine in a car park, the only large atom would be its own, for as long as the group lives.
    A level that has too few gets as many of the next lower ones as it lacks, and those that are
    left below are raised, too, if they are too few. O(members + groups * levels).
    """
    shared = level.copy()
    if not len(level):
        return shared
    n_levels = level.max() + 1
    n_with, n_raised = np.empty(n_levels, np.int64), np.empty(n_levels, np.int64)
    raised_to = np.zeros(n_levels, np.int64)
    for g in range(len(first_member_of) - 1):
        first, end = first_member_of[g], first_member_of[g + 1]
        n_with[:] = 0
        n_raised[:] = 0
        for i in range(first, end):
            n_with[level[i]] += 1
        top, needed, n_at_top, n_below = -1, 0, 0, end - first
        for at in range(n_levels - 1, -1, -1):
            n, missing = n_with[at], max(needed - n_at_top, 0)
            # Those who would be left below are all raised if they are too few.
            n_raised[at] = n if top >= 0 and n_below - missing < needed else min(n, missing)
            raised_to[at] = top
            n_at_top += n_raised[at]
            n_below -= n_raised[at]
            if n > n_raised[at]:
                top, needed, n_at_top = at, least[at], n - n_raised[at]
                n_below -= n_at_top
        for i in range(first, end):
            if n_raised[level[i]] > 0:
                n_raised[level[i]] -= 1
                shared[i] = raised_to[level[i]]
    return shared
