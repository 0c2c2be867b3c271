"""The command `simulator replay`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.errors import SettingsError
from anonymizer.extras import extra
from simulator.cli.options import (
    AllowPlaintext,
    Broker,
    CaFile,
    Connections,
    ConnectTimeout,
    Duration,
    MqttVersion,
    PasswordFile,
    Qos,
    Quiet,
    Topic,
    Username,
    Version,
    WaitFor,
    above_zero,
    broker_settings,
    play_reports,
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
    broker: Broker = "mqtt://127.0.0.1:1883",
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
    qos: Qos = 0,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    wait_for: WaitFor = None,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
    quiet: Quiet = False,
) -> None:
    """Publish a recorded trace at a multiple of its speed."""
    from anonymizer.networks import load_network
    from simulator.playing import Outlet
    from simulator.trace_replay import ReplaySource, locate_nodes

    with extra("tables"):
        from anonymizer.files.trace_columns import named_columns
        from anonymizer.files.traces import read_trace
        from simulator.fcd_traces import is_fcd, read_fcd

    outlet = Outlet(
        broker=broker_settings(
            broker, mqtt, username, password_file, ca_file, allow_plaintext=allow_plaintext
        ),
        topic=topic,
        qos=qos,
        connections=connections,
        connect_timeout_s=connect_timeout,
        wait_for=wait_for,
    )
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
    play_reports(source, outlet, quiet=quiet)
