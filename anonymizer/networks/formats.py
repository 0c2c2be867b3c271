"""One door for every form a road network comes in."""

from collections.abc import Callable
from pathlib import Path

from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks.cities import city
from anonymizer.networks.graphs import load_graphml
from anonymizer.networks.grids import grid
from anonymizer.networks.node_edge_tables import find_table, load_tables
from anonymizer.networks.osm import load_osm
from anonymizer.networks.sumo import load_sumo

_GENERATED: dict[str, Callable[[str], RoadNetwork]] = {"grid:": grid, "city:": city}
_FILES: dict[str, Callable[[Path], RoadNetwork]] = {
    ".graphml": load_graphml,
    ".graphml.gz": load_graphml,
    ".osm": load_osm,
    ".osm.gz": load_osm,
    ".osm.bz2": load_osm,
    ".osm.pbf": load_osm,
    ".net.xml": load_sumo,
    ".net.xml.gz": load_sumo,
}
_KNOWN = (
    f"a file ending in {', '.join(_FILES)}; PREFIX for PREFIX_nodes and PREFIX_edges "
    "(.parquet or .csv); grid:ROWSxCOLUMNS; city:NODES"
)


def load_network(source: str) -> RoadNetwork:
    """Return the road network of a source, which says by its form what it is.

    | source | is |
    |---|---|
    | `*.graphml`, `.gz` | GraphML by the conventions of OSMnx |
    | `*.osm`, `.osm.gz`, `.osm.bz2`, `.osm.pbf` | an OpenStreetMap extract |
    | `*.net.xml`, `.gz` | a SUMO network |
    | `PREFIX` | the tables `PREFIX_nodes` and `PREFIX_edges`, `.parquet` or `.csv` |
    | `grid:RxC` | a grid of R rows and C columns |
    | `city:N`, `city:N:SEED` | a generated city of N nodes |

    Raises
    ------
    InputError
        With one line that names the source and says what is wrong with it.
    """
    try:
        network = _load(source)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    if network.n_roads == 0:
        raise InputError(f"{source}: has no road to drive on")
    return network


def _load(source: str) -> RoadNetwork:
    for scheme, generate in _GENERATED.items():
        if source.startswith(scheme):
            return generate(source.removeprefix(scheme))
    for ending, load in _FILES.items():
        if source.endswith(ending):
            if not Path(source).is_file():
                raise InputError("there is no such file")
            return load(Path(source))
    if find_table(source, "edges") or find_table(source, "nodes"):
        return load_tables(source)
    raise InputError(f"is no network that can be found; known are {_KNOWN}")
