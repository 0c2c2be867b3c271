"""Options of commands that read a recorded trace."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from anonymizer.domain.trace import Trace
    from anonymizer.settings import Settings

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


def recorded_trace(
    path: Path,
    columns: str | None,
    *,
    readings: Sequence[str] = (),
    settings: "Settings | None" = None,
) -> "Trace":
    """Return the trace in a file, and say as what it was read; see `read_trace`.

    With settings, it may also be a dump of MQTT that their inputs read; see `read_dump`.
    """
    from anonymizer.cli.terminal import printable

    trace = None if settings is None or columns else _of_messages(path, settings)
    if trace is None:
        from anonymizer.files.traces import read_trace

        trace = read_trace(path, readings=readings, columns=columns_of(columns), usual_names=True)
    for note in trace.read_as:
        typer.echo(printable(f"{path}: {note}"), err=True)
    return trace


def _of_messages(path: Path, settings: "Settings") -> "Trace | None":
    from anonymizer.app.gateway.preflight import read_secrets
    from anonymizer.files.message_dumps import is_dump, read_dump

    if not is_dump(path, settings):
        return None
    return read_dump(path, settings, secrets=read_secrets(settings))
