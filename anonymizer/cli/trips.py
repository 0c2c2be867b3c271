"""Command `anonymizer trips`: the trips of a recorded trace, as a table to anonymize."""

from pathlib import Path
from typing import Annotated

import typer

from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.cli.trace_options import TraceColumns, recorded_trace
from anonymizer.extras import require


def trips(
    trace: Annotated[Path, typer.Argument(help="csv or parquet with device_id, ts, lat and lon.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="csv, csv.gz or parquet to write. It has true places: for you alone.",
        ),
    ],
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NET",
            help="Adds from_cell and to_cell, ranges of which are places, and the roads of each "
            "trip. See `anonymizer cloak`.",
        ),
    ] = None,
    columns: TraceColumns = None,
    config: ConfigFile = None,
) -> None:
    """Find the trips in a recorded trace: who went from where to where, when.

    A row has `device_id`, `start` (UTC), `duration_s`, `from_lat`, `from_lon`, `to_lat`, `to_lon`
    and `length_m`, and with --network `from_cell`, `to_cell` and `roads`. A trip begins when a
    device appears, or moves on after a silence or a stay, as `trips.gap_s` and `trips.dwell_s` of
    the settings say. Those that begin or end in a privacy zone of the settings are left out.

    [bold]Examples[/bold]

        anonymizer trips taxis.parquet --out trips.csv

        anonymizer anonymize trips.csv -k 10 --id device_id
        --qi start,from_lat,from_lon,to_lat,to_lon --out published.csv

        anonymizer trips taxis.parquet --network city.osm.pbf --out trips.csv
    """
    require("tables")
    from anonymizer.algorithms.positions.trip_classes import n_cells_of
    from anonymizer.app.trip_table import OnNetwork, trip_table
    from anonymizer.files.atomic_write import FileToWrite, check_distinct, write_whole
    from anonymizer.files.table_writing import write_table
    from anonymizer.files.tables import ending
    from anonymizer.networks import load_network
    from anonymizer.settings import zones_of

    settings, form = settings_of(config), ending(out)
    check_distinct([out], read=[trace])
    on = None
    if network is not None:
        roads = load_network(network)
        on = OnNetwork(roads, settings.network.snap_limit_m, n_cells_of(roads, settings.counts.k))
    found = trip_table(
        recorded_trace(trace, columns),
        settings.trips.rule,
        zones_of(settings.zones),
        on,
    )
    write_whole({out: FileToWrite(lambda file: write_table(file, found.frame, form), private=True)})
    typer.echo(
        f"{out}: {len(found.frame):,} trips of {found.n_devices:,} devices; left out: "
        f"{found.n_cut:,} that the recording cuts, {found.n_private:,} with an end in a zone"
    )
