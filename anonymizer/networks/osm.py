"""OpenStreetMap extracts: the ways of a profile, split where they meet."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import osmium

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.construction import from_arrays
from anonymizer.networks.drawn_roads import MAX_SPACING_M, Corners, ranges
from anonymizer.networks.speeds import DRIVE, Profile, directions, free_flow_mps

_MEMORY_A_BYTE = 8
"""Bytes of memory a byte of a pbf, at the least: the extracts of Andorra and of the centre of
Helsinki take 8 to 18 for roads, and 11 to 36 with footways, while they are loaded."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, where it has a limit."""


class _Runs:
    """Ways as runs of located nodes, in flat lists; each way begins a new run.

    An extract cuts ways at its border, so a node that is missing in the file ends a run.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.ref: list[int] = []
        self.lat: list[float] = []
        self.lon: list[float] = []
        self.run: list[int] = []
        self.speed_mps: list[float] = []
        self.directions: list[tuple[bool, bool]] = []
        self.way: list[int] = []

    def add(self, way: osmium.osm.Way) -> None:
        kind, oneway = way.tags.get(self._profile.key), way.tags.get("oneway")
        speed_mps = free_flow_mps(kind, way.tags.get("maxspeed"), self._profile)
        both = (True, True)
        if self._profile.one_way:
            both = directions(oneway, highway=kind, junction=way.tags.get("junction"))
        broken = True
        for node in way.nodes:
            if not node.location.valid():
                broken = True
                continue
            if broken:
                self.speed_mps.append(speed_mps)
                self.directions.append(both)
                self.way.append(way.id)
                broken = False
            self.ref.append(node.ref)
            self.lat.append(node.location.lat)
            self.lon.append(node.location.lon)
            self.run.append(len(self.speed_mps) - 1)


def load_osm(
    path: Path, *, max_spacing_m: float = MAX_SPACING_M, profile: Profile = DRIVE
) -> RoadNetwork:
    """Load an extract in any format that osmium recognizes by its name (pbf, XML, gz, bz2).

    Ways of the classes of the profile are kept, except areas. Access and turn restrictions are
    ignored. The nodes of the network are those where ways meet, cross
    themselves or end, and nodes between them on roads longer than `max_spacing_m` (0: none).
    Lengths follow the geometry. Roads keep the ids of their ways.

    Raises
    ------
    InputError
        If the file is not OSM data, or needs more memory than the machine has.
    """
    if path.name.endswith(".pbf"):
        check_memory(path.stat().st_size, memory_bytes())
    runs = _read(path, profile)
    ref, where, uses = np.unique(
        np.array(runs.ref, dtype=np.int64), return_inverse=True, return_counts=True
    )
    run = np.array(runs.run, dtype=np.int64)
    lat, lon = np.array(runs.lat), np.array(runs.lon)
    # Cut runs at their ends and at nodes that are used twice; roads lie between cuts.
    at_end = np.ones(len(run), dtype=np.bool_)
    at_end[1:-1] = (run[1:-1] != run[:-2]) | (run[1:-1] != run[2:])
    cut = np.flatnonzero(at_end | (uses[where] > 1))
    from_start_m = np.zeros(len(run))
    from_start_m[1:] = np.cumsum(haversine_m(lat[:-1], lon[:-1], lat[1:], lon[1:]))
    inside = run[cut[:-1]] == run[cut[1:]]
    start, stop = cut[:-1][inside], cut[1:][inside]
    node, first_use = np.unique(where[np.concatenate((start, stop))], return_index=True)
    place = np.concatenate((start, stop))[first_use]
    forward, backward = np.array(runs.directions, dtype=np.bool_).reshape(-1, 2)[run[start]].T
    corner = ranges(start + 1, stop - start - 1)
    n_before = np.concatenate(([0], np.cumsum(stop - start - 1)))
    return from_arrays(
        node_id=ref[node],
        lat=lat[place],
        lon=lon[place],
        u=np.searchsorted(node, where[start]),
        v=np.searchsorted(node, where[stop]),
        length_m=from_start_m[stop] - from_start_m[start],
        speed_mps=np.array(runs.speed_mps)[run[start]],
        forward=forward,
        backward=backward,
        corners=Corners(n_before, lat[corner], lon[corner]),
        max_spacing_m=max_spacing_m,
        way=np.array(runs.way, dtype=np.int64)[run[start]],
    )


def check_memory(file_bytes: int, machine_bytes: int) -> None:
    """Refuse a pbf that cannot be loaded here, rather than be killed while it is.

    Raises
    ------
    InputError
        If even the least memory that files of this size need is more than the machine has.
    """
    least = _MEMORY_A_BYTE * file_bytes
    if least > machine_bytes:
        raise InputError(
            f"needs {least / 1e9:.1f} GB of memory or more, and this machine has "
            f"{machine_bytes / 1e9:.1f} GB: cut out your area (osmium extract -b W,S,E,N), or keep "
            "the roads alone (osmium tags-filter FILE w/highway)"
        )


def memory_bytes() -> int:
    """Return the memory of this machine, or of its container."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit is the word `max`
        found = min(found, int(_LIMIT.read_text()))
    return found


def _read(path: Path, profile: Profile) -> _Runs:
    usable = osmium.filter.TagFilter(*((profile.key, name) for name in profile.speed_kmh))
    ways = (
        osmium.FileProcessor(str(path))
        .with_locations()
        .with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
        .with_filter(usable)
    )
    runs = _Runs(profile)
    try:
        for way in ways:
            if isinstance(way, osmium.osm.Way) and way.tags.get("area") != "yes":
                runs.add(way)
    except (RuntimeError, OSError) as error:
        raise InputError(f"is not readable OSM data: {error}") from error
    return runs
