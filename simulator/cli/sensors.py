"""The command `simulator sensors`."""

from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.options import (
    Duration,
    MakeOutlet,
    Network,
    Quiet,
    Seed,
    Topic,
    above_zero,
    play_source,
    publishes,
)

EXAMPLES = """Examples:

    simulator sensors --network city:10000 --sensors 50

    simulator sensors --network city:10000 --registry sensors.csv --print-settings > gateway.toml

    simulator sensors --network city:10000 --registry sensors.csv --interval 60
    """


@publishes()
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
    seed: Seed = 0,
    duration: Duration = None,
    topic: Topic = "sensors/{device}",
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print matching gateway settings; send nothing."),
    ] = False,
    quiet: Quiet = False,
    outlet: MakeOutlet,
) -> None:
    """Simulate sensors that stand still and report nitrogen dioxide and temperature.

    A message states the position, or, with --registry, readings alone: the gateway then takes the
    positions from the file. The readings depend only on the seed and the time of day.
    """
    from anonymizer.networks import load_network
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
    where = outlet()
    play_source(source, where, encode=source.encode, quiet=quiet)
