"""Ways and nodes of OpenStreetMap, in any order, made into a network and accounted for.

Overpass writes ways before their nodes, editors number new objects below 0, merged extracts repeat
objects, and extracts end at a border. So nothing is looked up before all has been read, and each
way is counted as one of the things that can become of it.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.drawn_roads import Corners, ranges
from anonymizer.networks.edge_accounts import ISLAND, LOOP, USED, accounted, with_odd_directions
from anonymizer.networks.implausible import null_island
from anonymizer.networks.speeds import Profile, directions, free_flow_mps, is_odd_direction

_NOWHERE = float("nan")
_NOBODY = -(2**63)
"""Stands for a point that is nowhere; points without ids are numbered from the next one on, until
the ids of the file are known."""

_SAME_M = 0.5
"""Ways draw each road once: two between the same nodes are one only where they are drawn alike."""

_CUT, _WITHOUT, _TWICE = "cut at the border", "without nodes", "drawn twice"
_AREA, _OTHER = "areas", "of other classes"
_ORDER = (USED, _CUT, _WITHOUT, ISLAND, LOOP, _TWICE, _AREA, _OTHER)


class _Road(NamedTuple):
    """A way: its nodes, and in which directions it is open."""

    way: int
    ref: tuple[int, ...]
    speed_mps: float
    forward: bool
    backward: bool


class OsmWays:
    """What a file says of ways and nodes; of an object that comes again, its greatest version.

    `profile`: which ways are wanted.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._version_of: dict[int, int] = {}
        self._become: dict[int, _Road | str | None] = {}
        self._node = array("q")
        self._node_version = array("q")
        self._lat = array("d")
        self._lon = array("d")
        self._unnamed: dict[tuple[float, float], int] = {}
        self._n_unclassed = self._n_odd = 0

    def node(
        self, name: int, lat: float, lon: float, *, version: int = 0, deleted: bool = False
    ) -> None:
        """Take a node; `OverflowError` if its id is longer than 64 bits."""
        self._node.append(name)
        self._node_version.append(version)
        self._lat.append(_NOWHERE if deleted else lat)
        self._lon.append(_NOWHERE if deleted else lon)

    def point(self, lat: float, lon: float) -> int:
        """Take a point that has no id, and return one: equal points are one node."""
        name = self._unnamed.get((lat, lon))
        if name is None:
            name = self._unnamed[lat, lon] = _NOBODY + 1 + len(self._unnamed)
            self.node(name, lat, lon)
        return name

    def nowhere(self) -> int:
        """Return an id that no point has: a way is cut there."""
        return _NOBODY

    def way(
        self,
        name: int,
        tags: Mapping[str, str],
        refs: Sequence[int],
        *,
        version: int = 0,
        deleted: bool = False,
        way: int | None = None,
    ) -> None:
        """Take a way, unless it has no class, or a later version of it has been taken.

        `way`: that of OpenStreetMap, 0 for none, if it is not `name`.
        """
        kind = tags.get(self._profile.key)
        if kind is None and not deleted and name not in self._version_of:
            self._n_unclassed += 1
            return
        if version < self._version_of.get(name, version):
            return
        self._version_of[name] = version
        if deleted or kind is None:
            self._become[name] = None
        else:
            self._become[name] = self._made(name if way is None else way, kind, tags, refs)

    def _made(
        self, way: int, kind: str, tags: Mapping[str, str], refs: Sequence[int]
    ) -> "_Road | str":
        if kind not in self._profile.speed_kmh:
            return _OTHER
        if tags.get("area") == "yes":
            return _AREA
        both = (True, True)
        if self._profile.one_way:
            self._n_odd += is_odd_direction(tags.get("oneway"))
            both = directions(tags.get("oneway"), highway=kind, junction=tags.get("junction"))
        speed_mps = free_flow_mps(kind, tags.get("maxspeed"), self._profile)
        return _Road(way, tuple(refs), speed_mps, *both)

    @property
    def key(self) -> str:
        """Tag that classifies ways."""
        return self._profile.key

    def missing(self) -> IntArray:
        """Return the nodes that roads name and that have not been taken, sorted."""
        roads = [each for each in self._become.values() if isinstance(each, _Road)]
        named = np.array([name for each in roads for name in each.ref], np.int64)
        return np.setdiff1d(named, np.array(self._node, np.int64))

    def network(
        self, *, max_spacing_m: float, unit: str = "way", left_out: Mapping[str, int] | None = None
    ) -> RoadNetwork:
        """Return the network of the roads, split where they meet, cross themselves or end.

        A node that is nowhere ends a run of road. Lengths follow the geometry. What is drawn twice,
        in whichever direction, is one road; one with a node at 0, 0 far from all others is none.
        `unit`: what the account calls a way; `left_out`: those that were not taken, by reason.

        Raises `InputError` if an id is longer than 64 bits, or as for `from_arrays`.
        """
        become = Counter(each for each in self._become.values() if isinstance(each, str))
        drawn = [each for each in self._become.values() if isinstance(each, _Road)]
        roads = _each_once(drawn)
        become[_TWICE] = len(drawn) - len(roads)
        try:
            ref = np.array([name for each in roads for name in each.ref], np.int64)
        except OverflowError:
            raise InputError("an id has more than 64 bits") from None
        node_id, lat, lon = self._places()
        island = null_island(lat, lon)
        at = np.minimum(np.searchsorted(node_id, ref), max(len(node_id) - 1, 0))
        known = np.zeros(len(ref), np.bool_)
        if len(node_id):
            known = (node_id[at] == ref) & ~np.isnan(lat[at])
        road = np.repeat(np.arange(len(roads)), [len(each.ref) for each in roads])
        lost = np.zeros(len(roads), np.bool_)
        if island.any():
            lost[road[known & island[at]]] = True
            known &= ~lost[road]
        kept = np.flatnonzero(known)
        run = _runs(road[kept], kept)
        place = at[kept]
        cut = np.bincount(road[~known], minlength=len(roads)) > 0
        drawn_at, leads = np.zeros(len(roads), np.bool_), np.zeros(len(roads), np.bool_)
        on = run[1:] == run[:-1]
        drawn_at[road[kept[1:][on]]] = True
        leads[road[kept[1:][on & (place[1:] != place[:-1])]]] = True
        become[ISLAND], become[_WITHOUT] = int(lost.sum()), int((~drawn_at & ~lost).sum())
        become[LOOP], become[_CUT] = int((drawn_at & ~leads).sum()), int((cut & leads).sum())
        become[USED] = int(leads.sum()) - become[_CUT]
        node_id = self._numbered(node_id)
        points = _Points(node_id[place], run, road[kept], lat[place], lon[place])
        network = _split(points, roads, max_spacing_m=max_spacing_m)
        found = {each: become[each] for each in _ORDER} | {**(left_out or {})}
        if not network.n_roads:  # else most are buildings
            found[f"without {self._profile.key}"] = self._n_unclassed
        return with_odd_directions(accounted(network, unit, found), self._n_odd)

    def _places(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return id, latitude and longitude of each node, sorted by id; NaN if it is deleted."""
        name = np.array(self._node, np.int64)
        last = np.lexsort((np.arange(len(name)), np.array(self._node_version, np.int64), name))
        greatest = np.ones(len(last), np.bool_)
        greatest[:-1] = name[last[1:]] != name[last[:-1]]
        last = last[greatest]
        return name[last], np.array(self._lat)[last], np.array(self._lon)[last]

    def _numbered(self, node_id: IntArray) -> IntArray:
        """Return sorted ids, in which points without one have numbers that no other node has."""
        n = len(self._unnamed)
        if not n:
            return node_id
        number, named = node_id[:n] - (_NOBODY + 1), node_id[n:]
        first = min(int(named[0]), 0) - 1 if len(named) else 0
        return np.concatenate((first - number if len(named) else number, named))


def _each_once(roads: Iterable[_Road]) -> list[_Road]:
    """Return each drawn line once, open in every direction that one of its drawings has."""
    found: dict[tuple[int, ...], _Road] = {}
    for road in roads:
        turned = road.ref[::-1]
        key = min(road.ref, turned)
        first = found.setdefault(key, road)
        if first is road:
            continue
        ahead, back = road.forward, road.backward
        if road.ref != first.ref:
            ahead, back = back, ahead
        found[key] = first._replace(forward=first.forward or ahead, backward=first.backward or back)
    return list(found.values())


def _runs(road: IntArray, at: IntArray) -> IntArray:
    """Return the run of each located node: nodes of one road that stand next to each other.

    `road`, `at`: road of each located node, and its index among all nodes of roads, both shape
    (n,).
    """
    begins = np.ones(len(at), np.bool_)
    begins[1:] = (np.diff(at) > 1) | (np.diff(road) > 0)
    return np.cumsum(begins) - 1


class _Points(NamedTuple):
    """The located points of all roads, one behind the other, shape (n,)."""

    ref: IntArray
    run: IntArray
    road: IntArray
    lat: FloatArray
    lon: FloatArray


def _split(points: _Points, roads: Sequence[_Road], *, max_spacing_m: float) -> RoadNetwork:
    """Cut runs at their ends and at nodes that are used twice; roads lie between cuts."""
    ref, run, road, lat, lon = points
    ids, where, uses = np.unique(ref, return_inverse=True, return_counts=True)
    at_end = np.ones(len(run), dtype=np.bool_)
    at_end[1:-1] = (run[1:-1] != run[:-2]) | (run[1:-1] != run[2:])
    cut = np.flatnonzero(at_end | (uses[where] > 1))
    from_start_m = np.zeros(len(run))
    from_start_m[1:] = np.cumsum(haversine_m(lat[:-1], lon[:-1], lat[1:], lon[1:]))
    inside = run[cut[:-1]] == run[cut[1:]]
    start, stop = cut[:-1][inside], cut[1:][inside]
    node, first_use = np.unique(where[np.concatenate((start, stop))], return_index=True)
    place = np.concatenate((start, stop))[first_use]
    corner = ranges(start + 1, stop - start - 1)
    n_before = np.concatenate(([0], np.cumsum(stop - start - 1)))
    of = road[start]
    return from_arrays(
        node_id=ids[node],
        lat=lat[place],
        lon=lon[place],
        u=np.searchsorted(node, where[start]),
        v=np.searchsorted(node, where[stop]),
        length_m=from_start_m[stop] - from_start_m[start],
        speed_mps=np.array([each.speed_mps for each in roads], np.float64)[of],
        forward=np.array([each.forward for each in roads], np.bool_)[of],
        backward=np.array([each.backward for each in roads], np.bool_)[of],
        corners=Corners(n_before, lat[corner], lon[corner]),
        max_spacing_m=max_spacing_m,
        twin_m=_SAME_M,
        way=np.array([each.way for each in roads], np.int64)[of],
    )
