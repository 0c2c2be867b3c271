"""Command `anonymizer network export`: the road network as a file that maps can draw."""

from pathlib import Path
from typing import Annotated

import typer

from anonymizer.errors import InputError

app = typer.Typer(help="The road network, for readers of regions.", no_args_is_help=True)
_ENDINGS = (".geojson", ".parquet")


@app.callback()
def _networks() -> None:
    """Export the road network, for readers of regions."""


@app.command()
def export(
    network: Annotated[
        str, typer.Argument(metavar="NET", help="Road network; see `anonymizer cloak`.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File to write: FILE.geojson or FILE.parquet.")
    ],
    adka: Annotated[  # noqa: FBT002  typer's
        bool,
        typer.Option(
            "--adka", help="The network of mode adka: without nodes that are put into long roads."
        ),
    ] = False,
) -> None:
    """Write the nodes and roads of a network as GeoJSON or GeoParquet, and print its version.

    Messages about regions name this version. QGIS, kepler.gl and GeoPandas read both formats.

    [bold]Examples[/bold]

        anonymizer network export city.osm.pbf --out city.geojson

        anonymizer network export grid:20x20 --out grid.parquet
    """
    if out.suffix not in _ENDINGS:
        raise InputError(f"{out}: must end in {' or '.join(_ENDINGS)}")
    from anonymizer.domain.network_version import network_version
    from anonymizer.files.atomic_write import of_content, write_whole
    from anonymizer.networks import load_network
    from anonymizer.networks.publication import geojson, geoparquet

    roads = load_network(network, max_spacing_m=0) if adka else load_network(network)
    content = geojson(roads) if out.suffix == ".geojson" else geoparquet(roads)
    write_whole({out: of_content(content)})
    typer.echo(
        f"{out}: network {network_version(roads)}, {roads.n_nodes:,} nodes and "
        f"{roads.n_roads:,} roads"
    )
