"""Generated cities: irregular, planar, connected, with roads of several classes.

How one grows, in units of the spacing between central junctions:

1. *Districts* are the Voronoi cells of a jittered lattice; arterial roads run along their
   borders, the main ones along the borders of coarser cells.
2. Each district is filled with streets of its own orientation and block shape; some are parks.
3. The plane is bent and stretched outwards, so that streets curve and the centre is densest;
   the N junctions nearest to the centre, within a ragged outline, are the city.
4. Roads are edges of their Delaunay triangulation, so that none can cross. Those that look into
   an obtuse corner (diagonals of blocks) are left out, a spanning tree that prefers
   arterials is kept, dead ends are cut free, and crossings are thinned until a junction has
   three roads on average, as in the street networks of real cities [1]_.

Random points with their nearest neighbours would be simpler, but have neither through roads
nor blocks: regions grown there look unlike those in a city.

References
----------
.. [1] G. Boeing, "OSMnx: New methods for acquiring, constructing, analyzing, and visualizing
   complex street networks", Computers, Environment and Urban Systems 65, 2017.
"""

import re

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.city_plan import CLASSES, LOCAL, Plan, plan_city
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.local import lat_lon
from anonymizer.networks.speeds import free_flow_mps

SPACING_M = 80.0
"""Between junctions in the centre."""
MIN_NODES, MAX_NODES = 4, 5_000_000
ROADS_PER_NODE = 1.5
"""A junction of three roads on average."""
WIDEST_CORNER_COS = 0.3
"""A street looks into no corner wider than about 73 degrees: it would cut across a block."""
DEAD_END_SHARE = 0.3
"""Of the ends of the spanning tree, those that get no second road."""


def city(size: str) -> RoadNetwork:
    """Return the city of a size such as `10000`, or `10000:7` with a seed (0 unless given).

    Exactly N nodes, 0 to N-1, in strips from south to north, so that neighbours lie close in
    memory; straight two-way roads, centred on the origin of `anonymizer.networks.local`. Equal
    sizes and seeds give equal cities (for one version of SciPy).

    Notes
    -----
    O(n log n); 100,000 nodes take about 2 s, 1,000,000 about 30 s and 4 GB of memory.
    """
    match = re.fullmatch(r"(\d{1,7})(?::(\d{1,9}))?", size)
    if match is None or not MIN_NODES <= int(match[1]) <= MAX_NODES:
        raise InputError(
            f"a city is NODES or NODES:SEED, such as 10000, of {MIN_NODES} to {MAX_NODES:,} nodes"
        )
    n_nodes, rng = int(match[1]), np.random.default_rng(int(match[2] or 0))
    plan = plan_city(n_nodes, rng)
    u, v, class_of = _roads(plan, rng)
    lat, lon = lat_lon(*(plan.xy.T * SPACING_M))
    speed_mps = np.array([free_flow_mps(highway, None) for highway in CLASSES])
    both = np.ones(len(u), dtype=np.bool_)
    return from_arrays(
        node_id=np.arange(n_nodes),
        lat=lat,
        lon=lon,
        u=u,
        v=v,
        length_m=np.full(len(u), np.nan),
        speed_mps=speed_mps[class_of],
        forward=both,
        backward=both,
    )


def _roads(plan: Plan, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ends of each road and its class, sorted by its ends."""
    u, v, corner_cos = _triangulated(plan.xy)
    class_of = _classes(plan, u, v)
    through = class_of < LOCAL
    street = through | (corner_cos > WIDEST_CORNER_COS)
    # The tree takes main roads first, then streets at random, and cuts across only in need.
    cost = np.where(through, 0.01 * (1 + class_of), 1 + rng.random(len(u)))
    cost[~street] += 100 + np.linalg.norm(plan.xy[u[~street]] - plan.xy[v[~street]], axis=1)
    fixed = _spanning_tree(u, v, cost, n_nodes=len(plan.xy)) | through
    kept = _thinned(u, v, fixed, street, n_nodes=len(plan.xy), rng=rng)
    return u[kept], v[kept], class_of[kept]


def _triangulated(xy: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the Delaunay edges u < v, sorted, and the cosine of the widest corner each faces."""
    corners = Delaunay(xy).simplices.astype(np.int64)
    a, b, apex = np.concatenate([np.roll(corners, turn, axis=1) for turn in range(3)]).T
    to_a, to_b = xy[a] - xy[apex], xy[b] - xy[apex]
    lengths = np.linalg.norm(to_a, axis=1) * np.linalg.norm(to_b, axis=1)
    cos = (to_a * to_b).sum(axis=1) / lengths
    edge = np.minimum(a, b) * len(xy) + np.maximum(a, b)
    order = np.lexsort((cos, edge))
    first = np.flatnonzero(np.diff(edge[order], prepend=-1))
    u, v = np.divmod(edge[order][first], len(xy))
    return u, v, cos[order][first]


def _classes(plan: Plan, u: IntArray, v: IntArray) -> IntArray:
    """Return the class of each edge; stretches that the triangulation lacks are lost."""
    n_nodes = len(plan.xy)
    class_of = np.full(len(u), LOCAL)
    edge = u * n_nodes + v
    stretch = plan.stretch.min(axis=1) * n_nodes + plan.stretch.max(axis=1)
    place = np.minimum(np.searchsorted(edge, stretch), len(edge) - 1)
    there = edge[place] == stretch
    np.minimum.at(class_of, place[there], plan.class_of[there])
    return class_of


def _spanning_tree(u: IntArray, v: IntArray, cost: FloatArray, *, n_nodes: int) -> BoolArray:
    """Return which edges (sorted by u, v) form the spanning tree of least cost."""
    tree = minimum_spanning_tree(coo_array((cost, (u, v)), shape=(n_nodes, n_nodes))).tocoo()
    chosen = np.zeros(len(u), dtype=np.bool_)
    chosen[np.searchsorted(u * n_nodes + v, tree.row.astype(np.int64) * n_nodes + tree.col)] = True
    return chosen


def _thinned(
    u: IntArray,
    v: IntArray,
    fixed: BoolArray,
    street: BoolArray,
    *,
    n_nodes: int,
    rng: np.random.Generator,
) -> BoolArray:
    """Return which edges stay: the fixed ones, and of the streets as many as the mean asks for.

    Only streets between two crossings of four go, so that T-junctions arise and not dead ends;
    a round takes at most one street of each junction, as drawn by lot.
    """
    ends = np.concatenate((u[fixed], v[fixed]))
    tip = np.bincount(ends, minlength=n_nodes) == 1
    dead_end = tip & (rng.random(n_nodes) < DEAD_END_SHARE)
    kept: BoolArray = fixed | (street & ~dead_end[u] & ~dead_end[v])
    surplus = int(kept.sum() - ROADS_PER_NODE * n_nodes)

    def between_crossings() -> IntArray:
        crossing = np.bincount(np.concatenate((u[kept], v[kept])), minlength=n_nodes) > 3
        return np.flatnonzero(kept & ~fixed & crossing[u] & crossing[v])

    while surplus > 0 and len(loose := between_crossings()):
        loose = rng.permutation(loose)
        gone = loose[_first_come(u[loose], v[loose], n_nodes=n_nodes)][:surplus]
        kept[gone] = False
        surplus -= len(gone)
    return kept


def _first_come(u: IntArray, v: IntArray, *, n_nodes: int) -> BoolArray:
    """Return which edges come before every other one at both of their ends."""
    turn = np.arange(len(u))
    earliest = np.full(n_nodes, len(u))
    np.minimum.at(earliest, u, turn)
    np.minimum.at(earliest, v, turn)
    return np.asarray((earliest[u] == turn) & (earliest[v] == turn), dtype=np.bool_)
