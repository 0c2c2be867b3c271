"""Options of commands that read a recorded trace."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from anonymizer.domain.trace import Trace

TraceColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Names of the trace's columns that are not usual ones: id=MMSI,time=BaseDateTime,"
        "lat=LAT,lon=LON, or their numbers where there is no header; latlon= or lonlat= of two in "
        "a cell, as in POINT(...); zone=Europe/Rome of times without one.",
    ),
]


def columns_of(given: str | None) -> dict[str, str]:
    """Return the columns that an option names; see `named_columns`."""
    from anonymizer.files.trace_columns import named_columns

    return named_columns(given)


def recorded_trace(path: Path, columns: str | None, *, readings: Sequence[str] = ()) -> "Trace":
    """Return the trace in a file, and say as what it was read; see `read_trace`."""
    from anonymizer.cli.terminal import printable
    from anonymizer.files.traces import read_trace

    trace = read_trace(path, readings=readings, columns=columns_of(columns), usual_names=True)
    for note in trace.read_as:
        typer.echo(printable(f"{path}: {note}"), err=True)
    return trace
