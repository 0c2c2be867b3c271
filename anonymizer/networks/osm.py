"""Files of OpenStreetMap: pbf, XML of its database, of editors and Overpass, and Overpass's JSON.

osmium reads pbf. It does not read what Overpass and editors add to XML (centres, lines of members,
objects that are marked as deleted) or negative ids, so text is read here.
"""

import bz2
import gzip
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast
from xml.parsers import expat

import msgspec

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.networks.drawn_roads import MAX_SPACING_M
from anonymizer.networks.markup import parse
from anonymizer.networks.osm_ways import OsmWays
from anonymizer.networks.speeds import DRIVE, Profile
from anonymizer.unfolding import packing

_FORMS = (".osm", ".osc", ".xml", ".json")
OSM_ENDINGS = (
    *(form + packed for form in _FORMS for packed in ("", ".gz", ".bz2")),
    ".osm.pbf",
    ".pbf",
)
"""Of the names of files that `load_osm` reads."""

_HEAD_BYTES = 16
_MEMORY_A_BYTE = 8
"""Bytes of memory a byte of a pbf, at the least: the extracts of Andorra and of the centre of
Helsinki take 8 to 18 for roads, and 11 to 36 with footways, while they are loaded."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, where it has a limit."""
_SORTED = "Type_then_ID"
"""What the header of a pbf says if nodes come before ways."""
_GONE = ("false", "delete")
"""What `visible` and `action` say of an object that is deleted."""


def load_osm(
    path: Path, *, max_spacing_m: float = MAX_SPACING_M, profile: Profile = DRIVE
) -> RoadNetwork:
    """Load an extract, whatever the order of its objects, their ids and their repetitions.

    Ways of the classes of the profile are kept, except areas. Access and turn restrictions are
    ignored. The nodes of the network are those where ways meet, cross themselves or end, and nodes
    between them on roads longer than `max_spacing_m` (0: none). Lengths follow the geometry. Roads
    keep the ids of their ways. `RoadNetwork.account` says what became of each way.

    Raises `InputError` if the file is not OSM data, is an answer that Overpass did not finish, or
    needs more memory than the machine has.
    """
    ways = OsmWays(profile)
    if path.name.endswith(".pbf"):
        check_memory(path.stat().st_size, memory_bytes())
        _read_pbf(path, ways)
        return ways.network(max_spacing_m=max_spacing_m)
    read = _read_json if ".json" in path.suffixes else _read_xml
    try:
        with _opened(path) as file:
            centres = read(file, ways)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("is not readable OSM data") from error
    network = ways.network(max_spacing_m=max_spacing_m)
    if centres and not network.n_roads:
        raise InputError("has the centres of ways alone: ask Overpass for `out body; >; out skel;`")
    return network


def check_memory(file_bytes: int, machine_bytes: int) -> None:
    """Refuse a pbf that cannot be loaded here, rather than be killed while it is.

    Raises `InputError` if even the least memory that files of this size need is more than the
    machine has.
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


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast("BinaryIO", gzip.open(path))
    if path.suffix == ".bz2":
        return cast("BinaryIO", bz2.open(path))
    file = path.open("rb")
    if said := packing(file.peek(_HEAD_BYTES)):
        file.close()
        raise InputError(said)
    return file


def _read_pbf(path: Path, ways: OsmWays) -> None:
    """Read the ways with the places of their nodes, and nodes that stand behind their ways."""
    with extra("osm"):
        import osmium  # noqa: PLC0415  an extra

    try:
        found = osmium.FileProcessor(str(path))
        header = found.header
        found = found.with_locations().with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
        if not header.has_multiple_object_versions:  # else deletions have no tags
            found = found.with_filter(osmium.filter.KeyFilter(ways.key))
        for way in found:
            assert isinstance(way, osmium.osm.Way)  # noqa: S101  for type checkers
            ways.way(
                way.id,
                dict(way.tags),
                [node.ref for node in way.nodes],
                version=way.version,
                deleted=way.deleted,
            )
            for node in way.nodes:
                if node.location.valid():
                    ways.node(node.ref, node.location.lat, node.location.lon)
        missing = ways.missing()
        if header.get("sorting") == _SORTED:
            missing = missing[missing < 0]  # osmium does not look for those
        if not len(missing):
            return
        wanted = frozenset(missing.tolist())
        for each in osmium.FileProcessor(str(path), osmium.osm.NODE):
            assert isinstance(each, osmium.osm.Node)  # noqa: S101  likewise
            if each.id in wanted and not each.deleted and each.location.valid():
                ways.node(each.id, each.location.lat, each.location.lon, version=each.version)
    except (RuntimeError, OSError) as error:
        raise InputError(f"is not readable OSM data: {error}") from error


class _XmlReader:
    """Handlers of the elements of a file, and what has been seen of the one that is open."""

    def __init__(self, ways: OsmWays) -> None:
        self._ways = ways
        self._root = ""
        self._deletes = self._in_remark = False
        self._way: Mapping[str, str] | None = None
        self._refs: list[int] = []
        self._tags: dict[str, str] = {}
        self.n_centres = 0
        self.remark = ""

    def start(self, name: str, found: dict[str, str]) -> None:
        if not self._root:
            self._root = name
            if name not in {"osm", "osmChange"}:
                raise InputError("is not readable OSM data: begins with another element")
        if name == "node":
            gone = self._gone(found) or "lat" not in found
            lat, lon = (0.0, 0.0) if gone else (float(found["lat"]), float(found["lon"]))
            version = int(found.get("version", 0))
            self._ways.node(int(found["id"]), lat, lon, version=version, deleted=gone)
        elif name == "way":
            self._way, self._refs, self._tags = found, [], {}
        elif self._way is not None:
            self._within_way(name, found)
        else:
            self._deletes |= name == "delete"
            self._in_remark |= name == "remark"

    def _within_way(self, name: str, found: Mapping[str, str]) -> None:
        if name == "nd":
            self._refs.append(self._named(found))
        elif name == "tag":
            self._tags[found["k"]] = found["v"]
        elif name == "center":
            self.n_centres += 1

    def end(self, name: str) -> None:
        if name == "way" and self._way is not None:
            found, self._way = self._way, None
            self._ways.way(
                int(found["id"]),
                self._tags,
                self._refs,
                version=int(found.get("version", 0)),
                deleted=self._gone(found),
            )
        elif name == "delete":
            self._deletes = False
        elif name == "remark":
            self._in_remark = False

    def text(self, text: str) -> None:
        if self._in_remark:
            self.remark += text

    def entity(self, *_: object) -> None:
        raise InputError("is not readable OSM data: declares entities")

    def _gone(self, found: Mapping[str, str]) -> bool:
        return self._deletes or found.get("visible") in _GONE or found.get("action") in _GONE

    def _named(self, found: Mapping[str, str]) -> int:
        """Return the node of a way, whose place Overpass may write beside it, or alone."""
        if "lat" not in found:
            return int(found["ref"]) if "ref" in found else self._ways.nowhere()
        lat, lon = float(found["lat"]), float(found["lon"])
        if "ref" not in found:
            return self._ways.point(lat, lon)
        self._ways.node(int(found["ref"]), lat, lon)
        return int(found["ref"])


def _read_xml(file: BinaryIO, ways: OsmWays) -> int:
    """Read XML, and return how many ways have a centre alone."""
    reader, parser = _XmlReader(ways), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = reader.text, reader.entity
    try:
        parse(file, parser)
    except (expat.ExpatError, ValueError, KeyError) as error:
        line = parser.CurrentLineNumber
        raise InputError(f"is not readable OSM data: see line {line}") from error
    except OverflowError as error:
        raise InputError("an id has more than 64 bits") from error
    _check_remark(reader.remark)
    return reader.n_centres


class _Point(msgspec.Struct):
    lat: float
    lon: float


class _Element(msgspec.Struct):
    type: str
    id: int
    lat: float | None = None
    lon: float | None = None
    version: int = 0
    visible: bool = True
    nodes: list[int] = []
    geometry: Any = None
    tags: dict[str, Any] = {}
    center: Any = None


class _Answer(msgspec.Struct):
    elements: list[_Element]
    remark: str = ""


def _read_json(file: BinaryIO, ways: OsmWays) -> int:
    """Read the JSON of Overpass, and return how many ways have a centre alone."""
    try:
        answer = msgspec.json.decode(file.read(), type=_Answer)
        for each in answer.elements:
            gone = not each.visible
            if each.type == "node":
                gone |= each.lat is None or each.lon is None
                lat, lon = each.lat or 0.0, each.lon or 0.0
                ways.node(each.id, lat, lon, version=each.version, deleted=gone)
            elif each.type == "way":
                tags = {name: str(value) for name, value in each.tags.items()}
                refs = _drawn(each, ways)
                ways.way(each.id, tags, refs, version=each.version, deleted=gone)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            "is not readable OSM data: is not what Overpass writes as JSON "
            "(name GeoJSON .geojson, and node-link JSON of networkx save as .graphml)"
        ) from error
    except OverflowError as error:
        raise InputError("an id has more than 64 bits") from error
    _check_remark(answer.remark)
    return sum(each.center is not None for each in answer.elements)


def _drawn(way: _Element, ways: OsmWays) -> list[int]:
    """Return the nodes of a way, whose places Overpass may write beside them, or alone.

    A place beyond the box that was asked for is null.
    """
    if way.geometry is None:
        return way.nodes
    points = msgspec.convert(way.geometry, list[_Point | None])
    if len(way.nodes) != len(points):
        return [ways.nowhere() if at is None else ways.point(at.lat, at.lon) for at in points]
    for name, at in zip(way.nodes, points, strict=True):
        if at is not None:
            ways.node(name, at.lat, at.lon)
    return way.nodes


def _check_remark(remark: str) -> None:
    """Refuse an answer that ends where Overpass ran out of time or memory."""
    if "error" in remark.lower():
        raise InputError(f"Overpass did not finish its answer: {' '.join(remark.split())[:200]}")
