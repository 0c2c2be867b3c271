"""Network formats: load a road network from any known source."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_sources import sources_of
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.networks.cities import city
from anonymizer.networks.drawn_roads import MAX_SPACING_M
from anonymizer.networks.graphs import AnyGraph, from_networkx, is_graph, load_graphml
from anonymizer.networks.grids import grid
from anonymizer.networks.implausible import doubts
from anonymizer.networks.layers import joined
from anonymizer.networks.line_layers import LINE_ENDINGS, load_lines
from anonymizer.networks.osm import OSM_ENDINGS, load_osm
from anonymizer.networks.speeds import PROFILES, Profile
from anonymizer.steady_files import steady
from anonymizer.unfolding import check_unfolding


def _sumo(path: Path, *, max_spacing_m: float) -> RoadNetwork:
    with extra("sumo"):
        from anonymizer.networks.sumo import load_sumo  # noqa: PLC0415  an extra

    return load_sumo(path, max_spacing_m=max_spacing_m)


def _h3(text: str) -> RoadNetwork:
    with extra("h3"):
        from anonymizer.networks.h3_places import h3_places  # noqa: PLC0415  an extra

    return h3_places(text)


def _tables(edges: Path, nodes: Path | None, *, max_spacing_m: float) -> RoadNetwork:
    with extra("tables"):
        from anonymizer.networks.node_edge_tables import load_tables  # noqa: PLC0415  an extra

    return load_tables(edges, nodes, max_spacing_m=max_spacing_m)


_GENERATED: dict[str, Callable[[str], RoadNetwork]] = {
    "grid:": grid,
    "city:": city,
    "h3:": _h3,
}
_FILES: dict[str, Callable[..., RoadNetwork]] = {
    ".graphml": load_graphml,
    ".graphml.gz": load_graphml,
    ".net.xml": _sumo,
    ".net.xml.gz": _sumo,
    **dict.fromkeys(OSM_ENDINGS, load_osm),
    **dict.fromkeys(LINE_ENDINGS, load_lines),
}
_TABLE_ENDINGS = (".parquet", ".csv")
"""The first one is read where both are there."""
_KNOWN = (
    f"a file ending in {', '.join(_FILES)}; PREFIX for PREFIX_nodes and PREFIX_edges "
    "(.parquet or .csv); walk:, cycle:, streets: or water: and a file of OpenStreetMap; "
    "h3:RESOLUTION:AREA; grid:ROWSxCOLUMNS; city:NODES; several of these, joined by ' + '"
)


def load_network(
    source: "str | PathLike[str] | AnyGraph", *, max_spacing_m: float = MAX_SPACING_M
) -> RoadNetwork:
    """Load the road network of a source, whose prefix or ending names its format.

    Roads that the source draws and that are longer than `max_spacing_m` get nodes in between (0:
    none; see `with_nodes_between`). Generated networks, and sources without shapes of roads, stay
    as they are. A gateway, its analysts and its auditors must use the same spacing, because regions
    name nodes.

    | source | network |
    |---|---|
    | `*.graphml`, `.gz` | GraphML by the conventions of OSMnx |
    | `*.osm`, `.osc`, `.json` (and `.gz`, `.bz2`), `.osm.pbf` | drivable ways of OpenStreetMap |
    | `*.gpkg`, `.geojson`, `.shp` | lines, which are roads |
    | `walk:FILE`, `cycle:FILE`, `streets:FILE`, `water:FILE` | other ways of such an extract |
    | `*.net.xml`, `.gz` | a SUMO network |
    | `PREFIX` | the tables `PREFIX_nodes` and `PREFIX_edges`, `.parquet` or `.csv` |
    | `h3:RES:S,W,N,E`, `h3:RES:FILE.geojson` | H3 cells of a box or of polygons |
    | `grid:RxC` | a grid of R rows and C columns |
    | `city:N`, `city:N:SEED` | a generated city of N nodes |
    | `roads.osm + water:roads.osm` | several, for devices of several kinds; see `layers` |
    | a `networkx` graph | its nodes and edges, by the conventions of OSMnx; see `from_networkx` |

    Raises
    ------
    InputError
        If the source cannot be used, or is too large once it is unpacked (see `check_unfolding`);
        the message is one line that names it and the reason.
    MissingExtraError
        If the format needs an extra that is not installed: `osm`, `sumo`, `h3` or, for tables,
        `tables`.

    Examples
    --------
    >>> import anonymizer
    >>> network = anonymizer.load_network("grid:10x10")
    >>> network.n_nodes, network.n_roads
    (100, 180)
    """
    if not (isinstance(source, str | PathLike) or is_graph(source)):
        raise InputError(
            "network: must be a path, a generated one by its name, or a networkx graph"
        )
    name = fspath(source) if isinstance(source, str | PathLike) else "graph"
    try:
        if isinstance(source, str | PathLike):
            network = _joined(name, max_spacing_m)
        else:
            network = from_networkx(source, max_spacing_m=max_spacing_m)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if network.n_roads == 0:
        raise InputError(f"{name}: {_roadless(network)}")
    said = (network.account, doubts(network))
    return replace(network, account="; ".join(filter(None, said)))


def _joined(source: str, max_spacing_m: float) -> RoadNetwork:
    sources = sources_of(source)
    if len(sources) == 1:
        return _load(source, max_spacing_m)
    networks = []
    for each in sources:
        try:
            networks.append(_load(each, max_spacing_m))
        except InputError as error:
            raise InputError(f"{each}: {error}") from error
        if not networks[-1].n_roads:
            raise InputError(f"{each}: {_roadless(networks[-1])}")
    return joined(sources, networks)


def _roadless(network: RoadNetwork) -> str:
    return f"has no road ({network.account})" if network.account else "has no road"


def _load(source: str, max_spacing_m: float) -> RoadNetwork:
    for scheme, generate in _GENERATED.items():
        if source.startswith(scheme):
            return generate(source.removeprefix(scheme))
    profile, _, path = source.partition(":")
    if profile in PROFILES:
        return _ways(Path(path), PROFILES[profile], max_spacing_m)
    for ending, load in _FILES.items():
        if source.endswith(ending):
            with steady(Path(source)):
                return load(_usable(Path(source)), max_spacing_m=max_spacing_m)
    edges, nodes = _table(source, "edges"), _table(source, "nodes")
    if edges is not None:
        return _tables(edges, nodes, max_spacing_m=max_spacing_m)
    if nodes is not None:
        raise InputError("has a table of nodes, but no table of edges beside it")
    raise InputError(f"is no network that can be found; known are {_KNOWN}")


def _ways(path: Path, profile: Profile, max_spacing_m: float) -> RoadNetwork:
    """Load the ways of a profile; only OpenStreetMap says what a way is for."""
    known = (*OSM_ENDINGS, *LINE_ENDINGS)
    if not path.name.endswith(known):
        raise InputError(f"only files of OpenStreetMap have profiles: {', '.join(known)}")
    load = load_osm if path.name.endswith(OSM_ENDINGS) else load_lines
    with steady(path):
        return load(_usable(path), max_spacing_m=max_spacing_m, profile=profile)


def _usable(path: Path) -> Path:
    if not path.is_file():
        raise InputError("there is no such file")
    check_unfolding(path)
    return path


def _table(prefix: str, kind: str) -> Path | None:
    """Return the file of one of the tables of a prefix, or None."""
    paths = (Path(f"{prefix}_{kind}{ending}") for ending in _TABLE_ENDINGS)
    return next((path for path in paths if path.is_file()), None)
