"""Command `anonymizer network export`: the road network as a file that maps can draw."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.errors import InputError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.domain.network import RoadNetwork
    from anonymizer.settings import Settings

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
        Path,
        typer.Option(
            metavar="FILE",
            help="File to write: FILE.geojson or FILE.parquet. Of traffic also FILE.csv, and a "
            "folder with GeoParquet by day if it has no ending.",
        ),
    ],
    traffic: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE",
            help="Write the traffic of a recorded trace by street and hour instead, with the "
            "promise of `[counts]`: privacy, k, epsilon, delta and period_s.",
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(min=60, help="Length of an hour of the traffic, in seconds.")
    ] = 3600.0,
    passages: Annotated[
        int,
        typer.Option(
            min=1,
            help='With `counts.privacy = "dp"`: most passages of a device that count in a period; '
            "the noise grows with the square root of it.",
        ),
    ] = 100,
    config: ConfigFile = None,
) -> None:
    """Write the nodes and roads of a network as GeoJSON or GeoParquet, and print its version.

    Messages about regions name this version. QGIS, kepler.gl and GeoPandas read both formats.

    With `--traffic`, write how many devices passed on each street in each hour, and how fast, with
    error bars. Streets on which too few devices pass are counted together.

    [bold]Examples[/bold]

        anonymizer network export city.osm.pbf --out city.geojson

        anonymizer network export sf --traffic taxis.parquet --out traffic
    """
    # As the gateway loads it, so that it has the same nodes.
    settings = settings_of(config)
    endings = _ENDINGS if traffic is None else (*_ENDINGS, ".csv", "")
    if out.suffix not in endings:
        raise InputError(f"{out}: must end in {' or '.join(filter(None, endings))}")
    from anonymizer.networks import load_network

    roads = load_network(network, max_spacing_m=settings.network.max_spacing_m)
    if traffic is not None:
        _traffic(traffic, roads, settings, out, every_s=every, most=passages)
        return
    from anonymizer.domain.network_version import network_version
    from anonymizer.files.atomic_write import FileToWrite, write_whole
    from anonymizer.networks.publication import geojson, geoparquet

    content = geojson(roads) if out.suffix == ".geojson" else geoparquet(roads)
    write_whole({out: FileToWrite(lambda file: file.write(content))})
    typer.echo(
        f"{out}: network {network_version(roads)}, {roads.n_nodes:,} nodes and "
        f"{roads.n_roads:,} roads"
    )


def _traffic(
    trace: Path,
    roads: "RoadNetwork",
    settings: "Settings",
    out: Path,
    *,
    every_s: float,
    most: int,
) -> None:
    require("tables")
    import numpy as np

    from anonymizer.app.street_hours import street_hours
    from anonymizer.client.tables import Table
    from anonymizer.files.traces import read_trace

    if out.resolve() == trace.resolve():
        raise InputError(f"{out}: is named twice")
    found = street_hours(
        read_trace(trace), roads, settings, every_s=every_s, most=most, rng=np.random.default_rng()
    )
    table = Table(found.columns, found.geometry)
    table.write(out)
    left_out = [f"{found.n_off:,} positions near no road", f"{found.n_private:,} private ones"]
    if settings.counts.privacy == "dp":
        left_out.append(f"{found.n_over:,} passages beyond --passages")
    n_hours = len(np.unique(table["time"]))
    typer.echo(
        f"{out}: {len(table):,} rows about {n_hours:,} hours; left out, for you alone: "
        f"{', '.join(left_out)}"
    )
