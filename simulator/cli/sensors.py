"""The command `simulator sensors`."""

from pathlib import Path
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
    Network,
    PasswordFile,
    Qos,
    Quiet,
    Seed,
    Topic,
    Username,
    Version,
    WaitFor,
    above_zero,
    broker_settings,
    play_source,
)

EXAMPLES = """Examples:

    simulator sensors --network city:10000 --sensors 50

    simulator sensors --network city:10000 --registry sensors.csv --print-settings > gateway.toml

    simulator sensors --network city:10000 --registry sensors.csv --interval 60
    """


def sensors(
    *,
    network: Network,
    sensors: Annotated[int, typer.Option(min=1, max=1_000_000)] = 50,
    interval: Annotated[
        float,
        typer.Option(
            callback=above_zero, metavar="S", help="Seconds between two reports of a sensor."
        ),
    ] = 10.0,
    registry: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="Write the positions to this file, and readings alone to MQTT."
        ),
    ] = None,
    broker: Broker = "mqtt://127.0.0.1:1883",
    seed: Seed = 0,
    duration: Duration = None,
    topic: Topic = "sensors/{device}",
    qos: Qos = 0,
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
    """Simulate sensors that stand still and report nitrogen dioxide and temperature.

    A message states the position, or, with --registry, readings alone: the gateway then takes the
    positions from the file. The readings depend only on the seed and the time of day.
    """
    from anonymizer.networks import load_network
    from simulator.playing import Outlet
    from simulator.sensors import SensorNetwork, settings_text

    source = SensorNetwork(
        load_network(network),
        sensors,
        rate_hz=1 / interval,
        duration_s=duration,
        topic=topic,
        states_position=registry is None,
        seed=seed,
    )
    if registry is not None:
        source.write_registry(registry)
    if print_settings:
        typer.echo(settings_text(network, topic, registry), nl=False)
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
    play_source(source, outlet, encode=source.encode, quiet=quiet)
