"""Generated cities: irregular, planar, connected road networks with roads of several classes.

A city is generated in these steps, with lengths in units of the spacing of central junctions:

1. *Districts* are the Voronoi cells of a jittered lattice; arterial roads run along their
   borders, the main ones along the borders of coarser cells.
2. Each district is filled with streets of its own orientation and block shape; some are parks.
3. The plane is bent and stretched outwards, so that streets curve and the centre is densest;
   the N junctions nearest to the centre, within a ragged outline, are the city.
4. Roads are edges of the Delaunay triangulation, so that none cross. Edges opposite an obtuse
   corner (diagonals of blocks) are left out, a spanning tree that prefers arterials is kept, dead
   ends are made, and crossings are thinned until a junction has three roads on average, as in the
   street networks of real cities [1]_.

Random points joined to their nearest neighbours would be simpler, but have neither through roads
nor blocks: regions grown there look unlike those in a city.

References
----------
.. [1] G. Boeing, "OSMnx: New methods for acquiring, constructing, analyzing, and visualizing
   complex street networks", Computers, Environment and Urban Systems 65, 2017.
"""

import re
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import Delaunay, Voronoi, cKDTree

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.grids import lat_lon
from anonymizer.networks.speeds import free_flow_mps

CLASSES = ("primary", "secondary", "tertiary", "residential")
"""The classes of roads in a city; a plan refers to them by index."""
PRIMARY, SECONDARY, COLLECTOR, LOCAL = range(len(CLASSES))

DISTRICT = 9.0
"""Distance between the centres of neighbouring districts."""
BOROUGH = 4 * DISTRICT
"""Distance between the centres of neighbouring boroughs; primary roads separate them."""
COLLECTOR_EVERY = 4
"""Every fourth street of a district is a collector."""
VERGE = 0.65
"""Least distance of a local junction from an arterial road: its edges then stay Delaunay edges."""
PARK_SHARE = 0.05
"""Share of districts without streets."""
STRETCH = 0.8
"""Distances from the centre grow by this share towards the edge, so the centre is densest."""
SPACING_M = 80.0
"""Metres between junctions in the centre."""
MIN_NODES, MAX_NODES = 4, 5_000_000
ROADS_PER_NODE = 1.5
"""Three roads at a junction on average."""
WIDEST_CORNER_COS = 0.3
"""A street opposite a corner wider than about 73 degrees would cut across a block: left out."""
DEAD_END_SHARE = 0.3
"""Share of the ends of the spanning tree that stay dead ends."""


def city(size: str) -> RoadNetwork:
    """Return the city of a size such as `10000`, or `10000:7` with a seed (default 0).

    It has exactly N nodes, 0 to N-1, in strips from south to north, so that neighbours are close in
    memory, and straight two-way roads, centred on the origin of `anonymizer.networks.grids`. Equal
    sizes and seeds give equal cities (with the same version of SciPy).

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


@dataclass(frozen=True, slots=True, eq=False)
class CityPlan:
    """Plan of a city: junctions, and the stretches between them that belong to through roads."""

    xy: FloatArray
    """Shape (n, 2)."""
    stretch: IntArray
    """Pairs of junctions, shape (m, 2)."""
    class_of: IntArray
    """Index into `CLASSES` of each stretch, shape (m,)."""


def plan_city(n_nodes: int, rng: np.random.Generator) -> CityPlan:
    """Return the plan of a city of exactly `n_nodes` junctions; O(n log n), vectorized."""
    # A junction takes about one unit of area; the outline deviates by a quarter at most.
    radius = 1.3 * np.sqrt(n_nodes / np.pi) + DISTRICT
    centre = _lattice(rng, radius + 3 * DISTRICT, DISTRICT)
    arterials = _arterials(centre, _lattice(rng, radius + 3 * BOROUGH, BOROUGH))
    inner = np.linalg.norm(centre, axis=1) < radius + DISTRICT
    streets = _streets(rng, centre, np.flatnonzero(inner))
    whole = CityPlan(
        np.concatenate((arterials.xy, streets.xy)),
        np.concatenate((arterials.stretch, streets.stretch + len(arterials.xy))),
        np.concatenate((arterials.class_of, streets.class_of)),
    )
    distance = _ragged_distance(rng, whole.xy)
    settled = np.zeros(len(distance), dtype=np.bool_)
    settled[np.argpartition(distance, n_nodes)[:n_nodes]] = True
    city = _restricted(whole, settled)
    return _in_strips(
        CityPlan(_bent(rng, city.xy, distance[settled].max()), city.stretch, city.class_of)
    )


def _lattice(rng: np.random.Generator, radius: float, spacing: float) -> FloatArray:
    """Return a jittered triangular lattice of points about `spacing` apart around the origin."""
    reach = int(np.ceil(radius / spacing))
    row, column = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1)
    xy = np.stack((column + row % 2 / 2, row), axis=1) + rng.uniform(-0.3, 0.3, (len(row), 2))
    return xy * spacing


def _borders(centre: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Return corners, and for each border its two districts and the two corners it connects."""
    voronoi = Voronoi(centre)
    corner, sides = voronoi.vertices, np.asarray(voronoi.ridge_points, dtype=np.int64)
    ends = np.array(voronoi.ridge_vertices, dtype=np.int64)
    # Corners that nearly coincide are merged, and the borders between them removed.
    close = cKDTree(corner).query_pairs(0.6, output_type="ndarray")
    shape = (len(corner), len(corner))
    meet = coo_array((np.ones(len(close)), (close[:, 0], close[:, 1])), shape=shape)
    group: Int32Array = connected_components(meet, directed=False)[1]
    _, first = np.unique(group, return_index=True)
    bounded = (ends >= 0).all(axis=1)
    sides, ends = sides[bounded], first[group][ends[bounded]]
    proper = ends[:, 0] != ends[:, 1]
    return corner, sides[proper], ends[proper]


def _arterials(centre: FloatArray, borough: FloatArray) -> CityPlan:
    """Return roads along the borders of the districts, with a junction at each unit of length."""
    corner, sides, ends = _borders(centre)
    begin, step = corner[ends[:, 0]], corner[ends[:, 1]] - corner[ends[:, 0]]
    # At most one unit long: the circle around a stretch then contains no local junction (VERGE).
    n_steps = np.ceil(np.linalg.norm(step, axis=1)).astype(np.int64)
    border = np.repeat(np.arange(len(ends)), n_steps)
    at = np.arange(len(border)) - (np.cumsum(n_steps) - n_steps)[border]
    # Each stretch begins at a junction of its own, except the first, which begins at a corner.
    own = np.cumsum(at > 0) - 1 + len(corner)
    last = at == n_steps[border] - 1
    stretch = np.stack(
        (
            np.where(at == 0, ends[border, 0], own),
            np.where(last, ends[border, 1], own + 1),
        ),
        axis=1,
    )
    along = (begin[border] + step[border] * (at / n_steps[border])[:, None])[at > 0]
    borough_of = _nearest(centre, borough, 1)[1][:, 0]
    parts = borough_of[sides[:, 0]] != borough_of[sides[:, 1]]
    return CityPlan(
        np.concatenate((corner, along)),
        stretch,
        np.where(parts, PRIMARY, SECONDARY)[border],
    )


def _streets(rng: np.random.Generator, centre: FloatArray, districts: IntArray) -> CityPlan:
    """Return the junctions inside the districts, each with an orientation of its own."""
    reach = int(DISTRICT)
    side = 2 * reach + 1
    i, j = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1)
    n_districts = len(districts)
    turn = rng.uniform(0, np.pi, (n_districts, 1))
    stretched = rng.uniform(0.8, 1.3, (n_districts, 1))
    x = (i + rng.uniform(-0.5, 0.5, (n_districts, 1))) * stretched
    y = (j + rng.uniform(-0.5, 0.5, (n_districts, 1))) / stretched
    here = np.stack(
        (np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y), axis=2
    )
    xy = (centre[districts, None] + here).reshape(-1, 2)
    kept = _well_inside(xy, np.repeat(districts, side * side), centre)
    kept &= np.repeat(rng.random(n_districts) >= PARK_SHARE, side * side)
    whole = np.arange(len(xy))
    along_j = whole[np.tile((i % COLLECTOR_EVERY == 0) & (j < reach), n_districts)]
    along_i = whole[np.tile((j % COLLECTOR_EVERY == 0) & (i < reach), n_districts)]
    stretch = np.concatenate(
        (np.stack((along_j, along_j + 1), axis=1), np.stack((along_i, along_i + side), axis=1))
    )
    xy += rng.normal(0, 0.07, xy.shape)
    return _restricted(CityPlan(xy, stretch, np.full(len(stretch), COLLECTOR)), kept)


def _well_inside(xy: FloatArray, district: IntArray, centre: FloatArray) -> BoolArray:
    """Return which points lie in their own district, away from its borders."""
    distance, near = _nearest(xy, centre, 4)
    others = np.linalg.norm(centre[near[:, 1:]] - centre[near[:, :1]], axis=2)
    to_border = (distance[:, 1:] ** 2 - distance[:, :1] ** 2) / (2 * others)
    inside: BoolArray = (near[:, 0] == district) & (to_border.min(axis=1) > VERGE)
    return inside


def _nearest(xy: FloatArray, among: FloatArray, n_nearest: int) -> tuple[FloatArray, IntArray]:
    """Return distances and indices of the nearest points in `among`, shape (n, n_nearest)."""
    distance, index = cKDTree(among).query(xy, k=range(1, n_nearest + 1))
    return np.asarray(distance, dtype=np.float64), np.asarray(index, dtype=np.int64)


def _restricted(plan: CityPlan, kept: BoolArray) -> CityPlan:
    """Return the plan of the kept junctions, renumbered, with the stretches between them."""
    number = np.cumsum(kept) - 1
    whole = kept[plan.stretch].all(axis=1)
    return CityPlan(plan.xy[kept], number[plan.stretch[whole]], plan.class_of[whole])


def _ragged_distance(rng: np.random.Generator, xy: FloatArray) -> FloatArray:
    """Return the distance from the centre, longer in some directions than in others."""
    angle = np.arctan2(xy[:, 1], xy[:, 0])
    outline = np.ones(len(xy))
    for lobes in range(2, 6):
        outline += 0.16 / lobes * np.sin(lobes * angle + rng.uniform(0, 2 * np.pi))
    return np.asarray(np.linalg.norm(xy, axis=1) / outline, dtype=np.float64)


def _bent(rng: np.random.Generator, xy: FloatArray, rim: float) -> FloatArray:
    """Return the points after bending the plane in gentle waves and stretching it outwards."""
    bent = xy.copy()
    for _ in range(3):
        angle, phase = rng.uniform(0, 2 * np.pi, 2)
        wavelength = rng.uniform(3, 7) * DISTRICT
        ahead = np.array([np.cos(angle), np.sin(angle)])
        aside = np.array([-np.sin(angle), np.cos(angle)])
        wave = np.sin(xy @ ahead * (2 * np.pi / wavelength) + phase)
        bent += 0.03 * wavelength * wave[:, None] * aside
    bent *= 1 + STRETCH * np.linalg.norm(xy, axis=1, keepdims=True) / rim
    return bent


def _in_strips(plan: CityPlan) -> CityPlan:
    """Return the plan renumbered from south to north, so that neighbours are close in memory."""
    x, y = plan.xy.T
    order = np.lexsort((x, np.floor(y / DISTRICT)))
    number = np.argsort(order)
    return CityPlan(plan.xy[order], number[plan.stretch], plan.class_of)


def _roads(plan: CityPlan, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ends of each road and its class, sorted by its ends."""
    u, v, corner_cos = _triangulated(plan.xy)
    class_of = _classes(plan, u, v)
    through = class_of < LOCAL
    street = through | (corner_cos > WIDEST_CORNER_COS)
    # The tree takes main roads first, then streets at random, and diagonals only if necessary.
    cost = np.where(through, 0.01 * (1 + class_of), 1 + rng.random(len(u)))
    cost[~street] += 100 + np.linalg.norm(plan.xy[u[~street]] - plan.xy[v[~street]], axis=1)
    fixed = _spanning_tree(u, v, cost, n_nodes=len(plan.xy)) | through
    kept = _thinned(u, v, fixed, street, n_nodes=len(plan.xy), rng=rng)
    return u[kept], v[kept], class_of[kept]


def _triangulated(xy: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the Delaunay edges u < v, sorted, and the cosine of each widest opposite corner."""
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


def _classes(plan: CityPlan, u: IntArray, v: IntArray) -> IntArray:
    """Return the class of each edge; stretches that are not in the triangulation are dropped."""
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
    """Return which edges stay: the fixed ones, and as many streets as `ROADS_PER_NODE` allows.

    Only streets between two crossings of at least four roads are removed, so that T-junctions arise
    and no dead ends. A round removes at most one street of each junction, at random.
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
    """Return which edges come first in the order at both of their ends."""
    turn = np.arange(len(u))
    earliest = np.full(n_nodes, len(u))
    np.minimum.at(earliest, u, turn)
    np.minimum.at(earliest, v, turn)
    return np.asarray((earliest[u] == turn) & (earliest[v] == turn), dtype=np.bool_)
