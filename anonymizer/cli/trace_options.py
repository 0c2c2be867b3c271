"""Options of commands that read a recorded trace."""

from typing import Annotated, TypeAlias

import typer

TraceColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Other names of the trace's columns: id=MMSI,time=BaseDateTime,lat=LAT,lon=LON, or "
        "their numbers where there is no header; latlon= or lonlat= of two in a cell, as in "
        "POINT(...); zone=Europe/Rome of times without one.",
    ),
]


def columns_of(given: str | None) -> dict[str, str]:
    """Return the columns that an option names; see `named_columns`."""
    from anonymizer.files.trace_columns import named_columns

    return named_columns(given)
