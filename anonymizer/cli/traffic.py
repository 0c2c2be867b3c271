"""Command `anonymizer traffic`: the traffic of a recorded trace by street and hour, published."""

from pathlib import Path
from typing import Annotated

import typer

from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.cli.trace_options import TraceColumns, recorded_trace
from anonymizer.errors import InputError
from anonymizer.extras import require
from anonymizer.files.atomic_write import check_distinct

_ENDINGS = (".parquet", ".geojson", ".csv", "")


def traffic(
    trace: Annotated[
        Path, typer.Argument(help="csv or parquet with device_id, ts (unix s), lat and lon.")
    ],
    network: Annotated[
        str, typer.Option(metavar="NET", help="Road network; see `anonymizer cloak`.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="FILE.parquet, FILE.geojson or FILE.csv to write; without an ending, a folder "
            "with GeoParquet by day.",
        ),
    ],
    every: Annotated[float, typer.Option(min=60, help="Length of an hour, in seconds.")] = 3600.0,
    columns: TraceColumns = None,
    config: ConfigFile = None,
) -> None:
    r"""Publish how many devices passed on each street in each hour, and how fast, with error bars.

    The promise is k of `\[counts]`. Streets on which too few devices pass are counted together with
    others. Publish each hour once, with one k and
    one length of hours, because two exports reveal more together than each alone. An existing file
    or day that says something else is not overwritten.

    [bold]Example[/bold]

        anonymizer traffic taxis.parquet --network sf --out traffic
    """
    settings = settings_of(config)
    if out.suffix not in _ENDINGS:
        raise InputError(f"{out}: must end in {' or '.join(filter(None, _ENDINGS))}")
    check_distinct([out], read=[trace])
    require("tables")
    import numpy as np

    from anonymizer.client.tables import Table
    from anonymizer.networks import load_network
    from anonymizer.outputs.streets.street_hours import street_hours

    found = street_hours(
        recorded_trace(trace, columns),
        load_network(network),
        settings,
        every_s=every,
        rng=np.random.default_rng(),
    )
    table = Table(found.columns, found.geometry)
    table.write(out, once=True)
    left_out = [f"{found.n_off:,} positions near no road", f"{found.n_private:,} private ones"]
    n_hours = len(np.unique(table["time"]))
    typer.echo(
        f"{out}: {len(table):,} rows about {n_hours:,} hours; left out, for you alone: "
        f"{', '.join(left_out)}"
    )
