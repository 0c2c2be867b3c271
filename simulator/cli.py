"""The command line of the simulator."""

import asyncio
import math
import os
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pydantic import ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from anonymizer.errors import SettingsError
from anonymizer.files.traces import TraceWriter, read_trace
from anonymizer.networks import load_network
from anonymizer.settings import BrokerSettings
from simulator.displays import summary
from simulator.fleet import FleetSource
from simulator.playing import Outlet, play
from simulator.publishing import Tally, positions_to
from simulator.records import SETTINGS, RecordFleet
from simulator.replay import ReplaySource, locate_nodes
from simulator.reports import Recording, Source
from simulator.tolls import (
    MADE,
    TollSource,
    encoder,
    made_exits,
    n_made,
    read_exits,
    read_marginals,
    settings_for,
    write_exits,
)
from simulator.traffic import Traffic

app = typer.Typer(
    name="simulator",
    help="Traffic for the gateway, over MQTT: made up on a road network, or replayed.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_AT_ONCE = 100_000


class StatedTime(StrEnum):
    """Which time a replayed position states."""

    NOW = "now"
    RECORDED = "recorded"


class Version(StrEnum):
    """Which MQTT is spoken."""

    V5 = "5"
    V311 = "3.1.1"


def _above_zero(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter("must be above 0, and finite")
    return value


def _topic(value: str) -> str:
    if value.count("{device}") != 1 or any(c in value for c in "+#\0"):
        raise typer.BadParameter("must hold {device} once, and no wildcard")
    return value


def _truck_topic(value: str) -> str:
    if value.count("{vehicle}") != 1 or any(c in value for c in "+#\0"):
        raise typer.BadParameter("must hold {vehicle} once, and no wildcard")
    return value


Network = Annotated[
    str, typer.Option(metavar="NET", help="A file, city:NODES or grid:ROWSxCOLUMNS.")
]
Devices = Annotated[int, typer.Option(min=1, max=10_000_000)]
Rate = Annotated[
    float, typer.Option(callback=_above_zero, metavar="HZ", help="Reports a second, each.")
]
Seed = Annotated[int, typer.Option(min=0, help="Equal seeds, equal traffic.")]
Parked = Annotated[float, typer.Option(min=0, max=1, help="Share of the devices that never move.")]
GpsNoise = Annotated[
    float, typer.Option(min=0, max=1000, metavar="M", help="Standard deviation, metres.")
]
Broker = Annotated[
    str,
    typer.Option(
        envvar="SIMULATOR_BROKER",
        metavar="URL",
        help="mqtt://host[:port], or mqtts://host[:port] for TLS.",
    ),
]
MqttVersion = Annotated[Version, typer.Option("--mqtt", help="Version of MQTT.")]
Topic = Annotated[str, typer.Option(callback=_topic, help="{device} is replaced by the id.")]
Qos = Annotated[int, typer.Option(min=0, max=1, help="1: wait for the broker's receipt.")]
Connections = Annotated[int, typer.Option(min=1, max=1000, help="Shared by all devices.")]
ConnectTimeout = Annotated[
    float,
    typer.Option(callback=_above_zero, metavar="S", help="For the broker to be there at first."),
]
Username = Annotated[
    str | None, typer.Option(envvar="SIMULATOR_USERNAME", help="Needs a password, too: see below.")
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        envvar="SIMULATOR_PASSWORD_FILE",
        exists=True,
        dir_okay=False,
        help="Its first line is the password. Or set SIMULATOR_PASSWORD: a command line is public.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        envvar="SIMULATOR_CA_FILE",
        exists=True,
        dir_okay=False,
        help="Authority of the broker's certificate; otherwise the system's.",
    ),
]
AllowPlaintext = Annotated[
    bool,
    typer.Option("--allow-plaintext", help="mqtt:// to another machine: anybody can read it."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the summary.")]
Duration = Annotated[
    float | None,
    typer.Option(callback=_above_zero, metavar="S", help="End after so many seconds of playing."),
]


@app.command(
    epilog="""Examples:

    simulator run --network city:10000 --devices 5000 --rate 1

    simulator run --network sf.graphml --devices 200 --duration 60 --seed 7 --record sf.parquet
    """
)
def run(
    *,
    network: Network,
    devices: Devices = 1000,
    rate: Rate = 1.0,
    broker: Broker = "mqtt://127.0.0.1:1883",
    seed: Seed = 0,
    duration: Duration = None,
    parked: Parked = 0.1,
    gps_noise: GpsNoise = 3.0,
    record: Annotated[
        Path | None,
        typer.Option(metavar="TRACE", help="Write it too (csv, csv.gz, parquet); ts from 0."),
    ] = None,
    topic: Topic = "positions/{device}",
    qos: Qos = 0,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
    quiet: Quiet = False,
) -> None:
    """Let devices drive over a road network and report where they are.

    Each takes the fastest way from one destination to the next, slows down at junctions, stops
    at some, and dwells where it arrives. The movement depends on the seed alone.
    """
    outlet = Outlet(
        broker=_broker_settings(
            broker, mqtt, username, password_file, ca_file, allow_plaintext=allow_plaintext
        ),
        topic=topic,
        qos=qos,
        connections=connections,
        connect_timeout_s=connect_timeout,
    )
    traffic = Traffic(load_network(network), devices, seed=seed, parked_share=parked)
    source = FleetSource(traffic, rate_hz=rate, duration_s=duration, noise_m=gps_noise, seed=seed)

    if record is None:
        _play(source, outlet, quiet=quiet)
    else:
        with TraceWriter(record, device_id=source.device_id) as writer:
            _play(Recording(source, writer), outlet, quiet=quiet)


@app.command(
    epilog="""Example:

    simulator trace city.parquet --network city:10000 --devices 1000 --duration 300
    """
)
def trace(
    out: Annotated[Path, typer.Argument(metavar="TRACE", help="csv, csv.gz or parquet.")],
    *,
    network: Network,
    duration: Annotated[
        float, typer.Option(callback=_above_zero, metavar="S", help="Seconds of traffic.")
    ],
    devices: Devices = 1000,
    rate: Rate = 1.0,
    seed: Seed = 0,
    parked: Parked = 0.1,
    gps_noise: GpsNoise = 3.0,
) -> None:
    """Write the traffic of `run` to a file, as fast as it can be made; no broker is needed."""
    traffic = Traffic(load_network(network), devices, seed=seed, parked_share=parked)
    source = FleetSource(traffic, rate_hz=rate, duration_s=duration, noise_m=gps_noise, seed=seed)
    with TraceWriter(out, device_id=source.device_id) as writer:
        recording = Recording(source, writer)
        with Progress(TextColumn("driving"), BarColumn(), MofNCompleteColumn()) as bar:
            task = bar.add_task("", total=source.n_total)
            while recording.next_due_s < math.inf:
                bar.advance(task, len(recording.take(duration, limit=_AT_ONCE)))
    typer.echo(f"{out}: {source.n_total:,} positions of {devices:,} devices")


@app.command(
    epilog="""Examples:

    simulator replay taxis.parquet --speed 60

    simulator replay taxis.parquet --speed 600 --from 28800 --duration 30 --loop
    """
)
def replay(
    trace: Annotated[
        Path, typer.Argument(help="csv, csv.gz or parquet: device_id, ts, lat and lon (or node).")
    ],
    *,
    speed: Annotated[
        float, typer.Option(callback=_above_zero, metavar="X", help="60: an hour in a minute.")
    ] = 1.0,
    broker: Broker = "mqtt://127.0.0.1:1883",
    network: Annotated[
        str | None,
        typer.Option(metavar="NET", help="Where the nodes of a trace of nodes are."),
    ] = None,
    skip: Annotated[
        float, typer.Option("--from", min=0, metavar="T", help="Seconds of the trace to leave out.")
    ] = 0.0,
    duration: Duration = None,
    stated_time: Annotated[
        StatedTime,
        typer.Option("--time", help="now: ts as if live; recorded: ts as in the file."),
    ] = StatedTime.NOW,
    loop: Annotated[bool, typer.Option("--loop", help="Begin again at the end.")] = False,
    topic: Topic = "positions/{device}",
    qos: Qos = 0,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
    quiet: Quiet = False,
) -> None:
    """Publish a recorded trace, as fast as it was or faster."""
    outlet = Outlet(
        broker=_broker_settings(
            broker, mqtt, username, password_file, ca_file, allow_plaintext=allow_plaintext
        ),
        topic=topic,
        qos=qos,
        connections=connections,
        connect_timeout_s=connect_timeout,
    )
    recorded = read_trace(trace)
    if recorded.node is not None:
        if network is None:
            raise SettingsError("--network: is needed, the trace names nodes, not coordinates")
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
    _play(source, outlet, quiet=quiet)


@app.command(
    epilog="""Examples:

    simulator records --print-settings > fleet.toml

    anonymizer serve --config fleet.toml

    simulator records --vehicles 500 --rate 0.5 --duration 300
    """
)
def records(
    *,
    vehicles: Annotated[int, typer.Option(min=1, max=10_000_000)] = 500,
    rate: Annotated[
        float, typer.Option(callback=_above_zero, metavar="HZ", help="Parts a second, each.")
    ] = 0.5,
    broker: Broker = "mqtt://127.0.0.1:1883",
    seed: Seed = 0,
    duration: Duration = None,
    qos: Qos = 1,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print settings of a gateway for it; send nothing."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Let vehicles tell parts of their records: registration, driver's profile, telemetry.

    Topics are records/registration/ID, records/profile/ID and records/telemetry/ID. Of ten parts
    of a vehicle one is its registration and one its driver's profile. The attributes hang
    together: trucks are slow, old vehicles have faults. What is told depends on the seed alone.
    """
    if print_settings:
        typer.echo(SETTINGS, nl=False)
        return
    outlet = Outlet(
        broker=_broker_settings(
            broker, mqtt, username, password_file, ca_file, allow_plaintext=allow_plaintext
        ),
        qos=qos,
        connections=connections,
        connect_timeout_s=connect_timeout,
    )
    fleet = RecordFleet(vehicles, rate_hz=rate, duration_s=duration, seed=seed)
    tally = Tally(was_heard=np.zeros(vehicles, np.bool_))
    asyncio.run(play(fleet, outlet, tally, encode=fleet.encode, quiet=quiet))
    typer.echo(summary(tally, asked_per_s=fleet.rate_per_s))


@app.command(
    epilog="""Examples:

    simulator tolls --print-settings > toll.toml

    anonymizer serve --config toll.toml

    simulator tolls --days 7 --per-day 2000 --rate 500

    simulator tolls --marginals gantry_marginals_2023.json --out exits.csv

    simulator tolls --csv exits.csv
    """
)
def tolls(
    *,
    days: Annotated[int, typer.Option(min=1, max=3660)] = 1,
    per_day: Annotated[int, typer.Option(min=1, help="Exits of a Monday.")] = 2100,
    trucks: Annotated[int, typer.Option(min=1, max=10_000_000)] = 1700,
    start: Annotated[
        datetime, typer.Option(formats=["%Y-%m-%d"], metavar="DAY", help="The first day, local.")
    ] = datetime(2023, 1, 2),  # noqa: DTZ001  local, wherever that is
    marginals: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON of counts: section_id, vehicle_type."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Replay it: truck_id, exit_time, ..."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a CSV file; publish nothing.")
    ] = None,
    rate: Annotated[
        float, typer.Option(callback=_above_zero, metavar="HZ", help="Exits a second.")
    ] = 200.0,
    broker: Broker = "mqtt://127.0.0.1:1883",
    seed: Seed = 0,
    topic: Annotated[
        str, typer.Option(callback=_truck_topic, help="{vehicle} is replaced by the truck.")
    ] = "toll/exit/{vehicle}",
    qos: Qos = 1,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print settings of a gateway for it; send nothing."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Let trucks leave motorways and pay toll, by the hour and the day of the week.

    Sections and classes of trucks are as frequent as in the marginals. Exits state the time at
    which they were, whatever the rate that they are sent at; what is made depends on the seed.
    """
    given = MADE if marginals is None else read_marginals(marginals)
    if print_settings:
        typer.echo(settings_for(list(given.section)), nl=False)
        return
    if csv is not None:
        replayed = read_exits(csv)
        n_exits, exits = len(replayed), iter(replayed)
    else:
        n_exits = n_made(per_day, start.date(), days)
        exits = made_exits(
            given,
            n_trucks=trucks,
            per_day=per_day,
            first_day=start.date(),
            n_days=days,
            seed=seed,
        )
    if out is not None:
        typer.echo(f"{out}: {write_exits(out, exits):,} exits")
        return
    outlet = Outlet(
        broker=_broker_settings(
            broker, mqtt, username, password_file, ca_file, allow_plaintext=allow_plaintext
        ),
        qos=qos,
        connections=connections,
        connect_timeout_s=connect_timeout,
    )
    source = TollSource(exits, n_total=n_exits, rate_per_s=rate)
    tally = Tally(was_heard=np.zeros(max(n_exits, 1), np.bool_))
    asyncio.run(play(source, outlet, tally, encode=encoder(topic), quiet=quiet))
    typer.echo(summary(tally, asked_per_s=rate))


def _play(source: Source, outlet: Outlet, *, quiet: bool) -> None:
    tally = Tally(was_heard=np.zeros(len(source.device_id), np.bool_))
    encode = positions_to(outlet.topic, source.device_id)
    asyncio.run(play(source, outlet, tally, encode=encode, quiet=quiet))
    typer.echo(summary(tally, asked_per_s=source.rate_per_s))


def _broker_settings(
    url: str,
    version: Version,
    username: str | None,
    password_file: Path | None,
    ca_file: Path | None,
    *,
    allow_plaintext: bool,
) -> BrokerSettings:
    """Return the settings of the broker; a password comes from a file or the environment."""
    try:
        return BrokerSettings.model_validate(
            {
                "url": url,
                "version": version.value,
                "username": username,
                "password": os.environ.get("SIMULATOR_PASSWORD"),
                "password_file": password_file,
                "ca_file": ca_file,
                "allow_plaintext": allow_plaintext,
                "reconnect_max_s": 2.0,  # a pause of the traffic should be over soon after
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        what = "--broker: " if first["loc"] else ""
        raise SettingsError(what + first["msg"].removeprefix("Value error, ")) from None
