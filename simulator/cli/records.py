"""The command `simulator records`."""

from typing import Annotated

import typer

from simulator.cli.options import (
    Duration,
    MakeOutlet,
    Quiet,
    Seed,
    above_zero,
    play_source,
    publishes,
)

EXAMPLES = """Examples:

    simulator records --print-settings > fleet.toml

    anonymizer serve --config fleet.toml

    simulator records --vehicles 500 --rate 0.5 --duration 300
    """


@publishes(qos=1)
def records(
    *,
    vehicles: Annotated[int, typer.Option(min=1, max=10_000_000)] = 500,
    rate: Annotated[
        float, typer.Option(callback=above_zero, metavar="HZ", help="Parts per second and vehicle.")
    ] = 0.5,
    seed: Seed = 0,
    duration: Duration = None,
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print matching gateway settings; send nothing."),
    ] = False,
    quiet: Quiet = False,
    outlet: MakeOutlet,
) -> None:
    """Simulate vehicles that send parts of records: registration, driver's profile, telemetry.

    Topics are records/registration/ID, records/profile/ID and records/telemetry/ID. Of ten parts
    of a vehicle, one is its registration and one its driver's profile. The attributes are
    correlated: trucks are slow, old vehicles have faults. The values depend only on the seed.
    """
    from simulator.record_fleet import SETTINGS, RecordFleet

    if print_settings:
        typer.echo(SETTINGS, nl=False)
        return
    where = outlet()
    fleet = RecordFleet(vehicles, rate_hz=rate, duration_s=duration, seed=seed)
    play_source(fleet, where, encode=fleet.encode, quiet=quiet)
