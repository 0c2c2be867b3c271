"""The command `simulator replay`."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.errors import SettingsError
from anonymizer.extras import extra
from simulator.cli.options import (
    Duration,
    MakeOutlet,
    Quiet,
    Topic,
    above_zero,
    play_reports,
    publishes,
)

EXAMPLES = """Examples:

    simulator replay taxis.parquet --speed 60

    simulator replay fcd.xml.gz --network city.net.xml

    simulator replay taxis.parquet --speed 600 --from 28800 --duration 30 --loop
    """


class StatedTime(StrEnum):
    """The time that a replayed position states."""

    NOW = "now"
    RECORDED = "recorded"


@publishes()
def replay(
    trace: Annotated[
        Path,
        typer.Argument(
            help="csv, csv.gz or parquet: device_id, ts, lat and lon (or node); or xml, xml.gz: "
            "SUMO's FCD output."
        ),
    ],
    *,
    speed: Annotated[
        float, typer.Option(callback=above_zero, metavar="X", help="60 plays an hour in a minute.")
    ] = 1.0,
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NET",
            help="Network of a trace that names nodes, or of one of SUMO's that is not in degrees.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="As of `anonymizer cloak`.")
    ] = None,
    skip: Annotated[
        float, typer.Option("--from", min=0, metavar="T", help="Seconds of the trace to skip.")
    ] = 0.0,
    duration: Duration = None,
    stated_time: Annotated[
        StatedTime,
        typer.Option("--time", help="now: ts as if live; recorded: ts from the file."),
    ] = StatedTime.NOW,
    loop: Annotated[bool, typer.Option("--loop", help="Start again at the end.")] = False,
    topic: Topic = "positions/{device}",
    quiet: Quiet = False,
    outlet: MakeOutlet,
) -> None:
    """Publish a recorded trace at a multiple of its speed."""
    from anonymizer.networks import load_network
    from simulator.trace_replay import ReplaySource, locate_nodes

    with extra("tables"):
        from anonymizer.files.trace_columns import named_columns
        from anonymizer.files.traces import read_trace
        from simulator.fcd_traces import is_fcd, read_fcd

    where = replace(outlet(), topic=topic)
    if is_fcd(trace):
        recorded = read_fcd(trace, None if network is None else Path(network))
    else:
        recorded = read_trace(trace, columns=named_columns(columns))
    if recorded.node is not None:
        if network is None:
            raise SettingsError("--network: is required, the trace names nodes, not coordinates")
        recorded = locate_nodes(recorded, load_network(network))
    source = ReplaySource(
        recorded,
        speed=speed,
        skip_s=skip,
        duration_s=duration,
        recorded_time=stated_time is StatedTime.RECORDED,
        loop=loop,
    )
    if recorded.n_unusable:
        typer.echo(f"{recorded.n_unusable:,} rows of the trace are unusable and left out", err=True)
    play_reports(source, where, quiet=quiet)
