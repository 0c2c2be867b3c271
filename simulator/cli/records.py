"""The command `simulator records`."""

from typing import Annotated

import typer

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
    Seed,
    Username,
    Version,
    WaitFor,
    above_zero,
    broker_settings,
    play_source,
)

EXAMPLES = """Examples:

    simulator records --print-settings > fleet.toml

    anonymizer serve --config fleet.toml

    simulator records --vehicles 500 --rate 0.5 --duration 300
    """


def records(
    *,
    vehicles: Annotated[int, typer.Option(min=1, max=10_000_000)] = 500,
    rate: Annotated[
        float, typer.Option(callback=above_zero, metavar="HZ", help="Parts per second and vehicle.")
    ] = 0.5,
    broker: Broker = "mqtt://127.0.0.1:1883",
    seed: Seed = 0,
    duration: Duration = None,
    qos: Qos = 1,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    wait_for: WaitFor = None,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print matching gateway settings; send nothing."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Simulate vehicles that send parts of records: registration, driver's profile, telemetry.

    Topics are records/registration/ID, records/profile/ID and records/telemetry/ID. Of ten parts
    of a vehicle, one is its registration and one its driver's profile. The attributes are
    correlated: trucks are slow, old vehicles have faults. The values depend only on the seed.
    """
    from simulator.playing import Outlet
    from simulator.record_fleet import SETTINGS, RecordFleet

    if print_settings:
        typer.echo(SETTINGS, nl=False)
        return
    outlet = Outlet(
        broker=broker_settings(
            broker, mqtt, username, password_file, ca_file, allow_plaintext=allow_plaintext
        ),
        qos=qos,
        connections=connections,
        connect_timeout_s=connect_timeout,
        wait_for=wait_for,
    )
    fleet = RecordFleet(vehicles, rate_hz=rate, duration_s=duration, seed=seed)
    play_source(fleet, outlet, encode=fleet.encode, quiet=quiet)
